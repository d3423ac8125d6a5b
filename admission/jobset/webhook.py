"""What JobSet's webhook and schema refuse of a new JobSet: 0.12.0, its feature gates at their defaults (all off)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from admission.rule import Finding, RuleBook
from admission.syntax import (
    LABEL_LENGTH,
    LABEL_VALUE_FIX,
    NAME_FIX,
    RANDOM_SUFFIX,
    SUBDOMAIN_FIX,
    is_domain_prefixed_path,
    is_label_1035,
    is_label_value,
    is_subdomain,
    longest,
)
from admission.workload import Field, Workload, containers_of
from vocabulary.printable import brief

BOOK = RuleBook(source="JobSet 0.12.0 pkg/webhooks/jobset_webhook.go")
_SCHEMA = RuleBook(source="JobSet 0.12.0 api/jobset/v1alpha2/jobset_types.go", rules=BOOK.rules)
_JOB_SET = ("JobSet",)
_RULE_NAME = r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_LONGEST_RULE_NAME = 128
_REASONS = (
    *("BackoffLimitExceeded", "DeadlineExceeded", "FailedIndexes", "MaxFailedIndexesExceeded", "PodFailurePolicy"),
)  # of batch/v1, why a Job failed


def _jobs(workload: Workload) -> list[Field]:
    return workload.spec.get("replicatedJobs").items()


def _names(workload: Workload) -> list[str]:
    return [job.get("name").text() for job in _jobs(workload)]


def _some(names: list[str]) -> str:
    return ", ".join(names) or "none"


@BOOK.rule("restart-strategy-off", "ValidateCreate", _JOB_SET)
def _restart_strategy(workload: Workload) -> Iterator[Finding]:
    strategy = workload.spec.get("failurePolicy", "restartStrategy")
    if strategy.text() == "InPlaceRestart":
        yield strategy.path, "InPlaceRestart needs a feature gate that is off", "use Recreate or BlockingRecreate"


@BOOK.rule("depends-on-first", "ValidateCreate", _JOB_SET)
def _depends_first(workload: Workload) -> Iterator[Finding]:
    for job in _jobs(workload)[:1]:
        if job.get("dependsOn").value is not None:
            yield job.get("dependsOn").path, "the first replicatedJob can depend on none", "put it behind the other"


@BOOK.rule("depends-on-unknown", "ValidateCreate", _JOB_SET)
def _depends_unknown(workload: Workload) -> Iterator[Finding]:
    names = _names(workload)
    for index, job in enumerate(_jobs(workload)):
        for other in job.get("dependsOn").items():
            name = other.get("name")
            if name.text() not in names[: index + 1]:
                what = f"no replicatedJob '{name.text()}' stands before this one"
                yield name.path, what, f"before it stand {_some(names[:index])}"


@BOOK.rule("depends-on-itself", "ValidateCreate", _JOB_SET, later="its Jobs wait for themselves")
def _depends_on_itself(workload: Workload) -> Iterator[Finding]:
    for job in _jobs(workload)[1:]:
        for other in job.get("dependsOn").items():
            if other.get("name").text() == job.get("name").text():
                yield other.get("name").path, "a replicatedJob depends on itself", "name one that stands before it"


@_SCHEMA.rule("depends-on-and-order", "JobSetSpec (CEL)", _JOB_SET)
def _depends_and_order(workload: Workload) -> Iterator[Finding]:
    order = workload.spec.get("startupPolicy", "startupPolicyOrder")
    if order.text() == "InOrder" and any(job.get("dependsOn").value is not None for job in _jobs(workload)):
        yield order.path, "InOrder and dependsOn exclude each other", "keep one of the two"


@BOOK.rule("bad-subdomain", "ValidateCreate", _JOB_SET)
def _subdomain(workload: Workload) -> Iterator[Finding]:
    subdomain = workload.spec.get("network", "subdomain")
    if subdomain.text() and not is_label_1035(subdomain.text()):
        what = f"{brief(subdomain.text())} cannot name a Service"
        yield subdomain.path, what, f"{NAME_FIX}, at most {LABEL_LENGTH} in all"


@BOOK.rule("bad-manager", "ValidateCreate", _JOB_SET)
def _managed_by(workload: Workload) -> Iterator[Finding]:
    yield from bad_manager(workload.spec.get("managedBy"))


def bad_manager(manager: Field) -> Iterator[Finding]:
    """spec.managedBy, for which Jobs and JobSets have the same rule."""
    name = manager.text()
    if manager.value is not None and (not is_domain_prefixed_path(name) or len(name) > LABEL_LENGTH):
        what = f"{brief(name)} is not a domain, a slash and a path of at most {LABEL_LENGTH} characters"
        yield manager.path, what, "remove it"


@BOOK.rule("too-many-pods", "ValidateCreate", _JOB_SET, parts=_jobs)
def _too_many_pods(job: Field) -> Iterator[Finding]:
    parallelism = job.get("template", "spec", "parallelism")
    if job.get("replicas").integer(1) * parallelism.integer(1) >= 2**31:
        yield job.path, "replicas times parallelism is more than 2147483647", "ask for less"


@BOOK.rule("bad-group-name", "ValidateCreate", _JOB_SET, parts=_jobs)
def _group_name(job: Field) -> Iterator[Finding]:
    group = job.get("groupName")
    if not is_label_1035(group.text("default")):
        what = f"{brief(group.text())} cannot name a group"
        yield group.path, what, f"{NAME_FIX}, at most {LABEL_LENGTH} in all"


@BOOK.rule("bad-name", "ValidateCreate", _JOB_SET)
def _job_name(workload: Workload) -> Iterator[Finding]:
    for job, name in _job_names(workload):
        if re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", name) is None:
            yield job.path, f"makes the job name '{name}', which is not one", NAME_FIX


@BOOK.rule("name-too-long", "ValidateCreate", _JOB_SET)
def _name_too_long(workload: Workload) -> Iterator[Finding]:
    """Names of Jobs and pods must be labels of 63 characters."""
    for job, name in _job_names(workload):
        spec = job.get("template", "spec")
        completions = spec.get("completions")
        what = f"makes job names of {len(name)} characters, '{name}'"
        if spec.get("completionMode").text() == "Indexed" and completions.value is not None:
            name = f"{name}-{max(0, completions.integer(1) - 1)}-" + "x" * RANDOM_SUFFIX
            what = f"makes pod names of {len(name)} characters, '{name}'"
        if len(name) > LABEL_LENGTH:
            fix = f"shorten the names by {len(name) - LABEL_LENGTH}"
            yield job.path, f"{what}; {LABEL_LENGTH} are allowed", fix


def _job_names(workload: Workload) -> Iterator[tuple[Field, str]]:
    """Of each replicatedJob the longest name of a Job, if the JobSet has a name."""
    for job in _jobs(workload) if workload.name else []:
        last = max(0, job.get("replicas").integer(1) - 1)
        yield job, f"{longest(workload.name)}-{job.get('name').text()}-{last}"


@BOOK.rule("success-policy-target", "ValidateCreate", _JOB_SET)
def _success_policy(workload: Workload) -> Iterator[Finding]:
    yield from _targets(workload, workload.spec.get("successPolicy", "targetReplicatedJobs"))


def _targets(workload: Workload, targets: Field) -> Iterator[Finding]:
    names = _names(workload)
    for target in targets.items():
        if target.text() not in names:
            yield target.path, f"there is no replicatedJob '{target.text()}'", f"there are {_some(names)}"


def _failure_rules(workload: Workload) -> list[Field]:
    return workload.spec.get("failurePolicy", "rules").items()


@BOOK.rule("failure-policy-off", "validateFailurePolicy", _JOB_SET, parts=_failure_rules)
def _restart_job(rule: Field) -> Iterator[Finding]:
    action = rule.get("action")
    if action.text() in ("RestartJob", "RestartJobAndIgnoreMaxRestarts"):
        fix = f"use {action.text().replace('RestartJob', 'RestartJobSet')}"
        yield action.path, f"{action.text()} needs the feature gate RestartJob, which is off", fix


@BOOK.rule("failure-policy-name", "validateFailurePolicy", _JOB_SET)
def _rule_names(workload: Workload) -> Iterator[Finding]:
    seen: set[str] = set()
    for rule in _failure_rules(workload):
        name = rule.get("name").text()
        if len(name) > _LONGEST_RULE_NAME or re.fullmatch(_RULE_NAME, name) is None:
            fix = f"use at most {_LONGEST_RULE_NAME} letters, digits and _ , : with a letter first, or leave it out"
            yield rule.get("name").path, f"{brief(name)} cannot name a rule", fix
        elif name in seen:
            yield rule.get("name").path, f"'{name}' names another rule too", "names must differ; leave them out"
        seen.add(name)


@BOOK.rule("failure-policy-target", "validateFailurePolicy", _JOB_SET)
def _failure_targets(workload: Workload) -> Iterator[Finding]:
    for rule in _failure_rules(workload):
        yield from _targets(workload, rule.get("targetReplicatedJobs"))


@BOOK.rule("failure-policy-reason", "validateFailurePolicy", _JOB_SET, parts=_failure_rules)
def _failure_reasons(rule: Field) -> Iterator[Finding]:
    for reason in rule.get("onJobFailureReasons").items():
        if reason.text() not in _REASONS:
            what = f"{brief(reason.text())} is no reason for which a Job fails"
            yield reason.path, what, f"use {', '.join(_REASONS)}"


@BOOK.rule("coordinator", "validateCoordinator", _JOB_SET)
def _coordinator(workload: Workload) -> Iterator[Finding]:
    coordinator = workload.spec.get("coordinator")
    if coordinator.value is None:
        return
    name = coordinator.get("replicatedJob")
    job = next((item for item in _jobs(workload) if item.get("name").text() == name.text()), None)
    if job is None:
        yield name.path, f"there is no replicatedJob '{name.text()}'", f"there are {_some(_names(workload))}"
        return
    replicas, spec = job.get("replicas").integer(1), job.get("template", "spec")
    index, pod = coordinator.get("jobIndex"), coordinator.get("podIndex")
    if not 0 <= index.number(0) < replicas:
        yield index.path, f"'{name.text()}' has no Job {index.value}", f"its Jobs are 0 to {replicas - 1}"
    elif spec.get("completionMode").text() != "Indexed" or spec.get("completions").value is None:
        what = "the coordinator's Job must be Indexed and say its completions"
        yield spec.path, what, "set completionMode: Indexed and completions"
    elif not 0 <= pod.number(0) < spec.get("completions").integer(0):
        last = spec.get("completions").integer(0) - 1
        yield pod.path, f"'{name.text()}' has no pod {pod.value or 0}", f"its pods are 0 to {last}"


@BOOK.rule("coordinator-name-too-long", "validateCoordinatorLabelValue", _JOB_SET)
def _coordinator_label(workload: Workload) -> Iterator[Finding]:
    coordinator = workload.spec.get("coordinator")
    if coordinator.value is None or not workload.name:
        return
    name, job = longest(workload.name), coordinator.get("replicatedJob").text()
    indexes = (coordinator.get(key).number(0) for key in ("jobIndex", "podIndex"))
    subdomain = workload.spec.get("network", "subdomain").text() or name
    label = f"{name}-{job}-{'-'.join(map(str, indexes))}.{subdomain}"
    if not is_label_value(label):
        fix = f"{LABEL_VALUE_FIX}; shorten the JobSet's name, the replicatedJob's or network.subdomain"
        yield coordinator.path, f"makes the label '{label}', which is not one", fix


def _claims(workload: Workload) -> list[Field]:
    policies = workload.spec.get("volumeClaimPolicies").items()
    return [template for policy in policies for template in policy.get("templates").items()]


@BOOK.rule("volume-claim-name", "validateVolumeClaimPolicies", _JOB_SET)
def _claim_names(workload: Workload) -> Iterator[Finding]:
    seen: set[str] = set()
    for claim in _claims(workload):
        place = claim.get("metadata", "name")
        name = place.text()
        whole = f"{name}-{longest(workload.name)}"
        if not is_subdomain(name):
            yield place.path, f"{brief(name)} cannot name a claim", SUBDOMAIN_FIX
        elif name in seen:
            yield place.path, f"'{name}' names another claim too", "names must differ"
        elif len(whole) > LABEL_LENGTH:
            fix = f"shorten it by {len(whole) - LABEL_LENGTH}"
            yield place.path, f"makes the claim '{whole}', of more than {LABEL_LENGTH} characters", fix
        seen.add(name)


@BOOK.rule("volume-claim-mount", "validateReplicatedJobsVolumeClaims", _JOB_SET)
def _claim_mounts(workload: Workload) -> Iterator[Finding]:
    pods = [spec.get("template", "spec") for spec in workload.job_specs]
    containers = [item for pod in pods for item in containers_of(pod)]
    mounted = {mount.get("name").text() for item in containers for mount in item.get("volumeMounts").items()}
    volumes = [item for pod in pods for item in pod.get("volumes").items()]
    for claim in _claims(workload):
        name = claim.get("metadata", "name").text()
        if name not in mounted:
            yield claim.path, f"no container mounts '{name}'", "add it to the volumeMounts of a container"
        for volume in volumes:
            if volume.get("name").text() == name:
                yield volume.get("name").path, f"'{name}' is the name of a claim of the JobSet too", "choose another"


@_SCHEMA.rule("volume-claim-namespace", "VolumeClaimPolicy (CEL)", _JOB_SET)
def _claim_namespaces(workload: Workload) -> Iterator[Finding]:
    for policy in workload.spec.get("volumeClaimPolicies").items():
        if policy.get("templates").value is None:
            yield policy.get("templates").path, "is missing", "add a template"
    for claim in _claims(workload):
        namespace = claim.get("metadata", "namespace")
        if namespace.text():
            yield namespace.path, "a claim has the namespace of its JobSet", "remove it"
