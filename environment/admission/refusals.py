"""What the API server and the webhooks of Kueue, JobSet and KubeRay refuse when the workload is created."""

from __future__ import annotations

import re
from collections.abc import Iterator

from environment.admission.fields import field_reasons
from environment.admission.manifest import Field, PodSet, Workload
from environment.admission.result import TPU, Reason, Verdict, amount, asked

MAX_POD_SETS = 18  # Kueue 0.19: pkg/controller/jobframework/constants.go
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
ELASTIC_ANNOTATION = "kueue.x-k8s.io/elastic-job"

_SUBDOMAIN = r"(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
LABEL_1035 = r"[a-z]([-a-z0-9]*[a-z0-9])?"
NAME_FIX = "use lower-case letters, digits and hyphens, a letter first"
_LABEL_LENGTH = 63
_RANDOM_SUFFIX = 5  # characters that the API server adds to a generateName, and to a pod's name


def refusals(workload: Workload) -> list[Reason]:
    """Everything for which the workload would not even be created."""
    return [
        *field_reasons(workload),
        *_of_metadata(workload),
        *_of_kind(workload),
        *(each for pods in workload.pod_sets for each in _of_pods(workload, pods)),
    ]


def _refused(code: str, where: str, what: str, fix: str = "") -> Reason:
    return Reason(verdict=Verdict.REFUSED, code=code, where=where, what=what, fix=fix)


def _of_metadata(workload: Workload) -> Iterator[Reason]:
    name = longest(workload.name)
    if not name:
        yield _refused("no-name", "metadata", "has neither a name nor a generateName", "give it a name")
    elif workload.kind != "JobSet" and not re.fullmatch(_SUBDOMAIN, name):
        yield _refused("bad-name", "metadata.name", f"'{name}' is not a name", NAME_FIX)
    elif workload.kind == "Job" and len(name) > _LABEL_LENGTH:
        yield _refused(
            "name-too-long",
            "metadata.name",
            f"has {len(name)} characters; it is a label of the Job's pods, which may have {_LABEL_LENGTH}",
            f"shorten it by {len(name) - _LABEL_LENGTH}",
        )
    queue = workload.labels.get(QUEUE_LABEL, "")
    if queue and not re.fullmatch(_SUBDOMAIN, queue):
        yield _refused(
            "bad-queue-name",
            QUEUE_LABEL,
            f"'{queue}' is not a queue name",
            "use lower-case letters, digits and hyphens",
        )
    if len(workload.pod_sets) > MAX_POD_SETS:
        yield _refused(
            "too-many-pod-sets",
            "spec",
            f"has {len(workload.pod_sets)} kinds of pods; Kueue takes {MAX_POD_SETS}",
            "merge some",
        )


def longest(name: str) -> str:
    """The name with what the API server adds to a generateName, which it cuts off so that 63 characters are enough."""
    if not name.endswith("..."):
        return name
    return name.removesuffix("...")[: _LABEL_LENGTH - _RANDOM_SUFFIX] + "x" * _RANDOM_SUFFIX


def _of_kind(workload: Workload) -> Iterator[Reason]:
    spec = workload.manifest.get("spec")
    if workload.kind == "Job":
        yield from _of_job(workload)
    elif workload.kind == "JobSet":
        yield from _of_job_set(workload, spec)
    elif workload.kind == "RayCluster":
        yield from _of_ray(workload, spec)
    elif workload.kind == "RayJob":
        yield from _of_ray_job(workload, spec)


def _of_job(workload: Workload) -> Iterator[Reason]:
    pods = workload.pod_sets[0]
    if pods.indexed and pods.completions is None and pods.size_is_set:
        yield _refused(
            "no-completions",
            "spec.completions",
            "an Indexed Job must say its completions",
            f"set completions: {pods.count}",
        )


def _of_job_set(workload: Workload, spec: Field) -> Iterator[Reason]:
    """Names of jobs and pods must be labels of 63 characters (JobSet 0.12.0, pkg/webhooks/jobset_webhook.go)."""
    names = [pods.name for pods in workload.pod_sets]
    if len(set(names)) < len(names):
        yield _refused("same-name", "spec.replicatedJobs", "has two of the same name", "names must differ")
    if not names:
        yield _refused("no-pods", "spec.replicatedJobs", "is empty", "add a replicatedJob")
    for pods, job in zip(workload.pod_sets, spec.get("replicatedJobs").items(), strict=True):
        job_name = f"{longest(workload.name)}-{pods.name}-{max(0, pods.replicas - 1)}"
        if workload.name and not re.fullmatch(LABEL_1035, job_name):
            yield _refused(
                "bad-name",
                job.path,
                f"makes the job name '{job_name}', which is not one",
                NAME_FIX,
            )
        pod = f"{job_name}-{max(0, (pods.completions or 1) - 1)}-" + "x" * _RANDOM_SUFFIX
        if len(pod) > _LABEL_LENGTH:
            yield _refused(
                "name-too-long",
                job.path,
                f"makes pod names of {len(pod)} characters, '{pod}'; {_LABEL_LENGTH} are allowed",
                f"shorten the names by {len(pod) - _LABEL_LENGTH}",
            )


def _of_ray_job(workload: Workload, spec: Field) -> Iterator[Reason]:
    selector, cluster = spec.get("clusterSelector"), spec.get("rayClusterSpec")
    if selector.mapping() and cluster.value is not None:
        yield _refused(
            "cluster-selector", "spec.clusterSelector", "cannot be used with a rayClusterSpec", "remove one of the two"
        )
    elif selector.mapping():
        return
    elif cluster.value is None:
        yield _refused("no-pods", "spec.rayClusterSpec", "is missing", "describe the RayCluster to run on")
    else:
        if not spec.get("shutdownAfterJobFinishes").flag():
            yield _refused(
                "keeps-cluster",
                "spec.shutdownAfterJobFinishes",
                "must be true: the RayCluster would hold its quota after the job",
                "set shutdownAfterJobFinishes: true",
            )
        yield from _of_ray(workload, cluster)


def _of_ray(workload: Workload, spec: Field) -> Iterator[Reason]:
    annotations = workload.manifest.get("metadata", "annotations").texts()
    autoscaling = spec.get("enableInTreeAutoscaling")
    if autoscaling.flag() and annotations.get(ELASTIC_ANNOTATION) != "true":
        yield _refused(
            "autoscaling",
            autoscaling.path,
            "Kueue takes a RayCluster that scales itself only as an elastic job",
            f'remove it, or annotate with {ELASTIC_ANNOTATION}: "true"',
        )
    for group in spec.get("workerGroupSpecs").items():
        if group.get("groupName").text() == "head":
            yield _refused(
                "reserved-name", f"{group.path}.groupName", "'head' is the head's own", "choose another name"
            )


def _of_pods(workload: Workload, pods: PodSet) -> Iterator[Reason]:
    if pods.template.value is None and pods.name == "submitter":
        return  # KubeRay's own template
    containers = pods.spec.get("containers").items()
    if pods.spec.get("containers").value == []:
        yield _refused("no-containers", pods.name, "its pod template has no containers", "add one")
    for container in [*containers, *pods.spec.get("initContainers").items()]:
        requests = container.get("resources", "requests").quantities()
        limits = container.get("resources", "limits").quantities()
        for resource, wanted in requests.items():
            limit = limits.get(resource)
            if resource == TPU and limit != wanted:
                has = "no limit" if limit is None else f"a limit of {amount(resource, limit)}"
                yield _refused(
                    "chips-limit",
                    pods.name,
                    f"requests {asked(resource, wanted)} with {has}",
                    f"set limits: {{{TPU}: {wanted}}} as well; chips are never overcommitted",
                )
            elif limit is not None and wanted > limit:
                yield _refused(
                    "request-over-limit",
                    pods.name,
                    f"requests {asked(resource, wanted)}, over its limit of {amount(resource, limit)}",
                    "raise the limit",
                )
