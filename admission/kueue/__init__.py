"""What Kueue does with a workload. Kueue 0.19.2. Imports admission.api_server, and admission's own base.

workload_reader reads a manifest, webhooks and topology have what is refused, route the way from a job to a LocalQueue
and its ClusterQueue, flavors why pods fit a flavor or not (labels, taints, quota), placement which one they get,
preemption which workloads would be stopped for it, features what else a manifest asks of Kueue.
"""
