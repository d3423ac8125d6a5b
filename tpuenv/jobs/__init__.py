"""Workloads: recipes that are run, manifests in files, folders and standard input, and whether the environment's queues
would admit them.

Imports admission/, environment/, manifests/ and tpuenv.failure.
"""
