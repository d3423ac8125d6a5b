"""Queues: quotas that add up to what exists for any fleet, whole slices, canonical quantities, valid objects."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from environment import Environment, PoolGroup, Team
from environment.fleet.quotas import share_out
from environment.kubernetes.queues import queue_objects
from environment.names import CPU_FLAVOR
from environment.node_capacity import CLUSTER_PODS_CPU, CLUSTER_PODS_GIB, allocatable_gib, node_capacity
from environment.tpu import slice_for
from tests.crd_schemas import errors_of, strict
from tests.examples import examples
from tests.loading import loaded
from vocabulary.quantity import NotAQuantity, count, gibibytes, parse

Object = dict[str, Any]

DEFAULT = loaded()


def _fleet(groups: list[tuple[str, int]], shares: list[int]) -> Environment:
    """Pool groups as (TPU type, slices), teams as shares."""
    return replace(
        DEFAULT,
        groups=tuple(
            PoolGroup(name=f"group-{i}", slice=slice_for(type_), slices=slices, zone="us-east5-b")
            for i, (type_, slices) in enumerate(groups)
        ),
        teams=tuple(
            Team(name=f"team-{i}", share=Fraction(share), pools=tuple(f"group-{n}" for n in range(len(groups))))
            for i, share in enumerate(shares)
        ),
    )


FLEETS = st.builds(
    _fleet,
    st.lists(
        st.tuples(
            st.sampled_from(["v6e-16", "v5p-128", "v4-32", "v5litepod-256", "v6e-4", "tpu7x-128"]), st.integers(1, 40)
        ),
        min_size=1,
        max_size=5,
    ),
    st.lists(st.integers(1, 50), min_size=1, max_size=15),
)


def _of_kind(objects: tuple[Object, ...], kind: str) -> list[Object]:
    return [item for item in objects if item["kind"] == kind]


def _quotas(environment: Environment) -> dict[tuple[str, str, str], str]:
    """(team, flavor, resource) -> nominal quota."""
    return {
        (queue["metadata"]["name"], flavor["name"], resource["name"]): resource["nominalQuota"]
        for queue in _of_kind(queue_objects(environment), "ClusterQueue")
        for group in queue["spec"]["resourceGroups"]
        for flavor in group["flavors"]
        for resource in flavor["resources"]
    }


def _total(environment: Environment, flavor: str, resource: str) -> Fraction:
    quotas = _quotas(environment)
    return sum((parse(number) for (_, *key), number in quotas.items() if key == [flavor, resource]), Fraction(0))


@given(fleet=FLEETS)
@settings(max_examples=examples(60))
def test_quotas_add_up_to_the_chips_that_exist(fleet: Environment) -> None:
    for group in fleet.groups:
        assert _total(fleet, group.name, "google.com/tpu") == group.chips


@given(fleet=FLEETS)
@settings(max_examples=examples(60))
def test_every_team_has_whole_slices_and_at_least_the_cores_and_memory_of_their_hosts(fleet: Environment) -> None:
    quotas = _quotas(fleet)
    for team in fleet.teams:
        cpu = memory = Fraction(0)
        for group in fleet.groups:
            machine = group.slice.machine_type
            node = node_capacity(vcpu=machine.vcpu, memory_gb=machine.memory_gb)
            slices = parse(quotas[team.name, group.name, "google.com/tpu"]) / group.slice.chips
            assert slices.denominator == 1
            cpu += slices * group.slice.hosts * node.cpu
            memory += slices * group.slice.hosts * node.memory_gib * 2**30
        assert parse(quotas[team.name, CPU_FLAVOR, "cpu"]) >= cpu
        assert parse(quotas[team.name, CPU_FLAVOR, "memory"]) >= memory


@given(fleet=FLEETS)
@settings(max_examples=examples(60))
def test_cores_and_memory_add_up_to_those_of_all_nodes_without_the_cluster_s_own_pods(fleet: Environment) -> None:
    node = node_capacity(vcpu=8, memory_gb=32)  # of the CPU pool, at most four
    cpu, memory = 4 * node.cpu - CLUSTER_PODS_CPU, 4 * node.memory_gib - CLUSTER_PODS_GIB
    for group in fleet.groups:
        machine = group.slice.machine_type
        host = node_capacity(vcpu=machine.vcpu, memory_gb=machine.memory_gb)
        cpu += group.slices * group.slice.hosts * host.cpu
        memory += group.slices * group.slice.hosts * host.memory_gib
    assert _total(fleet, CPU_FLAVOR, "cpu") == cpu
    assert _total(fleet, CPU_FLAVOR, "memory") == memory * 2**30


@given(
    total=st.integers(0, 200),
    shares=st.lists(st.integers(1, 30), min_size=1, max_size=12),
    owed=st.lists(st.fractions(-3, 3), min_size=12, max_size=12),
)
def test_each_share_is_rounded_down_or_up(total: int, shares: list[int], owed: list[Fraction]) -> None:
    claims = [Fraction(share, sum(shares)) for share in shares]
    got = share_out(total, claims, owed[: len(shares)])
    assert sum(got) == total
    for slices, claim in zip(got, claims, strict=True):
        assert int(total * claim) <= slices < total * claim + 1


def test_a_team_that_is_owed_a_whole_number_gets_exactly_that() -> None:
    claims = [Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)]
    assert share_out(2, claims, [Fraction(9), Fraction(0), Fraction(1)]) == [1, 0, 1]


def test_a_larger_share_gets_the_larger_part() -> None:
    quotas = _quotas(_fleet([("v6e-16", 4)], [3, 1]))
    assert quotas["team-0", "group-0", "google.com/tpu"] == "48"
    assert quotas["team-1", "group-0", "google.com/tpu"] == "16"


def test_who_came_short_in_one_group_comes_first_in_the_next() -> None:
    quotas = _quotas(_fleet([("v6e-16", 1)] * 4, [1, 1]))
    chips = Counter[str]()
    for (team, _, resource), number in quotas.items():
        if resource == "google.com/tpu":
            chips[team] += int(parse(number))
    assert chips == {"team-0": 32, "team-1": 32}


def test_twelve_teams_share_two_slices_and_ten_of_them_can_only_borrow() -> None:
    quotas = _quotas(_fleet([("v6e-16", 2)], [1] * 12))
    chips = sorted(number for (_, flavor, _), number in quotas.items() if flavor == "group-0")
    assert chips == ["0"] * 10 + ["16", "16"]


def test_chips_have_a_flavor_a_pool_group_and_cores_and_memory_one_of_their_own() -> None:
    for queue in _of_kind(queue_objects(_fleet([("v6e-16", 2), ("v5p-128", 1)], [1, 1])), "ClusterQueue"):
        chips, compute = queue["spec"]["resourceGroups"]
        assert [flavor["name"] for flavor in chips["flavors"]] == ["group-0", "group-1"]
        assert chips["coveredResources"] == ["google.com/tpu"]
        assert [flavor["name"] for flavor in compute["flavors"]] == ["cpu"]
        assert compute["coveredResources"] == ["cpu", "memory"]
        for group in (chips, compute):
            for flavor in group["flavors"]:
                assert [resource["name"] for resource in flavor["resources"]] == group["coveredResources"]


def test_tpu_flavors_select_by_accelerator_topology_and_group_and_tolerate_for_their_pods() -> None:
    flavor = _of_kind(queue_objects(DEFAULT), "ResourceFlavor")[1]
    assert flavor["spec"] == {
        "nodeLabels": {
            "cloud.google.com/gke-tpu-accelerator": "tpu-v6e-slice",
            "cloud.google.com/gke-tpu-topology": "4x4",
            "tpuenv/pool-group": "tpu",
        },
        "tolerations": [{"key": "google.com/tpu", "value": "present", "effect": "NoSchedule", "operator": "Equal"}],
    }


def test_the_flavor_of_cores_and_memory_sends_pods_nowhere() -> None:
    """A pod with chips gets it too: labels of other nodes would leave no node for it."""
    flavor = _of_kind(queue_objects(DEFAULT), "ResourceFlavor")[0]
    assert flavor["metadata"]["name"] == CPU_FLAVOR
    assert flavor["spec"] == {"nodeLabels": {}}


def test_every_team_has_one_queue_that_only_its_namespace_may_use() -> None:
    objects = queue_objects(_fleet([("v6e-16", 2)], [1, 1, 1]))
    for team, queue in zip(("team-0", "team-1", "team-2"), _of_kind(objects, "ClusterQueue"), strict=True):
        assert queue["metadata"]["name"] == team
        assert queue["spec"]["namespaceSelector"] == {"matchLabels": {"kubernetes.io/metadata.name": team}}
        assert queue["spec"]["stopPolicy"] == "None"
    assert [
        (queue["metadata"]["namespace"], queue["metadata"]["name"]) for queue in _of_kind(objects, "LocalQueue")
    ] == [
        ("team-0", "default"),
        ("team-1", "default"),
        ("team-2", "default"),
    ]


def test_teams_are_in_one_cohort_and_take_back_what_they_lent() -> None:
    queues = _of_kind(queue_objects(_fleet([("v6e-16", 2)], [1, 1])), "ClusterQueue")
    assert len({queue["spec"]["cohortName"] for queue in queues}) == 1
    for queue in queues:
        assert queue["spec"]["preemption"] == {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"}


def test_priorities_are_the_five_documented_ones() -> None:
    values = {
        priority_class["metadata"]["name"]: priority_class["value"]
        for priority_class in _of_kind(queue_objects(DEFAULT), "WorkloadPriorityClass")
    }
    assert values == {"verylow": 100, "low": 250, "medium": 500, "high": 750, "veryhigh": 1000}


def test_pods_may_name_the_priority_classes_that_xpk_writes_and_stop_nobody_on_the_nodes() -> None:
    classes = _of_kind(queue_objects(DEFAULT), "PriorityClass")
    values = {priority_class["metadata"]["name"]: priority_class["value"] for priority_class in classes}
    assert values == {"very-low": 100, "low": 250, "medium": 500, "high": 750, "very-high": 1000}
    assert {priority_class["preemptionPolicy"] for priority_class in classes} == {"Never"}


@given(fleet=FLEETS)
@settings(max_examples=examples(30))
def test_the_same_fleet_gives_the_same_objects_and_every_name_once(fleet: Environment) -> None:
    objects = queue_objects(fleet)
    assert json.dumps(objects) == json.dumps(queue_objects(fleet))
    names = [(item["kind"], item["metadata"].get("namespace"), item["metadata"]["name"]) for item in objects]
    assert len(set(names)) == len(names)


def test_a_cpu_pool_too_small_for_anything_gives_no_negative_quota() -> None:
    environment = loaded(CPU_MACHINE_TYPE="e2-standard-2", CPU_MAX_NODES="1")
    hosts = 2 * 4 * node_capacity(vcpu=180, memory_gb=720).cpu
    assert parse(_quotas(environment)["tpu-training", "cpu", "cpu"]) == hosts


def test_every_object_is_valid_down_to_the_last_key() -> None:
    for item in queue_objects(_fleet([("v6e-16", 3), ("v5litepod-256", 4), ("v5p-128", 1)], [2, 1, 1])):
        assert errors_of(item) == [], item["metadata"]["name"]


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("ClusterQueue", {"cohort": "fleet"}),
        ("ClusterQueue", {"admissionChecks": ["dws"]}),
        ("ClusterQueue", {"stopPolicy": "Stop"}),
        ("ClusterQueue", {"flavorFungibility": {"whenCanBorrow": "Borrow"}}),
        ("LocalQueue", {"queue": "x"}),
        ("ResourceFlavor", {"labels": {}}),
    ],
)
def test_a_key_or_value_of_another_api_version_is_an_error(kind: str, change: Object) -> None:
    item = _of_kind(queue_objects(DEFAULT), kind)[0]
    assert errors_of({**item, "spec": {**item["spec"], **change}}) != []


@pytest.mark.parametrize(
    "change", [{"metadata": {"name": "a", "team": "b"}}, {"value": "high"}, {"spec": {}}, {"metadata": None}]
)
def test_a_wrong_key_outside_the_spec_is_an_error(change: Object) -> None:
    assert errors_of({**_of_kind(queue_objects(DEFAULT), "WorkloadPriorityClass")[0], **change}) != []


def test_core_objects_are_held_against_the_core_schemas() -> None:
    config: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "b"}}
    assert errors_of(config) == []
    assert errors_of({**config, "date": {}}) != []
    assert errors_of({**config, "kind": "Configmap2"}) == ["kind: no Kubernetes 1.34 schema for v1 Configmap2"]


def test_a_closed_schema_keeps_what_says_that_it_is_open() -> None:
    open_ = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    assert strict(open_) == {"type": "object"}
    assert strict({"type": "object", "properties": {"a": open_}})["additionalProperties"] is False
    assert strict({"x-kubernetes-int-or-string": True}) == {"type": ["integer", "string"]}


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (16, "16"),
        (999, "999"),
        (1000, "1k"),
        (1024, "1024"),
        (2500, "2500"),
        (12_000, "12k"),
        (3_000_000, "3M"),
    ],
)
def test_counts_are_written_as_the_api_server_writes_them(number: int, text: str) -> None:
    assert count(number) == text


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0"), (64, "64Gi"), (1024, "1Ti"), (5344, "5344Gi"), (2**20, "1Pi"), (1536, "1536Gi")]
)
def test_memory_is_written_as_the_api_server_writes_it(number: int, text: str) -> None:
    assert gibibytes(number) == text


@given(number=st.integers(0, 10**9))
def test_what_is_written_reads_back_as_the_same_number(number: int) -> None:
    assert parse(count(number)) == number
    assert parse(gibibytes(number)) == number * 2**30


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("500m", Fraction(1, 2)),
        ("1.5Gi", 3 * 2**29),
        ("1e3", 1000),
        ("2E", 2 * 10**18),
        (".5", Fraction(1, 2)),
        (4, 4),
        (0.25, Fraction(1, 4)),
    ],
)
def test_quantities_are_read_as_kubernetes_reads_them(text: object, number: Fraction | int) -> None:
    assert parse(text) == number


@pytest.mark.parametrize("text", ["", "4 Gi", "4GB", "4gi", "1_000", "NaN", "٤", None, True, [], "1" * 50])
def test_what_is_no_quantity_is_refused(text: object) -> None:
    with pytest.raises(NotAQuantity):
        parse(text)


def test_google_s_example_node_has_what_google_says() -> None:
    """ "Plan GKE Standard node sizes": a node of 4 vCPU and 16 GB has 3920m and 13498416Ki for pods."""
    assert float(allocatable_gib(16, streaming=False)) * 2**20 == pytest.approx(13_498_416, rel=0.001)
    assert node_capacity(vcpu=4, memory_gb=16).cpu == 3  # 3920m without 500m for the node's agents


@pytest.mark.parametrize(("vcpu", "memory_gb", "cpu"), [(8, 32, 7), (180, 720, 178), (240, 407, 238), (24, 48, 23)])
def test_a_node_gives_less_than_it_has(vcpu: int, memory_gb: int, cpu: int) -> None:
    node = node_capacity(vcpu=vcpu, memory_gb=memory_gb)
    assert node.cpu == cpu
    assert 0.7 * memory_gb < node.memory_gib < 0.95 * memory_gb
