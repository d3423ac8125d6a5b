"""Warden, GKE's own webhook on an Autopilot cluster: what it refuses of pods.

Constraints and words: https://cloud.google.com/kubernetes-engine/docs/concepts/autopilot-security and
.../reference/crds/workloadallowlist; kubeshark/kubeshark issue 1425, SigNoz/charts issue 310, SumoLogic's
sumologic-kubernetes-collection issue 3437, GoogleCloudPlatform/ai-on-gke pull request 983, k8s-stackdriver issue 1079.
That TPUs need their labels: .../how-to/tpus-autopilot; in which words it says so is not known.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from rehearsal.google.gke import is_autopilot
from rehearsal.google.network import CLUSTER
from rehearsal.kubernetes.objects import Object, Objects, chips_of
from rehearsal.kubernetes.status import Status
from vocabulary.keys import ACCELERATOR_LABEL, POOL_LABEL, TOPOLOGY_LABEL, TPU

_HOST_NAMESPACES = ("hostNetwork", "hostPID", "hostIPC")
_CAPABILITIES = (
    *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "NET_RAW"),
    *("SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT", "SYS_PTRACE"),
)
_HOST_PATHS = "/var/log/"
# Of Google's and Kubernetes' labels those that are known to be refused; with a toleration, others separate workloads.
_REFUSED_LABELS = (POOL_LABEL, "kubernetes.io/hostname")
_THEIR_LABELS = ("google.com", "kubernetes.io", "k8s.io", "gke.io")


def is_watched(api: Objects) -> bool:
    """Whether the cluster is an Autopilot one."""
    return is_autopilot(api.cloud.get(CLUSTER, api.cluster))


def review(api: Objects, body: Object) -> None:
    """Raises Status for a pod, or a Job of pods, that Autopilot does not take."""
    spec = {"Pod": body.get("spec"), "Job": (body.get("spec") or {}).get("template", {}).get("spec")}.get(body["kind"])
    if not spec or not is_watched(api):
        return
    details: dict[str, list[str]] = {}
    for constraint, words in violations(spec):
        details.setdefault(f"[denied by {constraint}]", []).append(words)
    if details:
        message = (
            'admission webhook "warden-validating.common-webhooks.networking.gke.io" denied the request: GKE Warden'
            f" rejected the request because it violates one or more constraints.\nViolations details: "
            f"{json.dumps(details)}"
        )
        raise Status(400, message, "GKE Warden constraints violations")


def violations(spec: Object) -> Iterator[tuple[str, str]]:
    """The constraint and Warden's words for each thing in a pod's spec that Autopilot does not take."""
    for name in _HOST_NAMESPACES:
        if spec.get(name):
            yield "autogke-disallow-hostnamespaces", f"enabling {name} is not allowed in Autopilot."
    paths = {
        item["name"]: item["hostPath"].get("path", "") for item in spec.get("volumes") or [] if item.get("hostPath")
    }
    for container in [*(spec.get("containers") or []), *(spec.get("initContainers") or [])]:
        yield from _of_container(container, paths)
    yield from _of_selectors(spec)


def _of_container(container: Object, paths: dict[str, str]) -> Iterator[tuple[str, str]]:
    name, security = container["name"], container.get("securityContext") or {}
    if security.get("privileged"):
        yield "autogke-disallow-privilege", f"container {name} is privileged; not allowed in Autopilot"
    for capability in (security.get("capabilities") or {}).get("add") or []:
        if capability.removeprefix("CAP_") not in _CAPABILITIES:
            words = f"linux capability '{capability}' on container '{name}' not allowed"
            yield "autogke-default-linux-capabilities", words
    ports = [port["hostPort"] for port in container.get("ports") or [] if port.get("hostPort")]
    if ports:
        listed = " ".join(map(str, ports))
        words = f"container {name} specifies host ports [{listed}], which are disallowed in Autopilot."
        yield "autogke-no-host-port", words
    for mount in container.get("volumeMounts") or []:
        path = paths.get(mount["name"])
        if path is None:
            continue
        volume = f"hostPath volume {mount['name']} used in container {name}"
        if not f"{path}/".startswith(_HOST_PATHS):
            allowed = f"Allowed path prefixes for hostPath volumes are: [{_HOST_PATHS}]."
            words = f"{volume} uses path {path} which is not allowed in Autopilot. {allowed}"
            yield "autogke-no-write-mode-hostpath", words
        elif not mount.get("readOnly"):
            yield "autogke-no-write-mode-hostpath", f"{volume} is accessed in write mode; disallowed in Autopilot."


def _of_selectors(spec: Object) -> Iterator[tuple[str, str]]:
    selector: dict[str, Any] = spec.get("nodeSelector") or {}
    tolerated = [item.get("key") for item in spec.get("tolerations") or []]
    for key in selector:
        if key in _REFUSED_LABELS or not (_is_theirs(key) or key in tolerated):
            words = f"Key '{key}' is not allowed with node selector"
            yield "autogke-node-affinity-selector-limitation", words
    asks = chips_of(spec) > 0
    if asks and not {ACCELERATOR_LABEL, TOPOLOGY_LABEL} <= selector.keys():
        yield "autogke-tpu-limitation", f"Pods that request {TPU} must select {ACCELERATOR_LABEL} and {TOPOLOGY_LABEL}."
    if not asks and TPU in tolerated:
        yield "autogke-tpu-limitation", f"The toleration with key '{TPU}' cannot be specified without a request for it."


def _is_theirs(key: str) -> bool:
    domain = key.partition("/")[0]
    return any(domain == known or domain.endswith(f".{known}") for known in _THEIR_LABELS)
