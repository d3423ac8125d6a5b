"""What GKE's nodes ask of pods: labels, whole hosts, whole slices, the CPU pool.

Imports admission.kueue, and admission's own base.
"""
