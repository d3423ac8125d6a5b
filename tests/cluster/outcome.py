"""What Kueue makes of a job, read from the Workload that it keeps for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.cluster.api import ApiServer, Object, Refused
from vocabulary.team_rules import RULES

ADMITTED, PENDING, REFUSED, NOT_QUEUED = "admitted", "pending", "refused", "not queued"

# What our verdicts are in Kueue's terms: a job that can never start waits there for ever, or was refused at once.
MEANT: Mapping[str, tuple[str, ...]] = {
    "admitted": (ADMITTED,),
    "waits": (PENDING,),
    "never": (PENDING, REFUSED, NOT_QUEUED),
    "refused": (REFUSED,),
}

# By reason of an answer: who refuses the job, or never runs it, after Kueue has admitted it. Kueue counts resources; it
# knows nothing of slices, hosts, images, or of what GKE's webhook and the scheduler ask of a pod.
STRICTER_THAN_KUEUE: Mapping[str, str] = {
    "chips-limit": "the API server refuses the pods",
    "chips-per-host": "the scheduler",
    "exclusive-topology": "the scheduler",
    "hosts-per-slice": "GKE's webhook and libtpu",
    "missing-parallelism": "GKE's webhook and libtpu",
    "multislice-of-one-host": "libtpu",
    "no-chips-requested": "libtpu",
    "no-completions": "GKE's webhook and libtpu",
    "no-image": "the API server refuses the pods",
    "no-pods": "KubeRay makes none",
    "no-such-node": "the scheduler",
    "no-pool-group": "the pods of one slice land on nodes of another",
    "node-too-small": "the scheduler",
    "not-indexed": "GKE's webhook and libtpu",
    "ray-slice": "Ray, or GKE's check of the ProvisioningRequest",
    "restart-policy": "the API server refuses the pods",
    "unknown-service-account": "the API server refuses the pods",
}


# Policies of the environment refuse members, and not the administrator who submits here.
POLICIES = {"uncounted", *(rule.code for rule in RULES)}


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """`flavors` are those of the pod sets that got any, by their names; `message` is Kueue's or the API server's."""

    kind: str
    message: str = ""
    flavors: Mapping[str, str] = field(default_factory=dict)


def expected(answer: Object) -> tuple[str, ...]:
    """What Kueue may do with the job of an answer of tests/admission."""
    reasons = answer.get("reasons", [])
    if stated := answer.get("on_a_cluster"):
        return (stated,)
    if reasons == ["preempts"]:
        return (ADMITTED,)  # it waits until the others are stopped
    later = STRICTER_THAN_KUEUE.keys() | POLICIES >= {*reasons}
    if later and (
        (answer["verdict"] == "never" and reasons) or (answer["verdict"] == "refused" and POLICIES & {*reasons})
    ):
        return (ADMITTED,)
    return MEANT[answer["verdict"]]


def submitted(api: ApiServer, manifest: Object) -> Object | Outcome:
    """The job as the API server keeps it, or how it was refused."""
    try:
        return api.create(manifest)
    except Refused as refused:
        return Outcome(kind=REFUSED, message=refused.message)


def outcome_of(api: ApiServer, job: Object) -> Outcome | None:
    """None while Kueue has not decided."""
    workload = workload_of(api, job)
    if workload is None:
        return None
    status = workload.get("status", {})
    reserved = next(
        (condition for condition in status.get("conditions", []) if condition["type"] == "QuotaReserved"), None
    )
    if reserved is None:
        return None
    if reserved["status"] != "True":
        return Outcome(kind=PENDING, message=str(reserved.get("message", "")))
    return Outcome(kind=ADMITTED, flavors=_flavors(status.get("admission", {})))


def workload_of(api: ApiServer, job: Object) -> Object | None:
    """The Workload that a job owns."""
    uid = job["metadata"].get("uid")
    return next(
        (
            workload
            for workload in api.list("Workload", job["metadata"]["namespace"])
            for owner in workload["metadata"].get("ownerReferences", [])
            if owner.get("uid") == uid and owner["kind"] == job["kind"]
        ),
        None,
    )


def _flavors(admission: Mapping[str, Any]) -> dict[str, str]:
    """The TPU flavor of a pod set, else the one that it got for its cores."""
    flavor_of = {}
    for assignment in admission.get("podSetAssignments", []):
        flavors = assignment.get("flavors", {})
        if flavor := flavors.get("google.com/tpu") or flavors.get("cpu"):
            flavor_of[assignment["name"]] = flavor
    return flavor_of
