"""What the API server asks of every pod template: without it no pod is created, although Kueue admits the workload.

A Job is refused for it at once. A JobSet, RayJob or RayCluster is not: its controller fails to create the pods, or the
Jobs, later, and only its events say so. Kubernetes 1.34, as far as people meet it.
"""

from __future__ import annotations

from collections.abc import Iterator

from admission.api_server.metadata import bad_annotations, bad_labels
from admission.rule import PODS, Finding, RuleBook, one_of
from admission.syntax import (
    LABEL_FIX,
    LABEL_VALUE_FIX,
    SUBDOMAIN_FIX,
    is_label,
    is_label_value,
    is_qualified_name,
    is_subdomain,
)
from admission.workload import Field, PodSet, Workload, containers_of
from vocabulary.printable import brief

BOOK = RuleBook(source="Kubernetes 1.34 pkg/apis/core/validation/validation.go", later=PODS)
_OF_JOBS = ("Never", "OnFailure")  # restart policies of the pods of a Job
_OF_PODS = ("Always", *_OF_JOBS)
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_WITH_VALUES = ("In", "NotIn")
_WITHOUT_VALUES = ("Exists", "DoesNotExist")
_WITH_A_NUMBER = ("Gt", "Lt")


def templates(workload: Workload) -> Iterator[PodSet]:
    """The pod sets whose template is in the manifest; KubeRay's own submitter is not."""
    return (pods for pods in workload.pod_sets if pods.template.value is not None)


def containers(workload: Workload) -> Iterator[Field]:
    """Every container of these templates."""
    for pods in templates(workload):
        yield from containers_of(pods.spec)


@BOOK.rule("restart-policy", "ValidatePodSpec; pkg/apis/batch/validation, validateJobSpec")
def _restart_policy(workload: Workload) -> Iterator[Finding]:
    for pods in templates(workload):
        policy = pods.spec.get("restartPolicy")
        of_job = workload.kind in ("Job", "JobSet") or pods.path == "spec.submitterPodTemplate"
        allowed: tuple[str, ...] = _OF_JOBS if of_job else _OF_PODS
        default = "Always"  # which the API server fills in
        if pods.name == "head" and workload.spec.get("submissionMode").text() == "SidecarMode":
            allowed, default = ("Never",), "Never"  # which KubeRay fills in
        if pods.spec.value is not None and (policy.text() or default) not in allowed:
            says = f"is {policy.text()}" if policy.value else "is missing, which means Always"
            yield policy.path, f"{says}; there are {', '.join(allowed)}", f"set it to {allowed[0]}"


@BOOK.rule("bad-label", "ValidatePodTemplateSpec", parts=templates)
def _labels(pods: PodSet) -> Iterator[Finding]:
    yield from bad_labels(pods.template.get("metadata", "labels"))
    yield from bad_annotations(pods.template.get("metadata", "annotations"))


@BOOK.rule("bad-node-selector", "ValidatePodSpec", parts=templates)
def _node_selector(pods: PodSet) -> Iterator[Finding]:
    yield from bad_labels(pods.spec.get("nodeSelector"))


@BOOK.rule(
    "bad-affinity",
    "ValidateNodeSelectorRequirement, validatePodAffinityTerm, validateWeightedPodAffinityTerms",
    parts=templates,
)
def _affinity(pods: PodSet) -> Iterator[Finding]:
    affinity = pods.spec.get("affinity")
    nodes = affinity.get("nodeAffinity")
    required = nodes.get("requiredDuringSchedulingIgnoredDuringExecution")
    terms = required.get("nodeSelectorTerms")
    if terms.value == []:
        yield terms.path, "is empty", "add a term"
    preferred = nodes.get("preferredDuringSchedulingIgnoredDuringExecution").items()
    for term in [*terms.items(), *(item.get("preference") for item in preferred)]:
        for expression in term.get("matchExpressions").items():
            yield from _expression(expression)
    for item in preferred:
        yield from _weight(item.get("weight"))
    for key in ("podAffinity", "podAntiAffinity"):
        yield from _pod_affinity(affinity.get(key))


def _pod_affinity(affinity: Field) -> Iterator[Finding]:
    preferred = affinity.get("preferredDuringSchedulingIgnoredDuringExecution").items()
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution").items()
    for item in preferred:
        yield from _weight(item.get("weight"))
    for term in [*required, *(item.get("podAffinityTerm") for item in preferred)]:
        key = term.get("topologyKey")
        if key.value is not None and not is_qualified_name(key.text()):
            yield key.path, f"{brief(key.text())} is not the key of a label", "name one, such as kubernetes.io/hostname"


def _weight(weight: Field) -> Iterator[Finding]:
    if weight.value is not None and not 1 <= weight.number(1) <= 100:
        yield weight.path, f"{weight.value} is not between 1 and 100", "change it"


def _expression(expression: Field) -> Iterator[Finding]:
    operator, values, key = (expression.get(name) for name in ("operator", "values", "key"))
    how = operator.text()
    known = (*_WITH_VALUES, *_WITHOUT_VALUES, *_WITH_A_NUMBER)
    if operator.value is not None and how not in known:
        yield operator.path, f"{brief(how)} is no operator", f"use {', '.join(known)}"
    elif how in _WITH_VALUES and not values.items():
        yield values.path, f"{how} needs values", "add some"
    elif how in _WITHOUT_VALUES and values.items():
        yield values.path, f"{how} takes no values", "remove them"
    elif how in _WITH_A_NUMBER and len(values.items()) != 1:
        yield values.path, f"{how} needs one value", "keep one"
    if key.value is not None and not is_qualified_name(key.text()):
        yield key.path, f"{brief(key.text())} is not the key of a label", "correct it"
    for value in values.items():
        if not is_label_value(value.text()):
            yield value.path, f"{brief(value.text())} is not the value of a label", LABEL_VALUE_FIX


@BOOK.rule("bad-toleration", "ValidateTolerations", parts=templates)
def _tolerations(pods: PodSet) -> Iterator[Finding]:
    for item in pods.spec.get("tolerations").items():
        key, operator, value, effect = (item.get(name) for name in ("key", "operator", "value", "effect"))
        how = operator.text() or "Equal"
        if how not in ("Equal", "Exists"):
            yield operator.path, f"{brief(how)} is no operator", "use Exists or Equal"
        elif not key.text() and how != "Exists":
            yield operator.path, "must be Exists where there is no key", "set operator: Exists"
        elif how == "Exists" and value.text():
            yield value.path, "Exists takes no value", "remove it"
        elif not is_label_value(value.text()):
            yield value.path, f"{brief(value.text())} is not the value of a taint", LABEL_VALUE_FIX
        if key.text() and not is_qualified_name(key.text()):
            yield key.path, f"{brief(key.text())} is not the key of a taint", "correct it"
        if effect.text() and effect.text() not in _EFFECTS:
            yield effect.path, f"{brief(effect.text())} is no effect", f"use {', '.join(_EFFECTS)}"
        elif item.get("tolerationSeconds").value is not None and effect.text() != "NoExecute":
            yield effect.path, "must be NoExecute where tolerationSeconds is set", "remove tolerationSeconds"


@BOOK.rule("bad-spread", "validateTopologySpreadConstraints", parts=templates)
def _spread(pods: PodSet) -> Iterator[Finding]:
    for item in pods.spec.get("topologySpreadConstraints").items():
        skew, when, key = (item.get(name) for name in ("maxSkew", "whenUnsatisfiable", "topologyKey"))
        if skew.number(1) < 1:
            yield skew.path, f"{skew.value} is not over 0", "set 1 or more"
        if when.text("ScheduleAnyway") not in ("ScheduleAnyway", "DoNotSchedule"):
            yield when.path, f"{brief(when.text())} is not possible", "use ScheduleAnyway or DoNotSchedule"
        if key.value is not None and not key.text():
            yield key.path, "is empty", "name a label of nodes"


@BOOK.rule("bad-pod-name", "ValidatePodSpec", parts=templates)
def _names(pods: PodSet) -> Iterator[Finding]:
    for key in ("hostname", "subdomain"):
        name = pods.spec.get(key)
        if name.text() and not is_label(name.text()):
            yield name.path, f"{brief(name.text())} is no name for a host", LABEL_FIX
    for key in ("serviceAccountName", "serviceAccount", "nodeName", "priorityClassName", "runtimeClassName"):
        name = pods.spec.get(key)
        if name.text() and not is_subdomain(name.text()):
            yield name.path, f"{brief(name.text())} is not a name", SUBDOMAIN_FIX


@BOOK.rule("bad-pod-setting", "ValidatePodSpec", parts=templates)
def _settings(pods: PodSet) -> Iterator[Finding]:
    dns, deadline = pods.spec.get("dnsPolicy"), pods.spec.get("activeDeadlineSeconds")
    system = pods.spec.get("os", "name")
    yield from one_of(dns, "policy", ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"))
    if dns.text() == "None" and not pods.spec.get("dnsConfig", "nameservers").items():
        yield dns.path, "None needs nameservers in dnsConfig", "add them, or use ClusterFirst"
    if not 1 <= deadline.number(1) < 2**31:
        yield deadline.path, f"{deadline.value} is not between 1 and 2147483647", "change it"
    yield from one_of(pods.spec.get("preemptionPolicy"), "policy", ("PreemptLowerPriority", "Never"))
    if system.value is not None and system.text() not in ("linux", "windows"):
        yield system.path, f"{brief(system.text())} is no system", "use linux"
    if pods.spec.get("ephemeralContainers").items():
        yield pods.spec.get("ephemeralContainers").path, "no template has ephemeral containers", "remove them"


@BOOK.rule("volume-twice", "validateVolumeSource", parts=templates)
def _volumes(pods: PodSet) -> Iterator[Finding]:
    for volume in pods.spec.get("volumes").items():
        name, sources = volume.get("name"), [key for key in volume.mapping() if key != "name"]
        if len(sources) > 1:
            yield volume.path, f"is {' and '.join(sources)}", "keep one of them"
        if name.value is not None and not is_label(name.text()):
            yield name.path, f"{brief(name.text())} cannot name a volume", LABEL_FIX


@RuleBook(source="Kubernetes 1.34 plugin/pkg/admission/priority/admission.go", rules=BOOK.rules).rule(
    "priority-number", "admitPod", later="none of its pods is created", parts=templates
)
def _priority_number(pods: PodSet) -> Iterator[Finding]:
    """Both come from the PriorityClass, and must be what it says; without one they are 0 and PreemptLowerPriority."""
    number, policy = pods.spec.get("priority"), pods.spec.get("preemptionPolicy")
    if pods.spec.get("priorityClassName").text():
        return
    if number.number(0):
        yield number.path, "only a PriorityClass gives pods a priority", "remove it"
    if policy.text() == "Never":
        yield policy.path, "only a PriorityClass gives pods this policy", "remove it"
