"""Workloads: recipes that are run and their images; manifests in files, folders and standard input, and whether the
environment's queues would admit them; jobs in the cluster: submitted, followed, listed, and diagnosed.

Imports admission/, environment/, manifests/, tpuenv.kubernetes, tpuenv.google, tpuenv.terminal and tpuenv.failure.
"""
