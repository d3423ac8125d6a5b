"""Queues that change under jobs that run, by the real Terraform: nothing that runs is stopped, and it ends."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

import environment
from rehearsal.google.network import CLUSTER
from rehearsal.kubernetes.api import Api
from tests.rehearsal.conftest import FLEET
from tests.rehearsal.deployed import admitted, of_any_name, workloads
from tests.rehearsal.ground import Ground, ground_of, synthesize
from tests.synthesis import HERE

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("terraform") is None, reason="terraform is not on the PATH"),
]

Object = dict[str, Any]

ONE_GROUP = HERE / "upgrades" / "one-resource-group.yaml"

VARS = (HERE / "cases" / f"{FLEET}.env").read_text(encoding="utf-8")
THREE_TEAMS = (HERE / "cases" / f"{FLEET}.fleet.yaml").read_text(encoding="utf-8")


@contextmanager
def deployable(fleet: str, folder: Path) -> Iterator[Ground]:
    """The stacks of a fleet.yaml of this text, synthesized."""
    write(fleet, folder)
    (folder / "vars.env").write_text(VARS, encoding="utf-8")
    configured = environment.load(folder / "vars.env", process_env={}, fleet=folder / "fleet.yaml")
    with ground_of(configured, VARS, folder) as ground:
        yield ground


def write(fleet: str, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "fleet.yaml").write_text(fleet, encoding="utf-8")


def api_of(ground: Ground) -> Api:
    (cluster,) = ground.world.cloud.find(CLUSTER)
    return Api(ground.world.cloud, cluster.name)


def queues_before(ground: Ground) -> str:
    """The stack `queues` with one resource group a queue; the text of what it is now."""
    path = ground.world.output / "stacks" / "queues" / "cdk.tf.json"
    now = path.read_text(encoding="utf-8")
    stack = json.loads(now)
    old = {
        (item["kind"], item["metadata"]["name"]): item
        for item in yaml.safe_load_all(ONE_GROUP.read_text(encoding="utf-8"))
    }
    for resource in stack["resource"]["kubernetes_manifest"].values():
        manifest = resource["manifest"]
        resource["manifest"] = old.pop((manifest["kind"], manifest["metadata"]["name"]), manifest)
        resource.pop("lifecycle", None)
    assert old == {}
    path.write_text(json.dumps(stack), encoding="utf-8")
    return now


def submit_as_before(api: Api, ground: Ground) -> None:
    """hello-tpu of every team, for every pool group, with the toleration that the old queues asked for."""
    for path in sorted((ground.world.output / "manifests").rglob("hello-tpu/jobset.yaml")):
        job_set = of_any_name(path)
        pod = job_set["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
        pod["tolerations"] = [{"key": "google.com/tpu", "operator": "Exists"}]
        api.create(job_set)


def ordinary(namespace: str) -> Object:
    """A JobSet as Google's documentation writes it: chips and selectors, no toleration, no cores."""
    container = {"name": "a", "image": "a", "resources": {"limits": {"google.com/tpu": 4}}}
    selector = {"cloud.google.com/gke-tpu-accelerator": "tpu-v6e-slice", "cloud.google.com/gke-tpu-topology": "4x4"}
    pod = {"restartPolicy": "Never", "nodeSelector": selector, "containers": [container]}
    job = {"parallelism": 4, "completions": 4, "template": {"spec": pod}}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "ordinary", "namespace": namespace},
        "spec": {"replicatedJobs": [{"name": "slice", "template": {"spec": job}}]},
    }


def test_an_upgrade_from_queues_of_one_resource_group_stops_nothing_that_runs(tmp_path: Path) -> None:
    with deployable(THREE_TEAMS, tmp_path / "settings") as ground:
        now = queues_before(ground)
        ground.deploy()
        api = api_of(ground)
        submit_as_before(api, ground)
        api.create(ordinary("research"))
        running = admitted(api)
        assert len(running) == 8
        assert "research/jobset-ordinary" not in running, "the old queues never admit it"
        (ground.world.output / "stacks" / "queues" / "cdk.tf.json").write_text(now, encoding="utf-8")
        said = ground.apply("queues")
        assert "0 destroyed" in said
        assert admitted(api) == {*running, "research/jobset-ordinary"}
        assert [item["spec"]["suspend"] for item in api.of_kind("JobSet")] == [False] * 9
        ground.unchanged()


def test_a_pool_group_that_is_removed_or_renamed_takes_no_job_of_another_along(tmp_path: Path) -> None:
    fleet = "tpu_pools: {{steady: {{type: v6e-16, slices: 2}}, {}}}\nteams: {{research: , serving: }}\n"
    queued = "{type: v6e-16, slices: 2, capacity: queued}"
    folder = tmp_path / "settings"
    with deployable(fleet.format(f"burst: {queued}, spare: {{type: v6e-32, slices: 1}}"), folder) as ground:
        ground.deploy()
        api = api_of(ground)
        for team in ("research", "serving"):
            api.create(
                yaml.safe_load((ground.world.output / f"manifests/{team}/steady/hello-tpu/jobset.yaml").read_text())
            )
        running = admitted(api)
        assert len(running) == 2
        write(fleet.format(f"quick: {queued}"), folder)
        synthesize(ground.world)
        for stack in ("tpu-node-pools", "queues", "observability"):
            ground.apply(stack)
        assert admitted(api) == running
        flavors = {item["metadata"]["name"] for item in api.of_kind("ResourceFlavor")}
        assert flavors == {"cpu", "steady", "quick"}
        assert len(workloads(api)) == 2
        ground.unchanged()
