"""Which RayJobs KubeRay 1.7.0 does not start, its feature gates at their defaults. It accepts them all the same."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import yaml

from admission.kuberay.clusters import LATER
from admission.rule import Finding, RuleBook, not_negative
from admission.workload import Field, Workload
from vocabulary.printable import brief

BOOK = RuleBook(source="KubeRay 1.7.0 ray-operator/controllers/ray/utils/validation.go", later=LATER)
_SCHEMA = RuleBook(source="KubeRay 1.7.0 ray-operator/apis/ray/v1/rayjob_types.go", rules=BOOK.rules)
_JOB = ("RayJob",)
_POLICIES = ("DeleteWorkers", "DeleteCluster", "DeleteSelf")  # each may not come before the one before it
_OF_CLUSTERS = ("DeleteCluster", "DeleteWorkers")


def _selects(workload: Workload) -> bool:
    return bool(workload.spec.get("clusterSelector").mapping())


def _retries(workload: Workload) -> int:
    return workload.spec.get("backoffLimit").number(0)


def _mode(workload: Workload) -> str:
    return workload.spec.get("submissionMode").text("K8sJobMode")


@BOOK.rule("ray-job-times", "ValidateRayJobSpec", _JOB)
def _times(workload: Workload) -> Iterator[Finding]:
    spec = workload.spec
    deadline = spec.get("activeDeadlineSeconds")
    yield from not_negative(spec.get("ttlSecondsAfterFinished"))
    yield from not_negative(spec.get("backoffLimit"))
    if deadline.number(1) < 1:
        yield deadline.path, f"{deadline.value} is not over 0", "set 1 or more"


@_SCHEMA.rule("ray-job-numbers", "RayJobSpec", _JOB, later="")
def _numbers(workload: Workload) -> Iterator[Finding]:
    for number in (workload.spec.get(key) for key in ("entrypointNumCpus", "entrypointNumGpus")):
        if number.value is not None and (isinstance(number.value, bool) or not isinstance(number.value, (int, float))):
            yield number.path, f"{brief(number.value)} is not a number", "write one without quotes"


@BOOK.rule("ray-job-retries", "ValidateRayJobSpec", _JOB)
def _backoff(workload: Workload) -> Iterator[Finding]:
    limit = workload.spec.get("backoffLimit").path
    if _retries(workload) > 0 and _selects(workload):
        yield limit, "a RayJob on a RayCluster that exists is not tried again", "remove it"
    elif _retries(workload) > 0 and _mode(workload) == "InteractiveMode":
        yield limit, "an interactive RayJob is not tried again", "remove it"


@BOOK.rule("ray-job-selector", "ValidateRayJobSpec", _JOB)
def _selector(workload: Workload) -> Iterator[Finding]:
    selector = workload.spec.get("clusterSelector")
    if not _selects(workload):
        return
    if not selector.get("ray.io/cluster").text():
        yield selector.path, "names no RayCluster", "set ray.io/cluster to its name"
    if workload.spec.get("suspend").flag():
        yield "spec.suspend", "a RayJob on a RayCluster that exists cannot be suspended", "remove it"
    if _mode(workload) == "SidecarMode":
        yield "spec.submissionMode", "SidecarMode needs a RayCluster of its own", "use K8sJobMode"


@BOOK.rule("ray-job-sidecar", "ValidateRayJobSpec", _JOB)
def _sidecar(workload: Workload) -> Iterator[Finding]:
    for key in ("submitterPodTemplate", "submitterConfig") if _mode(workload) == "SidecarMode" else ():
        if workload.spec.get(key).value is not None:
            yield f"spec.{key}", "is not for SidecarMode", "remove it"


@BOOK.rule("ray-job-environment", "ValidateRayJobSpec", _JOB)
def _runtime_env(workload: Workload) -> Iterator[Finding]:
    text = workload.spec.get("runtimeEnvYAML")
    try:
        parsed = yaml.safe_load(text.text())
    except (yaml.YAMLError, RecursionError, ValueError):
        yield text.path, "is not YAML", "correct it"
    else:
        if parsed is not None and not isinstance(parsed, dict):
            yield text.path, "is not a mapping in YAML", "write working_dir:, pip: or the like"


@BOOK.rule("ray-job-deletion", "validateDeletionConfiguration", _JOB)
def _deletion(workload: Workload) -> Iterator[Finding]:
    spec, strategy = workload.spec, workload.spec.get("deletionStrategy")
    ttl, shuts_down = spec.get("ttlSecondsAfterFinished"), spec.get("shutdownAfterJobFinishes").flag()
    if not shuts_down and ttl.number(0) > 0:
        yield ttl.path, "needs shutdownAfterJobFinishes: true", "set that too"
    if strategy.get("deletionRules").items() and shuts_down:
        what = "deletionRules and shutdownAfterJobFinishes exclude each other, and Kueue asks for the latter"
        yield strategy.get("deletionRules").path, what, "remove deletionRules"


@_SCHEMA.rule("ray-job-deletion-kind", "DeletionStrategy (CEL)", _JOB, later="")
def _deletion_kind(workload: Workload) -> Iterator[Finding]:
    strategy = workload.spec.get("deletionStrategy")
    if strategy.value is None:
        return
    old = [strategy.get(key).value is not None for key in ("onSuccess", "onFailure")]
    rules = strategy.get("deletionRules").value is not None
    if any(old) and rules:
        yield strategy.path, "onSuccess and onFailure exclude deletionRules", "keep one of the two ways"
    elif not all(old) and not rules:
        yield strategy.path, "needs onSuccess and onFailure, or deletionRules", "add what is missing"
    for rule in strategy.get("deletionRules").items():
        condition = rule.get("condition")
        given = [condition.get(key).value is not None for key in ("jobStatus", "jobDeploymentStatus")]
        if condition.value is not None and sum(given) != 1:
            yield condition.path, "must have either jobStatus or jobDeploymentStatus", "keep one of the two"


@BOOK.rule("ray-job-deletion-policy", "validateLegacyDeletionPolicies, validateDeletionRules", _JOB)
def _deletion_policies(workload: Workload) -> Iterator[Finding]:
    strategy = workload.spec.get("deletionStrategy")
    shuts_down = workload.spec.get("shutdownAfterJobFinishes").flag()
    autoscales = workload.cluster_spec.get("enableInTreeAutoscaling").flag()
    old = [strategy.get(key, "policy") for key in ("onSuccess", "onFailure") if strategy.get(key).value is not None]
    for policy in [*old, *(rule.get("policy") for rule in strategy.get("deletionRules").items())]:
        if policy.value is None and policy in old:
            yield policy.path, "is missing", f"set it to {', '.join(_POLICIES)} or DeleteNone"
        elif policy.text() in _OF_CLUSTERS and _selects(workload):
            yield policy.path, f"{policy.text()} is not for a RayCluster that exists", "use DeleteSelf or DeleteNone"
        elif policy.text() == "DeleteWorkers" and autoscales:
            yield policy.path, "DeleteWorkers is not for a cluster that scales itself", "use DeleteCluster"
        elif policy.text() == "DeleteNone" and policy in old and shuts_down:
            yield policy.path, "DeleteNone contradicts shutdownAfterJobFinishes", "use DeleteCluster"


@BOOK.rule("ray-job-deletion-order", "validateDeletionRules, validateTTLConsistency", _JOB)
def _deletion_order(workload: Workload) -> Iterator[Finding]:
    times: dict[tuple[str, str], dict[str, int]] = {}
    for rule in workload.spec.get("deletionStrategy", "deletionRules").items():
        condition, policy = rule.get("condition"), rule.get("policy").text()
        of = times.setdefault(_of(condition), {})
        if policy in of:
            yield rule.path, f"{policy} stands twice for '{' '.join(_of(condition)).strip()}'", "remove one of the two"
        of[policy] = condition.get("ttlSeconds").number(0)
    for of in times.values():
        ordered = [(policy, of[policy]) for policy in _POLICIES if policy in of]
        for (before, first), (after, then) in pairwise(ordered):
            if then < first:
                where = "spec.deletionStrategy.deletionRules"
                yield where, f"{after} comes {first - then} s before {before}", f"give {after} {first} s or more"


def _of(condition: Field) -> tuple[str, str]:
    return condition.get("jobStatus").text(), condition.get("jobDeploymentStatus").text()
