"""What a TPU slice asks of the pods on it, and a node of every pod: what Kueue ignores, and GKE insists on.

Facts: GKE, "About TPUs in GKE" and "Deploy TPU workloads in GKE Standard": pods ask for all chips of their host, a
multi-host slice runs one pod on each host, its pods are indexed, and the node labels have accelerator and topology.
"Deploy TPU Multislices in GKE": one program on several slices needs slices of several hosts. The
webhook of GKE's Ray add-on takes no other numOfHosts than that (ai-on-gke/kuberay-tpu-webhook, main.go).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from admission.cluster import ZERO, Flavor, Shape
from admission.result import Reason, amount, asked, never, waits
from admission.workload import EXCLUSIVE_TOPOLOGY, PodSet, Workload, containers_of
from vocabulary.keys import ACCELERATOR_LABEL, POOL_GROUP_LABEL, QUEUED_TAINT, TOPOLOGY_LABEL, TPU
from vocabulary.printable import counted
from vocabulary.ray import ray_obstacle


def wants_tpu_nodes(pods: PodSet) -> bool:
    return bool(pods.requests.get(TPU) or _tpu_keys(pods))


def _tpu_keys(pods: PodSet) -> list[str]:
    return [key for key in (ACCELERATOR_LABEL, TOPOLOGY_LABEL) if key in pods.node_selector]


def tolerates_tpu_nodes(pods: PodSet) -> bool:
    return any(toleration.get("key").text() in ("", TPU) for toleration in pods.spec.get("tolerations").items())


def problems(pods: PodSet, flavor: Flavor, others: Sequence[Flavor] = ()) -> Iterator[Reason]:
    """Why these pods would stay pending, or start and hang, on nodes of this flavor although Kueue admits them.

    `others`: the flavors that the pods might as well have been given.
    """
    shape = flavor.shape
    if pods.requests.get(TPU) and shape:
        wrong = [*_of_slice(pods, shape)]
        arbitrary = not _selects(pods, flavor) and any(shape != other.shape for other in others)
        yield from [_no_pool_group(pods, flavor, shape, others)] if wrong and arbitrary else wrong
        if not wrong and _is_of_ray(pods):
            yield from _for_ray(pods, flavor, shape)
    of_cpu_pool = bool(flavor.pool) and not pods.requests.get(TPU)
    if of_cpu_pool and tolerates_tpu_nodes(pods):
        return
    nodes = "the CPU pool, where pods without chips run," if of_cpu_pool else f"flavor {flavor.name}"
    for resource in ("cpu", "memory"):
        requested, has = pods.requests.get(resource, ZERO), flavor.node.get(resource)
        if has is not None and requested > has:
            yield never(
                "node-too-small",
                pods.name,
                f"each pod asks for {asked(resource, requested)}; a node of {nodes} has {amount(resource, has)} for "
                "pods",
                f"ask for {amount(resource, has)} or less",
            )


def without_chips(pods: PodSet) -> Iterator[Reason]:
    """Pods meant for TPU hosts that ask for no chips, or are none: Kueue counts them as CPU pods, or not at all."""
    keys = _tpu_keys(pods)
    if wants_tpu_nodes(pods) and pods.count == 0:
        yield never("no-pods", pods.name, "asks for no pods at all", "set replicas to the number of slices")
    if keys and not pods.requests.get(TPU):
        yield never(
            "no-chips-requested",
            pods.name,
            f"selects TPU nodes by {keys[0]} but requests no {TPU}",
            f"set requests and limits of {TPU} to the chips of a host",
        )


def exclusive_cpu_pods(workload: Workload) -> Iterator[Reason]:
    """JobSet keeps a job under the annotation apart from the pods of every other job of a JobSet, in all namespaces.

    JobSet 0.12.0, pkg/webhooks/pod_mutating_webhook.go, setExclusiveAffinities.
    """
    for pods in workload.pod_sets:
        if pods.exclusive and not wants_tpu_nodes(pods):
            yield waits(
                "exclusive-topology",
                pods.name,
                "under exclusive-topology it, too, takes a node pool to itself: it waits while a job of any JobSet "
                "beside it has a pod on the CPU pool, and keeps the pods of such jobs off while it runs",
                f"put the annotation {EXCLUSIVE_TOPOLOGY} on the TPU replicatedJob's template only",
            )


def notes(pods: PodSet, flavor: Flavor) -> Iterator[str]:
    shape = flavor.shape
    if _is_of_ray(pods) or not pods.requests.get(TPU) or shape is None or shape.hosts == 1:
        return
    if not pods.exclusive:
        yield (
            f"{pods.name}: nothing keeps its pods on one slice when several are free; in a JobSet, annotate the "
            f"replicatedJob with {EXCLUSIVE_TOPOLOGY}: cloud.google.com/gke-nodepool"
        )


def _is_of_ray(pods: PodSet) -> bool:
    return pods.sized_by == "numOfHosts"


def _for_ray(pods: PodSet, flavor: Flavor, shape: Shape) -> Iterator[Reason]:
    queued = any(toleration.get("key").text() == QUEUED_TAINT for toleration in flavor.tolerations)
    if why := ray_obstacle(shape.topology, shape.hosts, queued=queued):
        yield never("ray-slice", pods.name, f"runs on flavor {flavor.name}; {why}", "use other slices, or a JobSet")


def kept_slices(workload: Workload) -> Iterator[str]:
    """Kueue frees the quota of a RayJob when it ends, and KubeRay its pods after this time."""
    seconds = workload.spec.get("ttlSecondsAfterFinished").number(0) if workload.kind == "RayJob" else 0
    if seconds > 0 and any(pods.requests.get(TPU) for pods in workload.pod_sets):
        yield (
            f"spec.ttlSecondsAfterFinished: its pods stay on the slices for {seconds} s after its end, when Kueue has "
            "already given them to the next job, which waits so long; set 0"
        )


def _of_slice(pods: PodSet, shape: Shape) -> Iterator[Reason]:
    yield from _chips(pods, shape)
    yield from _hosts(pods, shape)
    if shape.hosts == 1 and pods.count > 1 and (variable := _multislice(pods)):
        yield never(
            "multislice-of-one-host",
            pods.name,
            f"sets {variable}, which makes one program of {pods.count} slices of {shape}; GKE joins only slices of "
            "several hosts",
            f"use one slice, or slices of several hosts; for {pods.count} programs set MEGASCALE_NUM_SLICES to nothing",
        )


def _multislice(pods: PodSet) -> str:
    """The variable by which one program on several slices is known; "" where there is none.

    Without any, GKE's webhook sets them, and whether the program heeds them nothing shows.
    """
    variables = {
        item.get("name").text(): "a reference" if item.get("valueFrom").value else item.get("value").text()
        for container in containers_of(pods.spec)
        for item in container.get("env").items()
    }
    if variables.get("MEGASCALE_NUM_SLICES") in ("", "1"):
        return ""
    return next((name for name, value in variables.items() if name.startswith("MEGASCALE_") and value), "")


def _selects(pods: PodSet, flavor: Flavor) -> bool:
    """Whether the pods say anything of the labels by which flavors differ."""
    asked = {item.get("key").text() for term in pods.node_affinity() for item in term.get("matchExpressions").items()}
    return not flavor.labels.keys().isdisjoint({*pods.node_selector, *asked})


def _no_pool_group(pods: PodSet, flavor: Flavor, shape: Shape, others: Sequence[Flavor]) -> Reason:
    """Any number of pods is right for some slice: what to change is which slice is meant."""
    shapes = [(other, other.shape) for other in (flavor, *others) if other.shape]
    suiting = [(other, of) for other, of in shapes if pods.size_is_set and not [*_of_slice(pods, of)]]
    groups = [f"{other.labels.get(POOL_GROUP_LABEL, other.name)} ({of})" for other, of in suiting or shapes]
    selected = f"{POOL_GROUP_LABEL}:" if POOL_GROUP_LABEL in flavor.labels else "the labels of flavor"
    return never(
        "no-pool-group",
        pods.name,
        f"selects no slices, so Kueue gives it the first flavor that is free, here {flavor.name}, and a slice of "
        f"{shape} takes {counted(shape.hosts, 'pod')} of {shape.chips_per_host} chips",
        f"select a pool group first, in nodeSelector: {selected} {' or '.join(groups)}",
    )


def _chips(pods: PodSet, shape: Shape) -> Iterator[Reason]:
    requested = pods.requests[TPU]
    if requested != shape.chips_per_host:
        yield never(
            "chips-per-host",
            pods.name,
            f"each pod asks for {asked(TPU, requested)}; a host of {shape} has {shape.chips_per_host}, and a pod takes "
            "all of them",
            f"set requests and limits of {TPU} to {shape.chips_per_host}",
        )


def _hosts(pods: PodSet, shape: Shape) -> Iterator[Reason]:
    size = pods.pods_per_replica
    right = " and ".join(f"{field}: {shape.hosts}" for field in pods.sized_by.split(" and "))
    if shape.hosts == 1:
        if (pods.exclusive or _is_of_ray(pods)) and size != 1:
            yield never(
                "hosts-per-slice",
                pods.name,
                f"has {size} pods a replica; a slice of {shape} is one host",
                f"set {right}",
            )
    elif not pods.size_is_set:
        yield never(
            "missing-parallelism" if pods.sized_by.startswith("parallelism") else "hosts-per-slice",
            pods.name,
            f"does not set {pods.sized_by.split(' and ')[0]}, which means 1 pod; a slice of {shape} has {shape.hosts} "
            "hosts",
            f"set {right}",
        )
    elif size != shape.hosts:
        yield never(
            "hosts-per-slice",
            pods.name,
            f"has {counted(size, 'pod')} a slice; a slice of {shape} has {shape.hosts} hosts and needs a pod on each",
            f"set {right}" + ("; for more slices use the replicas of a JobSet or worker group" * (size > shape.hosts)),
        )
    elif pods.completions is not None and pods.completions != size:
        yield never(
            "hosts-per-slice",
            pods.name,
            f"has completions {pods.completions} for {size} hosts: the pods beyond would start after the slice is done",
            f"set {right}",
        )
    elif not pods.indexed:
        yield never(
            "not-indexed",
            pods.name,
            "its pods have no completion index, by which the hosts of a slice know each other",
            "set completionMode: Indexed",
        )
