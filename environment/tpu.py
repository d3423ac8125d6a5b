"""TPU types by rule: from a name such as v6e-16 to machine type, topology, hosts and chips.

Every slice that the tables of xpk and MaxText name is compared with these rules in tests/environment/test_tpu.py.
"""

from __future__ import annotations

import difflib
import math
import re
from dataclasses import dataclass

from environment.tpu_catalogue import (
    CUBE,
    GENERATIONS,
    LONGEST_SIDE,
    MACHINE_TYPES,
    TPU_VM_RUNTIMES,
    Generation,
    MachineType,
)
from vocabulary.printable import quoted

Shape = tuple[int, ...]


class UnknownTpuType(ValueError):
    """A TPU type that does not exist. The text names the nearest one that does."""


@dataclass(frozen=True, kw_only=True)
class Slice:
    """One slice: the chips that a job gets at once, and the hosts (GKE nodes) that have them."""

    tpu_type: str  # "v6e-16"; accepted by slice_for, which gives the same slice again
    machine_type: MachineType
    topology: str  # "4x4"
    hosts: int

    @property
    def generation(self) -> str:
        return self.machine_type.generation

    @property
    def accelerator(self) -> str:
        return self.machine_type.accelerator

    @property
    def chips_per_host(self) -> int:
        return self.machine_type.chips_per_host

    @property
    def chips(self) -> int:
        return self.hosts * self.chips_per_host

    @property
    def multi_host(self) -> bool:
        """Whether the node pool needs compact placement and a topology. A single-host pool must set neither."""
        return self.hosts > 1

    @property
    def needs_workload_policy(self) -> bool:
        """Multi-host tpu7x is placed by a HIGH_THROUGHPUT workload policy, as xpk and cluster-toolkit do."""
        return self.multi_host and self.generation == "tpu7x"


def slice_for(tpu_type: str) -> Slice:
    """The slice that a TPU type means.

    Takes the names Google documents (`v6e-16`, `v5litepod-16`), the ones people type (`v5e-16`, `V6E-16`), and, to
    choose a shape or a machine type, a topology instead of the number: `v5p-4x4x16`, `ct6e-standard-8t-2x4`; a colon
    may stand before the topology. Raises UnknownTpuType, which names the nearest type.
    """
    family, number, shape = _parts(tpu_type)
    machine = next((machine for machine in MACHINE_TYPES if machine.name == family), None)
    if generation := _generation(family):
        shape = shape or _default_shape(generation, number)
        machine = _machine_for(generation, shape)
    if machine is None or not _carries(machine, shape):
        raise UnknownTpuType(f"unknown TPU type {quoted(tpu_type)}{_hint(tpu_type)}")
    return _slice(machine, shape)


def tpu_vm_slice(tpu_type: str) -> Slice:
    """The slice that a TPU type means without GKE, where the Cloud TPU API chooses the hosts.

    A slice that one host can have is one host: `v6e-8` and `v5litepod-8` are 8 chips of one, on GKE 4 of two. Raises
    UnknownTpuType, also for what the API has not: other shapes and machine types, and the generations after v6e.
    https://docs.cloud.google.com/tpu/docs/v6e#configurations
    """
    slice_ = slice_for(tpu_type)
    number, shape = _parts(tpu_type)[1], _dimensions(slice_.topology)
    if slice_.generation not in TPU_VM_RUNTIMES:
        raise UnknownTpuType(
            f"{quoted(tpu_type)} does not exist without GKE; use tpu_pools, or one of {', '.join(TPU_VM_RUNTIMES)}"
        )
    if not number:
        generation = GENERATIONS[slice_.generation]
        raise UnknownTpuType(
            f"{quoted(tpu_type)} names a shape or a machine type, which TPU VMs do not have; write "
            f"'{generation.type_name}-{slice_.chips * generation.counts_per_chip}'"
        )
    for machine in MACHINE_TYPES:
        if machine.generation == slice_.generation and machine.chips_per_host == slice_.chips:
            return _slice(machine, shape)
    return slice_


def tpu_types(generation: str) -> tuple[str, ...]:
    """The TPU types of one generation that a number names, smallest first: `v6e-1`, `v6e-4`, ..."""
    chosen = GENERATIONS[generation]
    return tuple(f"{chosen.type_name}-{math.prod(shape) * chosen.counts_per_chip}" for shape in _default_shapes(chosen))


def _parts(tpu_type: str) -> tuple[str, int, Shape]:
    """Family, number and topology as typed: one of the last two, and 0 or () for what is not there."""
    family, _, size = tpu_type.strip().lower().replace("_", "-").replace(":", "-").rpartition("-")
    if re.fullmatch("[1-9][0-9]{0,11}", size):
        return family, int(size), ()
    if re.fullmatch("[1-9][0-9]{0,3}(x[1-9][0-9]{0,3}){1,2}", size):
        return family, 0, _dimensions(size)
    return f"{family}-{size}".strip("-"), 0, ()


def _dimensions(topology: str) -> Shape:
    return tuple(int(side) for side in topology.split("x"))


def _topology(shape: Shape) -> str:
    return "x".join(map(str, shape))


def _generation(family: str) -> Generation | None:
    return next((generation for generation in GENERATIONS.values() if family in generation.aliases), None)


def _default_shape(generation: Generation, number: int) -> Shape:
    """The topology that a number means, or () if it means none."""
    chips, rest = divmod(number, generation.counts_per_chip)
    if rest:
        return ()
    for small in map(_dimensions, generation.small):
        if math.prod(small) == chips:
            return small
    cubes, rest = divmod(chips, CUBE)
    return () if rest else _default_cuboid(generation, cubes)


def _default_cuboid(generation: Generation, cubes: int) -> Shape:
    """The topology of a size in cubes: the most compact one where Google documents the size, and else xpk's choice.

    xpk lists the topologies of a size with the flattest first, and takes the first for a name that no document has.
    """
    cuboids = _cuboids(cubes) if 0 < cubes <= generation.max_cubes else []
    if not cuboids:
        return ()
    best = min(cuboids, key=sum) if cubes in generation.documented_cubes else cuboids[0]
    return tuple(4 * side for side in best)


def _default_shapes(generation: Generation) -> list[Shape]:
    cuboids = (_default_cuboid(generation, cubes) for cubes in range(1, generation.max_cubes + 1))
    return [*map(_dimensions, generation.small), *filter(None, cuboids)]


def _cuboids(cubes: int) -> list[Shape]:
    """Ways to arrange `cubes` cubes, counted in cubes: sides in rising order, and none over the longest."""
    longest = LONGEST_SIDE // 4
    return [
        (a, b, cubes // (a * b))
        for a in range(1, cubes + 1)
        for b in range(a, cubes // a + 1)
        if cubes % (a * b) == 0 and b <= cubes // (a * b) <= longest
    ]


def _exists(generation: Generation, shape: Shape) -> bool:
    if _topology(shape) in generation.small:
        return True
    sides_fit = len(shape) == 3 and all(side % 4 == 0 for side in shape) and shape[-1] <= LONGEST_SIDE
    return sides_fit and list(shape) == sorted(shape) and math.prod(shape) <= CUBE * generation.max_cubes


def _carries(machine: MachineType, shape: Shape) -> bool:
    """Whether a slice of that topology can consist of hosts of this machine type."""
    chips = math.prod(shape)
    whole = chips == machine.chips_per_host or (machine.multi_host and chips > machine.chips_per_host)
    return whole and _exists(GENERATIONS[machine.generation], shape)


def _machine_for(generation: Generation, shape: Shape) -> MachineType | None:
    machines = (machine for machine in MACHINE_TYPES if machine.generation == generation.name)
    return next((machine for machine in machines if _carries(machine, shape)), None)


def _slice(machine: MachineType, shape: Shape) -> Slice:
    generation = GENERATIONS[machine.generation]
    number = math.prod(shape) * generation.counts_per_chip
    usual = _default_shape(generation, number) == shape and _machine_for(generation, shape) == machine
    return Slice(
        # A hyphen, not a colon: labels, in which the name is used, allow no colon.
        tpu_type=f"{generation.type_name}-{number}" if usual else f"{machine.name}-{_topology(shape)}",
        machine_type=machine,
        topology=_topology(shape),
        hosts=math.prod(shape) // machine.chips_per_host,
    )


def _hint(typed: str) -> str:
    """The nearest type that exists, for the end of a message."""
    family, number, shape = _parts(typed[:64])
    aliases = [alias for known in GENERATIONS.values() for alias in known.aliases]
    families = [*aliases, *(machine.name for machine in MACHINE_TYPES)]
    family = next(iter(difflib.get_close_matches(family.removeprefix("tpu-"), families, n=1, cutoff=0.6)), "")
    generation = _generation(family)
    if generation and not shape:
        names = tpu_types(generation.name)
        return f"; did you mean '{min(names, key=lambda name: abs(int(name.rpartition('-')[2]) - (number or 16)))}'?"
    machines = [
        machine
        for machine in MACHINE_TYPES
        if family == machine.name or (generation and generation.name == machine.generation)
    ]
    if machines:
        return f"; did you mean '{family}-{_topology(_nearest_shape(machines, shape, number))}'?"
    return f"; write one such as 'v6e-16'; there are {', '.join(known.type_name for known in GENERATIONS.values())}"


def _nearest_shape(machines: list[MachineType], shape: Shape, chips: int) -> Shape:
    """The same sides in the right order if that exists, and else the topology whose size is nearest."""
    size = math.prod(shape) if shape else chips
    shapes = [tuple(sorted(shape)), *_default_shapes(GENERATIONS[machines[0].generation])]
    carried = (other for other in shapes if any(_carries(machine, other) for machine in machines))
    return min(carried, key=lambda other: abs(math.prod(other) - size))
