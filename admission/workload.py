"""What a manifest says, for the rules to read: a workload, its pod sets, and each value with its place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from vocabulary.printable import brief, printable
from vocabulary.quantity import NotAQuantity, parse


class NotAWorkload(ValueError):
    """A manifest that is not one of the four kinds, or is malformed. The text names the field, in one line."""

    def __init__(self, text: str) -> None:
        super().__init__(printable(text))


@dataclass(frozen=True)
class Field:
    """A value in a manifest and the path to it, so that an error can name the place. An absent value is None."""

    value: object
    path: str = ""

    def get(self, *keys: str) -> Field:
        field = self
        for key in keys:
            field = Field(field.mapping().get(key), f"{field.path}.{key}" if field.path else key)
        return field

    def mapping(self) -> Mapping[str, Any]:
        if self.value is None:
            return {}
        if not isinstance(self.value, Mapping):
            raise self._not("a mapping")
        return self.value

    def items(self) -> list[Field]:
        if self.value is None:
            return []
        if not isinstance(self.value, list):
            raise self._not("a list")
        return [Field(item, f"{self.path}[{index}]") for index, item in enumerate(self.value)]

    def text(self, default: str = "") -> str:
        if self.value is None:
            return default
        if not isinstance(self.value, str):
            raise self._not("text")
        return self.value

    def integer(self, default: int, *, lowest: int = 0) -> int:
        if self.value is None:
            return default
        if isinstance(self.value, bool) or not isinstance(self.value, int) or not lowest <= self.value < 2**63:
            raise self._not("a whole number")
        return self.value

    def number(self, default: int) -> int:
        """As `integer`, and it may be negative."""
        return self.integer(default, lowest=-(2**63))

    def flag(self) -> bool:
        if self.value is not None and not isinstance(self.value, bool):
            raise self._not("true or false")
        return bool(self.value)

    def texts(self) -> dict[str, str]:
        """A mapping of text to text, as labels are."""
        return {str(key): self.get(str(key)).text() for key in self.mapping()}

    def quantity(self) -> Fraction | None:
        if self.value is None:
            return None
        try:
            number = parse(self.value)
        except NotAQuantity as error:
            raise NotAWorkload(f"{self.path}: {error}") from None
        if number < 0:
            raise NotAWorkload(f"{self.path}: {brief(self.value)} is less than nothing")
        return number

    def quantities(self) -> dict[str, Fraction]:
        """A mapping of names to quantities, as requests are."""
        return {str(key): self.get(str(key)).quantity() or Fraction(0) for key in self.mapping()}

    def _not(self, what: str) -> NotAWorkload:
        shown = brief(self.value)
        template = " (a template: check the rendered manifest instead)" if "${" in shown else ""
        return NotAWorkload(f"{self.path or 'manifest'}: {shown} is not {what}{template}")


def containers_of(pod: Field) -> list[Field]:
    """Of the spec of a pod: its containers, then its init containers."""
    return [*pod.get("containers").items(), *pod.get("initContainers").items()]


def templates_of(manifest: Field) -> Iterator[Field]:
    """The templates of pods in a Job, JobSet, RayCluster or RayJob; where one is missing, an empty one."""
    kind, spec = manifest.get("kind").text(), manifest.get("spec")
    if kind == "Job":
        yield spec.get("template")
    elif kind == "JobSet":
        yield from (job.get("template", "spec", "template") for job in spec.get("replicatedJobs").items())
    elif kind in ("RayCluster", "RayJob"):
        ray = spec if kind == "RayCluster" else spec.get("rayClusterSpec")
        groups = [ray.get("headGroupSpec"), *ray.get("workerGroupSpecs").items()]
        yield from (group.get("template") for group in groups)
        yield spec.get("submitterPodTemplate")


@dataclass(frozen=True, kw_only=True)
class PodSet:
    """Pods of one template, which Kueue gives one flavor. `requests` is of one pod, as Kueue counts it."""

    name: str
    path: str  # of the object that holds the pod template
    replicas: int  # for TPU pods: how many slices are meant
    pods_per_replica: int
    requests: Mapping[str, Fraction]
    template: Field  # of the pod
    sized_by: str  # the fields that say how many pods a replica has
    size_is_set: bool = True
    completions: int | None = None
    indexed: bool = True
    exclusive: bool = False  # every replica has a node pool to itself

    @property
    def count(self) -> int:
        return self.replicas * self.pods_per_replica

    @property
    def spec(self) -> Field:
        return self.template.get("spec")

    @property
    def node_selector(self) -> dict[str, str]:
        return self.spec.get("nodeSelector").texts()

    def node_affinity(self) -> list[Field]:
        """The terms of which one must hold; empty if anything goes."""
        required = self.spec.get("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
        return required.get("nodeSelectorTerms").items()

    def total(self) -> dict[str, Fraction]:
        return {name: number * self.count for name, number in self.requests.items()}


@dataclass(frozen=True, kw_only=True)
class Workload:
    """One manifest of a kind that Kueue queues."""

    kind: str
    name: str
    namespace: str
    labels: Mapping[str, str]
    pod_sets: tuple[PodSet, ...]
    manifest: Field = field(repr=False)

    @property
    def spec(self) -> Field:
        return self.manifest.get("spec")

    @property
    def annotations(self) -> dict[str, str]:
        return self.manifest.get("metadata", "annotations").texts()

    @property
    def cluster_spec(self) -> Field:
        """Of a RayCluster or RayJob: what describes the Ray cluster."""
        return self.spec if self.kind == "RayCluster" else self.spec.get("rayClusterSpec")

    def worker_groups(self) -> list[Field]:
        """Of a RayCluster or RayJob."""
        return self.cluster_spec.get("workerGroupSpecs").items()

    @property
    def is_queued(self) -> bool:
        """Kueue leaves alone a RayJob that runs on a RayCluster that exists."""
        selects = self.kind == "RayJob" and bool(self.spec.get("clusterSelector").mapping())
        return not selects or self.cluster_spec.value is not None

    @property
    def job_specs(self) -> list[Field]:
        """The spec of a Job, or of each that a JobSet creates."""
        if self.kind == "Job":
            return [self.spec]
        return [job.get("template", "spec") for job in self.spec.get("replicatedJobs").items()]

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


API_VERSIONS = {
    "Job": "batch/v1",
    "JobSet": "jobset.x-k8s.io/v1alpha2",
    "RayJob": "ray.io/v1",
    "RayCluster": "ray.io/v1",
}
KINDS = tuple(API_VERSIONS)

EXCLUSIVE_TOPOLOGY = "alpha.jobset.sigs.k8s.io/exclusive-topology"
