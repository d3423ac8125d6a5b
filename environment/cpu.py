"""The machine types of the CPU pool: vCPU, memory and boot disk, by rule.

Facts: Google's pages of the general-purpose and compute-optimised machine families.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction


class UnknownCpuMachineType(ValueError):
    """A machine type that does not exist, or whose vCPU and memory cannot be told by rule."""


@dataclass(frozen=True, kw_only=True)
class CpuMachineType:
    """A predefined machine type: what one node has. `memory_gb` is rounded down."""

    name: str
    vcpu: int
    memory_gb: int
    boot_disk: str


@dataclass(frozen=True, kw_only=True)
class _Series:
    vcpus: tuple[int, ...]
    memory_per_vcpu: dict[str, str]  # GB, by kind
    boot_disk: str = "pd-balanced"


_N2_VCPUS = (2, 4, 8, 16, 32, 48, 64, 80, 96, 128)
_C3D_VCPUS = (4, 8, 16, 30, 60, 90, 180, 360)

_SERIES: dict[str, _Series] = {
    "e2": _Series(vcpus=(2, 4, 8, 16, 32), memory_per_vcpu={"standard": "4", "highmem": "8", "highcpu": "1"}),
    "n1": _Series(
        vcpus=(2, 4, 8, 16, 32, 64, 96), memory_per_vcpu={"standard": "3.75", "highmem": "6.5", "highcpu": "0.9"}
    ),
    "n2": _Series(vcpus=_N2_VCPUS, memory_per_vcpu={"standard": "4", "highmem": "8", "highcpu": "1"}),
    "n2d": _Series(vcpus=(*_N2_VCPUS, 224), memory_per_vcpu={"standard": "4", "highmem": "8", "highcpu": "1"}),
    "n4": _Series(
        vcpus=(2, 4, 8, 16, 32, 48, 64, 80),
        memory_per_vcpu={"standard": "4", "highmem": "8", "highcpu": "2"},
        boot_disk="hyperdisk-balanced",
    ),
    "c2": _Series(vcpus=(4, 8, 16, 30, 60), memory_per_vcpu={"standard": "4"}),
    "c2d": _Series(vcpus=(2, 4, 8, 16, 32, 56, 112), memory_per_vcpu={"standard": "4", "highmem": "8", "highcpu": "2"}),
    "c3": _Series(vcpus=(4, 8, 22, 44, 88, 176), memory_per_vcpu={"standard": "4", "highmem": "8", "highcpu": "2"}),
    "c3d": _Series(vcpus=_C3D_VCPUS, memory_per_vcpu={"standard": "4", "highmem": "8", "highcpu": "2"}),
    "c4": _Series(
        vcpus=(2, 4, 8, 16, 24, 32, 48, 96, 144, 192, 288),
        memory_per_vcpu={"standard": "3.75", "highmem": "7.75", "highcpu": "2"},
        boot_disk="hyperdisk-balanced",
    ),
    "t2d": _Series(vcpus=(2, 4, 8, 16, 32, 48, 60), memory_per_vcpu={"standard": "4"}),
}


def cpu_machine_type(name: str) -> CpuMachineType:
    """What `n2-standard-8` has: 8 vCPU, 32 GB. Raises UnknownCpuMachineType, which names what exists."""
    match = re.fullmatch(r"([a-z0-9]+)-([a-z]+)-([0-9]{1,4})", name)
    series = _SERIES.get(match.group(1)) if match else None
    if match is None or series is None:
        raise UnknownCpuMachineType(
            f"is not a machine type of the series {', '.join(_SERIES)}; use one such as n2-standard-8"
        )
    _, kind, count = match.groups()
    memory = series.memory_per_vcpu.get(kind)
    if memory is None or int(count) not in series.vcpus:
        raise UnknownCpuMachineType("does not exist")
    return CpuMachineType(
        name=name,
        vcpu=int(count),
        memory_gb=int(int(count) * Fraction(memory)),
        boot_disk=series.boot_disk,
    )
