"""The machine types of the CPU nodes: vCPU, memory and boot disk, by rule.

Facts: Google's pages on the general-purpose and the compute-optimised machine families. What breaks a family's rule
(shared-core types, n2-highmem-128, c3d-highcpu from 30 vCPU on, types with local SSD) is left out, and so is what has
only one vCPU.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction


class UnknownCpuMachineType(ValueError):
    """A machine type that does not exist or does not follow its family's rule. The text names what does."""


@dataclass(frozen=True, kw_only=True)
class CpuMachineType:
    """What one node has. `memory_gb` is rounded down."""

    name: str
    vcpu: int
    memory_gb: int
    boot_disk: str

    @property
    def series(self) -> str:
        """ "n2" of n2-standard-8."""
        return self.name.partition("-")[0]


@dataclass(frozen=True, kw_only=True)
class _Series:
    vcpus: tuple[int, ...]
    memory_gb_per_vcpu: dict[str, str]
    most_vcpus: dict[str, int]  # of the kinds that end before the series does
    boot_disk: str


def _series(
    *vcpus: int,
    standard: str = "4",
    highmem: str = "",
    highcpu: str = "",
    most_vcpus: dict[str, int] | None = None,
    boot_disk: str = "pd-balanced",
) -> _Series:
    memory = {"standard": standard, "highmem": highmem, "highcpu": highcpu}
    return _Series(
        vcpus=vcpus,
        memory_gb_per_vcpu={kind: amount for kind, amount in memory.items() if amount},
        most_vcpus=most_vcpus or {},
        boot_disk=boot_disk,
    )


_SERIES = {
    "e2": _series(2, 4, 8, 16, 32, highmem="8", highcpu="1", most_vcpus={"highmem": 16}),
    "n1": _series(2, 4, 8, 16, 32, 64, 96, standard="3.75", highmem="6.5", highcpu="0.9"),
    "n2": _series(
        *(2, 4, 8, 16, 32, 48, 64, 80, 96, 128), highmem="8", highcpu="1", most_vcpus={"highmem": 96, "highcpu": 96}
    ),
    "n2d": _series(*(2, 4, 8, 16, 32, 48, 64, 80, 96, 128, 224), highmem="8", highcpu="1", most_vcpus={"highmem": 96}),
    "n4": _series(2, 4, 8, 16, 32, 48, 64, 80, highmem="8", highcpu="2", boot_disk="hyperdisk-balanced"),
    "c2": _series(4, 8, 16, 30, 60),
    "c2d": _series(2, 4, 8, 16, 32, 56, 112, highmem="8", highcpu="2"),
    "c3": _series(4, 8, 22, 44, 88, 176, highmem="8", highcpu="2"),
    "c3d": _series(4, 8, 16, 30, 60, 90, 180, 360, highmem="8", highcpu="2", most_vcpus={"highcpu": 16}),
    "c4": _series(
        *(2, 4, 8, 16, 24, 32, 48, 96, 144, 192, 288),
        standard="3.75",
        highmem="7.75",
        highcpu="2",
        boot_disk="hyperdisk-balanced",
    ),
    "t2d": _series(2, 4, 8, 16, 32, 48, 60),
}

SERIES = tuple(_SERIES)

# Of the system pool: while one is upgraded, Kueue and JobSet run on the other.
SYSTEM_NODES = 2


def cpu_machine_type(name: str) -> CpuMachineType:
    """What a machine type has: `n2-standard-8` has 8 vCPU and 32 GB. Raises UnknownCpuMachineType."""
    match = re.fullmatch(r"([a-z0-9]+)-([a-z]+)-([1-9][0-9]{0,3})", name)
    series = _SERIES.get(match.group(1)) if match else None
    if match is None or series is None:
        raise UnknownCpuMachineType(
            f"is not a machine type of the series {', '.join(_SERIES)}; use one such as n2-standard-8"
        )
    family, kind, vcpu = match.group(1), match.group(2), int(match.group(3))
    if kind not in series.memory_gb_per_vcpu:
        raise UnknownCpuMachineType(f"does not exist; {family} comes as {', '.join(series.memory_gb_per_vcpu)}")
    sizes = [size for size in series.vcpus if size <= series.most_vcpus.get(kind, size)]
    if vcpu not in sizes:
        raise UnknownCpuMachineType(f"cannot be used; {family}-{kind} comes with {', '.join(map(str, sizes))} vCPU")
    return CpuMachineType(
        name=name,
        vcpu=vcpu,
        memory_gb=int(vcpu * Fraction(series.memory_gb_per_vcpu[kind])),
        boot_disk=series.boot_disk,
    )


def system_machine_type(cpu_pools: str) -> CpuMachineType:
    """The machine type of the system pool: the smallest standard one of the series of the CPU pool's, so that what
    serves one, a zone, a quota, a boot disk, serves the other. Kueue and JobSet together request 1 vCPU and 1.2 GiB.
    """
    series = cpu_machine_type(cpu_pools).series
    return cpu_machine_type(f"{series}-standard-{min(_SERIES[series].vcpus)}")
