"""The slices on which Ray does not run, although Kueue would admit it."""

from __future__ import annotations


def ray_obstacle(topology: str, hosts: int, *, queued: bool) -> str:
    """Why a Ray cluster does not work on slices of this shape, in a clause; "" where it does.

    Ray 2.60.0, ray/_private/accelerators/tpu.py, get_chips_per_host: a slice of 2x4 counts as one host of 8 chips. GKE
    refuses a ProvisioningRequest of more than one pod set (ray-project/ray 57839). Kueue leaves pods without chips out
    of it here (managedResources), and with that nobody has run Ray on such nodes: it is refused until somebody has.
    """
    if topology == "2x4" and hosts > 1:
        return f"Ray takes a slice of 2x4 for one host of 8 chips, and here it is {hosts} hosts"
    if queued:
        return "queued provisioning takes jobs of one kind of pod, and a Ray cluster has a head and workers"
    return ""
