"""Workloads: manifests in files, folders and standard input.

Imports admission/, environment/ and tpuenv.failure.
"""
