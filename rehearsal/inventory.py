"""What exists, stack by stack, in short for the person who pays for it; read from the Terraform states in the fake
bucket.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rehearsal import slice_owners
from rehearsal.cloud import Attributes, Cloud
from rehearsal.cloudbuild.resources import CONNECTION, REPOSITORY
from rehearsal.google.addresses import POOL
from rehearsal.google.locations import OFFERED
from rehearsal.google.resource import PROJECT, SERVICE
from rehearsal.google.storage import BUCKET
from rehearsal.google.tpu import SHAPES, topology_of
from rehearsal.terraform.values import block_at, value_at
from vocabulary.keys import POOL_GROUP_LABEL, TPU

_STATE = "/default.tfstate"

# The output that lists the TPU node pools, group by group as the fleet does; Terraform's own order is the alphabet's.
_POOLS = "node_pools"


@dataclass(frozen=True, kw_only=True)
class StackReport:
    """One row of the table: how many resources a stack's state holds, and what matters of them, a line each."""

    stack: str
    resources: int
    facts: list[str]


def by_stack(cloud: Cloud, bucket: str) -> list[StackReport]:
    """The stacks whose state is in the bucket, in the order in which they were first deployed."""
    first: dict[str, int] = {}
    for blob in cloud.blobs(bucket, generations=True):
        if blob.name.endswith(_STATE) and json.loads(blob.content).get("resources"):
            first.setdefault(blob.name, blob.generation)
    rows = []
    for blob in sorted(cloud.blobs(bucket), key=lambda blob: first.get(blob.name, 0)):
        if not blob.name.endswith(_STATE):
            continue
        state = json.loads(blob.content)
        resources = [
            (resource["type"], instance["attributes"])
            for resource in state.get("resources", [])
            if resource["mode"] == "managed"
            for instance in resource["instances"]
        ]
        pools = state.get("outputs", {}).get(_POOLS, {}).get("value", [])
        stack = blob.name.removesuffix(_STATE).rsplit("/", 1)[-1]
        rows.append(StackReport(stack=stack, resources=len(resources), facts=_facts(resources, pools)))
    return rows


def remains(cloud: Cloud, bucket: str) -> list[str]:
    """What is there besides what Google Cloud or a person keeps: the project, its enabled APIs, the bucket of the
    states, and a connected repository.
    """
    kept = {(PROJECT, item.name) for item in cloud.find(PROJECT)} | {(BUCKET, bucket)}
    return [
        f"{item.kind} {item.name}"
        for item in cloud.find()
        if item.kind not in (SERVICE, CONNECTION, REPOSITORY, OFFERED) and (item.kind, item.name) not in kept
    ] + [f"resource in the state {row.stack}: {row.resources}" for row in by_stack(cloud, bucket) if row.resources]


def counted(number: int, word: str) -> str:
    """ "1 host", "4 hosts" """
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _facts(resources: Sequence[tuple[str, Attributes]], order: Sequence[str]) -> list[str]:
    """`order`: of the node pools, by name."""
    words = list(_WORDS)
    known = sorted((item for item in resources if item[0] in _WORDS), key=lambda item: words.index(item[0]))
    facts = [fact for type_, attributes in known if (fact := _WORDS[type_](attributes))]
    at = {name: place for place, name in enumerate(order)}
    pools = [attributes for type_, attributes in resources if type_ == POOL]
    ordered = sorted(pools, key=lambda pool: at.get(str(pool["name"]), -1))
    return [*sorted(facts, key=_rank), *_pools(ordered), *slice_owners.lines(resources)]


def _rank(fact: str) -> int:
    """Flavors before the queues made of them."""
    return next((at for at, word in enumerate(_LAST) if fact.startswith(word)), -1)


def _pools(pools: list[Attributes]) -> list[str]:
    """Node pools; the slices of a group that are alike in one line."""
    lines = []
    for (group, words, hosts, chips), count in Counter(_pool(pool) for pool in pools).items():
        if chips:
            sizes = f"{counted(count, 'slice')} x {counted(hosts, 'host')} x {counted(chips, 'chip')}"
            lines.append(f"{group}: {sizes} = {counted(count * hosts * chips, 'chip')} ({words})")
        else:
            lines.append(words)
    return lines


def _pool(pool: Attributes) -> tuple[str, str, int, int]:
    """A pool's group and what is said of it; of a TPU pool also its hosts, and the chips of each."""
    config = block_at(pool, "node_config")
    machine, zones = str(config.get("machine_type")), ", ".join(pool.get("node_locations") or [])
    group = str((config.get("labels") or {}).get(POOL_GROUP_LABEL, pool["name"]))
    shape, scaling = SHAPES.get(machine), block_at(pool, "autoscaling")
    if shape is None:
        size = f"{scaling['min_node_count']} to {scaling['max_node_count']}" if scaling else str(pool.get("node_count"))
        return group, f"node pool {pool['name']}: {size} nodes of {machine}, {zones}", 0, 0
    topology = topology_of(pool) or shape.single_host
    words = [f"{shape.accelerator} {topology}", machine, zones, _capacity(pool, config)]
    hosts = int(pool.get("node_count") or scaling.get("max_node_count") or 0)
    return group, ", ".join([*words, "autoscaled"] if scaling else words), hosts, shape.chips_per_host


def _capacity(pool: Attributes, config: Attributes) -> str:
    """Where the machines come from; a reservation with its name and, if only that is used, its block."""
    affinity = block_at(config, "reservation_affinity")
    if affinity.get("consume_reservation_type") == "SPECIFIC_RESERVATION":
        return f"reservation {str(affinity['values'][0]).replace('/reservationBlocks/', ' block ')}"
    if config.get("spot"):
        return "spot"
    if value_at(pool, "queued_provisioning.enabled"):
        return "queued"
    return "flex-start" if config.get("flex_start") else "on-demand"


def _subnet(values: Attributes) -> str:
    ranges = [f"{item['range_name']} {item['ip_cidr_range']}" for item in values.get("secondary_ip_range") or []]
    return f"subnet {values['name']}: {', '.join(['nodes ' + values['ip_cidr_range'], *ranges])}"


def _manifest(values: Attributes) -> str:
    body: Any = values["manifest"]["value"]
    name, spec = body["metadata"]["name"], body.get("spec", {})
    if body["kind"] == "ResourceFlavor":
        labels = ", ".join(f"{key.rsplit('/', 1)[-1]}={value}" for key, value in spec.get("nodeLabels", {}).items())
        return f"flavor {name}: {labels or 'any node'}"
    if body["kind"] == "LocalQueue":
        return f"queue {body['metadata']['namespace']}/{name} -> ClusterQueue {spec['clusterQueue']}"
    if body["kind"] != "ClusterQueue":
        return ""
    flavors = [flavor for group in spec["resourceGroups"] for flavor in group["flavors"]]
    return f"ClusterQueue {name}: {', '.join(filter(None, map(_quota, flavors))) or 'nothing of its own'}"


def _quota(flavor: Attributes) -> str:
    """Chips where there are any; cores and memory otherwise; nothing where there is nothing."""
    quotas = {item["name"]: item["nominalQuota"] for item in flavor["resources"] if item["nominalQuota"] != "0"}
    chips = quotas.pop(TPU, "")
    words = f"{chips} chips" if chips else " and ".join(f"{value} {name}" for name, value in quotas.items())
    return f"{words} of {flavor['name']}" if words else ""


def _tpu_vms(values: Attributes) -> str:
    hosts, scheduling = len(values["network_endpoints"]), block_at(values, "scheduling_config")
    capacity = next((word for word in ("spot", "reserved") if scheduling.get(word)), "on-demand")
    words = f"{values['accelerator_type']}, {counted(hosts, 'host')}, {values['zone']}, {capacity}"
    return f"TPU VMs {values['name']}: {words}"


def _chart(values: Attributes) -> str:
    """Those from a repository; the local ones are a part of our own."""
    return f"{values['name']} {values['version']}" if values.get("repository") else ""


# Facts that come last, in this order.
_LAST = ("flavor", "ClusterQueue", "queue")

_WORDS: dict[str, Callable[[Attributes], str]] = {
    "google_compute_network": lambda values: f"network {values['name']}, MTU {values['mtu']}",
    "google_compute_subnetwork": _subnet,
    "google_artifact_registry_repository": lambda values: f"image registry {values['name']} in {values['location']}",
    "google_vertex_ai_tensorboard": lambda values: f"TensorBoard {values['display_name']} in {values['region']}",
    "google_storage_bucket": lambda values: f"bucket {values['name']}",
    "google_container_cluster": lambda values: f"cluster {values['name']} in {values['location']}",
    "google_tpu_v2_vm": _tpu_vms,
    "helm_release": _chart,
    "kubernetes_namespace_v1": lambda values: f"namespace {values['metadata'][0]['name']}",
    "kubernetes_manifest": _manifest,
}
