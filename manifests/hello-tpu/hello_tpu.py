"""Say hello from every host of a slice, and prove that all its chips work together."""

from __future__ import annotations

import os
import sys

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec


def main() -> int:
    """0 if as many chips as expected each add their one to a sum across all hosts; 1 if not."""
    jax.distributed.initialize()
    # GKE sets the number of slices when a job has more than one.
    expected = int(os.environ["EXPECTED_CHIPS"]) * int(os.environ.get("MEGASCALE_NUM_SLICES") or 1)
    devices = jax.devices()
    # Generations with two TensorCores a chip may show each as a device of its own, at the same place.
    chips = len({(getattr(device, "slice_index", 0), *device.coords) for device in devices})
    here = f"{len(jax.local_devices())} of {len(devices)} devices here"
    print(f"host {jax.process_index()} of {jax.process_count()}: {here}")

    spread = NamedSharding(jax.make_mesh((len(devices),), ("devices",)), PartitionSpec("devices"))
    ones = jax.make_array_from_callback((len(devices),), spread, lambda _: np.ones(1, np.float32))
    total = int(jax.jit(lambda array: array.sum())(ones))
    print(f"{chips} chips (expected {expected}); {total} of {len(devices)} devices added their one")
    return 0 if chips == expected and total == len(devices) else 1


if __name__ == "__main__":
    sys.exit(main())
