"""Workloads: recipes that are run and their images, manifests in files, folders and standard input, and whether the
environment's queues would admit them.

Imports admission/, environment/, manifests/, tpuenv.google and tpuenv.failure.
"""
