"""The TPU catalogue: from the name of a TPU type to machine type, topology, hosts and chips, by rule.

Facts: GKE's documentation of TPU versions and topologies, the xpk and MaxText tables (June 2026) and the constants of
the GKE cluster autoscaler. Every slice those tables name is compared with these rules in tests/test_environment_tpu.py.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

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
    compact_cubes: frozenset[int] = frozenset()  # sizes, in cubes, whose documented topology is the most compact one


_FLAT = ("1x1", "2x2", "2x4", "4x4", "4x8", "8x8", "8x16", "16x16")
_SMALL = ("2x2x1", "2x2x2", "2x2x4", "2x4x4")
_MAX_DIMENSION = 256  # xpk, system_characteristics.py: no dimension of a three-dimensional slice is longer

_GENERATIONS = (
    _Generation(
        name="v4",
        type_name="v4",
        aliases=("v4",),
        counts_per_chip=2,
        small=_SMALL,
        max_cubes=64,
        compact_cubes=frozenset((1, 2, 3, 4, 8, 12, 16, 32)),
    ),
    _Generation(
        name="v5e", type_name="v5litepod", aliases=("v5litepod", "v5e", "v5lite"), counts_per_chip=1, small=_FLAT
    ),
    _Generation(
        name="v5p",
        type_name="v5p",
        aliases=("v5p",),
        counts_per_chip=2,
        small=_SMALL,
        max_cubes=140,
        compact_cubes=frozenset((*range(1, 97), 108, 140)),
    ),
    _Generation(name="v6e", type_name="v6e", aliases=("v6e", "trillium"), counts_per_chip=1, small=_FLAT),
    _Generation(
        name="tpu7x",
        type_name="tpu7x",
        aliases=("tpu7x", "v7x", "7x", "ironwood"),
        counts_per_chip=2,
        small=("1x1x1", *_SMALL),
        max_cubes=144,
        compact_cubes=frozenset((*range(1, 97), 108, 128, 140, 144)),
    ),
)

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
    ),
    _machine_type(
        "ct5lp-hightpu-4t", "v5e", "tpu-v5-lite-podslice", vcpu=112, memory_gb=192, boot_disks=_PD, multi_host=True
    ),
    _machine_type("ct5lp-hightpu-1t", "v5e", "tpu-v5-lite-podslice", vcpu=24, memory_gb=48, boot_disks=_PD),
    _machine_type("ct5lp-hightpu-8t", "v5e", "tpu-v5-lite-podslice", vcpu=224, memory_gb=384, boot_disks=_PD),
    _machine_type("ct5l-hightpu-1t", "v5e", "tpu-v5-lite-device", vcpu=24, memory_gb=48, boot_disks=_PD),
    _machine_type("ct5l-hightpu-4t", "v5e", "tpu-v5-lite-device", vcpu=112, memory_gb=192, boot_disks=_PD),
    _machine_type("ct5l-hightpu-8t", "v5e", "tpu-v5-lite-device", vcpu=224, memory_gb=384, boot_disks=_PD),
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
    "v6e": ("us-central1-b", "us-east1-d", "us-east5-a", "us-east5-b", "europe-west4-a", "asia-northeast1-b"),
    "tpu7x": ("us-central1-c",),
}


def slice_for(tpu_type: str) -> Slice:
    """The slice that a TPU type means.

    Takes the names Google documents (`v6e-16`, `v5litepod-16`), the ones people type (`v5e-16`, `V6E-16`), and, to
    choose a shape or a machine type, a topology instead of the number: `v5p-4x4x16`, `ct6e-standard-8t-2x4`; a colon
    may stand before the topology. Raises UnknownTpuType, which names the nearest type.
    """
    match = re.fullmatch(r"([a-z0-9][a-z0-9-]*?)[-:]([0-9]{1,6}|[0-9]{1,4}(?:x[0-9]{1,4}){1,2})", _normal(tpu_type))
    if match is None:
        raise _unknown(tpu_type)
    family, size = match.groups()
    shape = _dimensions(size) if "x" in size else None
    if generation := _generation(family):
        shape = shape or _default_shape(generation, int(size))
        machine = _machine_for(generation, shape) if shape else None
    else:
        machine = next((machine for machine in MACHINE_TYPES if machine.name == family), None)
    if shape is None or machine is None or not _carries(machine, shape):
        raise _unknown(tpu_type)
    return _slice(machine, shape)


def tpu_types(generation: str) -> tuple[str, ...]:
    """The TPU types of one generation that a number names, smallest first: `v6e-1`, `v6e-4`, ..."""
    chosen = next(each for each in _GENERATIONS if each.name == generation)
    if chosen.max_cubes:
        cubes = [64 * count for count in range(1, chosen.max_cubes + 1) if _cuboids(count)]
    else:
        cubes = []
    chips = [math.prod(_dimensions(small)) for small in chosen.small] + cubes
    return tuple(f"{chosen.type_name}-{count * chosen.counts_per_chip}" for count in chips)


def _normal(text: str) -> str:
    return text.strip().lower().replace("_", "-")


def _dimensions(topology: str) -> Shape:
    return tuple(int(part) for part in topology.split("x"))


def _generation(family: str) -> _Generation | None:
    return next((each for each in _GENERATIONS if family in each.aliases), None)


def _default_shape(generation: _Generation, number: int) -> Shape | None:
    """The topology that a number means: the small shape of that size, or the generation's usual cuboid."""
    chips, rest = divmod(number, generation.counts_per_chip)
    if rest:
        return None
    for small in map(_dimensions, generation.small):
        if math.prod(small) == chips:
            return small
    cubes, rest = divmod(chips, 64)
    if rest or not 0 < cubes <= generation.max_cubes:
        return None
    cuboids = _cuboids(cubes)
    if not cuboids:
        return None
    # xpk's table has the most compact cuboid where Google documents the size, and else the first that fits.
    best = min(cuboids, key=sum) if cubes in generation.compact_cubes else cuboids[0]
    return tuple(4 * side for side in best)


def _cuboids(cubes: int) -> list[Shape]:
    """Ways to arrange `cubes` cubes, sides in rising order, the longest at most 256 chips; the flattest first."""
    longest = _MAX_DIMENSION // 4
    return [
        (a, b, cubes // (a * b))
        for a in range(1, cubes + 1)
        for b in range(a, cubes // a + 1)
        if cubes % (a * b) == 0 and b <= cubes // (a * b) <= longest
    ]


def _exists(generation: _Generation, shape: Shape) -> bool:
    if "x".join(map(str, shape)) in generation.small:
        return True
    if len(shape) != 3 or any(side < 1 or side % 4 for side in shape):
        return False
    cubes = math.prod(shape) // 64
    return list(shape) == sorted(shape) and cubes <= generation.max_cubes and shape[-1] <= _MAX_DIMENSION


def _carries(machine: MachineType, shape: Shape) -> bool:
    generation = next(each for each in _GENERATIONS if each.name == machine.generation)
    chips = math.prod(shape)
    if not _exists(generation, shape):
        return False
    return chips == machine.chips_per_host or (
        machine.multi_host and chips > machine.chips_per_host and chips % machine.chips_per_host == 0
    )


def _machine_for(generation: _Generation, shape: Shape) -> MachineType | None:
    machines = (machine for machine in MACHINE_TYPES if machine.generation == generation.name)
    return next((machine for machine in machines if _carries(machine, shape)), None)


def _slice(machine: MachineType, shape: Shape) -> Slice:
    generation = next(each for each in _GENERATIONS if each.name == machine.generation)
    topology = "x".join(map(str, shape))
    number = math.prod(shape) * generation.counts_per_chip
    usual = _default_shape(generation, number) == shape and _machine_for(generation, shape) == machine
    return Slice(
        # A hyphen, not a colon: the name is used in labels, which allow no colon.
        tpu_type=f"{generation.type_name}-{number}" if usual else f"{machine.name}-{topology}",
        machine_type=machine,
        topology=topology,
        hosts=math.prod(shape) // machine.chips_per_host,
    )


def _unknown(tpu_type: str) -> UnknownTpuType:
    nearest = _nearest(_normal(tpu_type)[:64])
    return UnknownTpuType(f"unknown TPU type '{tpu_type}'; did you mean '{nearest}'?")


def _nearest(typed: str) -> str:
    family, _, size = typed.replace(":", "-").rpartition("-")
    generation = _generation(family)
    if generation and re.fullmatch("[0-9]{1,9}", size):
        return min(tpu_types(generation.name), key=lambda name: abs(int(name.rsplit("-", 1)[1]) - int(size)))
    return _first(difflib.get_close_matches(typed, _all_types(), n=1, cutoff=0.0), otherwise="v6e-16")


def _all_types() -> list[str]:
    named = [name for generation in _GENERATIONS for name in tpu_types(generation.name)]
    return named


def _first(names: Iterable[str], *, otherwise: str) -> str:
    return next(iter(names), otherwise)
