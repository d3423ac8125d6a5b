"""What the API server asks of the metadata of every object: its name, namespace, labels and annotations."""

from __future__ import annotations

from collections.abc import Iterator

from admission.rule import Finding, RuleBook
from admission.syntax import (
    LABEL_FIX,
    LABEL_LENGTH,
    LABEL_VALUE_FIX,
    NAME_FIX,
    is_label,
    is_label_value,
    is_qualified_name,
    is_subdomain,
    longest,
)
from admission.workload import Field, Workload
from vocabulary.printable import brief

BOOK = RuleBook(source="Kubernetes 1.34 apimachinery/pkg/api/validation/objectmeta.go")
_KEY_FIX = "use a name of at most 63 letters, digits, hyphens, dots and underscores, perhaps after a domain and a slash"
_ALL_ANNOTATIONS = 256 << 10  # bytes of keys and values together


@BOOK.rule("no-name", "ValidateObjectMeta")
def _no_name(workload: Workload) -> Iterator[Finding]:
    if not workload.name:
        yield "metadata", "has neither a name nor a generateName", "give it a name"


# JobSet checks the names of the Jobs that it creates, which begin with its own.
@BOOK.rule("bad-name", "ValidateObjectMeta", ("Job", "RayJob", "RayCluster"))
def _bad_name(workload: Workload) -> Iterator[Finding]:
    name = longest(workload.name)
    if name and not is_subdomain(name):
        yield "metadata.name", f"{brief(name)} is not a name", NAME_FIX


@BOOK.rule("bad-namespace", "ValidateObjectMeta")
def _bad_namespace(workload: Workload) -> Iterator[Finding]:
    if not is_label(workload.namespace):
        yield "metadata.namespace", f"{brief(workload.namespace)} cannot name a namespace", LABEL_FIX


@BOOK.rule("bad-label", "ValidateObjectMeta")
def _bad_label(workload: Workload) -> Iterator[Finding]:
    yield from bad_labels(workload.manifest.get("metadata", "labels"))


@BOOK.rule("bad-annotation", "ValidateObjectMeta")
def _bad_annotation(workload: Workload) -> Iterator[Finding]:
    yield from bad_annotations(workload.manifest.get("metadata", "annotations"))


_JOBS = RuleBook(source="Kubernetes 1.34 pkg/apis/batch/validation/validation.go", rules=BOOK.rules)


@_JOBS.rule("name-too-long", "validateGeneratedSelector", ("Job",))
def _name_too_long(workload: Workload) -> Iterator[Finding]:
    name = longest(workload.name)
    if len(name) > LABEL_LENGTH:
        over = len(name) - LABEL_LENGTH
        what = f"has {len(name)} characters; it is a label of the Job's pods, which may have {LABEL_LENGTH}"
        yield "metadata.name", what, f"shorten it by {over}"


@_JOBS.rule("host-name-too-long", "ValidateJob", ("Job",))
def _host_name(workload: Workload) -> Iterator[Finding]:
    pods, name = workload.pod_sets[0], longest(workload.name)
    host = f"{name}-{(pods.completions or 0) - 1}"
    if pods.indexed and pods.completions and is_subdomain(name) and len(name) <= LABEL_LENGTH and not is_label(host):
        fix = "use at most 63 characters with the highest index, and no dots"
        yield "metadata.name", f"makes the host name '{host}', which is not one", fix


def bad_labels(labels: Field) -> Iterator[Finding]:
    """Labels, or a selector by labels."""
    for key, value in labels.texts().items():
        if not is_qualified_name(key):
            yield labels.path, f"{brief(key)} is not the key of a label", _KEY_FIX
        if not is_label_value(value):
            yield f"{labels.path}.{key}", f"{brief(value)} is not the value of a label", LABEL_VALUE_FIX


def bad_annotations(annotations: Field) -> Iterator[Finding]:
    texts = annotations.texts()
    for key in texts:
        if not is_qualified_name(key.lower()):
            yield annotations.path, f"{brief(key)} is not the key of an annotation", _KEY_FIX
    size = sum(len(key.encode()) + len(value.encode()) for key, value in texts.items())
    if size > _ALL_ANNOTATIONS:
        yield annotations.path, f"have {size} bytes; {_ALL_ANNOTATIONS} are allowed", "put less into them"
