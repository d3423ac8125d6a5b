"""Workloads: manifests in files. Imports admission/ and environment/."""
