"""Reads and writes the state bucket: versions of states, locks, marks of unfinished applies, and the bucket itself.

Files: versions, locks, apply_marks, bucket. What is wrong with them, and how it is repaired, is recovery/. Imports
tpuenv.google.
"""
