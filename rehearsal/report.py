"""What exists, stack by stack, in the words of whoever pays for it; read from the Terraform states in the played
bucket.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from rehearsal.cloud import Attributes, Cloud
from rehearsal.rules.addresses import POOL
from rehearsal.rules.google import PROJECT, SERVICE, one
from rehearsal.rules.storage import BUCKET
from rehearsal.rules.tpu import SHAPES, topology_of

_STATE = "/default.tfstate"


@dataclass(frozen=True, kw_only=True)
class StackReport:
    """One row of the table: how many resources a stack's state holds, and what matters of them, a line each."""

    stack: str
    resources: int
    facts: list[str]


def by_stack(cloud: Cloud, bucket: str) -> list[StackReport]:
    """The stacks whose state is in the bucket, in the order in which they were first deployed."""
    newest = {blob.name: blob for blob in cloud.blobs(bucket) if blob.name.endswith(_STATE)}
    first = {blob.name: blob.generation for blob in reversed(cloud.blobs(bucket, generations=True))}
    rows = []
    for name in sorted(newest, key=lambda name: first[name]):
        found = [
            (resource["type"], instance["attributes"])
            for resource in json.loads(newest[name].content).get("resources", [])
            if resource["mode"] == "managed"
            for instance in resource["instances"]
        ]
        stack = name.removesuffix(_STATE).rsplit("/", 1)[-1]
        rows.append(StackReport(stack=stack, resources=len(found), facts=_facts(found)))
    return rows


def remains(cloud: Cloud, bucket: str) -> list[str]:
    """What is there besides what Google Cloud keeps: the project, its enabled APIs, and the bucket of the states."""
    kept = {(PROJECT, item.name) for item in cloud.find(PROJECT)} | {(BUCKET, bucket)}
    return [
        f"{item.kind} {item.name}"
        for item in cloud.find()
        if item.kind != SERVICE and (item.kind, item.name) not in kept
    ] + [f"resource in the state {row.stack}: {row.resources}" for row in by_stack(cloud, bucket) if row.resources]


def _facts(resources: Iterable[tuple[str, Attributes]]) -> list[str]:
    found: list[str] = []
    pools: list[Attributes] = []
    for type_, attributes in resources:
        if type_ == POOL:
            pools.append(attributes)
        elif type_ in _WORDS:
            found += filter(None, [_WORDS[type_](attributes)])
    return found + _pools(pools)


def _pools(pools: list[Attributes]) -> list[str]:
    """Node pools, those that are alike in one line."""
    alike = Counter(_pool(pool) for pool in pools)
    found = []
    for (words, hosts, chips), count in alike.items():
        if chips:
            plural = "" if count == 1 else "s"
            found.append(
                f"{count} slice{plural} x {hosts} hosts x {chips} chips = {count * hosts * chips} chips ({words})"
            )
        else:
            found.append(words)
    return found


def _pool(pool: Attributes) -> tuple[str, int, int]:
    config = one(pool, "node_config")
    machine, zones = str(config.get("machine_type")), ", ".join(pool.get("node_locations") or [])
    shape = SHAPES.get(machine)
    if shape is None:
        scaling = one(pool, "autoscaling")
        size = f"{scaling['min_node_count']} to {scaling['max_node_count']}" if scaling else str(pool.get("node_count"))
        return f"node pool {pool['name']}: {size} nodes of {machine}, {zones}", 0, 0
    topology = topology_of(pool) or shape.single_host
    hosts = int(pool.get("node_count") or one(pool, "autoscaling").get("max_node_count") or 0)
    return f"{shape.accelerator} {topology}, {machine}, {zones}", hosts, shape.chips_per_host


def _subnet(values: Attributes) -> str:
    ranges = [f"{item['range_name']} {item['ip_cidr_range']}" for item in values.get("secondary_ip_range") or []]
    return f"subnet {values['name']}: {', '.join(['nodes ' + values['ip_cidr_range'], *ranges])}"


def _manifest(values: Attributes) -> str:
    body: Any = values["manifest"]["value"]
    name, spec = body["metadata"]["name"], body.get("spec", {})
    if body["kind"] == "ResourceFlavor":
        labels = ", ".join(f"{key.rsplit('/', 1)[-1]}={value}" for key, value in spec.get("nodeLabels", {}).items())
        return f"flavor {name}: {labels}"
    if body["kind"] == "LocalQueue":
        return f"queue {body['metadata']['namespace']}/{name} -> ClusterQueue {spec['clusterQueue']}"
    if body["kind"] != "ClusterQueue":
        return ""
    quotas = [
        f"{flavor['name']}: " + ", ".join(f"{item['nominalQuota']} {item['name']}" for item in flavor["resources"])
        for group in spec["resourceGroups"]
        for flavor in group["flavors"]
    ]
    return f"ClusterQueue {name}: {'; '.join(quotas)}"


_WORDS: dict[str, Callable[[Attributes], str]] = {
    "google_compute_network": lambda values: f"network {values['name']}, MTU {values['mtu']}",
    "google_compute_subnetwork": _subnet,
    "google_storage_bucket": lambda values: f"bucket {values['name']}",
    "google_artifact_registry_repository": lambda values: f"image registry {values['name']} in {values['location']}",
    "google_vertex_ai_tensorboard": lambda values: f"TensorBoard {values['display_name']} in {values['region']}",
    "google_container_cluster": lambda values: f"cluster {values['name']} in {values['location']}",
    "helm_release": lambda values: f"chart {values['name']} {values['version']}",
    "kubernetes_namespace_v1": lambda values: f"namespace {values['metadata'][0]['name']}",
    "kubernetes_manifest": _manifest,
}
