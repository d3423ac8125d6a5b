"""What GKE asks of pods, which Kueue does not check. Imports admission.kueue, and admission's own base.

slices: whole hosts and whole slices, for each flavor that pods get. node_labels: labels that no node has. cpu_pool:
pods without chips. spot: how soon pods there must end. autopilot: what an Autopilot cluster refuses.
"""
