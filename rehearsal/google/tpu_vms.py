"""TPU VMs: a slice that the Cloud TPU API makes, with its VMs on a subnet of the project.

What it has, by generation, is data of this room's own (tpu_vms.json): zones, software versions, and the slices.
https://docs.cloud.google.com/tpu/docs/regions-zones, https://docs.cloud.google.com/tpu/docs/runtimes
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rehearsal.cloud import Attributes, Cloud
from rehearsal.google.errors import ApiError, bad_request, not_found, require
from rehearsal.google.iam import ACCOUNT, ACCOUNT_BY_EMAIL
from rehearsal.google.locations import OFFERED, zone_exists
from rehearsal.google.names import region_of
from rehearsal.google.network import NETWORK, TPU_VM, TPU_VM_IN_SUBNET, name_is_valid
from rehearsal.google.resource import Change, GoogleResource, Reference

_QUOTA = "tpu_vm_quota"
_CUBE = 4

# Beside those of a generation: with TensorFlow in them, or with nothing.
_ANY_RUNTIME = r"tpu-vm-base|tpu-vm-tf-[\d.]+(-pod)?(-pjrt)?"


@dataclass(frozen=True, kw_only=True)
class Offer:
    """What there is of one generation.

    name       the part before the number in an accelerator type
    type_      the generation in an accelerator configuration
    per_chip   what the number counts of one chip
    one_host   the most chips that one host has
    small      by chips, the topology of a slice that does not consist of cubes of 4x4x4
    cubes      the most cubes of a slice, 0 where there are none
    """

    name: str
    type_: str
    per_chip: int
    one_host: int
    zones: list[str]
    runtimes: list[str]
    small: dict[str, str]
    cubes: int

    def topology(self, accelerator_type: str) -> str:
        """ "" where there is no slice of that type."""
        name, _, number = accelerator_type.rpartition("-")
        chips, rest = divmod(int(number) if number.isdigit() else 0, self.per_chip)
        if name != self.name or rest or not chips:
            return ""
        cubes, rest = divmod(chips, _CUBE**3)
        whole = not rest and cubes <= self.cubes
        return self.small.get(str(chips)) or ("x".join(str(_CUBE * side) for side in _compact(cubes)) if whole else "")

    def hosts(self, accelerator_type: str) -> int:
        chips = math.prod(int(side) for side in self.topology(accelerator_type).split("x"))
        return 1 if chips <= self.one_host else chips // 4


def _compact(cubes: int) -> tuple[int, int, int]:
    """The sides, in cubes, of the cuboid of that many whose sides differ least."""
    sides = [side for side in range(1, cubes + 1) if cubes % side == 0]
    cuboids = [(a, b, cubes // (a * b)) for a in sides for b in sides if cubes % (a * b) == 0 and a <= b]
    return min((cuboid for cuboid in cuboids if cuboid[1] <= cuboid[2]), key=sum)


OFFERS = {
    generation: Offer(**row)
    for generation, row in json.loads((Path(__file__).parent / "tpu_vms.json").read_text(encoding="utf-8")).items()
}


def limit(cloud: Cloud, generation: str, chips: int) -> None:
    """From now on the project may have that many chips of a generation in a zone, and not any number."""
    cloud.put(_QUOTA, generation, {"chips": chips})


def is_offered(change: Change) -> None:
    """Google's words where a zone has none: skypilot-org/skypilot, sky/provision/gcp; those of the version are not."""
    type_, zone = str(change.values["accelerator_type"]), str(change.values["zone"])
    offer = _offer(type_)
    zones = offer.zones if offer else []
    if offer is None or (zone not in zones and change.get(OFFERED, zone) is None):
        raise bad_request(f"Cloud TPU received a bad request. the accelerator {type_} was not found in zone {zone}")
    runtime = str(change.values["runtime_version"])
    known = runtime in offer.runtimes or re.fullmatch(_ANY_RUNTIME, runtime)
    require(
        known,
        f"Cloud TPU received a bad request. the runtime version {runtime} was not found for {type_} in zone {zone}",
    )


def quota_is_left(change: Change) -> None:
    """Quota of the TPU API, apart from that of nodes. The words: marin-community/marin pull request 1612."""
    offer, zone = _offer(str(change.values["accelerator_type"])), change.values["zone"]
    if offer is None or change.prior:
        return
    quota = change.get(_QUOTA, offer.name)
    others = (item.attributes for item in change.client.cloud.find(TPU_VM) if item.name != change.name)
    same = [vm for vm in (*others, change.values) if vm["zone"] == zone and _offer(vm["accelerator_type"]) is offer]
    chips = sum(int(str(vm["accelerator_type"]).rpartition("-")[2]) // offer.per_chip for vm in same)
    if quota and chips > quota["chips"]:
        raise ApiError(
            429,
            f"Quota limit 'TPU{offer.type_}PerProjectPerZoneForTPUAPI' has been exceeded. Limit: {quota['chips']} in "
            f"zone {zone}.",
            "rateLimitExceeded",
        )


def subnet_is_near(change: Change) -> None:
    """The subnet is in the region of the zone. The words are not Google's, whose are not known."""
    subnet = change.get(TPU_VM_IN_SUBNET.type_, TPU_VM_IN_SUBNET.target(change.client, change.values)) or {}
    region = region_of(change.values["zone"])
    require(subnet.get("region") == region, f"The subnetwork of {change.name} is not in region {region}.")


def vm_values(change: Change) -> Attributes:
    """The server's part, with an address for each host of the slice."""
    type_ = str(change.values["accelerator_type"])
    offer = _offer(type_)
    assert offer is not None
    return {
        "state": "READY",
        "health": "HEALTHY",
        "health_description": "",
        "api_version": "V2",
        "cidr_block": "",
        "queued_resource": "",
        "multislice_node": False,
        "symptoms": [],
        "accelerator_config": [{"type": offer.type_, "topology": offer.topology(type_)}],
        "network_endpoints": [
            {"ip_address": address, "port": 8470, "access_config": []} for address in _addresses(change, offer, type_)
        ],
    }


def _offer(accelerator_type: object) -> Offer | None:
    return next((offer for offer in OFFERS.values() if offer.topology(str(accelerator_type))), None)


def _addresses(change: Change, offer: Offer, type_: str) -> Iterator[str]:
    for _ in range(offer.hosts(type_)):
        number = 1 + change.client.cloud.next("tpu-vm-address")  # 10.0.0.1 is the subnet's gateway
        yield f"10.0.{number // 256}.{number % 256}"


RESOURCE_TYPES = (
    GoogleResource(
        type_=TPU_VM,
        checks=(
            name_is_valid,
            zone_exists,
            is_offered,
            Reference(attribute="network_config.network", type_=NETWORK, default="default"),
            TPU_VM_IN_SUBNET,
            subnet_is_near,
            Reference(
                attribute="service_account.email",
                type_=ACCOUNT,
                template=ACCOUNT_BY_EMAIL,
                missing=lambda name: not_found(f"The service account '{name}' was not found"),
            ),
            quota_is_left,
        ),
        computed=vm_values,
    ),
)
