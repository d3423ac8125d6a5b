"""Which Ray clusters and Ray jobs KubeRay does not start. KubeRay 1.7.0.

Imports admission's own base: rules, manifest, result, syntax.
"""
