"""The fake Autopilot: it makes nodes for the pods that run, and refuses node pools and pods as GKE does."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from rehearsal.google.network import CLUSTER as GKE
from rehearsal.jobs import quotas_off
from rehearsal.kubernetes import warden
from rehearsal.kubernetes.api import Api
from rehearsal.kubernetes.placement import placements
from rehearsal.kubernetes.status import Status
from rehearsal.terraform.resource_type import Refusal
from tests.admission_cases import rule_cases
from tests.change_cases import Described
from tests.rehearsal.changed import Deployed
from tests.rehearsal.deployed import api_of, deploy, of_any_name, world_of
from tests.rehearsal.fake import FakeCloud
from tests.synthesis import HERE, Synthesis

CASE = "autopilot"
CASES = HERE / "cases"
CLUSTER = "google_container_cluster.cluster"
CONFLICT = "conflicts with enable_autopilot"
POOL = {"cluster": "tpu-cluster", "location": "us-east5", "node_count": 1, "name": "x"}


@pytest.fixture(scope="module")
def once(synthesis: Synthesis, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeCloud]:
    fake = deploy(synthesis.folder(CASE), tmp_path_factory.mktemp(CASE) / "world")
    yield fake
    fake.close()


@pytest.fixture
def autopilot(once: FakeCloud, tmp_path: Path) -> Iterator[FakeCloud]:
    """The case, deployed: each test has its own copy."""
    fake = once.copy(tmp_path / CASE)
    yield fake
    fake.close()


@pytest.fixture
def api(autopilot: FakeCloud) -> Api:
    return api_of(autopilot)


def hello(autopilot: FakeCloud, group: str) -> dict[str, Any]:
    path = autopilot.folder / "cdktf.out" / "manifests" / "research" / group / "hello-tpu" / "jobset.yaml"
    return of_any_name(path)


def job(**pod: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    spec = {"restartPolicy": "Never", "containers": [container], **pod}
    metadata = {"name": "work", "namespace": "research", "labels": {"kueue.x-k8s.io/queue-name": "default"}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": {"spec": spec}}}


def test_a_second_plan_of_every_resource_has_nothing_to_do(autopilot: FakeCloud) -> None:
    items = {address: item for address, item in autopilot.resources.items() if item.type_ != "terraform_data"}
    assert [address for address in items if not autopilot.unchanged(address)] == []
    cluster = autopilot.resources[CLUSTER].state or {}
    assert cluster["enable_intranode_visibility"] is True
    assert cluster["cluster_autoscaling"][0]["enabled"] is True


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"remove_default_node_pool": True}, f'"remove_default_node_pool": {CONFLICT}'),
        ({"cluster_autoscaling__enabled": True}, f'"cluster_autoscaling.enabled": {CONFLICT}'),
        ({"location": "us-east5-b"}, "Autopilot clusters must be regional clusters"),
        (
            {"cluster_autoscaling__auto_provisioning_defaults__service_account": "x@y.iam.gserviceaccount.com"},
            '"x@y.iam.gserviceaccount.com" does not exist',
        ),
    ],
)
def test_a_cluster_that_is_refused(autopilot: FakeCloud, changes: dict[str, object], words: str) -> None:
    with pytest.raises(Refusal, match=words):
        autopilot.again(CLUSTER, **changes)


def test_no_node_pool_is_created_in_it(autopilot: FakeCloud) -> None:
    with pytest.raises(Refusal, match="Autopilot node pools cannot be accessed or modified"):
        autopilot.make("google_container_node_pool.x", **POOL)


@pytest.mark.parametrize(("group", "pools"), [("train", 1), ("reserved", 1), ("spare", 1), ("burst", 1)])
def test_a_slice_exists_while_a_job_runs_on_it(group: str, pools: int, autopilot: FakeCloud, api: Api) -> None:
    assert list(placements(api)) == []
    assert quotas_off(autopilot.cloud, api.cluster) == []
    manifest = hello(autopilot, group)
    created = api.create(manifest)
    (placed,) = placements(api)
    selected = manifest["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["nodeSelector"]
    assert len(placed.hosts) == pools
    assert placed.without_node == 0
    for node, _ in placed.hosts:
        assert selected.items() <= node.labels.items()
        assert node.zone == selected["topology.kubernetes.io/zone"]
    metadata = created["metadata"]
    api.delete(api.resource(created["apiVersion"], created["kind"]), metadata["namespace"], metadata["name"])
    assert list(placements(api)) == []


def test_no_more_slices_exist_than_the_quotas_allow(autopilot: FakeCloud, api: Api) -> None:
    for _ in range(3):
        api.create(hello(autopilot, "train"))
    pools = [node.pool for placed in placements(api) for node, _ in placed.hosts]
    assert len(pools) == len(set(pools)) == 2


def test_machines_that_do_not_exist_are_not_made(autopilot: FakeCloud, api: Api) -> None:
    manifest = hello(autopilot, "train")
    api.create(manifest)
    workload = api.resource("kueue.x-k8s.io/v1beta2", "Workload")
    (admitted,) = api.all(workload)
    flavor = api.get(api.resource("kueue.x-k8s.io/v1beta2", "ResourceFlavor"), "", "train")
    flavor["spec"]["nodeLabels"]["cloud.google.com/gke-tpu-topology"] = "3x5"
    api.store(flavor)
    (placed,) = placements(api)
    assert admitted["status"]["admission"]
    assert (placed.hosts, placed.without_node) == ((), 4)


def test_a_job_of_pods_that_autopilot_does_not_take_is_refused_with_gke_s_words(api: Api) -> None:
    with pytest.raises(Status, match=r"\[denied by autogke-node-affinity-selector-limitation\].*Key 'a/b' is not"):
        api.create(job(nodeSelector={"a/b": "c"}))
    assert api.create(job())["metadata"]["name"] == "work"


def test_a_job_set_of_such_pods_is_created_and_has_none(autopilot: FakeCloud, api: Api) -> None:
    manifest = hello(autopilot, "train")
    manifest["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["nodeSelector"]["a/b"] = "c"
    api.create(manifest)
    assert api.all(api.resource("v1", "Pod"), "research") == []


def test_a_chart_whose_pods_select_a_label_of_node_pools_never_gets_ready(autopilot: FakeCloud) -> None:
    release = autopilot.resources["helm_release.jobset"]
    values = '{"controller": {"nodeSelector": {"tpuenv/pool-group": "cpu"}}}'
    with pytest.raises(Refusal) as refused:
        autopilot.change(release.address, values=[values])
    assert "Key 'tpuenv/pool-group' is not allowed with node selector" in (refused.value.detail or "")


@pytest.mark.parametrize("case", [case for case in rule_cases() if case.autopilot], ids=str)
def test_the_fake_refuses_what_check_says_that_autopilot_refuses(case: Any) -> None:
    manifest = case.manifest()
    job_spec = (
        manifest["spec"] if manifest["kind"] == "Job" else manifest["spec"]["replicatedJobs"][0]["template"]["spec"]
    )
    constraints = {constraint for constraint, _ in warden.violations(job_spec["template"]["spec"])}
    assert len(constraints) == 1


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("terraform") is None, reason="terraform is not on the PATH")
def test_the_real_terraform_deploys_the_case_changes_it_and_destroys_it_while_jobs_run(tmp_path: Path) -> None:
    fleet = yaml.safe_load((CASES / f"{CASE}.fleet.yaml").read_text(encoding="utf-8"))
    case = Described(settings={"CLUSTER_MODE": "autopilot", "DELETION_PROTECTION": "false"}, fleet=fleet)
    with world_of(case.environment(), tmp_path / "world") as world:
        deployed = Deployed(world=world, folder=tmp_path)
        deployed.begin(case)
        jobs = deployed.running
        pools = [node.pool for placed in placements(deployed.api) for node, _ in placed.hosts if node.chips]
        assert len(pools) == len(set(pools)) == len(jobs) > 1
        assert not any(deployed.plan(case, stack) for stack in deployed.stacks(case))
        larger = replace(case, fleet=copy.deepcopy(fleet))
        larger.fleet["tpu_pools"]["train"]["slices"] = 3  # type: ignore[index]
        assert deployed.deploy(larger) == {
            "queues": {
                "kubernetes_manifest.clusterqueue-research": "update",
                "kubernetes_manifest.resourcequota-research-tpuenv": "update",
            }
        }
        assert deployed.running == jobs
        for stack in ("observability", "queues", "platform", "cluster"):
            deployed.terraform(stack, "destroy", "-auto-approve")
        assert [item.name for kind in (GKE, "kubernetes", "helm_release") for item in world.cloud.find(kind)] == []
