"""What `tpuenv rehearse` and `tpuenv rehearse-pipeline` share: a world, its parts with their times, build logs.

Imports rehearsal/, and tpuenv.review.
"""
