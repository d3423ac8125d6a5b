"""The nodes that `tpuenv check` thinks of are those that the deployed node pools have."""

from __future__ import annotations

import environment
from environment.kubernetes.nodes import node_objects
from rehearsal.google.node_pools import GOOGLES_LABELS
from rehearsal.kubernetes.nodes import POOL, nodes
from rehearsal.terraform.values import value_at
from tests.rehearsal.conftest import FLEET
from tests.rehearsal.fake import FakeCloud
from tests.synthesis import HERE
from vocabulary.keys import MACHINE_LABEL, POOL_LABEL, SPOT_LABEL, ZONE_LABEL

CASE = HERE / "cases" / f"{FLEET}.env"


def test_every_node_pool_has_the_labels_of_its_expected_nodes(fleet: FakeCloud) -> None:
    configured = environment.load(CASE, process_env={}, fleet=CASE.with_suffix(".fleet.yaml"))
    expected = {node["metadata"]["name"]: node["metadata"]["labels"] for node in node_objects(configured)}
    (cluster,) = fleet.cloud.find("google_container_cluster")
    made = {node.pool: node for node in nodes(fleet.cloud, cluster.name)}
    assert expected.keys() == made.keys()
    for name, labels in expected.items():
        assert labels.items() >= made[name].labels.items() - GOOGLES_LABELS.items()
        there = {POOL_LABEL: name, ZONE_LABEL: made[name].zone, MACHINE_LABEL: made[name].machine_type}
        assert labels.items() >= there.items()
        pool = fleet.cloud.get(POOL, f"{cluster.name}/nodePools/{name}") or {}
        assert (labels.get(SPOT_LABEL) == "true") == bool(value_at(pool, "node_config.spot"))
