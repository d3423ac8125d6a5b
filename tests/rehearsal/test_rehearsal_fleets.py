"""Every case's environment, with jobs running: up, nothing to do, a team less, an upgrade, and down."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from environment.services import SERVICES
from rehearsal.kubernetes.api import Api
from rehearsal.report import remains
from tests.rehearsal.played import Played
from tests.synthesis import CASES, STACKS, Synthesis

FLEET = "three-teams-four-groups"
STATE_BUCKET = "my-project-tpu-tf-state"


def deploy(synthesis: Synthesis, case: str, folder: Path) -> Played:
    played = Played(folder=folder / "world", services=tuple(SERVICES))
    (played.folder / "cdktf.out").symlink_to(synthesis.folder(case))
    for stack in STACKS:
        played.deploy(synthesis.stack(case, stack))
    return played


def destroy(played: Played, addresses: list[str]) -> None:
    """In the order of `terraform destroy`: what was made last goes first."""
    for address in reversed(addresses):
        played.destroy(address)
        del played.resources[address]


def api_of(played: Played) -> Api:
    (cluster,) = played.cloud.find("google_container_cluster")
    return Api(played.cloud, cluster.name)


def submit(played: Played, synthesis: Synthesis, case: str) -> Api:
    """hello-tpu of every team, for every pool group that it may use."""
    api = api_of(played)
    for text in synthesis.manifests(case).values():
        api.create(yaml.safe_load(text))
    return api


def admitted(api: Api) -> list[dict[str, Any]]:
    return [
        each
        for each in api.all(api.resource("kueue.x-k8s.io/v1beta2", "Workload"))
        if each.get("status", {}).get("admission")
    ]


@pytest.fixture(scope="module")
def fleet_once(synthesis: Synthesis, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    played = deploy(synthesis, FLEET, tmp_path_factory.mktemp("fleet"))
    yield played
    played.close()


@pytest.fixture
def fleet(fleet_once: Played, tmp_path: Path) -> Iterator[Played]:
    played = fleet_once.copy(tmp_path / "fleet")
    yield played
    played.close()


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_a_case_goes_up_stays_as_it_is_and_comes_down_with_jobs_running(
    case: str, synthesis: Synthesis, tmp_path: Path
) -> None:
    played = deploy(synthesis, case, tmp_path)
    managed = [address for address in played.resources if not address.startswith("terraform_data.")]
    assert [address for address in managed if not played.unchanged(address)] == []
    assert admitted(submit(played, synthesis, case))
    destroy(played, list(played.resources))
    assert remains(played.cloud, STATE_BUCKET) == []
    played.close()


def of_stack(synthesis: Synthesis, stack: str) -> list[str]:
    """The addresses of a stack of the fleet."""
    named = synthesis.stack(FLEET, stack)["resource"]
    return [f"{type_}.{id_}" for type_, by_id in named.items() for id_ in by_id]


def workloads(api: Api) -> set[tuple[str, str]]:
    """Namespace and name of every workload that Kueue knows."""
    found = api.all(api.resource("kueue.x-k8s.io/v1beta2", "Workload"))
    return {(each["metadata"]["namespace"], each["metadata"]["name"]) for each in found}


def test_a_team_that_is_removed_goes_with_its_jobs_and_disturbs_nobody(fleet: Played, synthesis: Synthesis) -> None:
    api = submit(fleet, synthesis, FLEET)
    others = {name for name in workloads(api) if name[0] != "students"}
    before = {each["metadata"]["name"] for each in admitted(api) if each["metadata"]["namespace"] != "students"}
    assert any(each["metadata"]["namespace"] == "students" for each in admitted(api))
    assert before
    for stack in STACKS:
        gone = [address for address in of_stack(synthesis, stack) if "students" in address]
        destroy(fleet, [address for address in fleet.resources if address in gone])
    assert workloads(api) == others
    assert before <= {each["metadata"]["name"] for each in admitted(api)}
    assert not [each for each in fleet.cloud.find() if "students" in each.name]


def test_destroying_only_the_queues_leaves_no_object_of_theirs_and_every_job(
    fleet: Played, synthesis: Synthesis
) -> None:
    api = submit(fleet, synthesis, FLEET)
    jobs = workloads(api)
    queues = of_stack(synthesis, "queues")
    destroy(fleet, [address for address in fleet.resources if address in queues])
    for kind in ("ClusterQueue", "LocalQueue", "ResourceFlavor", "WorkloadPriorityClass"):
        assert api.all(api.resource("kueue.x-k8s.io/v1beta2", kind)) == []
    assert workloads(api) == jobs
    assert admitted(api) == []


def test_a_deploy_after_a_destroy_that_was_given_up_opens_the_queues_again(fleet: Played, synthesis: Synthesis) -> None:
    api = submit(fleet, synthesis, FLEET)
    running = {each["metadata"]["name"] for each in admitted(api)}
    for team in ("research", "serving", "students"):
        drain = next(address for address in fleet.resources if address.startswith(f"helm_release.drain-{team}_"))
        release = fleet.resources[drain]
        fleet.destroy(drain)
        assert release.state is None
    assert admitted(api) == []
    changed = [address for address in of_stack(synthesis, "queues") if address in fleet.resources]
    for address in changed:
        item = fleet.resources[address]
        if item.state is not None and item.type_ == "kubernetes_manifest":
            item.state = fleet.read(address)
        fleet.apply(item)
    policies = {each["spec"]["stopPolicy"] for each in api.all(api.resource("kueue.x-k8s.io/v1beta2", "ClusterQueue"))}
    assert policies == {"None"}
    assert {each["metadata"]["name"] for each in admitted(api)} == running


@pytest.mark.parametrize("release", ["kueue", "jobset"])
def test_an_upgrade_keeps_every_queue_and_job(release: str, fleet: Played, synthesis: Synthesis) -> None:
    api = submit(fleet, synthesis, FLEET)
    jobs, running = workloads(api), admitted(api)
    planned, replaced = fleet.plan(f"helm_release.{release}", values=[json.dumps({"changed": True})])
    assert replaced == []
    assert planned["values"] != fleet.resources[f"helm_release.{release}"].config["values"]
    fleet.change(f"helm_release.{release}", timeout=901)
    assert workloads(api) == jobs
    assert admitted(api) == running
