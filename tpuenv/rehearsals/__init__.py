"""What `tpuenv rehearse` (whole_environment) and `tpuenv rehearse-pipeline` (pipeline, commit, build_log) do.

In a world of rehearsal/ (world) they deploy with the real CDKTF CLI (cdktf_in_world), submit workloads (submissions),
verify every team (verification), run builds, and print the parts with their times (parts).

Imports admission/, rehearsal/, manifests/, tpuenv.jobs, tpuenv.terraform and tpuenv.verification.
"""
