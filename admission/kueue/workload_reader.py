"""A manifest read as Kueue reads it: kind, queue, priority, and a pod set for each kind of pod."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from math import ceil

from admission.api_server.defaults import with_defaults
from admission.api_server.field_errors import checked
from admission.result import Reason, never
from admission.workload import (
    API_VERSIONS,
    EXCLUSIVE_TOPOLOGY,
    KINDS,
    Field,
    NotAWorkload,
    PodSet,
    Workload,
    containers_of,
    templates_of,
)
from vocabulary.keys import UNCOUNTED_PREFIXES
from vocabulary.quantity import parse

# What KubeRay gives the containers it adds: the job's submitter, the autoscaler, the Redis clean-up (ray-operator
# 1.7.0). Kueue counts them as well.
_SUBMITTER = {"cpu": Fraction(1, 2), "memory": Fraction(200 * 2**20)}
_AUTOSCALER = {"cpu": Fraction(1, 2), "memory": Fraction(512 * 2**20)}
_REDIS_CLEANUP = {"cpu": Fraction(1, 5), "memory": Fraction(256 * 2**20)}


def read(
    manifest: object, *, namespace: str, default_requests: Mapping[str, Mapping[str, str]] | None = None
) -> tuple[Workload, list[Reason]]:
    """The workload in a manifest, as far as that can be used, and what is wrong with its fields.

    `namespace` is for one that names none. `default_requests` are those of a container, by namespace. Raises
    NotAWorkload for what is none of the four kinds.
    """
    whole = Field(manifest)
    kind, api_version = whole.get("kind").text(), whole.get("apiVersion").text()
    if kind not in API_VERSIONS:
        raise NotAWorkload(f"kind: '{kind}' is not queued here; use one of {', '.join(KINDS)}")
    if api_version != API_VERSIONS[kind]:
        raise NotAWorkload(f"apiVersion: '{api_version}' is not that of a {kind}; use {API_VERSIONS[kind]}")
    clean, wrong = checked(with_defaults(whole.mapping(), kind), kind)
    whole = Field(clean)
    metadata = whole.get("metadata")
    generated = metadata.get("generateName").text()
    namespace = metadata.get("namespace").text() or namespace
    wrong += _fill_in(whole, (default_requests or {}).get(namespace, {}))
    workload = Workload(
        kind=kind,
        name=metadata.get("name").text() or (f"{generated}..." if generated else ""),
        namespace=namespace,
        labels=metadata.get("labels").texts(),
        pod_sets=tuple(_pod_sets(kind, whole)),
        manifest=whole,
    )
    return workload, wrong


def _fill_in(whole: Field, default_requests: Mapping[str, str]) -> Iterator[Reason]:
    """The default requests of the namespace, where a container has none: Kueue takes them before its limits, and does
    not start a job of which a request is over its limit (pkg/workload/resources.go).
    """
    for container in (item for template in templates_of(whole) for item in containers_of(template.get("spec"))):
        resources = container.get("resources")
        requests, limits = resources.get("requests"), resources.get("limits").quantities()
        missing = {name: value for name, value in default_requests.items() if name not in requests.mapping()}
        for name, value in missing.items():
            if name in limits and limits[name] < parse(value):
                yield never(
                    "limit-below-default-request",
                    resources.get("limits", name).path,
                    f"is less than the {value} that Kueue counts where a container of this namespace has no request",
                    f"set requests.{name} as well",
                )
        if missing and isinstance(container.value, dict):
            container.value["resources"] = {**resources.mapping(), "requests": {**missing, **requests.mapping()}}


def _pod_sets(kind: str, whole: Field) -> Iterator[PodSet]:
    spec = whole.get("spec")
    if kind == "Job":
        yield _of_job("main", whole, replicas=1, indexed=False)
    elif kind == "JobSet":
        everywhere = EXCLUSIVE_TOPOLOGY in whole.get("metadata", "annotations").texts()
        for job in spec.get("replicatedJobs").items():
            template = job.get("template")
            yield _of_job(
                job.get("name").text(),
                template,
                replicas=job.get("replicas").integer(1),
                indexed=True,
                exclusive=everywhere or EXCLUSIVE_TOPOLOGY in template.get("metadata", "annotations").texts(),
            )
    elif kind == "RayCluster":
        yield from _of_ray_cluster(spec, whole)
    elif not spec.get("clusterSelector").mapping():
        yield from _of_ray_job(spec, whole)


def _of_job(name: str, job: Field, *, replicas: int, indexed: bool, exclusive: bool = False) -> PodSet:
    """Kueue counts min(parallelism, completions) pods; the API server sets parallelism to 1 where it is not set."""
    spec = job.get("spec")
    parallelism = spec.get("parallelism")
    completions = spec.get("completions").integer(-1)
    mode = spec.get("completionMode").text("Indexed" if indexed else "NonIndexed")
    pods = parallelism.integer(1)
    return PodSet(
        name=name,
        path=spec.path,
        replicas=replicas,
        pods_per_replica=min(pods, completions) if completions >= 0 else pods,
        requests=pod_requests(spec.get("template", "spec")),
        template=spec.get("template"),
        sized_by="parallelism and completions",
        size_is_set=parallelism.value is not None,
        completions=completions if completions >= 0 else None,
        indexed=mode == "Indexed",
        exclusive=exclusive,
    )


def _of_ray_job(spec: Field, whole: Field) -> Iterator[PodSet]:
    mode = spec.get("submissionMode").text("K8sJobMode")
    yield from _of_ray_cluster(
        spec.get("rayClusterSpec"), whole, beside_head=_SUBMITTER if mode == "SidecarMode" else {}
    )
    if mode == "K8sJobMode":
        template = spec.get("submitterPodTemplate")
        requests = pod_requests(template.get("spec")) if template.value is not None else _SUBMITTER
        yield _ray_pods("submitter", template, requests=requests)


def _of_ray_cluster(spec: Field, whole: Field, beside_head: Mapping[str, Fraction] | None = None) -> Iterator[PodSet]:
    head = spec.get("headGroupSpec", "template")
    requests = pod_requests(head.get("spec"))
    annotations = whole.get("metadata", "annotations").texts()
    if spec.get("gcsFaultToleranceOptions").value is not None or annotations.get("ray.io/ft-enabled") == "true":
        requests = _most(requests, _REDIS_CLEANUP)
    if spec.get("enableInTreeAutoscaling").flag():
        own = spec.get("autoscalerOptions", "resources")
        requests = _sum(
            requests, _AUTOSCALER if own.value is None else container_requests(Field({"resources": own.value}))
        )
    yield _ray_pods("head", head, requests=_sum(requests, beside_head or {}))
    for group in spec.get("workerGroupSpecs").items():
        template = group.get("template")
        yield PodSet(
            name=group.get("groupName").text(),
            path=group.path,
            replicas=group.get("replicas").integer(0),  # the CRD's default; Kueue takes it as it stands
            pods_per_replica=max(1, group.get("numOfHosts").integer(1)),
            requests=pod_requests(template.get("spec")),
            template=template,
            sized_by="numOfHosts",
            size_is_set=group.get("numOfHosts").value is not None,
        )


def _ray_pods(name: str, template: Field, *, requests: Mapping[str, Fraction]) -> PodSet:
    return PodSet(
        name=name,
        path=template.path,
        replicas=1,
        pods_per_replica=1,
        requests=requests,
        template=template,
        sized_by="replicas",
    )


def pod_requests(spec: Field) -> dict[str, Fraction]:
    """What the scheduler counts for one pod: all containers, or the hungriest init container if that is more.

    As Kubernetes' resource helpers do it: sidecars add up, pod-level resources win, the overhead comes on top.
    """
    total = _add(container_requests(item) for item in spec.get("containers").items())
    sidecars: dict[str, Fraction] = {}
    peak: dict[str, Fraction] = {}
    for item in spec.get("initContainers").items():
        if item.get("restartPolicy").text() == "Always":
            sidecars = _sum(sidecars, container_requests(item))
            peak = _most(peak, sidecars)
        else:
            peak = _most(peak, _sum(sidecars, container_requests(item)))
    total = _most(_sum(total, sidecars), peak)
    total.update(container_requests(spec))
    total = _sum(total, spec.get("overhead").quantities())
    # Kueue counts cores in thousandths, everything else in whole units, both rounded up.
    return {
        name: Fraction(ceil(number * 1000), 1000) if name == "cpu" else Fraction(ceil(number))
        for name, number in total.items()
        if not name.startswith(UNCOUNTED_PREFIXES)
    }


def container_requests(container: Field) -> dict[str, Fraction]:
    """A request that is missing is its limit, as the API server fills it in."""
    resources = container.get("resources")
    return {**resources.get("limits").quantities(), **resources.get("requests").quantities()}


def _add(parts: Iterable[Mapping[str, Fraction]]) -> dict[str, Fraction]:
    total: dict[str, Fraction] = {}
    for part in parts:
        total = _sum(total, part)
    return total


def _sum(a: Mapping[str, Fraction], b: Mapping[str, Fraction]) -> dict[str, Fraction]:
    return {name: a.get(name, Fraction(0)) + b.get(name, Fraction(0)) for name in {**a, **b}}


def _most(a: Mapping[str, Fraction], b: Mapping[str, Fraction]) -> dict[str, Fraction]:
    return {name: max(a.get(name, Fraction(0)), b.get(name, Fraction(0))) for name in {**a, **b}}
