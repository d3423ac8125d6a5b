"""What Kueue 0.19.2 refuses of a new workload, and of the Workload that it creates for it: its webhooks and schema.

Its feature gates are at their defaults: of those that are on, ElasticJobsViaWorkloadSlices, AdmissionGatedBy,
PartialAdmission and WorkloadIdentifierAnnotations matter here. `manageJobsWithoutQueueName` is set, so that the
webhooks check Ray's kinds with or without a queue.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from admission.rule import Finding, RuleBook
from admission.syntax import LABEL_LENGTH, SUBDOMAIN_FIX, is_domain_prefixed_path, is_subdomain
from admission.workload import Field, Workload
from vocabulary.keys import ELASTIC_ANNOTATION, GATED_BY_ANNOTATION, MIN_PARALLELISM_ANNOTATION, PREBUILT, QUEUE_LABEL
from vocabulary.printable import brief

MAX_POD_SETS = 18  # pkg/controller/jobframework/constants.go
MAX_TIME_LABEL = "kueue.x-k8s.io/max-exec-time-seconds"
SAME_COMPLETIONS_ANNOTATION = "kueue.x-k8s.io/job-completions-equal-parallelism"
_POD_SET_NAME = r"(?i)[a-z0-9]([-a-z0-9]*[a-z0-9])?"  # the schema of a Workload, spec.podSets[].name
_RAY = ("RayJob", "RayCluster")
_TRUE = ("1", "t", "T", "TRUE", "true", "True")  # Go's strconv.ParseBool
_FALSE = ("0", "f", "F", "FALSE", "false", "False")

BOOK = RuleBook(source="Kueue 0.19.2 pkg/controller/jobframework/validation.go")
_JOBS = RuleBook(source="Kueue 0.19.2 pkg/controller/jobs/job/job_webhook.go", rules=BOOK.rules)
_RAY_JOBS = RuleBook(source="Kueue 0.19.2 pkg/controller/jobs/rayjob/rayjob_webhook.go", rules=BOOK.rules)
_CLUSTERS = RuleBook(source="Kueue 0.19.2 pkg/controller/jobs/raycluster", rules=BOOK.rules)
_WORKLOADS = RuleBook(
    source="Kueue 0.19.2 apis/kueue/v1beta2/workload_types.go",
    later="Kueue cannot create its Workload and never starts it",
    rules=BOOK.rules,
)


@BOOK.rule("bad-queue-name", "ValidateQueueName")
def _queue_name(workload: Workload) -> Iterator[Finding]:
    queue = workload.labels.get(QUEUE_LABEL)
    if queue and not is_subdomain(queue):  # an empty one becomes the default queue's
        yield QUEUE_LABEL, f"{brief(queue)} is not a queue name", SUBDOMAIN_FIX


@BOOK.rule("bad-prebuilt-name", "ValidatePrebuiltWorkloadName")
def _prebuilt_name(workload: Workload) -> Iterator[Finding]:
    name = workload.annotations.get(PREBUILT) or workload.labels.get(PREBUILT)
    if name is not None and not is_subdomain(name):
        yield PREBUILT, f"{brief(name)} cannot name a Workload", SUBDOMAIN_FIX


@BOOK.rule("max-time", "validateCreateForMaxExecTime")
def _max_time(workload: Workload) -> Iterator[Finding]:
    seconds = workload.labels.get(MAX_TIME_LABEL)
    if seconds is not None and (whole_number(seconds) or 0) <= 0:
        yield MAX_TIME_LABEL, f"{brief(seconds)} is not a whole number of seconds over 0", "write seconds, in quotes"


@BOOK.rule("elastic-job-set", "ValidateElasticJobAnnotation", ("JobSet",))
def _elastic_job_set(workload: Workload) -> Iterator[Finding]:
    if is_elastic(workload):
        yield ELASTIC_ANNOTATION, "a JobSet cannot be an elastic job", "remove the annotation"


@BOOK.rule("bad-admission-gate", "validateAdmissionGatedByAnnotationFormat")
def _admission_gates(workload: Workload) -> Iterator[Finding]:
    gates = [gate.strip() for gate in workload.annotations.get(GATED_BY_ANNOTATION, "").split(",")]
    if gates == [""]:
        return
    for index, gate in enumerate(gates):
        if gate in gates[:index]:
            yield GATED_BY_ANNOTATION, f"names '{gate}' twice", "name it once"
        elif not is_domain_prefixed_path(gate) or len(gate) > LABEL_LENGTH:
            what = f"{brief(gate)} is not a domain, a slash and a path of at most {LABEL_LENGTH} characters"
            yield GATED_BY_ANNOTATION, what, "name gates such as example.com/gate, with commas between them"


@_JOBS.rule("min-parallelism", "validatePartialAdmissionCreate", ("Job",))
def _min_parallelism(workload: Workload) -> Iterator[Finding]:
    text, count = workload.annotations.get(MIN_PARALLELISM_ANNOTATION), workload.pod_sets[0].count
    if text is None:
        return
    if not 0 < (whole_number(text) or 0) < count:
        what = f"{brief(text)} is not a whole number between 0 and the Job's {count} pods"
        yield MIN_PARALLELISM_ANNOTATION, what, f"write 1 to {count - 1}" if count > 1 else "remove it"
    if is_elastic(workload):
        yield MIN_PARALLELISM_ANNOTATION, "partial admission and an elastic job exclude each other", "keep one of them"


@_JOBS.rule("same-completions", "validateSyncCompletionCreate", ("Job",))
def _same_completions(workload: Workload) -> Iterator[Finding]:
    text = workload.annotations.get(SAME_COMPLETIONS_ANNOTATION)
    if text is None:
        return
    if text not in (*_TRUE, *_FALSE):
        yield SAME_COMPLETIONS_ANNOTATION, f"{brief(text)} is not true or false", 'write "true"'
    elif text in _TRUE:
        if not workload.pod_sets[0].indexed:
            yield SAME_COMPLETIONS_ANNOTATION, "is for Indexed Jobs", "set completionMode: Indexed"
        completions, parallelism = (workload.spec.get(key) for key in ("completions", "parallelism"))
        if completions.integer(1) != parallelism.integer(1):
            what = f"must equal parallelism with the annotation {SAME_COMPLETIONS_ANNOTATION}"
            yield completions.path, what, f"set it to {parallelism.integer(1)}"


@_RAY_JOBS.rule("cluster-selector", "validateCreate", ("RayJob",))
def _cluster_selector(workload: Workload) -> Iterator[Finding]:
    if workload.spec.get("clusterSelector").mapping():
        yield "spec.clusterSelector", "cannot be used with a rayClusterSpec", "remove one of the two"


@_RAY_JOBS.rule("no-pods", "validateCreate", ("RayJob",))
def _no_cluster(workload: Workload) -> Iterator[Finding]:
    spec = workload.spec
    if spec.value is not None and not spec.get("clusterSelector").mapping() and workload.cluster_spec.value is None:
        yield "spec.rayClusterSpec", "is missing", "describe the RayCluster to run on"


@_RAY_JOBS.rule("keeps-cluster", "validateCreate", ("RayJob",))
def _keeps_cluster(workload: Workload) -> Iterator[Finding]:
    spec = workload.spec
    shuts_down = spec.get("shutdownAfterJobFinishes").flag()
    if not spec.get("clusterSelector").mapping() and workload.cluster_spec.value is not None and not shuts_down:
        what = "must be true: the RayCluster would hold its quota after the job"
        yield "spec.shutdownAfterJobFinishes", what, "set shutdownAfterJobFinishes: true"


@_RAY_JOBS.rule("no-containers", "validateTopologyRequest, which takes the image of the head's container", ("RayJob",))
def _no_head(workload: Workload) -> Iterator[Finding]:
    containers = workload.cluster_spec.get("headGroupSpec", "template", "spec", "containers")
    if containers.value == []:
        yield containers.path, "is empty", "add a container"


@_CLUSTERS.rule("autoscaling", "raycluster_webhook.go, validateCreate; common.go, ValidateCreate", _RAY)
def _autoscaling(workload: Workload) -> Iterator[Finding]:
    autoscaling = workload.cluster_spec.get("enableInTreeAutoscaling")
    if autoscaling.flag() and not is_elastic(workload):
        what = "Kueue takes a RayCluster that scales itself only as an elastic job"
        yield autoscaling.path, what, f'remove it, or annotate with {ELASTIC_ANNOTATION}: "true"'


@_CLUSTERS.rule("too-many-worker-groups", "raycluster_webhook.go, validateCreate; common.go, ValidateCreate", _RAY)
def _worker_groups(workload: Workload) -> Iterator[Finding]:
    groups = workload.cluster_spec.get("workerGroupSpecs")
    if len(groups.items()) + 1 > MAX_POD_SETS:
        what = f"has {len(groups.items())} groups; Kueue takes {MAX_POD_SETS - 1} beside the head"
        yield groups.path, what, "merge some"


@_CLUSTERS.rule(
    "reserved-name",
    "raycluster_webhook.go, validateCreate; common.go, ValidateCreate",
    _RAY,
    parts=Workload.worker_groups,
)
def _head(group: Field) -> Iterator[Finding]:
    if group.get("groupName").text() == "head":
        yield group.get("groupName").path, "'head' is the head's own", "choose another name"


@_CLUSTERS.rule("elastic-elsewhere", "raycluster_webhook.go, validateElasticJob", ("RayCluster",))
def _elastic_elsewhere(workload: Workload) -> Iterator[Finding]:
    scales = workload.spec.get("enableInTreeAutoscaling")
    if is_elastic(workload) and scales.flag() and workload.spec.get("managedBy").text() == "kueue.x-k8s.io/multikueue":
        yield scales.path, "MultiKueue runs no elastic RayCluster that scales itself", "remove it"


@_WORKLOADS.rule("too-many-pod-sets", "WorkloadSpec.PodSets", ("JobSet", "RayJob"))
def _too_many_pod_sets(workload: Workload) -> Iterator[Finding]:
    groups = len(workload.worker_groups()) if workload.kind == "RayJob" else 0
    if len(workload.pod_sets) > MAX_POD_SETS and groups + 1 <= MAX_POD_SETS:
        yield "spec", f"has {len(workload.pod_sets)} kinds of pods; Kueue takes {MAX_POD_SETS}", "merge some"


@_WORKLOADS.rule("no-pods", "WorkloadSpec.PodSets", ("JobSet",))
def _no_pods(workload: Workload) -> Iterator[Finding]:
    if workload.spec.value is not None and not workload.pod_sets:
        yield "spec.replicatedJobs", "is empty", "add a replicatedJob"


@_WORKLOADS.rule("same-name", "WorkloadSpec.PodSets", _RAY)
def _same_group(workload: Workload) -> Iterator[Finding]:
    """A Workload has pod sets by name. KubeRay's webhook, where that is on, refuses it at once."""
    names: set[str] = set()
    for group in workload.worker_groups():
        name = group.get("groupName").text().lower()
        if name in names:
            yield group.get("groupName").path, f"'{name}' names another group too", "names must differ"
        names.add(name)


@_WORKLOADS.rule("bad-group-name", "PodSet.Name", _RAY, parts=Workload.worker_groups)
def _group_name(group: Field) -> Iterator[Finding]:
    name = group.get("groupName")
    if name.value is not None and (
        re.fullmatch(_POD_SET_NAME, name.text(), re.ASCII) is None or len(name.text()) > LABEL_LENGTH
    ):
        fix = f"use at most {LABEL_LENGTH} letters, digits and hyphens"
        yield name.path, f"{brief(name.text())} cannot name a kind of pods", fix


def is_elastic(workload: Workload) -> bool:
    """pkg/workloadslicing, Enabled."""
    return workload.annotations.get(ELASTIC_ANNOTATION) == "true"


def whole_number(text: str) -> int | None:
    """Go's strconv.Atoi: None for what it does not take."""
    return int(text) if re.fullmatch(r"[+-]?[0-9]{1,18}", text, re.ASCII) else None
