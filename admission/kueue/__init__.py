"""What Kueue does with a workload: its webhooks, the way to a queue, flavors, preemption. Kueue 0.19.2.

Imports admission.api_server, and admission's own base.
"""
