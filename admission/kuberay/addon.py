"""Which Ray clusters the webhook of GKE's Ray add-on refuses; those of RayJobs it sees with what Kueue fills in.

That numOfHosts is the hosts of a slice, which it wants too, is in admission/gke/slices.py, where the slice is known.
"""

from __future__ import annotations

from collections.abc import Iterator

from admission.rule import Finding, RuleBook
from admission.workload import Field, Workload
from vocabulary.keys import TOPOLOGY_LABEL, TPU

BOOK = RuleBook(source="ai-on-gke/kuberay-tpu-webhook of May 2026, main.go")


@BOOK.rule("ray-topology", "checkWorkersMatchTopology", ("RayCluster",), parts=Workload.worker_groups)
def _topology(group: Field) -> Iterator[Finding]:
    pod = group.get("template", "spec")
    has_chips = any(TPU in item.get("resources", "limits").mapping() for item in pod.get("containers").items())
    if has_chips and not pod.get("nodeSelector", TOPOLOGY_LABEL).text():
        where = f"{pod.path}.nodeSelector"
        yield where, f"says no {TOPOLOGY_LABEL}, which the add-on counts the hosts by", "add it, such as 4x4"
