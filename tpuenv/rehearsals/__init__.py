"""What `tpuenv rehearse` and `tpuenv rehearse-pipeline` do in a world of rehearsal/: deploy with the real CDKTF CLI
(cdktf), submit workloads, run builds, print the parts with their times.

Imports rehearsal/, tpuenv.review and tpuenv.verification.
"""
