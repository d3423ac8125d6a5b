"""The synthesized stacks, Terraform and cdktf run on them, their messages read and their errors explained.

Imports tpuenv.terminal and tpuenv.failure.
"""
