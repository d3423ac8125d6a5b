"""A recipe: its manifests with ${NAMES}, and the keys that --set takes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from environment import CapacityMode, PoolGroup
from manifests.mesh import Mesh
from manifests.parameters import Parameter, text_value
from vocabulary.printable import counted, printable
from vocabulary.ray import ray_obstacle

_RAY = re.compile(r"^kind: Ray(Cluster|Job)$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One folder. `manifests` are the texts of its YAML files, with ${NAMES}, by file name in their order.

    `generations` and `hosts` are the TPUs that its program runs on: "v5e", and how many hosts a slice has. () and 0
    mean all. `multislice`: all slices of a run are one program.
    """

    name: str
    folder: Path
    manifests: Mapping[str, str]
    summary: str = ""
    tpu: bool = True
    generations: tuple[str, ...] = ()
    hosts: int = 0
    multislice: bool = False
    images: tuple[str, ...] = ()
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    arguments: Mapping[str, Parameter] = field(default_factory=dict)
    more_arguments: tuple[str, ...] = ()
    more_arguments_file: str = ""  # in the folder, with the keys above
    mesh: Mesh = field(default_factory=Mesh)
    presets: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    preset: str | None = None

    @property
    def keys(self) -> tuple[str, ...]:
        """Everything that --set takes, but `preset`."""
        return (*self.parameters, *self.arguments, *self.mesh.keys, *self.more_arguments)

    @property
    def required(self) -> dict[str, str]:
        """The keys that have no default and must be set, with an example of each."""
        both = {**self.parameters, **self.arguments}
        return {key: parameter.example or "" for key, parameter in both.items() if parameter.required}

    def unsuited(self, group: PoolGroup) -> str:
        """Why it does not run on the slices of this pool group, in a sentence without its end; "" if it does."""
        slice_ = group.slice
        of_group = f"a slice of pool group {group.name} ({slice_.tpu_type})"
        if self.generations and slice_.generation not in self.generations:
            return f"recipe {self.name} runs on TPU {' and '.join(self.generations)}; {of_group} is {slice_.generation}"
        if self.hosts not in (0, slice_.hosts):
            hosts = counted(self.hosts, "host")
            return f"recipe {self.name} runs on slices of {hosts}; {of_group} has {slice_.hosts}"
        if any(_RAY.search(text) for text in self.manifests.values()):
            queued = group.capacity is CapacityMode.QUEUED
            if why := ray_obstacle(slice_.topology, slice_.hosts, queued=queued):
                return f"recipe {self.name} does not run on {of_group}: {why}"
        return ""

    def joins(self, group: PoolGroup) -> bool:
        """Whether a run can have several slices of this pool group.

        "Multislice only supports multi-host TPU slice node pools":
        https://cloud.google.com/kubernetes-engine/docs/how-to/tpu-multislice
        """
        return group.slice.hosts > 1 or not self.multislice

    def most_slices(self, group: PoolGroup) -> int:
        """How many slices of this pool group a run can have."""
        return group.slices if self.joins(group) else 1

    def value(self, key: str, text: str) -> str:
        """The value of one of the keys, as it is filled in; of a mesh it is as written.

        Raises ValueError, as Parameter.value.
        """
        parameter = self.parameters.get(key) or self.arguments.get(key)
        return parameter.value(text) if parameter else text_value(text)


def shown(folder: Path, *file: str) -> str:
    """How messages name a recipe's folder, or a file in it: "manifests/hello-tpu/jobset.yaml"."""
    return printable(str(Path(folder.parent.name, folder.name, *file)))
