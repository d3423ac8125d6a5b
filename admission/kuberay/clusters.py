"""Which Ray clusters KubeRay 1.7.0 does not start, its feature gates at their defaults. It accepts them all the same.

Its controllers check an object once it exists, and report in events and, of a RayJob, in the status. Of the gates only
RayJobDeletionPolicy matters here and is on; RayClusterHistoryServer, RayClusterMTLS, RayClusterNetworkPolicy and
GCSFaultToleranceEmbeddedStorage are off.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from admission.rule import Finding, RuleBook, not_negative
from admission.syntax import (
    LABEL_VALUE_FIX,
    NAME_FIX,
    is_label_1035,
    is_label_value,
    is_qualified_name,
    is_subdomain,
    longest,
)
from admission.workload import Field, Workload
from vocabulary.printable import brief

RAY = ("RayCluster", "RayJob")
LATER = "KubeRay does not start it"
_NAMES_LATER = f"{LATER}, or its webhook, where that is on, refuses it"
BOOK = RuleBook(source="KubeRay 1.7.0 ray-operator/controllers/ray/utils/validation.go", later=LATER)
# Of 63 characters 10 are for Services, and 6 for a RayJob's cluster (constant.go).
_LONGEST_NAMES = {"RayCluster": 53, "RayJob": 47}
_FT_ANNOTATION = "ray.io/ft-enabled"
_STORAGE_ANNOTATION = "ray.io/external-storage-namespace"
_AUTOSCALER_V2 = "RAY_enable_autoscaler_v2"
_GATED = {
    "historyServerOptions": "RayClusterHistoryServer",
    "networkPolicy": "RayClusterNetworkPolicy",
    "tlsOptions": "RayClusterMTLS",
}


def _head(workload: Workload) -> Field:
    return workload.cluster_spec.get("headGroupSpec")


def _all_groups(workload: Workload) -> list[Field]:
    head = _head(workload)
    return [*([head] if head.value is not None else []), *workload.worker_groups()]


def _head_env(workload: Workload) -> dict[str, Field]:
    """The variables of Ray's container, which is the first."""
    containers = _head(workload).get("template", "spec", "containers").items()
    return {item.get("name").text(): item for container in containers[:1] for item in container.get("env").items()}


def _autoscales(workload: Workload) -> bool:
    return workload.cluster_spec.get("enableInTreeAutoscaling").flag()


def _is_v2(workload: Workload) -> bool:
    return workload.cluster_spec.get("autoscalerOptions", "version").text() == "v2"


def _may_use_v2(workload: Workload) -> bool:
    variable = _head_env(workload).get(_AUTOSCALER_V2)
    return _is_v2(workload) or bool(variable and variable.get("value").text() in ("1", "true"))


def ray_version(text: str) -> tuple[int, ...] | None:
    """Kubernetes' ParseGeneric; None for what is no version."""
    match = re.match(r"\s*v?([0-9]{1,9}(?:\.[0-9]{1,9})*)", text, re.ASCII)
    parts = tuple(map(int, match[1].split("."))) if match else ()
    return parts if len(parts) >= 2 else None


@BOOK.rule("name-too-long", "ValidateRayClusterMetadata, ValidateRayJobMetadata", RAY, later=_NAMES_LATER)
def _name_too_long(workload: Workload) -> Iterator[Finding]:
    most, name = _LONGEST_NAMES[workload.kind], longest(workload.name)
    if len(name) > most:
        yield "metadata.name", f"has {len(name)} characters; KubeRay takes {most}", f"shorten it by {len(name) - most}"


@BOOK.rule("bad-name", "ValidateRayClusterMetadata, ValidateRayJobMetadata", RAY, later=_NAMES_LATER)
def _bad_name(workload: Workload) -> Iterator[Finding]:
    name = longest(workload.name)
    if is_subdomain(name) and len(name) <= _LONGEST_NAMES[workload.kind] and not is_label_1035(name):
        yield "metadata.name", f"'{name}' is no name to KubeRay", NAME_FIX


@RuleBook(source="Kueue 0.19.2 mutating webhooks of RayCluster and RayJob", rules=BOOK.rules).rule(
    "no-ray-start-params", "which write rayStartParams: null, refused by KubeRay's schema", RAY, parts=_all_groups
)
def _start_params(group: Field) -> Iterator[Finding]:
    if group.get("rayStartParams").value is None:
        yield group.get("rayStartParams").path, "is missing", "add rayStartParams: {}"


@BOOK.rule("no-containers", "ValidateRayClusterSpec", RAY)
def _no_containers(workload: Workload) -> Iterator[Finding]:
    for group in workload.worker_groups() if workload.kind == "RayJob" else _all_groups(workload):
        containers = group.get("template", "spec", "containers")
        if containers.value == []:
            yield containers.path, "is empty", "add a container"


@BOOK.rule("ray-resources-twice", "validateRayGroupResources", RAY, parts=_all_groups)
def _resources(group: Field) -> Iterator[Finding]:
    params = group.get("rayStartParams").texts()
    if group.get("resources").mapping() and any(
        params.get(key) for key in ("num-cpus", "num-gpus", "memory", "resources")
    ):
        yield group.get("resources").path, "resources are in rayStartParams too", "keep them in one of the two"


@BOOK.rule("ray-labels", "validateRayGroupLabels", RAY, parts=_all_groups)
def _labels(group: Field) -> Iterator[Finding]:
    labels = group.get("labels")
    if "labels" in group.get("rayStartParams").mapping():
        yield group.get("rayStartParams").path, "takes no labels", f"put them into {labels.path}"
    for key, value in labels.texts().items():
        if not is_qualified_name(key) or not is_label_value(value):
            yield f"{labels.path}.{key}", f"{brief(key)}: {brief(value)} is no label", LABEL_VALUE_FIX


@BOOK.rule("ray-replicas", "ValidateRayClusterSpec", RAY, parts=Workload.worker_groups)
def _replicas(group: Field) -> Iterator[Finding]:
    lowest, highest = group.get("minReplicas"), group.get("maxReplicas")
    least = lowest.number(0)
    most = highest.number(2**31 - 1)
    yield from not_negative(lowest)
    yield from not_negative(highest)
    if least > most:
        yield lowest.path, f"{least} is more than maxReplicas, {most}", "swap them"


@BOOK.rule("ray-idle-timeout", "validateWorkerGroupIdleTimeout", RAY)
def _idle_timeout(workload: Workload) -> Iterator[Finding]:
    own = workload.cluster_spec.get("autoscalerOptions", "idleTimeoutSeconds")
    for item in [own, *(group.get("idleTimeoutSeconds") for group in workload.worker_groups())]:
        yield from not_negative(item)
        if item.number(0) >= 0 and item is not own and item.value is not None and not _may_use_v2(workload):
            yield item.path, "is for autoscaler v2", "set autoscalerOptions.version: v2, or remove it"


@BOOK.rule("ray-fault-tolerance", "ValidateRayClusterSpec", RAY)
def _fault_tolerance(workload: Workload) -> Iterator[Finding]:
    options, env = workload.cluster_spec.get("gcsFaultToleranceOptions"), _head_env(workload)
    annotations = workload.annotations
    params = _head(workload).get("rayStartParams")
    fix = f"set it in {options.path} instead"
    if options.value is not None:
        taken = [f"metadata.annotations.{key}" for key in (_FT_ANNOTATION, _STORAGE_ANNOTATION) if annotations.get(key)]
        if params.get("redis-password").text():
            taken.append(f"{params.path}.redis-password")
        taken += [env[key].path for key in ("REDIS_PASSWORD", "RAY_REDIS_ADDRESS") if key in env]
        for place in taken:
            yield place, "cannot stand beside gcsFaultToleranceOptions", fix
    elif annotations.get(_FT_ANNOTATION, "").lower() != "true" and "RAY_REDIS_ADDRESS" in env:
        what = "RAY_REDIS_ADDRESS means fault tolerance, and gcsFaultToleranceOptions is not set"
        yield env["RAY_REDIS_ADDRESS"].path, what, fix
    if params.get("redis-username").text():
        yield f"{params.path}.redis-username", "KubeRay takes no user name here", fix
    if "REDIS_USERNAME" in env:
        yield env["REDIS_USERNAME"].path, "KubeRay takes no user name here", fix


@BOOK.rule("ray-fault-tolerance-store", "validateGcsFaultToleranceBackend", RAY)
def _store(workload: Workload) -> Iterator[Finding]:
    options = workload.cluster_spec.get("gcsFaultToleranceOptions")
    backend, storage = options.get("backend"), options.get("storage")
    if backend.text() == "rocksdb":
        what = "rocksdb needs the feature gate GCSFaultToleranceEmbeddedStorage, which is off"
        yield backend.path, what, "use redis"
    elif storage.value is not None:
        yield storage.path, "is for the backend rocksdb", "remove it"


@BOOK.rule("ray-autoscaler", "ValidateRayClusterSpec", RAY)
def _autoscaler(workload: Workload) -> Iterator[Finding]:
    env, options = _head_env(workload), workload.cluster_spec.get("autoscalerOptions")
    variable = env.get(_AUTOSCALER_V2)
    if variable and not _autoscales(workload) and variable.get("value").text() in ("1", "true"):
        yield variable.path, f"{_AUTOSCALER_V2} needs enableInTreeAutoscaling", "remove it"
    if variable and _autoscales(workload) and options.get("version").value is not None:
        yield variable.path, f"{_AUTOSCALER_V2} cannot stand beside autoscalerOptions.version", "remove it"
    for item in options.get("env").items():
        if item.get("name").text() == "KUBERAY_GEN_AUTOSCALER_START_CMD":
            yield item.path, "KubeRay sets KUBERAY_GEN_AUTOSCALER_START_CMD itself", "remove it"
    for group in workload.worker_groups() if _autoscales(workload) else []:
        if group.get("suspend").flag():
            yield group.get("suspend").path, "no group can be suspended in a cluster that scales itself", "remove it"


@BOOK.rule("ray-autoscaler-restarts", "ValidateRayClusterSpec", RAY)
def _restarts(workload: Workload) -> Iterator[Finding]:
    for group in _all_groups(workload) if _autoscales(workload) and _is_v2(workload) else []:
        policy = group.get("template", "spec", "restartPolicy")
        if policy.text("Never") != "Never":
            yield policy.path, f"is {policy.text()}; autoscaler v2 takes Never", "set it to Never"


@BOOK.rule("ray-feature-off", "ValidateRayClusterSpec", RAY)
def _gates(workload: Workload) -> Iterator[Finding]:
    for key, gate in _GATED.items():
        field = workload.cluster_spec.get(key)
        if field.value is not None:
            yield field.path, f"needs the feature gate {gate}, which is off", "remove it"


@BOOK.rule("ray-auth", "ValidateRayClusterSpec, ValidateRayJobSpec", RAY)
def _auth(workload: Workload) -> Iterator[Finding]:
    options, version = workload.cluster_spec.get("authOptions"), workload.cluster_spec.get("rayVersion")
    number = ray_version(version.text()) or ()
    by_kubernetes = options.get("enableK8sTokenAuth")
    if by_kubernetes.flag() and workload.kind == "RayJob":
        yield by_kubernetes.path, "a RayJob takes no tokens of Kubernetes", "remove it"
    elif options.get("mode").text() == "token" and number < (2, 52):
        yield options.path, f"tokens need rayVersion 2.52.0 or newer, not {brief(version.text())}", "set rayVersion"
    elif by_kubernetes.flag() and options.get("mode").text() != "token":
        yield by_kubernetes.path, "needs mode: token", "set it"
    elif by_kubernetes.flag() and number < (2, 55):
        yield by_kubernetes.path, f"needs rayVersion 2.55.0 or newer, not {brief(version.text())}", "set rayVersion"
    elif by_kubernetes.flag() and options.get("secretName").text():
        yield options.get("secretName").path, "cannot stand beside enableK8sTokenAuth", "remove one of the two"


def notes(workload: Workload) -> Iterator[str]:
    """What is accepted, and open."""
    options = workload.cluster_spec.get("authOptions")
    if workload.kind in RAY and options.get("mode").text() != "token":
        yield f"{options.path} is not {{mode: token}}: whoever reaches its dashboard can run programs as the team"


@BOOK.rule("ray-upgrade", "ValidateRayClusterUpgradeOptions", ("RayJob",))
def _upgrade(workload: Workload) -> Iterator[Finding]:
    strategy = workload.cluster_spec.get("upgradeStrategy", "type")
    if strategy.value is not None:
        yield strategy.path, "cannot be set for the RayCluster of a RayJob", "remove it"


@RuleBook(source="KubeRay 1.7.0 ray-operator/apis/ray/v1", rules=BOOK.rules).rule(
    "bad-manager", "RayClusterSpec, RayJobSpec (CEL)", RAY
)
def _managed_by(workload: Workload) -> Iterator[Finding]:
    for manager in {item.path: item for item in (workload.spec, workload.cluster_spec)}.values():
        name = manager.get("managedBy")
        if name.value is not None and name.text() not in ("ray.io/kuberay-operator", "kueue.x-k8s.io/multikueue"):
            yield (
                name.path,
                f"{brief(name.text())} is not ray.io/kuberay-operator or kueue.x-k8s.io/multikueue",
                "remove it",
            )
