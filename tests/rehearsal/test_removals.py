"""A team that is removed or renamed while its jobs run: drained first, then gone, and nobody else notices."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import environment
from rehearsal.google.network import CLUSTER
from rehearsal.kubernetes import webhooks
from rehearsal.kubernetes.api import Api
from rehearsal.terraform.resource_type import Refusal
from tests.rehearsal.conftest import FLEET
from tests.rehearsal.deployed import admitted, api_of, deploy_again, submit, workloads
from tests.rehearsal.fake import FakeCloud
from tests.rehearsal.ground import ground_of
from tests.synthesis import HERE, Synthesis, synthesize
from tpuenv.rehearsals import cdktf_in_world

Fleet = dict[str, Any]

SETTINGS = HERE / "cases" / f"{FLEET}.env"


def without_students(fleet: Fleet) -> None:
    del fleet["teams"]["students"]


def students_renamed(fleet: Fleet) -> None:
    fleet["teams"]["pupils"] = fleet["teams"].pop("students")


def both(fleet: Fleet) -> None:
    """One less, and another name for the first, whose namespace the gate uses."""
    without_students(fleet)
    fleet["teams"]["science"] = fleet["teams"].pop("research")


def write_fleet(folder: Path, change: Callable[[Fleet], None] = lambda _: None) -> Path:
    """The fleet.yaml of three teams, with a change."""
    fleet = yaml.safe_load((HERE / "cases" / f"{FLEET}.fleet.yaml").read_text(encoding="utf-8"))
    change(fleet)
    folder.mkdir(exist_ok=True)
    path = folder / "fleet.yaml"
    path.write_text(yaml.safe_dump(fleet, sort_keys=False), encoding="utf-8")
    return path


def of_team(address: str, team: str) -> bool:
    """Whether jobs of the team need it: its namespace, its account, what that may do, its members' role."""
    return any(f".{part}-{team}_" in address for part in ("team", "access_role", "access_members"))


@pytest.mark.slow
@pytest.mark.parametrize("change", [without_students, students_renamed])
def test_a_team_that_is_removed_or_renamed_is_drained_before_anything_of_it_goes(
    change: Callable[[Fleet], None], fleet: FakeCloud, synthesis: Synthesis, tmp_path: Path
) -> None:
    api = api_of(fleet)
    submit(api, synthesis.folder(FLEET))
    others = admitted(api, "research", "serving")
    assert others
    assert admitted(api, "students")
    seen: list[str] = []
    suspended: list[bool] = []

    def going(address: str) -> None:
        if of_team(address, "students"):
            seen.append(address)
            assert admitted(api, "students") == set(), f"{address} goes while jobs need it"
        if address.startswith("kubernetes_namespace_v1."):
            jobs = api.of_kind("JobSet")
            suspended.extend(job["spec"]["suspend"] for job in jobs if job["metadata"]["namespace"] == "students")

    configured = environment.load(SETTINGS, process_env={}, fleet=write_fleet(tmp_path / "changed", change))
    deploy_again(fleet, synthesize(configured, tmp_path / "changed" / "cdktf.out"), going=going)
    assert len(seen) == 11
    assert set(suspended) == {True}, "the jobs are stopped, and still there when their namespace goes"
    assert workloads(api, "students") == []
    assert others <= admitted(api)
    gone = [item.name for item in fleet.cloud.find() if "students" in item.name.replace("students@example.com", "")]
    assert gone == []


def research_renamed(fleet: Fleet) -> None:
    fleet["teams"]["science"] = fleet["teams"].pop("research")


def nominal_chips(api: Api) -> Counter[str]:
    """By flavor, of all teams together."""
    chips: Counter[str] = Counter()
    for queue in api.all(api.resource("kueue.x-k8s.io/v1beta2", "ClusterQueue")):
        for flavor in queue["spec"]["resourceGroups"][0]["flavors"]:
            quota = {resource["name"]: resource["nominalQuota"] for resource in flavor["resources"]}
            chips[flavor["name"]] += int(quota["google.com/tpu"])
    return chips


def cohort_of(api: Api, team: str) -> str:
    queue = api.get(api.resource("kueue.x-k8s.io/v1beta2", "ClusterQueue"), "", team)
    return str(queue["spec"]["cohortName"])


def chips_in_use(api: Api) -> Counter[str]:
    chips: Counter[str] = Counter()
    for workload in workloads(api):
        for pods in workload["status"].get("admission", {}).get("podSetAssignments", []):
            if "google.com/tpu" in pods["flavors"]:
                chips[pods["flavors"]["google.com/tpu"]] += int(pods["resourceUsage"]["google.com/tpu"])
    return chips


@pytest.mark.slow
@pytest.mark.parametrize("change", [students_renamed, research_renamed])
def test_no_more_chips_are_given_than_exist_while_a_team_goes_and_another_comes(
    change: Callable[[Fleet], None], fleet: FakeCloud, synthesis: Synthesis, tmp_path: Path
) -> None:
    """The fleet is full and jobs wait for every pool group; the new queue is made before the old one goes."""
    api = api_of(fleet)
    for _ in range(3):
        submit(api, synthesis.folder(FLEET))
    exist = nominal_chips(api)
    assert chips_in_use(api) == +exist

    def within(when: str) -> None:
        assert chips_in_use(api) <= exist, when

    configured = environment.load(SETTINGS, process_env={}, fleet=write_fleet(tmp_path / "changed", change))
    deploy_again(fleet, synthesize(configured, tmp_path / "changed" / "cdktf.out"), going=within, new_first=("queues",))
    within("at the end")
    assert nominal_chips(api) == exist


def evict(fleet: FakeCloud, limit_seconds: int) -> str:
    """The release that drains the students before their namespace goes, with another limit."""
    address = next(address for address in fleet.resources if address.startswith("helm_release.evict-students"))
    fleet.change(address, values=[json.dumps({"clusterQueue": "students", "limitSeconds": limit_seconds})])
    return address


@pytest.mark.slow
def test_a_deploy_with_the_team_as_it_was_after_one_that_stopped_half_way_opens_its_queue(
    fleet: FakeCloud, synthesis: Synthesis
) -> None:
    api = api_of(fleet)
    submit(api, synthesis.folder(FLEET))
    running = admitted(api)
    fleet.destroy(evict(fleet, 5))
    assert admitted(api, "students") == set()
    assert cohort_of(api, "students") != cohort_of(api, "research"), "its quota is lent to nobody"
    deploy_again(fleet, synthesis.folder(FLEET))
    assert admitted(api) == running
    assert cohort_of(api, "students") == cohort_of(api, "research")


def test_a_team_goes_also_where_its_queue_was_never_made(fleet: FakeCloud) -> None:
    api = api_of(fleet)
    for kind in ("LocalQueue", "ClusterQueue"):
        for body in api.all(api.resource("kueue.x-k8s.io/v1beta2", kind)):
            api.remove(body)
    fleet.destroy(evict(fleet, 5))


def test_a_team_goes_also_where_kueue_is_gone_with_all_its_queues(fleet: FakeCloud) -> None:
    address = evict(fleet, 5)
    fleet.destroy("helm_release.kueue")
    fleet.destroy(address)


@pytest.mark.slow
def test_a_kueue_that_does_not_answer_is_reported_and_nothing_is_removed(
    fleet: FakeCloud, synthesis: Synthesis
) -> None:
    api = api_of(fleet)
    submit(api, synthesis.folder(FLEET))
    running = admitted(api)
    fleet.cloud.put(webhooks.KIND, f"{api.cluster}|kueue", {"refusals": 1000})
    with pytest.raises(Refusal, match="Error uninstalling release") as refused:
        fleet.destroy(evict(fleet, 1))
    assert "job evict-students failed" in refused.value.detail
    assert "failed calling webhook" in refused.value.detail
    assert "Kueue did not let it be put on hold; nothing was changed or deleted" in refused.value.detail
    assert admitted(api) == running


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("terraform") is None, reason="terraform is not on the PATH")
def test_one_deploy_removes_a_team_and_renames_another_while_their_jobs_run(tmp_path: Path) -> None:
    folder = tmp_path / "settings"
    write_fleet(folder)
    configured = environment.load(SETTINGS, process_env={}, fleet=folder / "fleet.yaml")
    with ground_of(configured, SETTINGS.read_text(encoding="utf-8"), folder) as ground:
        world = ground.world
        ground.deploy()
        api = Api(world.cloud, world.cloud.find(CLUSTER)[0].name)
        submit(api, world.output)
        others = admitted(api, "serving")
        assert others
        assert admitted(api, "students")
        assert admitted(api, "research")

        write_fleet(folder, both)
        done = cdktf_in_world.run(world, "deploy")
        assert done.code == 0, done.errors
        (platform,) = (stack.text for stack in done.stacks if stack.name == "platform")
        for team in ("students", "research"):
            match = re.search(rf"helm_release\.evict-{team}_\S+: Destruction complete", platform)
            assert match is not None
            drained = match.end()
            going = [line for line in platform.splitlines() if ": Destroying..." in line and of_team(line, team)]
            assert len(going) == 9, "the bucket was empty: it went with `foundation`, and its two grants with it"
            assert all(platform.index(line) > drained for line in going)
            assert workloads(api, team) == []
        assert admitted(api, "serving") >= others

        ground.unchanged()
