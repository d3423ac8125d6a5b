"""Terraform and the cdktf CLI in the folders of the synthesized stacks. Imports nothing but what every package may.

stacks synthesizes and lists them, process runs Terraform, messages reads its JSON output, errors explains its errors,
cdktf runs the CLI for a person.
"""
