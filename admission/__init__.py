"""Would Kueue admit this workload: where, or why not? Pure Python, on queue objects as they stand in a cluster.

The rules are those of Kueue 0.19.2 (pkg/scheduler/flavorassigner, pkg/cache/scheduler, the classical preemption, and
partial admission), what GKE asks of pods on TPU hosts, and before them those of the API server, of the webhooks of
Kueue, of JobSet 0.12.0 and of KubeRay 1.7.0: `all_rules` has them in their order, docs/admission-rules.md lists them.
Not checked: other jobs that wait in the same queue, fair sharing, how Kueue schedules by topology, how
pods pack onto CPU nodes, and whether what a pod mounts or pulls exists.

Here: explain (runs the rules in their order, and stops or goes on by what they answer), result (the answer), workload
(a manifest and its fields as objects that rules read), rule (the form of a rule), boundary (what the namespace of a
team does not take), cluster (the queue objects),
correction and shortages (what to change), known_faults (of the pinned versions), syntax.

Imports vocabulary/ alone. Knows no Environment.
"""

from __future__ import annotations

from admission.explain import explain
from admission.result import Explanation, PodSetPlan, Reason, Verdict
from admission.workload import NotAWorkload

__all__ = ["Explanation", "NotAWorkload", "PodSetPlan", "Reason", "Verdict", "explain"]
