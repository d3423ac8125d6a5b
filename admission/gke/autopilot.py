"""What an Autopilot cluster takes of pods, beside what the namespace of a team takes (admission/boundary): GKE's own
webhook refuses the rest, in a Job when it is created, and else as its pods are.

Constraints, with their names: GKE, "Security measures in Autopilot" and the reference of WorkloadAllowlist; what they
say of a label or a toleration: GoogleCloudPlatform/ai-on-gke pull request 983, k8s-stackdriver issue 1079. Of the
labels of Google and Kubernetes the list of those that are taken is not published, so that only two are known to be
refused.
"""

from __future__ import annotations

from collections.abc import Iterator

from admission.api_server.pods import templates
from admission.rule import PODS, Finding, RuleBook
from admission.workload import PodSet
from vocabulary.keys import ACCELERATOR_LABEL, POOL_LABEL, TOPOLOGY_LABEL, TPU

BOOK = RuleBook(source="GKE Autopilot", later=PODS)

_REFUSED_LABELS = (POOL_LABEL, "kubernetes.io/hostname")
_KNOWN_DOMAINS = ("google.com", "gke.io", "kubernetes.io", "k8s.io")


@BOOK.rule("refused-label", "autogke-node-affinity-selector-limitation", parts=templates)
def _labels(pods: PodSet) -> Iterator[Finding]:
    tolerated = {item.get("key").text() for item in pods.spec.get("tolerations").items()}
    selector = pods.spec.get("nodeSelector")
    expressions = [item for term in pods.node_affinity() for item in term.get("matchExpressions").items()]
    asked = [(key, selector.get(key).path) for key in pods.node_selector]
    for key, path in [*asked, *((item.get("key").text(), item.path) for item in expressions)]:
        domain = key.partition("/")[0]
        theirs = any(domain == known or domain.endswith(f".{known}") for known in _KNOWN_DOMAINS)
        if key in _REFUSED_LABELS or (key and not theirs and key not in tolerated):
            yield path, f"no node of an Autopilot cluster is made for {key}", "remove it"


@BOOK.rule("tpu-labels", "Deploy TPU workloads in GKE Autopilot", parts=templates)
def _tpu_labels(pods: PodSet) -> Iterator[Finding]:
    missing = [key for key in (ACCELERATOR_LABEL, TOPOLOGY_LABEL) if key not in pods.node_selector]
    if pods.requests.get(TPU) and missing:
        yield (
            pods.spec.get("nodeSelector").path,
            f"has no {' and no '.join(missing)}, by which Autopilot knows which TPUs to get",
            "add accelerator and topology of the slice",
        )
