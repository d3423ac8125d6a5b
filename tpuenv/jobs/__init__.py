"""Workloads: recipes that are run and their images; manifests in files, folders and standard input, and whether the
environment's queues would admit them; jobs in the cluster: submitted, followed, listed, and diagnosed.

Imports admission/, manifests/, tpuenv.kubernetes and tpuenv.google.
"""
