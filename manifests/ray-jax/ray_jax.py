"""Runs JAX on every TPU host of a Ray cluster: on one host, on all hosts of a slice, or on several slices.

    ray_jax.py [slices=N]

How many hosts and chips there are, it reads from the cluster. Without `slices` it takes the slices that are there; with
it, it waits for so many. Ray starts one task a host, which sees the chips of all hosts: JAX connects the processes, and
the program that each of them runs is the same.

Prints one line of JSON a host and a last line with the verdict. Exit code: 0 if every chip is there and the sum over
all of them is right, 1 if not or a host failed, 2 for a word that cannot be used.
"""

from __future__ import annotations

import json
import math
import os
import socket
import sys
from collections.abc import Sequence
from typing import Any

import ray
from ray.exceptions import RayError
from ray.util.tpu import get_tpu_coordinator_env_vars, run_on_slice, slice_placement_group
from tpu_slices import NoSlices, Slices, wait_for_slices


@ray.remote(max_retries=0)
def place() -> dict[str, Any]:
    """Where the task runs: its Ray node, the number of its host in the slice, and a free port there."""
    with socket.socket() as any_port:
        any_port.bind(("", 0))
        port = any_port.getsockname()[1]
    return {
        "node": ray.get_runtime_context().get_node_id(),
        "host": int(os.environ.get("TPU_WORKER_ID") or 0),
        "address": ray.util.get_node_ip_address(),
        "port": port,
    }


@ray.remote(max_retries=0)
def check(places: dict[str, dict[str, Any]], size: Slices) -> dict[str, Any]:
    """What JAX sees on this host, and a sum over the devices of all hosts."""
    here = places[ray.get_runtime_context().get_node_id()]
    first = next(place for place in places.values() if place["process"] == 0)
    if size.slices > 1:
        # The TPU runtimes of the slices find each other by these.
        os.environ.update(get_tpu_coordinator_env_vars(first["address"], size.slices, here["slice"]))

    # Only now: JAX takes the chips of the host for the process that imports it and asks for its devices.
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    if len(places) > 1:
        jax.distributed.initialize(f"{first['address']}:{first['port']}", len(places), here["process"])
    devices = jax.devices()
    is_tpu = jax.default_backend() == "tpu"
    # A chip of tpu7x, and one of v4 without megacore, has two devices, at the same place in its slice.
    chips = len({(device.slice_index, *device.coords) for device in devices}) if is_tpu else len(devices)

    mesh = Mesh(np.array(devices), ("all",))
    numbers = jax.jit(
        lambda: jnp.arange(1, len(devices) + 1, dtype=jnp.int32),
        out_shardings=NamedSharding(mesh, PartitionSpec("all")),
    )()
    total = int(jax.jit(jnp.sum, out_shardings=NamedSharding(mesh, PartitionSpec()))(numbers))

    measured = {
        "hosts": (jax.process_count(), len(places)),
        "chips": (chips, size.slices * math.prod(map(int, size.topology.split("x")))),
        "sum over all devices": (total, len(devices) * (len(devices) + 1) // 2),
    }
    if is_tpu and size.slices > 1:
        measured["slices"] = (len({device.slice_index for device in devices}), size.slices)
    return {
        "slice": here["slice"],
        "host": here["host"],
        "device": devices[0].device_kind,
        "devices_here": jax.local_device_count(),
        "devices": len(devices),
        **{what: number for what, (number, _) in measured.items()},
        "problems": [
            f"{what}: {number}, expected {right}" for what, (number, right) in measured.items() if number != right
        ],
    }


def numbered(places: Sequence[dict[str, Any]], size: Slices) -> dict[str, dict[str, Any]]:
    """The places by node, with the numbers of their slices, in the order of the tasks, and of their JAX processes.

    The processes of a slice are in the order of its hosts, as JAX numbers them without Ray.
    """
    for task, where in enumerate(places):
        where["slice"] = task // size.hosts
        where["process"] = where["slice"] * size.hosts + where["host"]
    return {where["node"]: where for where in places}


def results(tasks: Sequence[ray.ObjectRef[Any]]) -> list[Any]:
    """What all tasks return. Raises RayError as soon as one fails, because the others may wait for it for ever."""
    waiting = list(tasks)
    while waiting:
        done, waiting = ray.wait(waiting)
        ray.get(done)
    return list(ray.get(list(tasks)))


def main(words: Sequence[str]) -> int:
    slices = 0
    for word in words:
        key, _, value = word.partition("=")
        if key != "slices" or not value.isdecimal() or int(value) < 1:
            print(f"ray-jax: {word!r}: write slices=N, with a whole number from 1, or nothing", file=sys.stderr)
            return 2
        slices = int(value)
    # Without the logs of the hosts, in which lines of JSON would be hard to see.
    ray.init(log_to_driver=False)
    try:
        there = wait_for_slices(slices or 1)
        size = Slices(**{**vars(there), "slices": slices or there.slices})
        reserved = slice_placement_group(size.topology, size.accelerator, num_slices=size.slices)
        places = numbered(results(run_on_slice(place, tpu_slice=reserved)), size)
        reports = results(run_on_slice(check, places, size, tpu_slice=reserved))
        reports.sort(key=lambda report: (report["slice"], report["host"]))
    except (NoSlices, RayError) as error:
        print(f"verdict: failed: {error}", flush=True)
        return 1
    for report in reports:
        print(json.dumps(report), flush=True)
    failed = [report for report in reports if report["problems"]]
    what = (
        f"{size.accelerator} {size.topology}, slices {size.slices}, hosts {len(reports)}, chips {reports[0]['chips']}"
    )
    if failed:
        problems = "; ".join(f"slice {one['slice']} host {one['host']}: {', '.join(one['problems'])}" for one in failed)
        print(f"verdict: failed ({what}): {problems}", flush=True)
        return 1
    print(f"verdict: ok ({what})", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
