"""The rehearsals of the environment and of its pipeline: their world, their parts, the cdktf CLI and builds in it.

Imports rehearsal/, and tpuenv.review.
"""
