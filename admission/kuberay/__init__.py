"""Which Ray clusters and Ray jobs KubeRay does not start. KubeRay 1.7.0.

clusters: RayClusters, jobs: RayJobs, addon: what GKE's Ray add-on refuses besides.

Imports admission's own base: rule, workload, result, syntax.
"""
