"""What the API server asks of every pod template, and the namespace of a pod: Kueue admits what no pod is made of.

A Job is refused for it at once. A JobSet, RayJob or RayCluster is not: its controller fails to make the pods, or the
Jobs, later, and only its events tell.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from environment.admission.cluster import Cluster
from environment.admission.manifest import Field, PodSet, Workload
from environment.admission.refusals import LABEL_1035, NAME_FIX, longest
from environment.admission.result import Reason, Verdict
from environment.names import TEAM_ACCOUNT

_LABEL = "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
# KubeRay 1.7.0, ray-operator/controllers/ray/utils: of 63 characters 10 are for Services, and 6 for a RayJob's cluster.
_LONGEST_NAMES = {"RayCluster": 53, "RayJob": 47}
_OF_JOBS = ("Never", "OnFailure")  # restart policies of the pods of a Job
_OF_PODS = ("Always", *_OF_JOBS)


def pod_reasons(workload: Workload) -> Iterator[Reason]:
    """Why no pod would be made of a template, whatever the cluster."""
    yield from _ray_name(workload)
    for pods in workload.pod_sets:
        if pods.template.value is not None:
            yield from _restart_policy(workload, pods)
            yield from _containers(workload, pods)


def account_reasons(cluster: Cluster, workload: Workload) -> Iterator[Reason]:
    """Service accounts that the namespace does not have, where it is known which it has."""
    known = cluster.service_accounts.get(workload.namespace)
    for pods in workload.pod_sets:
        named = pods.spec.get("serviceAccountName")
        account = named.text() or pods.spec.get("serviceAccount").text()
        if known and account and account not in known:
            use = f"use {TEAM_ACCOUNT}, which reads and writes the team's bucket" if TEAM_ACCOUNT in known else ""
            yield Reason(
                verdict=Verdict.NEVER,
                code="unknown-service-account",
                where=named.path,
                what=f"namespace {workload.namespace} has no service account '{account}', so no pod is made",
                fix=use or f"use {' or '.join(sorted(known))}",
            )


def _ray_name(workload: Workload) -> Iterator[Reason]:
    most, name = _LONGEST_NAMES.get(workload.kind), longest(workload.name)
    if most and len(name) > most:
        what = f"has {len(name)} characters; KubeRay takes {most}"
        yield _never_made(workload, "name-too-long", "metadata.name", what, f"shorten it by {len(name) - most}")
    elif most and re.fullmatch(LABEL_1035, name) is None and re.fullmatch(_LABEL, name):
        yield _never_made(workload, "bad-name", "metadata.name", f"'{name}' is no name to KubeRay", NAME_FIX)


def _restart_policy(workload: Workload, pods: PodSet) -> Iterator[Reason]:
    policy = pods.spec.get("restartPolicy")
    of_job = workload.kind in ("Job", "JobSet") or pods.path == "spec.submitterPodTemplate"
    allowed: tuple[str, ...] = _OF_JOBS if of_job else _OF_PODS
    # What the API server fills in is Always; JobSet's webhook fills in OnFailure before that, KubeRay Never.
    default = "OnFailure" if workload.kind == "JobSet" else "Always"
    if pods.name == "head" and workload.manifest.get("spec", "submissionMode").text() == "SidecarMode":
        allowed, default = ("Never",), "Never"
    found = policy.text() or default
    if found not in allowed:
        says = f"is {found}" if policy.value else "is missing, which means Always"
        yield _never_made(
            workload,
            "restart-policy",
            policy.path,
            f"{says}; there are {', '.join(allowed)}",
            f"set it to {allowed[0]}",
        )


def _containers(workload: Workload, pods: PodSet) -> Iterator[Reason]:
    volumes = {each.get("name").text() for each in pods.spec.get("volumes").items()} | _claimed(workload)
    names: set[str] = set()
    for container in [*pods.spec.get("containers").items(), *pods.spec.get("initContainers").items()]:
        name = container.get("name").text()
        if not container.get("image").text():
            place = container.get("image").path
            yield _never_made(workload, "no-image", place, "is missing", "name the image to run")
        if name and not re.fullmatch(_LABEL, name):
            place = container.get("name").path
            fix = "use at most 63 lower-case letters, digits and hyphens"
            yield _never_made(workload, "bad-name", place, f"'{name}' cannot name a container", fix)
        if name and name in names:
            place = container.get("name").path
            yield _never_made(
                workload, "same-name", place, f"'{name}' names another container too", "names must differ"
            )
        names.add(name)
        for mount in container.get("volumeMounts").items():
            yield from _mount(workload, mount, volumes)


def _mount(workload: Workload, mount: Field, volumes: set[str]) -> Iterator[Reason]:
    volume = mount.get("name")
    if volume.text() and volume.text() not in volumes:
        there = ", ".join(sorted(volumes)) or "none"
        yield _never_made(
            workload,
            "unknown-volume",
            volume.path,
            f"there is no volume '{volume.text()}'",
            f"add it to the pod's volumes, of which there are: {there}",
        )


def _claimed(workload: Workload) -> set[str]:
    """The volumes that JobSet adds for its volumeClaimPolicies."""
    policies = workload.manifest.get("spec", "volumeClaimPolicies").items() if workload.kind == "JobSet" else []
    templates = [template for policy in policies for template in policy.get("templates").items()]
    return {template.get("metadata", "name").text() for template in templates}


def _never_made(workload: Workload, code: str, where: str, what: str, fix: str) -> Reason:
    if workload.kind == "Job":
        return Reason(verdict=Verdict.REFUSED, code=code, where=where, what=what, fix=fix)
    what = f"{what}; the {workload.kind} is accepted, but no pod of these is ever made"
    return Reason(verdict=Verdict.NEVER, code=code, where=where, what=what, fix=fix)
