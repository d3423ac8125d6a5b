"""Why pods have no node: what the scheduler, GKE's autoscaler and the volumes say.

Texts: Kubernetes 1.34: pkg/scheduler/framework/plugins; the cluster autoscaler's NotTriggerScaleUp; GKE's own, which
https://cloud.google.com/kubernetes-engine/docs/troubleshooting/cluster-autoscaler-scale-up describes: "Node scale up in
zones ... associated with this pod failed: GCE out of resources. Pod is at risk of not being scheduled."
"""

from __future__ import annotations

import re

from tpuenv.jobs.diagnosis.cause import WHERE, Cause, Pattern, event_words, grouped, shown
from tpuenv.jobs.diagnosis.snapshot import Snapshot, time_of
from tpuenv.jobs.pod import Pod
from tpuenv.kubernetes.objects import Object
from vocabulary.keys import TPU

_FAILED, _NOT, _TRIGGERED = ("FailedScaleUp",), ("NotTriggerScaleUp",), ("TriggeredScaleUp",)
_WAIT = "wait, the autoscaler tries again; or submit it to a pool group with other capacity"

# In their order: what is said first explains what follows.
_PATTERNS = (
    Pattern(
        code="stock-out",
        reasons=_FAILED,
        text=r"(?:Node scale up in zones (?P<zones>.+?) associated.*)?(?:GCE out of resources|GCE_STOCKOUT)",
        cause="no machine for {where}: Google has none of this type now in {zones} (stock-out)",
        fix=_WAIT,
    ),
    Pattern(
        code="google-quota",
        reasons=_FAILED,
        text=r"(?:Node scale up in zones (?P<zones>.+?) associated.*)?GCE quota exceeded",
        cause="no machine for {where}: the project's Google quota is used up in {zones}",
        fix="an administrator asks for more TPU quota in IAM & Admin > Quotas, or deletes what uses it",
    ),
    Pattern(
        code="ip-space",
        reasons=_FAILED,
        text=r"IP space exhausted",
        cause="no machine for {where}: the subnet has no addresses left",
        fix="an administrator enlarges the ranges of the subnet",
    ),
    Pattern(
        code="scale-up-failed",
        reasons=_FAILED,
        text=r"associated with this pod failed: (?P<why>.+?)\.?(?: Pod is at risk|$)",
        cause="no machine for {where}: Google could not create it ({why})",
        fix=_WAIT,
    ),
    Pattern(
        code="volume-claim",
        text=r'persistentvolumeclaim "(?P<claim>[^"]+)" (?:not found|is being deleted)',
        cause="no node for {where}: the volume claim {claim} does not exist",
        fix="create the PersistentVolumeClaim, or correct claimName in the job's volumes",
    ),
    Pattern(
        code="volume-unbound",
        text=r"unbound immediate PersistentVolumeClaims|bound to non-existent pv|didn't find available persistent vol",
        cause="no node for {where}: a PersistentVolumeClaim of the job has no volume",
        fix="look at it with `kubectl describe pvc`; its storage class must be able to create the volume",
    ),
    Pattern(
        code="volume-zone",
        text=r"no available volume zone|didn't match PersistentVolume's node affinity|volume node affinity conflict",
        cause="no node for {where}: its volume is in another zone than the slice",
        fix="create the volume in the zone of the pool group, or use the team's bucket",
    ),
    Pattern(
        code="being-created",
        reasons=_TRIGGERED,
        text=r".",
        cause="no node for {where} yet: it is being created",
        fix="wait some minutes: a TPU node takes up to 15",
    ),
    Pattern(
        code="node-going",
        text=r"untolerated taint \{(?P<taint>cloud\.google\.com/impending-node-termination|"
        r"node\.kubernetes\.io/(?:not-ready|unreachable|out-of-service|network-unavailable))[^}]*\}",
        cause="no node for {where}: a node of its slice is broken or being replaced (taint {taint})",
        fix="wait some minutes, GKE repairs nodes by itself; if it stays, an administrator looks at the node pool",
    ),
    Pattern(
        code="node-cordoned",
        text=r"node\(s\) were unschedulable|untolerated taint \{node\.kubernetes\.io/unschedulable",
        cause="no node for {where}: a node of its slice takes no pods (cordoned: maintenance, an upgrade or a repair)",
        fix="wait for its end; if nothing goes on there, an administrator runs `kubectl uncordon`",
    ),
    Pattern(
        code="chips-in-use",
        text=rf"Insufficient {re.escape(TPU)}",
        cause="no node for {where}: other pods use the chips of the nodes that suit",
        fix="`tpuenv status` shows the jobs; wait for one, or cancel it",
    ),
    Pattern(
        code="taint",
        text=rf"untolerated taint \{{(?P<taint>(?!{re.escape(TPU)})[^}}]+)\}}",
        cause="no node for {where}: the nodes have the taint {taint}, which its pods do not tolerate",
        fix="add it to the tolerations of the pod template, and submit it again",
    ),
    Pattern(
        code="exclusive",
        text=r"didn't satisfy existing pods anti-affinity rules|didn't match pod (?:anti-)?affinity rules",
        cause="no node for {where}: each slice that suits belongs to another job (exclusive-topology)",
        fix="wait until one is free; `tpuenv status` shows the jobs",
    ),
    Pattern(
        code="too-few-cores",
        text=r"Insufficient (?P<resource>cpu|memory|ephemeral-storage)",
        cause="no node for {where}: none that suits has enough {resource} left",
        fix="ask for less {resource} in the requests of the containers",
    ),
    Pattern(
        code="largest-size",
        reasons=_NOT,
        text=r"max node group size reached|max cluster (?:cpu|memory|limit)",
        cause="no node for {where}: its node pool is as large as it may get",
        fix="wait until a job ends, or let an administrator raise slices in fleet.yaml (CPU_MAX_NODES for pods "
        "without chips)",
    ),
    Pattern(
        code="backoff",
        reasons=_NOT,
        text=r"in backoff after failed scale-up",
        cause="no machine for {where}: creating one failed a short time ago, and the autoscaler pauses",
        fix=_WAIT,
    ),
    Pattern(
        code="no-node",
        text=r"didn't match Pod's node affinity/selector|0/0 nodes are available|no nodes available|untolerated taint",
        cause="no node for {where}: none takes it that has the labels it selects ({selector})",
        fix="if the pool group is autoscaled, wait some minutes; otherwise the slice is broken or deleted: an "
        "administrator looks at the node pool",
    ),
    Pattern(
        code="no-node",
        text=r"(?P<why>.*)",
        cause="no node for {where}: {why}",
        fix="wait some minutes; then an administrator looks at the node pool",
    ),
)

_SCHEDULER = "FailedScheduling"


def scheduling_causes(snapshot: Snapshot) -> list[Cause]:
    """Of the pods without a node."""
    waiting = [pod for pod in snapshot.job.pods if pod.phase == "Pending" and pod.unschedulable]
    return grouped(snapshot.job, (_cause(snapshot, pod) for pod in waiting))


def _cause(snapshot: Snapshot, pod: Pod) -> tuple[Pod, str, str, str, str]:
    said = [
        (str(event.get("reason")), str(event.get("message") or ""), event_words(event))
        for event in reversed(_of_pod(snapshot, pod))
    ]
    said.append((_SCHEDULER, pod.unschedulable, f"Pod {pod.name}: {_SCHEDULER}: {shown(pod.unschedulable)}"))
    names = {"where": WHERE, "zones": "its zone", "selector": _label_that_differs(snapshot, pod)}
    for pattern in _PATTERNS:
        for reason, text, evidence in said:
            if pattern.reasons or reason == _SCHEDULER:
                known = pattern.cause_of(reason, text, **names)
                if known:
                    return pod, pattern.code, *known, evidence
    raise AssertionError("the last pattern takes any text")


def _of_pod(snapshot: Snapshot, pod: Pod) -> list[Object]:
    """Its events, and the autoscaler's about its slice: those since it last tried, and of a try what became of it."""
    slice_ = {other.name for other in snapshot.job.pods if (other.part, other.slice) == (pod.part, pod.slice)}
    mine = [
        item
        for item in snapshot.events
        if (name := (item.get("involvedObject") or {}).get("name")) == pod.name
        or (name in slice_ and item.get("reason") in _FAILED + _NOT + _TRIGGERED)
    ]
    since = max((time_of(item) for item in mine if item.get("reason") in _TRIGGERED), default="")
    mine = [item for item in mine if item.get("reason") not in _FAILED + _NOT or time_of(item) >= since]
    over = any(item.get("reason") in _FAILED + _NOT for item in mine)
    return [item for item in mine if not over or item.get("reason") not in _TRIGGERED]


def _label_that_differs(snapshot: Snapshot, pod: Pod) -> str:
    """Of what the pod selects, the labels that no node has; where nodes are not known, all of them."""
    selector = (pod.body.get("spec") or {}).get("nodeSelector") or {}
    labels = [node["metadata"].get("labels") or {} for node in snapshot.of_kind("Node")]
    alone = {key: value for key, value in selector.items() if not any(have.get(key) == value for have in labels)}
    asked = alone if labels and alone else selector
    return ", ".join(f"{shown(key)}: {shown(value)}" for key, value in asked.items()) or "none"
