"""The TPU catalogue: generations, machine types and the zones that have them.

Facts: GKE's documentation of TPU versions and topologies, the xpk and MaxText tables (June 2026) and the constants of
the GKE cluster autoscaler.
"""

from __future__ import annotations

from dataclasses import dataclass


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
    def series(self) -> str:
        """ "ct6e" of ct6e-standard-4t; Google's prices are a chip of a series."""
        return self.name.partition("-")[0]

    @property
    def boot_disk(self) -> str:
        return self.boot_disks[0]


@dataclass(frozen=True, kw_only=True)
class Generation:
    """The TPU types of one generation, and the topologies of its slices."""

    name: str
    type_name: str  # the part before the number in a TPU type
    aliases: tuple[str, ...]  # other ways in which people write that part
    counts_per_chip: int  # the number in a TPU type counts chips (1) or TensorCores (2)
    small: tuple[str, ...]  # every topology of a two-dimensional generation; the ones below 4x4x4 of the others
    max_cubes: int = 0  # largest slice, in cubes of 4x4x4 chips; 0 for the two-dimensional ones
    documented_cubes: frozenset[int] = frozenset()  # the sizes, in cubes, that Google documents


CUBE = 64  # chips in a cube of 4x4x4, of which the larger three-dimensional slices consist
LONGEST_SIDE = 256  # of a topology, in chips; xpk, system_characteristics.py

_FLAT = ("1x1", "2x2", "2x4", "4x4", "4x8", "8x8", "8x16", "16x16")
_SMALL = ("2x2x1", "2x2x2", "2x2x4", "2x4x4")


def _flat(name: str, type_name: str, *aliases: str) -> Generation:
    return Generation(name=name, type_name=type_name, aliases=(type_name, *aliases), counts_per_chip=1, small=_FLAT)


def _cubes(
    name: str, *aliases: str, small: tuple[str, ...] = _SMALL, max_cubes: int, documented: set[int]
) -> Generation:
    return Generation(
        name=name,
        type_name=name,
        aliases=(name, *aliases),
        counts_per_chip=2,
        small=small,
        max_cubes=max_cubes,
        documented_cubes=frozenset(documented),
    )


GENERATIONS = {
    generation.name: generation
    for generation in (
        _cubes("v4", max_cubes=64, documented={1, 2, 3, 4, 8, 12, 16, 32}),
        _flat("v5e", "v5litepod", "v5e", "v5lite"),
        _cubes("v5p", max_cubes=140, documented={*range(1, 97), 108, 140}),
        _flat("v6e", "v6e", "trillium"),
        _cubes(
            *("tpu7x", "v7x", "ironwood"),
            small=("1x1x1", *_SMALL),
            max_cubes=144,
            documented={*range(1, 97), 108, 128, 140, 144},
        ),
    )
}

_PD = ("pd-balanced", "pd-ssd")
_HYPERDISK = ("hyperdisk-balanced",)
_ALL_DISKS = (*_PD, "pd-standard", *_HYPERDISK)


def _machine(
    name: str,
    generation: str,
    accelerator: str,
    vcpu: int,
    memory_gb: int,
    boot_disks: tuple[str, ...],
    *,
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
# The numbers are vCPU and memory in GB.
MACHINE_TYPES = (
    _machine("ct4p-hightpu-4t", "v4", "tpu-v4-podslice", 240, 407, _ALL_DISKS, multi_host=True, flex_start=False),
    _machine("ct5lp-hightpu-4t", "v5e", "tpu-v5-lite-podslice", 112, 192, _PD, multi_host=True),
    _machine("ct5lp-hightpu-1t", "v5e", "tpu-v5-lite-podslice", 24, 48, _PD),
    _machine("ct5lp-hightpu-8t", "v5e", "tpu-v5-lite-podslice", 224, 384, _PD),
    _machine("ct5l-hightpu-1t", "v5e", "tpu-v5-lite-device", 24, 48, _PD, flex_start=False),
    _machine("ct5l-hightpu-4t", "v5e", "tpu-v5-lite-device", 112, 192, _PD, flex_start=False),
    _machine("ct5l-hightpu-8t", "v5e", "tpu-v5-lite-device", 224, 384, _PD, flex_start=False),
    _machine("ct5p-hightpu-4t", "v5p", "tpu-v5p-slice", 208, 448, _PD, multi_host=True),
    _machine("ct6e-standard-4t", "v6e", "tpu-v6e-slice", 180, 720, _HYPERDISK, multi_host=True),
    _machine("ct6e-standard-1t", "v6e", "tpu-v6e-slice", 44, 176, _HYPERDISK),
    _machine("ct6e-standard-8t", "v6e", "tpu-v6e-slice", 180, 1440, _HYPERDISK),
    _machine("tpu7x-standard-4t", "tpu7x", "tpu7x", 224, 992, _HYPERDISK, multi_host=True),
    _machine("tpu7x-standard-1t", "tpu7x", "tpu7x", 56, 248, _HYPERDISK),
    _machine("tpu7x-ultranet-4t", "tpu7x", "tpu7x", 224, 992, _HYPERDISK, multi_host=True),
)

# What Google names for JAX and PyTorch on TPU VMs, by generation. The Cloud TPU API, which makes TPU VMs, has none of
# the later ones. https://docs.cloud.google.com/tpu/docs/runtimes
TPU_VM_RUNTIMES = {
    "v4": "tpu-ubuntu2204-base",
    "v5e": "v2-alpha-tpuv5-lite",
    "v5p": "v2-alpha-tpuv5",
    "v6e": "v2-alpha-tpuv6e",
}

# The least version of GKE, by generation; those without one are older than every version that GKE still has.
# https://cloud.google.com/kubernetes-engine/docs/concepts/plan-tpus; the recipes of AI-Hypercomputer/tpu-recipes
LEAST_GKE_VERSIONS = {"tpu7x": "1.34.0-gke.2201000"}
LEAST_GKE_VERSIONS_OF_AUTOPILOT = {"tpu7x": "1.34.1-gke.2541000"}

# Google's page "TPU regions and zones", read November 2026. More zones are opened to single customers, and the list
# grows: for hints and warnings, never to refuse.
ZONES_OF_GENERATION: dict[str, tuple[str, ...]] = {
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
