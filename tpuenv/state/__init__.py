"""What is in the state bucket: versions of states, locks, marks of unfinished applies; and the bucket itself.

Imports tpuenv.google and tpuenv.terraform.
"""
