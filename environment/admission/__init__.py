"""Would Kueue admit this workload: where, or why not? Pure Python, on queue objects as they stand in a cluster.

The rules are those of Kueue 0.19.2 (pkg/scheduler/flavorassigner, pkg/cache/scheduler, the classical preemption, and
the webhooks of the four kinds), of JobSet 0.12.0 and KubeRay 1.7.0, and what GKE asks of pods on TPU hosts. Before them
come the API server's: which fields there are and what type they have, and the few of a pod's values without which no
pod is made. Not looked at: other jobs that wait in the same queue, fair sharing, topology-aware scheduling, partial
admission, LimitRanges, how pods pack onto CPU nodes, and whether what a pod mounts or pulls exists.
"""

from __future__ import annotations

from environment.admission.explain import explain
from environment.admission.manifest import NotAWorkload
from environment.admission.result import Explanation, PodSetPlan, Reason, Verdict

__all__ = ["Explanation", "NotAWorkload", "PodSetPlan", "Reason", "Verdict", "explain"]
