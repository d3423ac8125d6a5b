"""The TPU slices of the Ray cluster, read from the labels that Ray gives the nodes of their hosts.

The same file is in every image with a program for Ray on TPUs, because an image is built from one folder.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import ray
from ray.util.tpu import get_num_tpu_slices, get_tpu_worker_resources

# https://docs.ray.io/en/releases-2.60.0/ray-core/scheduling/labels.html
TOPOLOGY_LABEL = "ray.io/tpu-topology"
ACCELERATOR_LABEL = "ray.io/accelerator-type"

# Hosts of a slice start at about the same time, and other slices may still be created.
SECONDS = 1800


class NoSlices(Exception):
    """The cluster does not have the TPUs that the program needs. The text says what it has."""


@dataclass(frozen=True, kw_only=True)
class Slices:
    """Equal slices: `topology` such as 2x2x2, `accelerator` such as TPU-V5P; hosts of a slice, chips of a host."""

    topology: str
    accelerator: str
    slices: int
    hosts: int
    chips: int


def wait_for_slices(least: int = 1, *, seconds: float = SECONDS) -> Slices:
    """The slices of the cluster whose hosts are all there, as soon as there are `least`.

    Raises NoSlices if there are not in so many seconds, or they are of different kinds.
    """
    limit = time.monotonic() + seconds
    said = -1
    while True:
        kinds = {
            (node["Labels"].get(TOPOLOGY_LABEL, ""), node["Labels"].get(ACCELERATOR_LABEL, ""))
            for node in ray.nodes()
            if node["Alive"] and node["Resources"].get("TPU")
        }
        if len(kinds) > 1:
            names = ", ".join(f"{accelerator} {topology}" for topology, accelerator in sorted(kinds))
            raise NoSlices(f"the cluster has slices of several kinds ({names}); run the program in a cluster with one")
        number = 0
        for topology, accelerator in kinds:
            number = get_num_tpu_slices(topology, accelerator)
            if number >= least:
                hosts, resources = get_tpu_worker_resources(topology, accelerator)
                chips = int(resources["TPU"])
                return Slices(topology=topology, accelerator=accelerator, slices=number, hosts=hosts, chips=chips)
        if number != said:
            print(f"waiting for slices: {number} of {least} are complete", flush=True)
            said = number
        if time.monotonic() > limit:
            raise NoSlices(f"after {seconds:g} s the cluster has {number} complete slices of the {least} expected")
        time.sleep(1)
