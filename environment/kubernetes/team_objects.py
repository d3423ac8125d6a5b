"""What limits a team in its namespace: labels, quota of objects, default requests, and who may call whom."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Network
from typing import Any

from environment import Environment
from environment.addresses import MAX_PODS_CPU
from environment.fleet.model import Team
from environment.fleet.quotas import most_slices, slices_of_teams
from environment.names import GOOGLE_APIS
from vocabulary.keys import HOST_ACCESS_LABEL, IMAGES_ANNOTATION, SERVES_LABEL, TEAM_LABEL, TPU
from vocabulary.quantity import count

Object = dict[str, Any]

NAME = "tpuenv"  # of each of these objects

# The newest level that was tried: https://kubernetes.io/docs/concepts/security/pod-security-standards/
_POD_SECURITY = "pod-security.kubernetes.io"
_POD_SECURITY_VERSION = "v1.34"

# What a container that says nothing is counted with. Without it Kueue counts nothing, and any number of such pods
# starts. It is small, for Kueue takes it for the request of a container that has limits alone, too, and starts no job
# with limits under it (0.19.2, pkg/workload/resources.go).
DEFAULT_REQUESTS = {"cpu": "100m", "memory": "256Mi", "ephemeral-storage": "512Mi"}

# More than jobs need, and less than what would fill the range of Services or, with objects of a usual size, the API
# server's database. A job is kept twice there, for Kueue copies it.
_OBJECTS = {
    "count/configmaps": 300,
    "count/secrets": 200,
    "count/jobs.batch": 1000,
    "count/jobsets.jobset.x-k8s.io": 200,
    "count/rayclusters.ray.io": 100,
    "count/rayjobs.ray.io": 100,
    "count/ingresses.networking.k8s.io": 0,
    "persistentvolumeclaims": 20,
    "services": 200,
    "services.loadbalancers": 4,
}
_STORAGE = "10Ti"

# Where GKE runs what calls into the namespaces of teams: Managed Prometheus, which reads the metrics of Ray; and the
# operator of Ray, which asks the head of a cluster for the status of its job. GKE does not say where that one runs, nor
# whether its calls come through the control plane's agent in kube-system.
_PROMETHEUS = ("gmp-system", "gke-gmp-system")
_RAY_OPERATOR = ("gke-managed-ray-operator", "kube-system")

_PRIVATE = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")
_ELSEWHERE = (*_PRIVATE, "100.64.0.0/10", "169.254.0.0/16")

# https://cloud.google.com/kubernetes-engine/docs/how-to/network-policy#network-policy-and-workload-identity
_METADATA = "169.254.169.254/32"
_METADATA_OF_OLDER_DATAPLANES = ("169.254.169.252/32", "127.0.0.1/32")
_NODE_LOCAL_DNS = "169.254.20.10/32"


def namespace_labels(team: Team) -> dict[str, str]:
    """With host_access the level is `privileged`, and policies take the place of what it lets through."""
    labels = {
        TEAM_LABEL: team.name,
        f"{_POD_SECURITY}/enforce": "privileged" if team.host_access else "baseline",
        f"{_POD_SECURITY}/enforce-version": _POD_SECURITY_VERSION,
    }
    return {**labels, HOST_ACCESS_LABEL: "true"} if team.host_access else labels


def namespace_annotations(environment: Environment) -> dict[str, str]:
    """Which images pods may have. Where a bucket is mounted, GKE puts a container of its own beside those of the pod,
    with an image of one of two registries: https://github.com/GoogleCloudPlatform/gcs-fuse-csi-driver, pkg/webhook
    """
    allowed, region = environment.settings.allowed_images, environment.settings.region
    if not allowed:
        return {}
    always = (f"{environment.names.registry_url}/", "gke.gcr.io/", f"{region}-artifactregistry.gcr.io/gke-release/")
    return {IMAGES_ANNOTATION: ",".join((*always, *allowed))}


def namespace(environment: Environment, team: Team) -> Object:
    metadata = {"name": team.name, "labels": namespace_labels(team), "annotations": namespace_annotations(environment)}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def team_objects(environment: Environment, team: Team) -> tuple[Object, ...]:
    """What changes neither with slices nor with shares: the quota of objects comes with the queues."""
    return (
        default_requests(team),
        _object("networking.k8s.io/v1", "NetworkPolicy", team, _traffic(environment)),
        _object("networking.k8s.io/v1", "NetworkPolicy", team, _served(environment), name=f"{NAME}-serves"),
    )


def object_quota(environment: Environment, team: Team) -> Object:
    return _object("v1", "ResourceQuota", team, {"hard": _quota(environment, team)})


def default_requests(team: Team) -> Object:
    limits = [{"type": "Container", "defaultRequest": DEFAULT_REQUESTS}]
    return _object("v1", "LimitRange", team, {"limits": limits})


def _object(api_version: str, kind: str, team: Team, spec: Object, *, name: str = NAME) -> Object:
    metadata = {"name": name, "namespace": team.name}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


def _quota(environment: Environment, team: Team) -> dict[str, str]:
    """No cores and no memory: those are Kueue's to count. The chips are what Kueue can give the team, so that whatever
    goes round Kueue ends there.
    """
    shared = slices_of_teams(environment.groups, environment.teams)
    most = {group: most_slices(team, environment.teams, shared[group.name]) for group in environment.groups}
    chips = sum(slices * group.slice.chips for group, slices in most.items())
    hosts = sum(slices * group.slice.hosts for group, slices in most.items())
    pods = 2 * (hosts + environment.settings.cpu_max_nodes * MAX_PODS_CPU)  # those that end are still counted
    numbers = {**_OBJECTS, "pods": pods, f"requests.{TPU}": chips}
    return {**{name: count(number) for name, number in numbers.items()}, "requests.storage": _STORAGE}


def _traffic(environment: Environment) -> Object:
    """Within the team, all ports: the hosts of a slice, slices among themselves, Ray. From the team into the internet,
    for packages and Google's APIs, or to these alone, but not to other teams, to nodes, or into private networks.

    GKE's Dataplane V2 matches addresses with neither pods nor nodes, so that what is excepted there is the network
    around the cluster; other network plug-ins need the ranges of pods and Services.
    """
    settings = environment.settings
    ours = [str(network) for network in (settings.pods_cidr, settings.services_cidr, settings.subnet_cidr)]
    around = [*_ELSEWHERE, *(network for network in ours if not _within(network, _ELSEWHERE))]
    dns = [{"protocol": protocol, "port": 53} for protocol in ("UDP", "TCP")]
    return {
        "podSelector": {},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [
            {"from": [{"podSelector": {}}]},
            {"from": [_namespaces(_PROMETHEUS)], "ports": [{"protocol": "TCP", "port": 8080}]},
            {"from": [_namespaces(_RAY_OPERATOR)], "ports": [{"protocol": "TCP", "port": 8265}]},
        ],
        "egress": [
            {"to": [{"podSelector": {}}]},
            {"to": [_namespaces(("kube-system",)), _block(_NODE_LOCAL_DNS), _block(_METADATA)], "ports": dns},
            {"to": [_block(_METADATA)], "ports": [{"protocol": "TCP", "port": 80}]},
            {"to": [*map(_block, _METADATA_OF_OLDER_DATAPLANES)], "ports": [{"protocol": "TCP", "port": 988}]},
            _outside(settings.egress, around),
        ],
    }


def _outside(egress: str, around: Sequence[str]) -> Object:
    if egress == "google":
        return {"to": [*map(_block, GOOGLE_APIS)], "ports": [{"protocol": "TCP", "port": 443}]}
    return {"to": [_block("0.0.0.0/0", around)]}


def _served(environment: Environment) -> Object:
    """Pods with that label may be called from the network around the cluster, as model servers are through an internal
    load balancer; not from pods of other teams.
    """
    pods = str(environment.settings.pods_cidr)
    return {
        "podSelector": {"matchLabels": {SERVES_LABEL: "true"}},
        "policyTypes": ["Ingress"],
        "ingress": [{"from": [_block(network, [pods] if _within(pods, [network]) else []) for network in _PRIVATE]}],
    }


def _namespaces(names: Sequence[str]) -> Object:
    expression = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": list(names)}
    return {"namespaceSelector": {"matchExpressions": [expression]}}


def _block(network: str, without: Sequence[str] = ()) -> Object:
    return {"ipBlock": {"cidr": network, **({"except": list(without)} if without else {})}}


def _within(network: str, others: Sequence[str]) -> bool:
    return any(IPv4Network(network).subnet_of(IPv4Network(other)) for other in others)
