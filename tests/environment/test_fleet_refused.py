"""A mistake in a pool group or a team of fleet.yaml is reported at its line, with what to do."""

from __future__ import annotations

import pytest

from tests.fleets import one_group, one_team, refused_fleet

# The group's keys, which of them is to blame, and why
REFUSED_GROUPS = [
    ("slices: 1", "", "has no type; add it, such as type: v6e-16"),
    ("type: v6e-16", "", "has no slices; add it, such as slices: 1"),
    ("type: v6e-17, slices: 1", "type", "unknown TPU type 'v6e-17'; did you mean 'v6e-16'?"),
    ("type: 16, slices: 1", "type", "unknown TPU type '16'"),
    ("type: , slices: 1", "type", "is empty; write one value"),
    ("type: [v6e-16], slices: 1", "type", "is a list; write one value"),
    ("type: {v6e-16: 1}, slices: 1", "type", "holds keys of its own; write one value"),
    *(
        (f"type: v6e-16, slices: {slices}", "slices", f"'{slices}' is not a whole number from 1 to 10000")
        for slices in (
            "0",
            "-1",
            "1.0",
            "1e3",
            "yes",
            "10001",
            "99999999999999999999",
            "0x10",
            "1_0",
            ".inf",
            "٣",
            "two",
            "010",
            "0o10",
            "+1",
            "1:30",
            "2026-11-01",
        )
    ),
    ("type: v6e-16, slices: 1, capacity: spott", "capacity", "'spott' is not a capacity mode; did you mean 'spot'?"),
    ("type: v6e-16, slices: 1, capacity: 3", "capacity", "'3' is not a capacity mode; there are on-demand, spot, res"),
    ("type: v6e-16, slices: 1, capacity: Spot", "capacity", "'Spot' is not a capacity mode; did you mean 'spot'?"),
    ("type: v6e-16, slices: 1, zone: us-east5", "zone", "'us-east5' is a region"),
    ("type: v6e-16, slices: 1, zone: us-east1-b", "zone", "'us-east1-b' is not in REGION 'us-east5'"),
    ("type: v6e-16, slices: 1, capcity: spot", "capcity", "is not a key; did you mean 'capacity'?"),
    ("type: v6e-16, slices: 1, x: 1", "x", "is not a key; there are type, slices, capacity, zone, reservation"),
    ("type: v6e-16, slices: 1, slices: 2", "slices", "is there twice, on lines 2 and 2; keep one"),
    ("type: v4-32, slices: 1, capacity: flex-start", "capacity", "'flex-start' does not exist for ct4p-hightpu-4t"),
    ("type: v4-32, slices: 1, capacity: queued", "capacity", "'queued' does not exist for ct4p-hightpu-4t; use on-"),
    ("type: ct5l-hightpu-8t-2x4, slices: 1, capacity: queued", "capacity", "'queued' does not exist for ct5l-hightpu"),
    *(
        (
            f"type: v6e-16, slices: 1, capacity: {mode}, autoscaled: no",
            "autoscaled",
            f"'false' cannot be with capacity '{mode}'",
        )
        for mode in ("flex-start", "queued")
    ),
    ("type: v6e-16, slices: 1, autoscaled: 1", "autoscaled", "'1' is neither true nor false"),
    ("type: v6e-16, slices: 1, capacity: reservation", "capacity", "'reservation' does not say which; add reservation"),
    (
        "type: v6e-16, slices: 1, reservation: mine",
        "reservation",
        "is not used with capacity 'on-demand'; set capacity",
    ),
    ("type: v6e-16, slices: 1, reservation_block: b", "reservation_block", "needs reservation, of which it is a part"),
    (
        "type: v6e-16, slices: 1, capacity: reservation, reservation: mine, reservation_sub_block: b",
        "reservation_sub_block",
        "needs reservation_block, of which it is a part",
    ),
    (
        "type: v6e-16, slices: 1, capacity: reservation, reservation: mine/reservationBlocks/b",
        "reservation",
        "'mine/reservationBlocks/b' is not the name of a reservation; write NAME",
    ),
    (
        "type: v6e-16, slices: 1, capacity: reservation, reservation: mine, reservation_block: B",
        "reservation_block",
        "'B' is not the name of a block",
    ),
    *(
        (
            f"type: v6e-16, slices: 1, capacity: reservation, reservation: {name}",
            "reservation",
            f"'{name}' is not the name of a reservation; write NAME, or projects/PROJECT/reservations/NAME",
        )
        for name in (
            "Mine",
            "mine_1",
            "a" * 64,
            "projects/o/reservations/mine",
            "projects/123456/reservations/mine",
            "projects/other-project/zones/us-east5-b/reservations/mine",
            "https://www.googleapis.com/compute/v1/projects/p/reservations/mine",
        )
    ),
    ("type: v6e-16, slices: 1, max_run_hours: 24", "max_run_hours", "has no meaning with capacity 'on-demand'"),
    *(
        (
            f"type: v6e-16, slices: 1, capacity: queued, max_run_hours: {hours}",
            "max_run_hours",
            f"'{hours}' is not a whole number from 1 to 168",
        )
        for hours in ("0", "169", "0.5", "024")
    ),
]


@pytest.mark.parametrize(("keys", "key", "because"), REFUSED_GROUPS)
def test_a_mistake_in_a_group_is_reported_at_its_line(keys: str, key: str, because: str) -> None:
    (problem,) = refused_fleet(one_group(keys))
    place = f"fleet.yaml:2: tpu_pools.dev{'.' if key else ''}{key}: "
    assert problem.startswith(place + because), problem


REFUSED_TEAMS = [
    *(
        (f"share: {share}", "share", f"'{share}' is not a share; write a number from 0.001 to 999999 of at most three")
        for share in (
            "0",
            "0.0",
            "-1",
            "1e3",
            ".5",
            "1.2345",
            "yes",
            "1:30",
            ".nan",
            "many",
            "1234567",
            "٣",
            "010",
            "1/3",
            "30%",
        )
    ),
    ("share: ", "share", "is empty; write one value"),
    ("priority: hihg", "priority", "'hihg' is no priority; did you mean 'high'?"),
    ("priority: 750", "priority", "'750' is no priority; there are verylow, low, medium, high, veryhigh"),
    *(
        (f"{key}: {limit}", key, f"'{limit}' is neither true nor false nor a number of slices from 0 to 10000")
        for key in ("borrowing", "lending")
        for limit in ("maybe", "-1", "1.5", "10001", "02", "0x1")
    ),
    ("pools: [devv]", "pools", "'devv' is no pool group of tpu_pools; did you mean 'dev'?"),
    ("pools: [dev, dev]", "pools", "'dev' is there twice; keep one"),
    ("pools: [cpu]", "pools", "'cpu' is no pool group of tpu_pools; there are dev, big"),
    ("pools: dev", "pools", "is one value; write a list such as [a, b], or leave the key out"),
    ("pools: []", "pools", "is an empty list; write a list such as [a, b], or leave the key out"),
    ("pools: [[dev]]", "pools", "is a list; write one value"),
    ("members: []", "members", "is an empty list"),
    *(
        (f"members: ['{member}']", "members", f"'{member}' is not a member; write alice@example.com, or group:")
        for member in (
            "alice",
            "alice@",
            "@example.com",
            "alice@example",
            "user:alice@example.com",
            "a b@example.com",
            "",
            ".alice@example.com",
            "alice.@example.com",
            "al..ice@example.com",
            "alice@-example.com",
            "alice@example.c",
            "alice@127.0.0.1",
            "deleted:alice@example.com?uid=123456789",
            "alice@example.com?uid=123456789",
            "deleted:user:alice@example.com?uid=1",
            "serviceAccount:sa@my-project.iam.gserviceaccount.com",
            "domain:example.com",
            "allUsers",
            "group:",
            "Group:tpu@example.com",
            "alice@example.com, bob@example.com",
        )
    ),
    ("members: [Alice@example.com]", "members", "'Alice@example.com' has capital letters, and GKE compares addresses"),
    ("members: [a@p.iam.gserviceaccount.com]", "members", "'a@p.iam.gserviceaccount.com' is a service account"),
    ("members: [a@b.com, a@b.com]", "members", "'a@b.com' is there twice; keep one"),
    ("members: ['group:a@b.com']", "members", "'group:a@b.com' needs RBAC_SECURITY_GROUP, without which"),
    ("member: [a@b.com]", "member", "is not a key; did you mean 'members'?"),
    ("share: 1, share: 2", "share", "is there twice, on lines 5 and 5; keep one"),
]


@pytest.mark.parametrize(("keys", "key", "because"), REFUSED_TEAMS)
def test_a_mistake_in_a_team_is_reported_at_its_line(keys: str, key: str, because: str) -> None:
    (problem,) = refused_fleet(one_team(keys))
    assert problem.startswith(f"fleet.yaml:5: teams.research.{key}: {because}"), problem


@pytest.mark.parametrize("keys", ["share: lots", "priority: urgent", "pools: [none]", "borrowing: some", "shares: 2"])
def test_two_mistakes_in_one_team_are_both_reported(keys: str) -> None:
    problems = refused_fleet(one_team(f"{keys}, members: ['group:a@b.com']"))
    assert len(problems) == 2, problems
    assert any("'group:a@b.com' needs RBAC_SECURITY_GROUP" in problem for problem in problems)


@pytest.mark.parametrize("name", ["Dev", "1dev", "dev-", "-dev", "d_v", "d.v", "dév", "true story", "-"])
def test_a_name_that_no_node_pool_can_have_is_refused(name: str) -> None:
    (problem,) = refused_fleet(one_group("type: v6e-16, slices: 1").replace("dev", f'"{name}"'))
    assert f"'{name}' cannot name a pool group; use lower-case letters" in problem


@pytest.mark.parametrize("name", ["cpu", "system"])
def test_the_names_of_the_pools_without_tpus_are_taken(name: str) -> None:
    (problem,) = refused_fleet(one_group("type: v6e-16, slices: 1").replace("dev", name))
    assert problem.startswith(f"fleet.yaml:2: tpu_pools.{name}: is the name of a node pool without TPUs")


@pytest.mark.parametrize("name", ["kube-system", "default", "kueue-system", "gke-jobs", "Lab", "lab_1"])
def test_a_name_that_no_team_s_namespace_can_have_is_refused(name: str) -> None:
    (problem,) = refused_fleet(one_group("type: v6e-16, slices: 1").replace("research", name))
    assert problem.startswith(f"fleet.yaml:4: teams.{name}: '{name}' ")


def test_a_long_value_is_refused_and_shortened_in_the_message() -> None:
    (problem,) = refused_fleet(one_group(f"type: v6e-16, slices: {'1' * 600}"))
    assert problem.startswith("fleet.yaml:2: tpu_pools.dev.slices: '1111") and len(problem) < 250
    assert problem.endswith("is 600 characters long; no value is longer than 512")
