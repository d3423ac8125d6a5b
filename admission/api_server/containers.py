"""What the API server asks of every container of a pod template (Kubernetes 1.34), as far as people meet it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from admission.api_server.pods import containers, templates
from admission.result import amount, asked
from admission.rule import PODS, Finding, RuleBook, not_negative, one_of
from admission.syntax import LABEL_FIX, is_label, is_qualified_name
from admission.workload import Field, PodSet, Workload, containers_of
from vocabulary.keys import TPU
from vocabulary.printable import brief

BOOK = RuleBook(source="Kubernetes 1.34 pkg/apis/core/validation/validation.go", later=PODS)
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_STANDARD = ("cpu", "memory", "ephemeral-storage")
_NATIVE = ("kubernetes.io/", "requests.")
_PORT_NAME = r"(?!.*--)(?=.*[a-z])[a-z0-9]([-a-z0-9]{0,13}[a-z0-9])?"


@BOOK.rule("no-containers", "validateContainers", ("Job", "JobSet"), parts=templates)
def _no_containers(pods: PodSet) -> Iterator[Finding]:
    if pods.spec.get("containers").value == []:
        yield pods.spec.get("containers").path, "is empty", "add a container"


@BOOK.rule("no-pod-spec", "validateContainers", later="")
def _no_pod_spec(workload: Workload) -> Iterator[Finding]:
    """Of a custom resource a mutating webhook writes containers: null, which the schema refuses."""
    for pods in templates(workload):
        if pods.spec.value is None:
            yield f"{pods.spec.path}.containers", "is missing", "add a container"
    for job in workload.spec.get("replicatedJobs").items():
        if job.get("template").value is not None and job.get("template", "spec").value is None:
            yield job.get("template", "spec", "template").path, "is missing", "describe the pods"


@BOOK.rule("no-image", "validateContainerCommon", parts=containers)
def _no_image(container: Field) -> Iterator[Finding]:
    if not container.get("image").text():
        yield container.get("image").path, "is missing", "name the image to run"


@BOOK.rule("bad-name", "validateContainerCommon", parts=containers)
def _bad_name(container: Field) -> Iterator[Finding]:
    name = container.get("name")
    if name.value is not None and not is_label(name.text()):
        yield name.path, f"{brief(name.text())} cannot name a container", LABEL_FIX


@BOOK.rule("same-name", "validateInitContainers", parts=templates)
def _same_name(pods: PodSet) -> Iterator[Finding]:
    names = {item.get("name").text() for item in pods.spec.get("containers").items()}
    for container in pods.spec.get("initContainers").items():
        name = container.get("name")
        if name.text() in names and name.text():
            yield name.path, f"'{name.text()}' names another container too", "names must differ"


@BOOK.rule("unknown-volume", "ValidateVolumeMounts")
def _mounts(workload: Workload) -> Iterator[Finding]:
    for pods in templates(workload):
        volumes = {item.get("name").text() for item in pods.spec.get("volumes").items()} | _claimed(workload)
        there = ", ".join(sorted(volumes)) or "none"
        for container in containers_of(pods.spec):
            for mount in [*container.get("volumeMounts").items(), *container.get("volumeDevices").items()]:
                name = mount.get("name")
                if name.text() and name.text() not in volumes:
                    fix = f"add it to the pod's volumes, of which there are: {there}"
                    yield name.path, f"there is no volume '{name.text()}'", fix


def _claimed(workload: Workload) -> set[str]:
    """The volumes that JobSet adds for its volumeClaimPolicies."""
    policies = workload.spec.get("volumeClaimPolicies").items() if workload.kind == "JobSet" else []
    claims = [template for policy in policies for template in policy.get("templates").items()]
    return {claim.get("metadata", "name").text() for claim in claims}


@BOOK.rule("bad-environment", "ValidateEnv, validateEnvVarValueFrom, ValidateEnvFrom", parts=containers)
def _environment(container: Field) -> Iterator[Finding]:
    for variable in container.get("env").items():
        name, source = variable.get("name"), variable.get("valueFrom")
        if name.value is not None and re.fullmatch(r"[\x20-\x3c\x3e-\x7e]+", name.text()) is None:
            yield name.path, f"{brief(name.text())} cannot name a variable", "use letters, digits and underscores"
        sources = list(source.mapping())
        if source.value is not None and len(sources) != 1:
            yield source.path, f"has {len(sources)} sources", "keep one"
        elif sources and variable.get("value").text():
            yield source.path, "cannot stand beside value", "remove one of the two"
    for source in container.get("envFrom").items():
        sources = [key for key in ("configMapRef", "secretRef") if source.get(key).value is not None]
        if len(sources) != 1:
            yield source.path, f"has {len(sources)} sources", "name a configMapRef or a secretRef"


@BOOK.rule("bad-port", "validateContainerPorts", parts=containers)
def _ports(container: Field) -> Iterator[Finding]:
    names: set[str] = set()
    for port in container.get("ports").items():
        name = port.get("name")
        for number in (port.get("containerPort"), port.get("hostPort")):
            lowest = 0 if number.path.endswith("hostPort") else 1
            if not lowest <= number.number(1) < 2**16:
                yield number.path, f"{number.value} is no port", "use 1 to 65535"
        yield from one_of(port.get("protocol"), "protocol", ("TCP", "UDP", "SCTP"))
        if name.text() and re.fullmatch(_PORT_NAME, name.text()) is None:
            fix = "use at most 15 lower-case letters, digits and single hyphens, with a letter among them"
            yield name.path, f"{brief(name.text())} cannot name a port", fix
        elif name.text() in names and name.text():
            yield name.path, f"'{name.text()}' names another port too", "names must differ"
        names.add(name.text())


@BOOK.rule("bad-container-setting", "validateContainerCommon", parts=containers)
def _settings(container: Field) -> Iterator[Finding]:
    security = container.get("securityContext")
    yield from one_of(container.get("imagePullPolicy"), "policy", ("Always", "Never", "IfNotPresent"))
    yield from one_of(container.get("terminationMessagePolicy"), "policy", ("File", "FallbackToLogsOnError"))
    escalates = security.get("allowPrivilegeEscalation")
    if security.get("privileged").flag() and escalates.value is False:
        yield escalates.path, "a privileged container can always gain privileges", "remove it"


@BOOK.rule("bad-probe", "validateProbe, validateHandler, validateInitContainers", parts=containers)
def _probes(container: Field) -> Iterator[Finding]:
    sidecar = container.get("restartPolicy").text() == "Always"
    for key in (*_PROBES, "lifecycle"):
        if ".initContainers[" in container.path and not sidecar and container.get(key).value is not None:
            yield container.get(key).path, "is not for an init container", "remove it, or set restartPolicy: Always"
    for key in _PROBES:
        yield from _probe(container.get(key), once=key != "readinessProbe")
    for key in ("postStart", "preStop"):
        yield from _handler(container.get("lifecycle", key))


def _probe(probe: Field, *, once: bool) -> Iterator[Finding]:
    yield from _handler(probe)
    successes = probe.get("successThreshold")
    if once and successes.number(1) not in (0, 1):  # 0 is set to 1
        yield successes.path, "must be 1", "remove it"
    for key in ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"):
        yield from not_negative(probe.get(key))


def _handler(holder: Field) -> Iterator[Finding]:
    handlers = [key for key in _HANDLERS if holder.get(key).value is not None]
    if holder.value is not None and len(handlers) != 1:
        what = f"has {' and '.join(handlers) or 'no handler'}"
        yield holder.path, what, "keep one" if handlers else "say what is done, such as exec"


@BOOK.rule("unknown-claim", "validateResourceRequirements", parts=templates)
def _claims(pods: PodSet) -> Iterator[Finding]:
    there = {claim.get("name").text() for claim in pods.spec.get("resourceClaims").items()}
    for container in containers_of(pods.spec):
        for claim in container.get("resources", "claims").items():
            if claim.get("name").text() not in there:
                what = f"the pod has no resource claim '{claim.get('name').text()}'"
                yield claim.path, what, "add it to the pod's resourceClaims"


@BOOK.rule("bad-resource", "ValidateContainerResourceRequirements", parts=containers)
def _resources(container: Field) -> Iterator[Finding]:
    """Whole numbers of what is no standard resource, under a name with a domain."""
    for holder in (container.get("resources", key) for key in ("requests", "limits")):
        for name, number in holder.quantities().items():
            place = f"{holder.path}.{name}"
            if "/" not in name:
                if name not in _STANDARD and not name.startswith("hugepages-"):
                    fix = f"use {TPU}" if "tpu" in name.lower() else f"use {', '.join(_STANDARD)}"
                    yield place, f"{brief(name)} is no resource of a container", fix
            elif not is_qualified_name(name) or name.startswith(_NATIVE):
                yield place, f"{brief(name)} is no name of a resource", "correct it"
            elif number.denominator != 1:
                yield place, f"{brief(holder.mapping()[name])} is no whole number", "write one"


@BOOK.rule("chips-limit", "ValidateContainerResourceRequirements", parts=containers)
def _chips_limit(container: Field) -> Iterator[Finding]:
    requests, limits = (container.get("resources", key).quantities() for key in ("requests", "limits"))
    for name, requested in requests.items():
        limit = limits.get(name)
        if "/" in name and limit != requested:
            has = "no limit" if limit is None else f"a limit of {amount(name, limit)}"
            what = f"requests {asked(name, requested)} with {has}"
            thing = "chips are" if name == TPU else "it is"
            yield (
                f"{container.path}.resources",
                what,
                f"set limits: {{{name}: {requested}}} as well; {thing} never overcommitted",
            )


@BOOK.rule("request-over-limit", "ValidateContainerResourceRequirements", parts=containers)
def _over_limit(container: Field) -> Iterator[Finding]:
    requests, limits = (container.get("resources", key).quantities() for key in ("requests", "limits"))
    for name, requested in requests.items():
        if "/" not in name and name in limits and requested > limits[name]:
            what = f"requests {asked(name, requested)}, over its limit of {amount(name, limits[name])}"
            yield f"{container.path}.resources", what, "raise the limit"
