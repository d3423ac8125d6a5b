"""What the members of a team may not put into their namespace: a row a rule, for whoever enforces or foretells it.

stacks/policies.py makes ValidatingAdmissionPolicies of the rows; admission/boundary holds manifests against them, and
the fake API server of a rehearsal refuses by those. The rows of pods hold all of Pod Security's level `baseline`
(k8s.io/pod-security-admission 0.34.1, policy/), so that no workload is admitted whose pods would then be refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from vocabulary.keys import ADMITTED_POD_LABEL, IMAGES_ANNOTATION, SYSTEM_TAINT, TPU

Value = bool | int | str


class Of(Enum):
    """What the paths of a row begin at."""

    POD = "a pod, or the template of one"
    TEMPLATE = "the template of a pod; an update may keep what Kueue has written there"
    WORKLOAD = "a Job, JobSet, RayCluster or RayJob"
    RAY = "what describes a Ray cluster: the spec of a RayCluster, or rayClusterSpec of a RayJob"
    SERVICE = "a Service"
    SECRET = "a Secret"


@dataclass(frozen=True, kw_only=True)
class TeamRule:
    """Of each path: `[*]` is every item of a list, `{prefix}` every value of a mapping whose key begins so, and
    `containers[*]` stands for init containers as well.

    An absent field counts as false, 0 or "". `allowed` are the values that are taken, and none means that the field may
    not be there; with `refused`, all values but these are taken; with `at_most`, numbers up to it. `prefixes` is an
    annotation of the namespace: what values begin with, with commas, and all are taken without it. `without_chips`:
    about pods that ask for no TPUs; `host_access`: not about pods with TPUs in the namespace of a team with
    host_access.
    """

    code: str
    of: Of
    paths: tuple[str, ...]
    allowed: tuple[Value, ...] = ()
    refused: tuple[Value, ...] = ()
    at_most: int = 0
    prefixes: str = ""
    why: str
    fix: str
    without_chips: bool = False
    host_access: bool = False

    @property
    def advice(self) -> str:
        """`fix`, and what else there is."""
        return f"{self.fix}; or give the team host_access, for its pods with TPUs" if self.host_access else self.fix


_NO_HOST = "pods of teams have no access to their host"
_REMOVE = "remove it; TPUs on GKE need none of it"
_PROFILES = ("", "RuntimeDefault", "Localhost")

POD_PRIORITIES = ("very-low", "low", "medium", "high", "very-high")  # the PriorityClasses of this environment: xpk's

# https://cloud.google.com/kubernetes-engine/docs/concepts/cluster-autoscaler#autoscaling_profiles
SCHEDULERS = ("default-scheduler", "gke.io/optimize-utilization-scheduler")

_CAPABILITIES = (
    *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP"),
    *("SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
)
_SYSCTLS = (
    *("kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.ip_local_reserved_ports"),
    *("net.ipv4.ip_unprivileged_port_start", "net.ipv4.ping_group_range", "net.ipv4.tcp_fin_timeout"),
    *("net.ipv4.tcp_keepalive_intvl", "net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_keepalive_time"),
    *("net.ipv4.tcp_rmem", "net.ipv4.tcp_syncookies", "net.ipv4.tcp_wmem"),
)


# Disks and shares that are named by whoever writes the pod; of these, claims are the environment's to give.
_FOREIGN_VOLUMES = (
    *("gcePersistentDisk", "awsElasticBlockStore", "azureDisk", "azureFile", "cephfs", "cinder", "fc", "flexVolume"),
    *("flocker", "gitRepo", "glusterfs", "iscsi", "photonPersistentDisk", "portworxVolume", "quobyte", "rbd"),
    *("scaleIO", "storageos", "vsphereVolume"),
)
_DRIVERS = ("gcsfuse.csi.storage.gke.io", "parallelstore.csi.storage.gke.io", "secrets-store-gke.csi.k8s.io")
_APART = "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[*]"
_EXCLUSIVE = "annotations{alpha.jobset.sigs.k8s.io/exclusive-topology}"
_CONTROLLERS = ("kubernetes.io/job-controller", "jobset.sigs.k8s.io/jobset-controller", "ray.io/kuberay-operator")
_GOES_ON = "its pods would go on after it is deleted, and nothing counts them"


def _of_pod_and_containers(path: str) -> tuple[str, ...]:
    return f"spec.securityContext.{path}", f"spec.containers[*].securityContext.{path}"


RULES: tuple[TeamRule, ...] = (
    TeamRule(
        code="host-network",
        of=Of.POD,
        paths=("spec.hostNetwork",),
        allowed=(False,),
        why=_NO_HOST,
        fix="remove it; the hosts of a slice reach each other without",
        host_access=True,
    ),
    TeamRule(
        code="host-port",
        of=Of.POD,
        paths=("spec.containers[*].ports[*].hostPort",),
        allowed=(0,),
        why=_NO_HOST,
        fix="remove it; containerPort is enough",
        host_access=True,
    ),
    TeamRule(
        code="privileged",
        of=Of.POD,
        paths=("spec.containers[*].securityContext.privileged",),
        allowed=(False,),
        why=_NO_HOST,
        fix=_REMOVE,
        host_access=True,
    ),
    TeamRule(
        code="host-processes",
        of=Of.POD,
        paths=("spec.hostPID", "spec.hostIPC"),
        allowed=(False,),
        why=_NO_HOST,
        fix=_REMOVE,
    ),
    TeamRule(
        code="host-path",
        of=Of.POD,
        paths=("spec.volumes[*].hostPath",),
        why=_NO_HOST,
        fix="use an emptyDir, or the team's bucket",
    ),
    TeamRule(
        code="capability",
        of=Of.POD,
        paths=("spec.containers[*].securityContext.capabilities.add[*]",),
        allowed=_CAPABILITIES,
        why="it gives rights on the host",
        fix=f"remove it; a pod may have {', '.join(_CAPABILITIES)}",
    ),
    TeamRule(
        code="seccomp",
        of=Of.POD,
        paths=_of_pod_and_containers("seccompProfile.type"),
        allowed=_PROFILES,
        why="it switches off what protects the host",
        fix="set RuntimeDefault, or remove it",
    ),
    TeamRule(
        code="apparmor",
        of=Of.POD,
        paths=_of_pod_and_containers("appArmorProfile.type"),
        allowed=_PROFILES,
        why="it switches off what protects the host",
        fix="set RuntimeDefault, or remove it",
    ),
    TeamRule(
        code="apparmor",
        of=Of.POD,
        paths=("metadata.annotations{container.apparmor.security.beta.kubernetes.io/}",),
        allowed=("", "runtime/default"),
        why="it switches off what protects the host",
        fix="remove the annotation",
    ),
    TeamRule(
        code="selinux",
        of=Of.POD,
        paths=_of_pod_and_containers("seLinuxOptions.type"),
        allowed=("", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"),
        why="it gives rights on the host",
        fix="remove seLinuxOptions",
    ),
    TeamRule(
        code="selinux",
        of=Of.POD,
        paths=(*_of_pod_and_containers("seLinuxOptions.user"), *_of_pod_and_containers("seLinuxOptions.role")),
        allowed=("",),
        why="it gives rights on the host",
        fix="remove seLinuxOptions",
    ),
    TeamRule(
        code="proc-mount",
        of=Of.POD,
        paths=("spec.containers[*].securityContext.procMount",),
        allowed=("", "Default"),
        why=_NO_HOST,
        fix="remove it",
    ),
    TeamRule(
        code="sysctl",
        of=Of.POD,
        paths=("spec.securityContext.sysctls[*].name",),
        allowed=("", *_SYSCTLS),
        why="it changes the kernel of the host",
        fix=f"remove it; a pod may set {', '.join(_SYSCTLS)}",
    ),
    TeamRule(
        code="windows-host-process",
        of=Of.POD,
        paths=_of_pod_and_containers("windowsOptions.hostProcess"),
        allowed=(False,),
        why=_NO_HOST,
        fix="remove it",
    ),
    TeamRule(
        code="probe-host",
        of=Of.POD,
        paths=tuple(
            f"spec.containers[*].{probe}.{action}.host"
            for probe in ("livenessProbe", "readinessProbe", "startupProbe", "lifecycle.postStart", "lifecycle.preStop")
            for action in ("httpGet", "tcpSocket")
        ),
        allowed=("",),
        why="the host would call another address than the pod's",
        fix="remove it; the pod itself is called",
    ),
    TeamRule(
        code="node-name",
        of=Of.POD,
        paths=("spec.nodeName",),
        allowed=("",),
        why="the scheduler chooses the node",
        fix="remove it; select nodes by label",
    ),
    TeamRule(
        code="scheduler",
        of=Of.POD,
        paths=("spec.schedulerName",),
        allowed=("", *SCHEDULERS),
        why="GKE has no such scheduler, and the pods would wait for ever",
        fix="remove it",
    ),
    TeamRule(
        code="pod-priority",
        of=Of.POD,
        paths=("spec.priorityClassName",),
        allowed=("", *POD_PRIORITIES),
        why="it could stop the pods of other teams",
        fix=f"remove it, or use {', '.join(POD_PRIORITIES[:-1])} or {POD_PRIORITIES[-1]}; the order in the queue is"
        " that of the label kueue.x-k8s.io/priority-class",
    ),
    TeamRule(
        code="tpu-host-without-chips",
        of=Of.POD,
        paths=("spec.tolerations[*].key",),
        refused=("", TPU),
        why=f"pods that ask for no {TPU} have no place on TPU hosts",
        fix="remove the toleration; Kueue adds it where it is needed",
        without_chips=True,
    ),
    TeamRule(
        code="system-node",
        of=Of.POD,
        paths=("spec.tolerations[*].key",),
        refused=(SYSTEM_TAINT,),
        why="those nodes are for the controllers of the cluster",
        fix="remove the toleration",
    ),
    TeamRule(
        # Google exchanges it for an access token after its pod is gone, too. Kubernetes' own has seven seconds more.
        code="lasting-token",
        of=Of.POD,
        paths=("spec.volumes[*].projected.sources[*].serviceAccountToken.expirationSeconds",),
        at_most=3607,
        why="such a token outlives its pod",
        fix="set 3600 or less; it is renewed while the pod runs",
    ),
    TeamRule(
        code="image",
        of=Of.POD,
        paths=("spec.containers[*].image", "spec.volumes[*].image.reference"),
        prefixes=IMAGES_ANNOTATION,
        why="ALLOWED_IMAGES has no beginning of it",
        fix="write it with its host, use an image of this environment's registry, or have its beginning added to the"
        " setting",
    ),
    TeamRule(
        # A pod that ends slowly keeps its host, and Kueue has given that to the next job.
        code="slow-end",
        of=Of.POD,
        paths=("spec.terminationGracePeriodSeconds",),
        at_most=900,
        why="it would keep its host after its job has ended",
        fix="set 900 or less",
    ),
    TeamRule(
        code="volume",
        of=Of.POD,
        paths=tuple(f"spec.volumes[*].{kind}" for kind in _FOREIGN_VOLUMES),
        why="whose disk that is, nothing asks",
        fix="use an emptyDir, a claim, or the team's bucket",
    ),
    TeamRule(
        # https://cloud.google.com/kubernetes-engine/docs/how-to/cloud-storage-fuse-csi-driver-ephemeral
        code="volume",
        of=Of.POD,
        paths=("spec.volumes[*].csi.driver",),
        allowed=("", *_DRIVERS),
        why="whose disk that is, nothing asks",
        fix=f"use {' or '.join(_DRIVERS)}, or a claim",
    ),
    TeamRule(
        # It holds in both directions: no pod of theirs starts beside this one.
        code="foreign-affinity",
        of=Of.TEMPLATE,
        paths=(f"{_APART}.namespaces[*]", f"{_APART}.namespaceSelector"),
        why="it would keep pods of other teams away",
        fix="remove it; the pods of the own namespace are meant without",
    ),
    TeamRule(
        code="finalizer",
        of=Of.TEMPLATE,
        paths=("metadata.finalizers[*]",),
        why=_GOES_ON,
        fix="remove it",
    ),
    TeamRule(
        code="foreign-controller",
        of=Of.WORKLOAD,
        paths=("spec.managedBy",),
        allowed=("", *_CONTROLLERS),
        why="Kueue could not stop it",
        fix="remove it",
    ),
    TeamRule(
        # JobSet keeps the jobs of all namespaces out of what such a job has: a zone, with another key.
        code="wide-exclusion",
        of=Of.WORKLOAD,
        paths=(f"metadata.{_EXCLUSIVE}", f"spec.replicatedJobs[*].template.metadata.{_EXCLUSIVE}"),
        allowed=("cloud.google.com/gke-nodepool", "kubernetes.io/hostname"),
        why="it would keep pods of other teams away",
        fix="use cloud.google.com/gke-nodepool: a slice, which the job has to itself",
    ),
    TeamRule(
        code="ray-network",
        of=Of.RAY,
        paths=("networkPolicy",),
        why="it adds to what the NetworkPolicies of the team let through",
        fix="remove it",
    ),
    TeamRule(
        code="forged-admission",
        of=Of.TEMPLATE,
        paths=(f"metadata.labels{{{ADMITTED_POD_LABEL}}}",),
        why="only Kueue may set it, on what it has admitted",
        fix="remove it",
    ),
    TeamRule(
        code="foreign-owner",
        of=Of.WORKLOAD,
        paths=("metadata.ownerReferences[*].controller",),
        allowed=(False,),
        why="it belongs to another object, with which Kueue has admitted it",
        fix="change that one, or create this one without ownerReferences",
    ),
    TeamRule(
        code="exposed-ray",
        of=Of.RAY,
        paths=("headGroupSpec.serviceType", "headGroupSpec.headService.spec.type"),
        allowed=("", "ClusterIP"),
        why="Ray runs what anybody sends to its dashboard",
        fix="remove it; `kubectl port-forward` reaches the dashboard",
    ),
    TeamRule(
        code="exposed-ray",
        of=Of.RAY,
        paths=("headGroupSpec.enableIngress",),
        allowed=(False,),
        why="Ray runs what anybody sends to its dashboard",
        fix="remove it; `kubectl port-forward` reaches the dashboard",
    ),
    TeamRule(
        code="exposed-service",
        of=Of.SERVICE,
        paths=("spec.type",),
        allowed=("", "ClusterIP", "LoadBalancer"),
        why="it opens a port to the outside",
        fix="remove it, or use LoadBalancer with the annotation networking.gke.io/load-balancer-type: Internal",
    ),
    TeamRule(
        # https://cloud.google.com/kubernetes-engine/docs/concepts/service-load-balancer: it wins over the annotation.
        code="exposed-service",
        of=Of.SERVICE,
        paths=("spec.loadBalancerClass",),
        allowed=("", "networking.gke.io/l4-regional-internal"),
        why="it opens a port to the outside",
        fix="remove it; the annotation networking.gke.io/load-balancer-type: Internal is enough",
    ),
    TeamRule(
        code="external-ip",
        of=Of.SERVICE,
        paths=("spec.externalIPs[*]",),
        why="it takes the traffic of others",
        fix="remove it",
    ),
    TeamRule(
        code="lasting-token",
        of=Of.SECRET,
        paths=("type",),
        refused=("kubernetes.io/service-account-token",),
        why="such a token never ends",
        fix="remove it; pods get tokens that live an hour",
    ),
)

# What two rules say that look at more than one field.
# Rules that are no rows: what is wrong, and what to do.
PUBLIC_LOAD_BALANCER = (
    "a load balancer is open to the internet",
    "add the annotation networking.gke.io/load-balancer-type: Internal",
)
FINALIZER = (_GOES_ON, "remove it")
ORPHANS = (_GOES_ON, "delete it without --cascade=orphan")
STOPPED = ("only Kueue stops and starts it", "leave spec.suspend as it is; `tpuenv cancel` ends a job")
RAY_CHANGED = ("Kueue has admitted it as it was", "create another one, with another name")
# Of both, more overflow what Kueue computes with.
MOST_RAY_REPLICAS, MOST_RAY_HOSTS = 100_000, 4096
RAY_SIZE = (
    "KubeRay would make other pods than Kueue counts",
    f"set minReplicas <= replicas <= maxReplicas and replicas <= {MOST_RAY_REPLICAS}, and numOfHosts from 1 to"
    f" {MOST_RAY_HOSTS}",
)
NOT_ADMITTED = (
    f"pods that ask for {TPU} must come from a job that Kueue admitted",
    "submit a Job, JobSet, RayJob or RayCluster instead",
)


def rules_of(of: Of) -> tuple[TeamRule, ...]:
    return tuple(rule for rule in RULES if rule.of is of)


def steps_of(path: str) -> list[str]:
    """A path of a row, in its steps: a prefix may have dots in it."""
    return re.findall(r"[^.{]+(?:\{[^}]*\})?", path)
