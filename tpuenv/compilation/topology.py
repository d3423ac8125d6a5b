"""A slice of the catalogue as the TPU compiler describes it.

The compiler takes shapes that no slice has, and MaxText's table lacks shapes that slices have: both get it from here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from environment.tpu import Slice
from manifests.mesh import devices

# The compiler's names of the generations, where they differ from ours.
_NAMES = {"v5p": "v5"}

# With two TensorCores that work as one device; otherwise the compiler counts two devices with half the memory each.
_MEGACORE = ("v4", "v5p")

_CUBE_SIDE = 4  # chips; a topology of whole cubes is connected into a torus by optical switches
_FLAT_TORUS_SIDE = 16  # chips; v5e and v6e have wrap-around links along a side of this length only


@dataclass(frozen=True, kw_only=True)
class Topology:
    """The arguments of jax.experimental.topologies.get_topology_desc, and the devices that JAX then shows a slice."""

    name: str
    chip_config_name: str
    chips_per_host_bounds: tuple[int, int, int]
    wrap: tuple[bool, bool, bool]
    devices: int


def topology(slice_: Slice) -> Topology:
    """The topology of a slice. As in MaxText's table (maxtext/utils/accelerator_to_spec_map.py) where that has it."""
    sides = [int(side) for side in slice_.topology.split("x")]
    flat = len(sides) == 2
    if flat:
        wraps = [side == _FLAT_TORUS_SIDE for side in sides]
    else:
        wraps = [all(side % _CUBE_SIDE == 0 for side in sides)] * 3
    return Topology(
        name=f"{_NAMES.get(slice_.generation, slice_.generation)}:{slice_.topology}",
        chip_config_name="megacore" if slice_.generation in _MEGACORE else "default",
        chips_per_host_bounds=_host_bounds(slice_),
        wrap=(wraps[0], wraps[1], False if flat else wraps[2]),
        devices=devices(slice_),
    )


def _host_bounds(slice_: Slice) -> tuple[int, int, int]:
    bounds = {1: (1, 1, 1), 4: (2, 2, 1), 8: (2, 4, 1)}[slice_.chips_per_host]
    assert math.prod(bounds) == slice_.chips_per_host
    return bounds
