"""Queues of a fleet.yaml: quotas, limits, order, checks and weights, for the committed cases and for any fleet."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import environment
from admission import Verdict, explain
from admission.cluster import read_cluster
from environment import CapacityMode, Environment, PoolGroup, Team
from environment.fleet.model import Fleet
from environment.fleet.quotas import quota_problems, quota_warnings, slices_of_teams
from environment.kubernetes.nodes import node_objects
from environment.kubernetes.queues import queue_objects
from environment.tpu import slice_for
from tests.crd_schemas import errors_of
from tests.examples import examples
from tests.fleets import one_group, one_team, with_fleet
from tests.loading import loaded
from vocabulary.quantity import decimal, parse

Object = dict[str, Any]

CASES = Path(__file__).parent.parent / "cases"
FLEET_CASES = sorted(path.name.removesuffix(".fleet.yaml") for path in CASES.glob("*.fleet.yaml"))
DEFAULT = loaded()
TPU = "google.com/tpu"


def case(name: str) -> Environment:
    return environment.load(CASES / f"{name}.env", {}, CASES / f"{name}.fleet.yaml")


def of_kind(environment_: Environment, kind: str) -> dict[str, Object]:
    return {item["metadata"]["name"]: item for item in queue_objects(environment_) if item["kind"] == kind}


def resources(environment_: Environment) -> dict[tuple[str, str, str], Object]:
    """(team, flavor, resource) -> the quota and limits of it."""
    return {
        (team, flavor["name"], resource["name"]): resource
        for team, queue in of_kind(environment_, "ClusterQueue").items()
        for group in queue["spec"]["resourceGroups"]
        for flavor in group["flavors"]
        for resource in flavor["resources"]
    }


def chips(environment_: Environment, key: str = "nominalQuota") -> dict[tuple[str, str], int]:
    """(team, pool group) -> chips, where the queue says so."""
    return {
        (team, flavor): int(parse(quota[key]))
        for (team, flavor, resource), quota in resources(environment_).items()
        if resource == TPU and flavor != "cpu" and key in quota
    }


LIMITS = st.none() | st.integers(0, 5)


@st.composite
def fleets(draw: st.DrawFn) -> Environment:
    """Any fleet that fleet.yaml can describe, up to its size: every group has a team that may use it."""
    types = st.sampled_from(["v6e-16", "v5p-128", "v5litepod-256", "v6e-4", "tpu7x-128", "ct5lp-hightpu-8t-2x4"])
    groups = tuple(
        PoolGroup(
            name=f"group-{i}",
            slice=slice_for(draw(types)),
            slices=draw(st.integers(1, 40)),
            zone="us-east5-b",
            capacity=draw(st.sampled_from(CapacityMode)),
            max_run_seconds=draw(st.none() | st.just(3600)),
        )
        for i in range(draw(st.integers(1, 6)))
    )
    names = [group.name for group in groups]
    shares = draw(st.lists(st.integers(1, 50_000), min_size=1, max_size=12))
    teams = []
    for i, share in enumerate(shares):
        pools = names if i == 0 else draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
        teams.append(
            Team(
                name=f"team-{i}",
                share=Fraction(share, 1000),
                pools=tuple(name for name in names if name in pools),
                borrowing_limit=draw(LIMITS),
                lending_limit=draw(LIMITS),
            )
        )
    return replace(DEFAULT, groups=groups, teams=tuple(teams), fair_sharing=draw(st.booleans()))


@given(fleet=fleets())
@settings(max_examples=examples(25))
def test_quotas_of_the_teams_that_may_use_a_group_add_up_to_its_chips(fleet: Environment) -> None:
    quotas = chips(fleet)
    for group in fleet.groups:
        assert sum(number for (_, flavor), number in quotas.items() if flavor == group.name) == group.chips
    assert set(quotas) == {(team.name, pool) for team in fleet.teams for pool in team.pools}


@given(fleet=fleets())
@settings(max_examples=examples(25))
def test_quotas_and_limits_of_chips_are_whole_slices(fleet: Environment) -> None:
    groups = {group.name: group for group in fleet.groups}
    for (_, flavor, _), quota in resources(fleet).items():
        for kind in set(quota) - {"name"} if flavor in groups else ():
            assert int(parse(quota[kind])) % groups[flavor].slice.chips == 0


@given(fleet=fleets())
@settings(max_examples=examples(25))
def test_a_team_with_slices_has_quota_for_all_cores_and_memory_of_their_hosts(fleet: Environment) -> None:
    """Of all pool groups at once, borrowed slices and their limits included, with nobody else there."""
    cluster = read_cluster(queue_objects(fleet))
    for team in fleet.teams:
        for resource in ("cpu", "memory"):
            of_hosts = Fraction(0)
            for group in (group for group in fleet.groups if group.name in team.pools):
                node = cluster.flavors[group.name].node[resource]
                slices = cluster.potential(team.name, (group.name, TPU)) / group.slice.chips
                of_hosts += slices * group.slice.hosts * node
            assert cluster.potential(team.name, ("cpu", resource)) >= of_hosts


@given(fleet=fleets())
@settings(max_examples=examples(25))
def test_who_lends_no_slice_keeps_the_cores_and_memory_of_its_own(fleet: Environment) -> None:
    cluster = read_cluster(queue_objects(fleet))
    for team in fleet.teams:
        for resource in ("cpu", "memory"):
            kept = Fraction(0)
            for group in fleet.groups:
                chips = cluster.quota(team.name, (group.name, TPU)).local
                kept += chips / group.slice.chips * group.slice.hosts * cluster.flavors[group.name].node[resource]
            assert cluster.quota(team.name, ("cpu", resource)).local == kept


@given(fleet=fleets())
@settings(max_examples=examples(25))
def test_limits_are_the_team_s_and_none_lends_more_than_it_has(fleet: Environment) -> None:
    quotas, borrowing, lending = chips(fleet), chips(fleet, "borrowingLimit"), chips(fleet, "lendingLimit")
    groups = {group.name: group for group in fleet.groups}
    for team in fleet.teams:
        for pool in team.pools:
            size = groups[pool].slice.chips
            assert borrowing.get((team.name, pool)) == (
                None if team.borrowing_limit is None else team.borrowing_limit * size
            )
            assert lending.get((team.name, pool)) == (
                None if team.lending_limit is None else min(team.lending_limit * size, quotas[team.name, pool])
            )


@given(fleet=fleets())
@settings(max_examples=examples(25))
def test_each_share_of_a_group_is_rounded_down_or_up(fleet: Environment) -> None:
    shared = slices_of_teams(fleet.groups, fleet.teams)
    for group in fleet.groups:
        users = [team for team in fleet.teams if group.name in team.pools]
        for team in users:
            part = group.slices * team.share / sum(user.share for user in users)
            assert int(part) <= shared[group.name][team.name] < part + 1


@given(fleet=fleets())
@settings(max_examples=examples(25))
def test_what_is_refused_or_warned_of_is_what_the_queues_say(fleet: Environment) -> None:
    described = Fleet(groups=fleet.groups, teams=fleet.teams)
    quotas, borrowing = chips(fleet), chips(fleet, "borrowingLimit")
    lending = {**quotas, **chips(fleet, "lendingLimit")}

    def reach(team: str, pool: str) -> int:
        lent = sum(number for (other, flavor), number in lending.items() if flavor == pool and other != team)
        return quotas[team, pool] + min(lent, borrowing.get((team, pool), lent))

    hopeless = {team.name for team in fleet.teams if not any(reach(team.name, pool) for pool in team.pools)}
    assert {problem.keys[0] for problem in quota_problems(described)} == {f"teams.{name}" for name in hopeless}
    poor = [team.name for team in fleet.teams if not any(quotas[team.name, pool] for pool in team.pools)]
    assert [", ".join(poor[:3]) in warning.message for warning in quota_warnings(described)] == ([True] if poor else [])


@given(fleet=fleets())
@settings(max_examples=examples(10))
def test_objects_of_any_fleet_are_valid_to_the_last_key(fleet: Environment) -> None:
    assert [(item["metadata"]["name"], errors) for item in queue_objects(fleet) if (errors := errors_of(item))] == []


@pytest.mark.parametrize("name", FLEET_CASES)
def test_objects_of_a_case_are_valid_to_the_last_key(name: str) -> None:
    assert [
        (item["metadata"]["name"], errors) for item in queue_objects(case(name)) if (errors := errors_of(item))
    ] == []


def test_what_is_written_out_makes_the_same_queues() -> None:
    assert queue_objects(case("implicit-written-out")) == queue_objects(DEFAULT)


def test_every_object_comes_after_those_that_it_names() -> None:
    kinds = [item["kind"] for item in queue_objects(case("one-team"))]
    assert list(dict.fromkeys(kinds)) == [
        "ResourceFlavor",
        "ProvisioningRequestConfig",
        "AdmissionCheck",
        "WorkloadPriorityClass",
        "PriorityClass",
        "ClusterQueue",
        "LocalQueue",
        "ResourceQuota",
    ]


def test_shares_of_the_case_of_three_teams() -> None:
    # By 3 : 1.5 : 1 among those that may use it; dev 4 slices of 16 chips, serve 2 of 8, burst 4 of 16.
    assert chips(case("three-teams-four-groups")) == {
        ("research", "pretrain"): 2 * 128,
        ("research", "dev"): 2 * 16,
        ("research", "serve"): 1 * 8,
        ("research", "burst"): 3 * 16,
        ("serving", "dev"): 1 * 16,
        ("serving", "serve"): 1 * 8,
        ("students", "dev"): 1 * 16,
        ("students", "burst"): 1 * 16,
    }


def test_a_team_s_queue_has_the_groups_that_it_may_use_and_no_other() -> None:
    flavors = {flavor for team, flavor, _ in resources(case("three-teams-four-groups")) if team == "serving"}
    assert flavors == {"cpu", "serve", "dev"}


def test_flavors_are_tried_from_what_is_paid_for_to_what_may_be_taken_back() -> None:
    modes = ["spot", "flex-start", "queued", "on-demand", "reservation, reservation: mine"]
    groups = "".join(f"  {mode[:4]}: {{type: v6e-16, slices: 1, capacity: {mode}}}\n" for mode in modes)
    queue = of_kind(
        with_fleet(f"tpu_pools:\n{groups}  also: {{type: v6e-16, slices: 1}}\nteams: {{a: }}"), "ClusterQueue"
    )["a"]
    chips, _ = queue["spec"]["resourceGroups"]
    assert [flavor["name"] for flavor in chips["flavors"]] == ["rese", "on-d", "also", "queu", "flex", "spot"]


def test_a_team_without_limits_says_none() -> None:
    fleet = with_fleet(one_team("share: 1"))
    assert chips(fleet, "borrowingLimit") == chips(fleet, "lendingLimit") == {}


def test_limits_count_slices_of_each_group_and_leave_the_cpu_pool_to_all() -> None:
    fleet = with_fleet(one_team("borrowing: 1, lending: 3"))
    assert chips(fleet, "borrowingLimit") == {("research", "dev"): 16, ("research", "big"): 64}
    assert chips(fleet, "lendingLimit") == {("research", "dev"): 32, ("research", "big"): 128}, (
        "of two slices, not of three"
    )
    # The CPU pool has 26 cores, half of them each team's; a host has 178, a slice of dev 4 hosts and one of big 16.
    assert resources(fleet)["research", "cpu", "cpu"] == {
        "name": "cpu",
        "nominalQuota": str(13 + 2 * 4 * 178 + 2 * 16 * 178),
        "borrowingLimit": str(13 + 4 * 178 + 16 * 178),
        "lendingLimit": str(13 + 2 * 4 * 178 + 2 * 16 * 178),
    }


def test_a_queued_group_has_a_check_for_its_flavor_alone() -> None:
    fleet = case("one-team")
    assert of_kind(fleet, "ClusterQueue")["research"]["spec"]["admissionChecksStrategy"] == {
        "admissionChecks": [{"name": "provision-burst", "onFlavors": ["burst"]}]
    }
    assert of_kind(fleet, "AdmissionCheck")["provision-burst"]["spec"] == {
        "controllerName": "kueue.x-k8s.io/provisioning-request",
        "parameters": {"apiGroup": "kueue.x-k8s.io", "kind": "ProvisioningRequestConfig", "name": "provision-burst"},
    }
    assert of_kind(fleet, "ProvisioningRequestConfig")["provision-burst"]["spec"] == {
        "provisioningClassName": "queued-provisioning.gke.io",
        "managedResources": ["google.com/tpu"],
        "parameters": {"tpu-topology": "8x8", "maxRunDurationSeconds": "604800"},
        "podSetUpdates": {
            "nodeSelector": [
                {
                    "key": "autoscaling.gke.io/provisioning-request",
                    "valueFromProvisioningClassDetail": "ResizeRequestName",
                }
            ]
        },
        "retryStrategy": {"backoffLimitCount": 340, "backoffBaseSeconds": 60, "backoffMaxSeconds": 1800},
    }


def test_a_job_of_a_queued_group_is_asked_for_again_for_a_week() -> None:
    """Each wait is twice the one before, up to the longest: Kueue 0.19.2, pkg/util/wait/backoff.go."""
    strategy = of_kind(case("one-team"), "ProvisioningRequestConfig")["provision-burst"]["spec"]["retryStrategy"]
    waits, longest = [], strategy["backoffMaxSeconds"]
    for number in range(strategy["backoffLimitCount"]):
        waits.append(min(strategy["backoffBaseSeconds"] * 2**number, longest))
    week = timedelta(days=7).total_seconds()
    assert week <= sum(waits) < week + longest


def test_a_queued_group_asks_for_the_hours_that_it_may_have() -> None:
    fleet = with_fleet(one_group("type: v6e-16, slices: 1, capacity: queued, max_run_hours: 12"))
    spec = of_kind(fleet, "ProvisioningRequestConfig")["provision-dev"]["spec"]
    assert spec["parameters"]["maxRunDurationSeconds"] == "43200"


def test_only_teams_that_may_use_a_queued_group_have_its_check() -> None:
    text = one_team("pools: [dev]").replace("slices: 4}\nteams", "slices: 4, capacity: queued}\nteams")
    queues = of_kind(with_fleet(text), "ClusterQueue")
    assert "admissionChecksStrategy" not in queues["research"]["spec"]
    assert "admissionChecksStrategy" in queues["others"]["spec"]


@pytest.mark.parametrize("mode", ["on-demand", "spot", "flex-start"])
def test_without_queued_groups_there_are_no_checks(mode: str) -> None:
    fleet = with_fleet(one_group(f"type: v6e-16, slices: 1, capacity: {mode}"))
    assert of_kind(fleet, "AdmissionCheck") == of_kind(fleet, "ProvisioningRequestConfig") == {}
    assert "admissionChecksStrategy" not in of_kind(fleet, "ClusterQueue")["research"]["spec"]
    tolerated = [toleration["key"] for toleration in of_kind(fleet, "ResourceFlavor")["dev"]["spec"]["tolerations"]]
    assert tolerated == ["google.com/tpu"]


def test_jobs_of_a_queued_flavor_tolerate_the_taint_of_its_nodes() -> None:
    assert of_kind(case("one-team"), "ResourceFlavor")["burst"]["spec"]["tolerations"] == [
        {"key": "google.com/tpu", "value": "present", "effect": "NoSchedule", "operator": "Equal"},
        {"key": "cloud.google.com/gke-queued", "value": "true", "effect": "NoSchedule", "operator": "Equal"},
    ]


def test_teams_are_weighed_by_their_shares_only_where_sharing_is_fair() -> None:
    weights = {
        name: queue["spec"]["fairSharing"]
        for name, queue in of_kind(case("three-teams-four-groups"), "ClusterQueue").items()
    }
    assert weights == {"research": {"weight": "3"}, "serving": {"weight": "1500m"}, "students": {"weight": "1"}}
    assert all("fairSharing" not in queue["spec"] for queue in of_kind(case("one-team"), "ClusterQueue").values())


@given(st.integers(1, 10**9))
def test_weights_are_written_as_the_api_server_writes_them(thousandths: int) -> None:
    text = decimal(Fraction(thousandths, 1000))
    assert parse(text) == Fraction(thousandths, 1000)
    assert text.endswith("m") == bool(thousandths % 1000)


def test_no_work_of_a_team_fits_the_system_pool() -> None:
    """Its label is on no flavor, so Kueue ignores it and admits the job; the taint keeps the pods away."""
    fleet = case("one-team")
    pod: Object = {
        "restartPolicy": "Never",
        "nodeSelector": {"tpuenv/pool-group": "system"},
        "containers": [{"name": "a", "image": "a", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}],
    }
    job: Object = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "beside-kueue", "labels": {"kueue.x-k8s.io/queue-name": "default"}},
        "spec": {"template": {"spec": pod}},
    }
    objects = [*queue_objects(fleet), *node_objects(fleet)]
    (reason,) = explain(objects, job, namespace=fleet.teams[0].name).reasons
    assert (reason.verdict, reason.code) == (Verdict.NEVER, "no-such-node")
    assert reason.fix.startswith("use cpu")


@pytest.mark.parametrize("name", [name for name in FLEET_CASES if not case(name).settings.autopilot])
def test_cpu_work_never_takes_a_tpu_node(name: str) -> None:
    """What no node of the CPU pool can hold never starts, and what is beyond the pool waits, on hosts of any size."""
    fleet = case(name)
    container = {"name": "a", "image": "a", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    job: Object = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "cpu-work", "labels": {"kueue.x-k8s.io/queue-name": "default"}},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
    }
    for team in fleet.teams:
        fits = explain(queue_objects(fleet), job, namespace=team.name)
        assert (fits.verdict, [plan.flavors["cpu"] for plan in fits.pod_sets]) == (Verdict.ADMITTED, ["cpu"])
        container["resources"] = {"requests": {"cpu": "100", "memory": "1Gi"}}
        assert explain(queue_objects(fleet), job, namespace=team.name).verdict == Verdict.NEVER
        container["resources"] = {"requests": {"cpu": "1", "memory": "1Gi"}}
        job["spec"] |= {"parallelism": 1000, "completions": 1000}
        beyond = explain(queue_objects(fleet), job, namespace=team.name)
        if beyond.verdict == Verdict.ADMITTED:
            assert "the CPU pool has" in " ".join(beyond.notes)
        del job["spec"]["parallelism"], job["spec"]["completions"]
