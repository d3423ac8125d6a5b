"""What an Autopilot cluster takes of pods: GKE's own webhook refuses the rest, in a Job when it is created, and else as
its pods are.

Constraints, with their names: GKE, "Security measures in Autopilot" and the reference of WorkloadAllowlist; what they
say of a label or a toleration: GoogleCloudPlatform/ai-on-gke pull request 983, k8s-stackdriver issue 1079. Of the
labels of Google and Kubernetes the list of those that are taken is not published, so that only two are known to be
refused.
"""

from __future__ import annotations

from collections.abc import Iterator

from admission.api_server.pods import containers, templates
from admission.rule import PODS, Finding, RuleBook
from admission.workload import Field, PodSet, containers_of
from vocabulary.keys import ACCELERATOR_LABEL, POOL_LABEL, TOPOLOGY_LABEL, TPU

BOOK = RuleBook(source="GKE Autopilot", later=PODS)

_CAPABILITIES = (
    *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "NET_RAW"),
    *("SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT", "SYS_PTRACE"),
)
_READABLE = "/var/log"
_REFUSED_LABELS = (POOL_LABEL, "kubernetes.io/hostname")
_KNOWN_DOMAINS = ("google.com", "gke.io", "kubernetes.io", "k8s.io")


@BOOK.rule("host-namespace", "autogke-disallow-hostnamespaces", parts=templates)
def _host_namespaces(pods: PodSet) -> Iterator[Finding]:
    for key in ("hostNetwork", "hostPID", "hostIPC"):
        if pods.spec.get(key).flag():
            yield pods.spec.get(key).path, "is not allowed on Autopilot", "remove it; pods of a slice reach each other"


@BOOK.rule("privileged", "autogke-disallow-privilege", parts=containers)
def _privileged(container: Field) -> Iterator[Finding]:
    privileged = container.get("securityContext", "privileged")
    if privileged.flag():
        yield privileged.path, "is not allowed on Autopilot", "remove it; TPUs need no privileges there"


@BOOK.rule("linux-capability", "autogke-default-linux-capabilities", parts=containers)
def _capabilities(container: Field) -> Iterator[Finding]:
    for capability in container.get("securityContext", "capabilities", "add").items():
        if capability.text().removeprefix("CAP_") not in _CAPABILITIES:
            allowed = f"remove it; there are {', '.join(_CAPABILITIES)}"
            yield capability.path, f"{capability.text()} is not allowed on Autopilot", allowed


@BOOK.rule("host-port", "autogke-no-host-port", parts=containers)
def _host_ports(container: Field) -> Iterator[Finding]:
    for port in container.get("ports").items():
        if port.get("hostPort").number(0):
            yield port.get("hostPort").path, "is not allowed on Autopilot", "remove it; containerPort is enough"


@BOOK.rule("host-path", "autogke-no-write-mode-hostpath", parts=templates)
def _host_paths(pods: PodSet) -> Iterator[Finding]:
    volumes = {item.get("name").text(): item.get("hostPath") for item in pods.spec.get("volumes").items()}
    for mount in (mount for container in containers_of(pods.spec) for mount in container.get("volumeMounts").items()):
        volume = volumes.get(mount.get("name").text(), Field(None))
        path = volume.get("path").text()
        if volume.value is not None and not f"{path}/".startswith(f"{_READABLE}/"):
            yield mount.path, f"{path} of the node is not allowed on Autopilot", "use an emptyDir or the team's bucket"
        elif volume.value is not None and not mount.get("readOnly").flag():
            yield mount.path, "writes to the node, which is not allowed on Autopilot", "set readOnly: true"


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


@BOOK.rule("tpu-toleration", "autogke-tpu-limitation", parts=templates)
def _tpu_toleration(pods: PodSet) -> Iterator[Finding]:
    named = [item for item in pods.spec.get("tolerations").items() if item.get("key").text() == TPU]
    if named and not pods.requests.get(TPU):
        yield named[0].path, f"{TPU} is tolerated by pods that ask for none, which Autopilot refuses", "remove it"
