"""The TPU catalogue: from the name of a TPU type to machine type, topology, hosts and chips, by rule.

Facts: GKE's documentation of TPU versions and topologies, the xpk and MaxText tables (June 2026) and the constants of
the GKE cluster autoscaler. Every slice those tables name is compared with these rules in tests/environment/test_tpu.py.
"""

from __future__ import annotations

import difflib
import math
import re
from dataclasses import dataclass

from vocabulary.printable import quoted

Shape = tuple[int, ...]


class UnknownTpuType(ValueError):
    """A TPU type that does not exist. The text names the nearest one that does."""


@dataclass(frozen=True, kw_only=True)
class MachineType:
    """A TPU machine type: what one host has. `memory_gb` as Google counts it; `boot_disks` begins with our choice."""

    name: str
    generation: str
    accelerator: str  # value of the node label cloud.google.com/gke-tpu-accelerator
    chips_per_host: int
    vcpu: int
    memory_gb: int
    boot_disks: tuple[str, ...]
    multi_host: bool  # whether several hosts of it can form one slice
    flex_start: bool  # whether Dynamic Workload Scheduler gives it: flex-start, and flex-start with queued provisioning

    @property
    def boot_disk(self) -> str:
        return self.boot_disks[0]


@dataclass(frozen=True, kw_only=True)
class Slice:
    """One slice: the chips that a job gets at once, and the hosts (GKE nodes) that carry them."""

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


@dataclass(frozen=True, kw_only=True)
class _Generation:
    name: str
    type_name: str  # the part before the number in a TPU type
    aliases: tuple[str, ...]  # other ways in which people write that part
    counts_per_chip: int  # the number in a TPU type counts chips (1) or TensorCores (2)
    small: tuple[str, ...]  # every shape of a two-dimensional generation; the ones below 4x4x4 of the others
    max_cubes: int = 0  # largest slice, in cubes of 4x4x4 chips; 0 for the two-dimensional ones
    documented_cubes: frozenset[int] = frozenset()  # the sizes, in cubes, that Google documents


_FLAT = ("1x1", "2x2", "2x4", "4x4", "4x8", "8x8", "8x16", "16x16")
_SMALL = ("2x2x1", "2x2x2", "2x2x4", "2x4x4")
_CUBE = 64  # chips in a cube of 4x4x4, of which the larger three-dimensional slices are made
_LONGEST_SIDE = 256  # in chips; xpk, system_characteristics.py

_GENERATIONS = {
    generation.name: generation
    for generation in (
        _Generation(
            name="v4",
            type_name="v4",
            aliases=("v4",),
            counts_per_chip=2,
            small=_SMALL,
            max_cubes=64,
            documented_cubes=frozenset((1, 2, 3, 4, 8, 12, 16, 32)),
        ),
        _Generation(
            name="v5e",
            type_name="v5litepod",
            aliases=("v5litepod", "v5e", "v5lite"),
            counts_per_chip=1,
            small=_FLAT,
        ),
        _Generation(
            name="v5p",
            type_name="v5p",
            aliases=("v5p",),
            counts_per_chip=2,
            small=_SMALL,
            max_cubes=140,
            documented_cubes=frozenset((*range(1, 97), 108, 140)),
        ),
        _Generation(
            name="v6e",
            type_name="v6e",
            aliases=("v6e", "trillium"),
            counts_per_chip=1,
            small=_FLAT,
        ),
        _Generation(
            name="tpu7x",
            type_name="tpu7x",
            aliases=("tpu7x", "v7x", "ironwood"),
            counts_per_chip=2,
            small=("1x1x1", *_SMALL),
            max_cubes=144,
            documented_cubes=frozenset((*range(1, 97), 108, 128, 140, 144)),
        ),
    )
}

_PD = ("pd-balanced", "pd-ssd")
_HYPERDISK = ("hyperdisk-balanced",)


def _machine_type(
    name: str,
    generation: str,
    accelerator: str,
    *,
    vcpu: int,
    memory_gb: int,
    boot_disks: tuple[str, ...],
    multi_host: bool = False,
    flex_start: bool = True,
) -> MachineType:
    return MachineType(
        name=name,
        generation=generation,
        accelerator=accelerator,
        chips_per_host=int(name.rsplit("-", 1)[1].removesuffix("t")),
        vcpu=vcpu,
        memory_gb=memory_gb,
        boot_disks=boot_disks,
        multi_host=multi_host,
        flex_start=flex_start,
    )


# In each generation the first machine type that can carry a topology is the one a TPU type means: xpk's convention,
# by which v6e-8 and v5litepod-8 are two hosts of four chips. One host of eight is asked for by its machine type.
MACHINE_TYPES = (
    _machine_type(
        "ct4p-hightpu-4t",
        "v4",
        "tpu-v4-podslice",
        vcpu=240,
        memory_gb=407,
        boot_disks=(*_PD, "pd-standard", *_HYPERDISK),
        multi_host=True,
        flex_start=False,
    ),
    _machine_type(
        "ct5lp-hightpu-4t", "v5e", "tpu-v5-lite-podslice", vcpu=112, memory_gb=192, boot_disks=_PD, multi_host=True
    ),
    _machine_type("ct5lp-hightpu-1t", "v5e", "tpu-v5-lite-podslice", vcpu=24, memory_gb=48, boot_disks=_PD),
    _machine_type("ct5lp-hightpu-8t", "v5e", "tpu-v5-lite-podslice", vcpu=224, memory_gb=384, boot_disks=_PD),
    _machine_type(
        "ct5l-hightpu-1t", "v5e", "tpu-v5-lite-device", vcpu=24, memory_gb=48, boot_disks=_PD, flex_start=False
    ),
    _machine_type(
        "ct5l-hightpu-4t", "v5e", "tpu-v5-lite-device", vcpu=112, memory_gb=192, boot_disks=_PD, flex_start=False
    ),
    _machine_type(
        "ct5l-hightpu-8t", "v5e", "tpu-v5-lite-device", vcpu=224, memory_gb=384, boot_disks=_PD, flex_start=False
    ),
    _machine_type("ct5p-hightpu-4t", "v5p", "tpu-v5p-slice", vcpu=208, memory_gb=448, boot_disks=_PD, multi_host=True),
    _machine_type(
        "ct6e-standard-4t", "v6e", "tpu-v6e-slice", vcpu=180, memory_gb=720, boot_disks=_HYPERDISK, multi_host=True
    ),
    _machine_type("ct6e-standard-1t", "v6e", "tpu-v6e-slice", vcpu=44, memory_gb=176, boot_disks=_HYPERDISK),
    _machine_type("ct6e-standard-8t", "v6e", "tpu-v6e-slice", vcpu=180, memory_gb=1440, boot_disks=_HYPERDISK),
    _machine_type(
        "tpu7x-standard-4t", "tpu7x", "tpu7x", vcpu=224, memory_gb=992, boot_disks=_HYPERDISK, multi_host=True
    ),
    _machine_type("tpu7x-standard-1t", "tpu7x", "tpu7x", vcpu=56, memory_gb=248, boot_disks=_HYPERDISK),
    _machine_type(
        "tpu7x-ultranet-4t", "tpu7x", "tpu7x", vcpu=224, memory_gb=992, boot_disks=_HYPERDISK, multi_host=True
    ),
)

# Google's page "TPU regions and zones", read November 2026. More zones are opened to single customers, and the list
# grows: for hints and warnings, never to refuse.
ZONES: dict[str, tuple[str, ...]] = {
    "v4": ("us-central2-b",),
    "v5e": ("us-central1-a", "us-south1-a", "us-west1-c", "us-west4-a", "europe-west4-b"),
    "v5p": ("us-central1-a", "us-east5-a", "europe-west4-b"),
    "v6e": (
        "us-central1-b",
        "us-central1-ai1a",
        "us-east1-d",
        "us-east5-a",
        "us-east5-b",
        "us-south1-ai1b",
        "europe-west4-a",
        "asia-northeast1-b",
    ),
    "tpu7x": ("us-central1-c", "us-central1-ai1a"),
}


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


def tpu_types(generation: str) -> tuple[str, ...]:
    """The TPU types of one generation that a number names, smallest first: `v6e-1`, `v6e-4`, ..."""
    chosen = _GENERATIONS[generation]
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


def _generation(family: str) -> _Generation | None:
    return next((each for each in _GENERATIONS.values() if family in each.aliases), None)


def _default_shape(generation: _Generation, number: int) -> Shape:
    """The topology that a number means, or () if it means none."""
    chips, rest = divmod(number, generation.counts_per_chip)
    if rest:
        return ()
    for small in map(_dimensions, generation.small):
        if math.prod(small) == chips:
            return small
    cubes, rest = divmod(chips, _CUBE)
    return () if rest else _default_cuboid(generation, cubes)


def _default_cuboid(generation: _Generation, cubes: int) -> Shape:
    """The topology of a size in cubes: the most compact one where Google documents the size, and else xpk's choice.

    xpk lists the topologies of a size with the flattest first, and takes the first for a name that no document has.
    """
    cuboids = _cuboids(cubes) if 0 < cubes <= generation.max_cubes else []
    if not cuboids:
        return ()
    best = min(cuboids, key=sum) if cubes in generation.documented_cubes else cuboids[0]
    return tuple(4 * side for side in best)


def _default_shapes(generation: _Generation) -> list[Shape]:
    cuboids = (_default_cuboid(generation, cubes) for cubes in range(1, generation.max_cubes + 1))
    return [*map(_dimensions, generation.small), *filter(None, cuboids)]


def _cuboids(cubes: int) -> list[Shape]:
    """Ways to arrange `cubes` cubes, counted in cubes: sides in rising order, and none over the longest."""
    longest = _LONGEST_SIDE // 4
    return [
        (a, b, cubes // (a * b))
        for a in range(1, cubes + 1)
        for b in range(a, cubes // a + 1)
        if cubes % (a * b) == 0 and b <= cubes // (a * b) <= longest
    ]


def _exists(generation: _Generation, shape: Shape) -> bool:
    if _topology(shape) in generation.small:
        return True
    sides_fit = len(shape) == 3 and all(side % 4 == 0 for side in shape) and shape[-1] <= _LONGEST_SIDE
    return sides_fit and list(shape) == sorted(shape) and math.prod(shape) <= _CUBE * generation.max_cubes


def _carries(machine: MachineType, shape: Shape) -> bool:
    """Whether hosts of this machine type make a slice of that topology."""
    chips = math.prod(shape)
    whole = chips == machine.chips_per_host or (machine.multi_host and chips > machine.chips_per_host)
    return whole and _exists(_GENERATIONS[machine.generation], shape)


def _machine_for(generation: _Generation, shape: Shape) -> MachineType | None:
    machines = (machine for machine in MACHINE_TYPES if machine.generation == generation.name)
    return next((machine for machine in machines if _carries(machine, shape)), None)


def _slice(machine: MachineType, shape: Shape) -> Slice:
    generation = _GENERATIONS[machine.generation]
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
    aliases = [alias for each in _GENERATIONS.values() for alias in each.aliases]
    families = [*aliases, *(machine.name for machine in MACHINE_TYPES)]
    family = next(iter(difflib.get_close_matches(family.removeprefix("tpu-"), families, n=1, cutoff=0.6)), "")
    generation = _generation(family)
    if generation and not shape:
        names = tpu_types(generation.name)
        return f"; did you mean '{min(names, key=lambda name: abs(int(name.rpartition('-')[2]) - (number or 16)))}'?"
    machines = [
        each for each in MACHINE_TYPES if family == each.name or (generation and generation.name == each.generation)
    ]
    if machines:
        return f"; did you mean '{family}-{_topology(_nearest_shape(machines, shape, number))}'?"
    return f"; write one such as 'v6e-16'; there are {', '.join(each.type_name for each in _GENERATIONS.values())}"


def _nearest_shape(machines: list[MachineType], shape: Shape, chips: int) -> Shape:
    """The same sides in the right order if that exists, and else the topology whose size is nearest."""
    wanted = math.prod(shape) if shape else chips
    shapes = [tuple(sorted(shape)), *_default_shapes(_GENERATIONS[machines[0].generation])]
    carried = (each for each in shapes if any(_carries(machine, each) for machine in machines))
    return min(carried, key=lambda each: abs(math.prod(each) - wanted))
