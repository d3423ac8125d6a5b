"""Runs Terraform in the folder of a synthesized stack, and explains its errors.

Imports tpuenv.terminal and tpuenv.failure.
"""
