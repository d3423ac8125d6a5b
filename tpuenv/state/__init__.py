"""Reads and writes the state bucket: versions of states, locks, marks of unfinished applies, and the bucket itself.

What is wrong with them, and how it is repaired, is recovery/. Imports tpuenv.google and tpuenv.terraform.
"""
