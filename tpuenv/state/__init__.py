"""The state bucket, and what is in it: versions of states, locks, marks of unfinished applies.

Imports tpuenv.google and tpuenv.terraform.
"""
