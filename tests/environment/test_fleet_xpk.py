"""The fleet in the words of xpk: what its ConfigMaps say of each kind of slice."""

from __future__ import annotations

from typing import Any

import pytest

from environment import Environment
from environment.fleet.xpk import device_type
from environment.kubernetes.queues import queue_objects
from environment.tpu import slice_for
from tests.loading import loaded, refused


def named(environment: Environment, kind: str) -> dict[str, Any]:
    """The objects of a kind, by their namespaces and names."""
    objects = (item for item in queue_objects(environment) if item["kind"] == kind)
    return {f"{item['metadata'].get('namespace', '')}/{item['metadata']['name']}": item for item in objects}


@pytest.mark.parametrize(
    ("tpu_type", "name"),
    [
        ("v4-32", "v4-32"),
        ("v5e-16", "v5litepod-16"),
        ("v5p-4x4x16", "v5p-512"),
        ("v6e-16", "v6e-16"),
        ("v6e-1", "v6e-1"),
        ("ct6e-standard-8t-2x4", None),
        ("tpu7x-8", "tpu7x-8"),
        ("tpu7x-64", None),
    ],
)
def test_a_slice_has_xpks_name_where_its_jobs_can_start(tpu_type: str, name: str | None) -> None:
    assert device_type(slice_for(tpu_type)) == name


def test_xpk_finds_its_queue_and_the_hosts_that_there_are() -> None:
    environment = loaded(XPK_COMPATIBILITY="true", TPU_TYPE="v6e-32", NUM_TPU_POOLS="3")
    queue = named(environment, "LocalQueue")["tpu-training/multislice-queue"]
    assert queue["spec"] == {"clusterQueue": "tpu-training"}
    maps = named(environment, "ConfigMap")
    assert {name: item["data"] for name, item in maps.items()} == {
        "default/tpu-cluster-resources-configmap": {"v6e-32": "24"},
        "default/tpu-cluster-metadata-configmap": {"capacity_type": "ON_DEMAND"},
    }


def test_without_the_setting_nothing_of_xpk_is_there() -> None:
    environment = loaded()
    assert not named(environment, "ConfigMap")
    assert named(environment, "LocalQueue").keys() == {"tpu-training/default"}


def test_slices_on_which_no_job_of_xpk_starts_are_refused() -> None:
    (problem,) = refused(XPK_COMPATIBILITY="true", REGION="us-central1", ZONE="us-central1-c", TPU_TYPE="tpu7x-64")
    assert problem.startswith("XPK_COMPATIBILITY: 'true' would lead to nothing: jobs of xpk start on hosts of 4 chips")
