"""What the API server refuses of a Job (batch/v1, Kubernetes 1.34), and later of the Jobs that a JobSet creates."""

from __future__ import annotations

import re
from collections.abc import Iterator
from operator import attrgetter

from admission.jobset.webhook import bad_manager
from admission.rule import PODS, Finding, RuleBook, one_of
from admission.syntax import is_qualified_name
from admission.workload import Field, containers_of
from vocabulary.printable import brief

_JOBS = ("Job", "JobSet")
BOOK = RuleBook(source="Kubernetes 1.34 pkg/apis/batch/validation/validation.go", later=PODS)
_MOST_INDEXES = 100_000  # of parallelism and maxFailedIndexes
_MANY = 100_000  # completions beyond which the limits of backoffLimitPerIndex are lower
_MOST_OF_MANY = 10_000
_MOST_RULES = 20
_MOST_EXIT_CODES = 255
_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")


_specs = attrgetter("job_specs")  # of a workload


def _indexed(spec: Field) -> bool:
    return spec.get("completionMode").text() == "Indexed"


@BOOK.rule("bad-manager", "validateJobSpec", _JOBS, parts=_specs)
def _managed_by(spec: Field) -> Iterator[Finding]:
    yield from bad_manager(spec.get("managedBy"))


@BOOK.rule("completion-mode", "validateJobSpec", _JOBS, parts=_specs)
def _completion_mode(spec: Field) -> Iterator[Finding]:
    mode = spec.get("completionMode")
    yield from one_of(mode, "mode", ("Indexed", "NonIndexed"))


@BOOK.rule("no-completions", "validateJobSpec", _JOBS, parts=_specs)
def _completions(spec: Field) -> Iterator[Finding]:
    """Where neither is set, the API server sets both to 1 before it validates (SetDefaults_Job)."""
    parallelism = spec.get("parallelism")
    if _indexed(spec) and spec.get("completions").value is None and parallelism.value is not None:
        what = "an Indexed Job must say its completions"
        yield spec.get("completions").path, what, f"set completions: {parallelism.integer(1)}"


@BOOK.rule("too-many-indexes", "validateJobSpec", _JOBS, parts=_specs)
def _indexes(spec: Field) -> Iterator[Finding]:
    if _indexed(spec):
        parallelism, failed = spec.get("parallelism"), spec.get("maxFailedIndexes")
        completions = spec.get("completions")
        many = completions.integer(0) > _MANY and spec.get("backoffLimitPerIndex").value is not None
        most = _MOST_OF_MANY if many else _MOST_INDEXES
        for number in (parallelism, failed):
            if number.integer(0) > most:
                what = f"{number.value} is more than {most}, the most of an Indexed Job such as this"
                yield number.path, what, "lower it"
        if many and failed.value is None:
            yield failed.path, f"must be set with backoffLimitPerIndex and over {_MANY} completions", "set it"
        if completions.value is not None and failed.integer(0) > completions.integer(0):
            yield failed.path, f"{failed.value} is more than the {completions.value} completions", "lower it"


@BOOK.rule("per-index", "validateJobSpec", _JOBS, parts=_specs)
def _per_index(spec: Field) -> Iterator[Finding]:
    limit, failed = spec.get("backoffLimitPerIndex"), spec.get("maxFailedIndexes")
    for item in (limit, failed):
        if item.value is not None and not _indexed(spec):
            yield item.path, "is for Indexed Jobs", "set completionMode: Indexed, or remove it"
    if failed.value is not None and limit.value is None:
        yield failed.path, "needs backoffLimitPerIndex beside it", "set that too"


@BOOK.rule("replacement-policy", "validatePodReplacementPolicy", _JOBS, parts=_specs)
def _replacement(spec: Field) -> Iterator[Finding]:
    policy = spec.get("podReplacementPolicy")
    known = ("Failed",) if spec.get("podFailurePolicy").value is not None else ("Failed", "TerminatingOrFailed")
    if policy.text("Failed") not in known:
        yield policy.path, f"{brief(policy.text())} is not possible here", f"use {' or '.join(known)}"


@BOOK.rule("pod-failure-restarts", "validateJobSpec", _JOBS, parts=_specs)
def _failure_restarts(spec: Field) -> Iterator[Finding]:
    restarts = spec.get("template", "spec", "restartPolicy")
    if spec.get("podFailurePolicy").value is not None and restarts.text() == "OnFailure":
        yield restarts.path, "is OnFailure; with a podFailurePolicy it must be Never", "set it to Never"


@BOOK.rule("pod-failure-policy", "validatePodFailurePolicyRule", _JOBS, parts=_specs)
def _failure_policy(spec: Field) -> Iterator[Finding]:
    rules = spec.get("podFailurePolicy", "rules")
    if len(rules.items()) > _MOST_RULES:
        yield rules.path, f"has {len(rules.items())} rules; {_MOST_RULES} are allowed", "merge some"
    pod = spec.get("template", "spec")
    names = [item.get("name").text() for item in containers_of(pod)]
    for rule in rules.items():
        yield from _failure_rule(spec, rule)
        yield from _exit_codes(rule.get("onExitCodes"), names)
        for condition in rule.get("onPodConditions").items():
            status, type_ = condition.get("status"), condition.get("type")
            yield from one_of(status, "status", ("True", "False", "Unknown"))
            if type_.value is not None and not is_qualified_name(type_.text()):
                yield type_.path, f"{brief(type_.text())} is no condition", "name one, such as DisruptionTarget"


def _failure_rule(spec: Field, rule: Field) -> Iterator[Finding]:
    action, conditions = rule.get("action"), rule.get("onPodConditions").items()
    if action.text("Count") not in _ACTIONS:
        yield action.path, f"{brief(action.text())} is no action", f"use {', '.join(_ACTIONS)}"
    elif action.text() == "FailIndex" and spec.get("backoffLimitPerIndex").value is None:
        yield action.path, "FailIndex needs backoffLimitPerIndex", "set that too"
    if (rule.get("onExitCodes").value is None) == (not conditions):
        yield rule.path, "must have either onExitCodes or onPodConditions", "keep one of the two"
    if len(conditions) > _MOST_RULES:
        yield rule.path, f"has {len(conditions)} conditions; {_MOST_RULES} are allowed", "merge some"


def _exit_codes(codes: Field, names: list[str]) -> Iterator[Finding]:
    if codes.value is None:
        return
    operator, name, values = codes.get("operator"), codes.get("containerName"), codes.get("values")
    numbers = [item.number(0) for item in values.items()]
    yield from one_of(operator, "operator", ("In", "NotIn"))
    if name.value is not None and name.text() not in names:
        yield name.path, f"there is no container '{name.text()}'", f"there are {', '.join(names)}"
    if values.value is not None and not 1 <= len(numbers) <= _MOST_EXIT_CODES:
        yield values.path, f"has {len(numbers)} values; 1 to {_MOST_EXIT_CODES} are allowed", "change them"
    if operator.text() == "In" and 0 in numbers:
        yield values.path, "0 is success and cannot be In", "remove it"
    if numbers != sorted(set(numbers)):
        yield values.path, "are not in order, each once", f"write {sorted(set(numbers))}"


@BOOK.rule("job-success-policy", "validateSuccessPolicy", _JOBS, parts=_specs)
def _success_policy(spec: Field) -> Iterator[Finding]:
    policy, completions = spec.get("successPolicy"), spec.get("completions")
    rules = policy.get("rules")
    if policy.value is None:
        return
    if not _indexed(spec):
        yield policy.path, "is for Indexed Jobs", "set completionMode: Indexed, or remove it"
    elif rules.value is not None and not 1 <= len(rules.items()) <= _MOST_RULES:
        yield rules.path, f"has {len(rules.items())} rules; 1 to {_MOST_RULES} are allowed", "change them"
    elif completions.value is not None:
        for rule in rules.items():
            yield from _success_rule(rule, completions.integer(0))


def _success_rule(rule: Field, completions: int) -> Iterator[Finding]:
    count, indexes = rule.get("succeededCount"), rule.get("succeededIndexes")
    if count.value is None and indexes.value is None:
        yield rule.path, "must have succeededCount or succeededIndexes", "add one"
    most = completions
    if indexes.value is not None:
        named = _indexes_of(indexes.text(), completions)
        if named is None:
            fix = f"write numbers and ranges in order, such as 0,2-4, of 0 to {completions - 1}"
            yield indexes.path, f"{brief(indexes.text())} are no indexes of the Job", fix
        else:
            most = named
    if not 0 <= count.number(0) <= most:
        yield count.path, f"{count.value} is not between 0 and {most}", "change it"


def _indexes_of(text: str, completions: int) -> int | None:
    """How many indexes "0,2-4" names; None if it names none, others, or not in order (validateIndexesFormat)."""
    total, last = 0, -1
    for part in text.split(",") if text else []:
        match = re.fullmatch(r"([0-9]{1,10})(?:-([0-9]{1,10}))?", part, re.ASCII)
        if match is None:
            return None
        first = int(match[1])
        end = int(match[2]) if match[2] else first
        if first <= last or (match[2] and end <= first) or end >= completions:
            return None
        total, last = total + end - first + 1, end
    return total


@BOOK.rule("own-selector", "validateGeneratedSelector, ValidateJobSpec", _JOBS, parts=_specs)
def _selector(spec: Field) -> Iterator[Finding]:
    selector = spec.get("selector")
    if any(selector.mapping().values()) and not spec.get("manualSelector").flag():
        yield selector.path, "the API server sets a Job's selector", "remove it"
        return
    match_labels, labels = selector.get("matchLabels").texts(), spec.get("template", "metadata", "labels").texts()
    if selector.value is not None and not match_labels.items() <= labels.items():
        yield selector.path, "does not match the labels of the pods", "remove it, and manualSelector"
    elif selector.value is None and spec.get("manualSelector").flag():
        yield spec.get("manualSelector").path, "needs a selector", "remove it"
