"""fleet.yaml: what it can say, and that everything wrong in it is told at its line, all at once."""

from __future__ import annotations

import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path

import pytest

import environment
import environment.fleet_file
from environment import CapacityMode, Environment, Member, MemberKind, Refused
from environment.fleet import PRIORITIES
from tests.fleets import one_group, one_team, refused_fleet, with_fleet
from tests.loading import loaded, refused_text

ROOT = Path(__file__).parent.parent
CASES = ROOT / "tests" / "cases"
SECURITY = "gke-security-groups@example.com"


def case(name: str) -> Environment:
    return environment.load(CASES / f"{name}.env", {}, CASES / f"{name}.fleet.yaml")


def test_without_the_file_there_is_one_group_and_one_team(tmp_path: Path) -> None:
    path = ROOT / "tests" / "cases" / "default.env"
    assert environment.load(path, {}, tmp_path / "fleet.yaml") == environment.load(path, {})


def test_what_is_there_without_the_file_can_be_written_out() -> None:
    assert case("implicit-written-out") == environment.load(CASES / "default.env", {})


def test_the_same_holds_for_any_other_type_number_and_namespace() -> None:
    written = with_fleet("tpu_pools: {tpu: {type: v5p-128, slices: 3}}\nteams: {lab: }", ZONE="us-east5-a")
    assert written == loaded(TPU_TYPE="v5p-128", NUM_TPU_POOLS="3", NAMESPACE="lab", ZONE="us-east5-a")


def test_a_group_says_type_slices_zone_and_capacity() -> None:
    groups = {group.name: group for group in case("three-teams-four-groups").groups}
    assert list(groups) == ["pretrain", "dev", "serve", "burst"]
    assert [(group.slice.tpu_type, group.slices, group.zone) for group in groups.values()] == [
        ("v5p-256", 2, "us-east5-a"),
        ("v6e-16", 4, "us-east5-b"),
        ("v6e-8", 2, "us-east5-a"),
        ("v5litepod-16", 4, "us-east5-a"),
    ]
    assert [group.capacity.value for group in groups.values()] == ["reservation", "spot", "on-demand", "flex-start"]
    assert groups["pretrain"].node_pools == ("pretrain-0", "pretrain-1")


def test_a_team_says_share_priority_limits_members_and_pools() -> None:
    environment_ = case("three-teams-four-groups")
    research, serving, students = environment_.teams
    assert (research.share, serving.share, students.share) == (3, Fraction(3, 2), 1)
    assert (research.priority, serving.priority, students.priority) == (None, "high", "low")
    assert (research.borrowing_limit, research.lending_limit) == (1, None)
    assert (serving.borrowing_limit, serving.lending_limit) == (None, 0)
    assert research.pools == ("pretrain", "dev", "serve", "burst") and serving.pools == ("dev", "serve")
    assert research.members == (
        Member(kind=MemberKind.USER, email="alice@example.com"),
        Member(kind=MemberKind.GROUP, email="tpu-research@example.com"),
    )
    assert environment_.fair_sharing and not case("one-team").fair_sharing


def test_pools_of_a_team_are_in_the_fleet_s_order() -> None:
    research, _ = with_fleet(one_team("pools: [big, dev]")).teams
    assert research.pools == ("dev", "big")


def test_a_group_need_not_say_more_than_type_and_slices() -> None:
    (group,) = with_fleet(one_group("type: v6e-16, slices: 1")).groups
    assert (group.zone, group.capacity, group.reservation) == ("us-east5-b", CapacityMode.ON_DEMAND, "")
    assert (group.autoscaled, group.max_run_seconds) == (False, None)


@pytest.mark.parametrize(
    ("keys", "affinity"),
    [
        ("reservation: mine", "mine"),
        ("reservation: mine, reservation_block: b-1", "mine/reservationBlocks/b-1"),
        (
            "reservation: mine, reservation_block: b-1, reservation_sub_block: s-1",
            "mine/reservationBlocks/b-1/reservationSubBlocks/s-1",
        ),
        ("reservation: projects/other-project/reservations/mine", "projects/other-project/reservations/mine"),
    ],
)
def test_a_reservation_is_named_as_gke_wants_it(keys: str, affinity: str) -> None:
    (group,) = with_fleet(one_group(f"type: v6e-16, slices: 1, capacity: reservation, {keys}")).groups
    assert group.reservation == affinity


@pytest.mark.parametrize("mode", ["on-demand", "spot", "reservation"])
@pytest.mark.parametrize(
    ("said", "autoscaled"), [("", False), (", autoscaled: false", False), (", autoscaled: yes", True)]
)
def test_hosts_stay_unless_autoscaled(mode: str, said: str, autoscaled: bool) -> None:
    name = ", reservation: mine" if mode == "reservation" else ""
    (group,) = with_fleet(one_group(f"type: v6e-16, slices: 1, capacity: {mode}{name}{said}")).groups
    assert group.autoscaled is autoscaled


@pytest.mark.parametrize("mode", ["flex-start", "queued"])
def test_hosts_of_dynamic_workload_scheduler_come_and_go(mode: str) -> None:
    text = f"type: v6e-16, slices: 1, capacity: {mode}"
    assert [group.autoscaled for group in with_fleet(one_group(text)).groups] == [True]
    assert [group.autoscaled for group in with_fleet(one_group(f"{text}, autoscaled: true")).groups] == [True]
    (group,) = with_fleet(one_group(f"{text}, max_run_hours: 168")).groups
    assert group.max_run_seconds == 7 * 24 * 3600


@pytest.mark.parametrize("type_", ["v5litepod-16", "v5p-128", "v6e-16", "tpu7x-128", "ct5lp-hightpu-8t-2x4"])
def test_dynamic_workload_scheduler_has_every_newer_type(type_: str) -> None:
    assert with_fleet(one_group(f"type: {type_}, slices: 1, capacity: queued"))


@pytest.mark.parametrize("word", ["true", "True", "yes", "on"])
def test_what_yaml_takes_for_true_is_true(word: str) -> None:
    assert with_fleet(one_group("type: v6e-16, slices: 1") + f"fair_sharing: {word}\n").fair_sharing


@pytest.mark.parametrize("word", ["false", "False", "no", "off"])
def test_what_yaml_takes_for_false_is_false(word: str) -> None:
    assert not with_fleet(one_group("type: v6e-16, slices: 1") + f"fair_sharing: {word}\n").fair_sharing


@pytest.mark.parametrize("word", ["1", "y", "[true]", ""])
def test_what_is_neither_true_nor_false_is_refused(word: str) -> None:
    (problem,) = refused_fleet(one_group("type: v6e-16, slices: 1") + f"fair_sharing: {word}\n")
    assert problem.startswith("fleet.yaml:5: fair_sharing: ")


@pytest.mark.parametrize(
    ("text", "limit"), [("true", None), ("yes", None), ("false", 0), ("off", 0), ("0", 0), ("1", 1), ("10000", 10_000)]
)
def test_borrowing_and_lending_are_all_nothing_or_a_number_of_slices(text: str, limit: int | None) -> None:
    research, _ = with_fleet(one_team(f"borrowing: {text}, lending: {text}")).teams
    assert (research.borrowing_limit, research.lending_limit) == (limit, limit)


@pytest.mark.parametrize(("text", "share"), [("1", Fraction(1)), ("1.5", Fraction(3, 2)), ("0.001", Fraction(1, 1000))])
def test_shares_may_have_decimals(text: str, share: Fraction) -> None:
    environment_ = with_fleet(one_team(f"share: {text}"))
    assert environment_.teams[0].share == share


@pytest.mark.parametrize("priority", list(PRIORITIES))
def test_every_priority_can_be_a_team_s(priority: str) -> None:
    assert with_fleet(one_team(f"priority: {priority}")).teams[0].priority == priority


def test_yaml_may_be_written_in_any_of_its_ways() -> None:
    plain = with_fleet("tpu_pools: {dev: {type: v6e-16, slices: 2}}\nteams: {a: {share: 2}, b: {share: 2}}")
    other = with_fleet(
        '\ufeff%YAML 1.1\n--- # a comment\n"tpu_pools":\r\n  ? dev\r\n  : &x !!map\r\n    type: "v6e-16"\r\n'
        "    slices: !!int '2'\r\nteams:\r\n  a: &t {share: 2}\r\n  b: *t\r\n...\n"
    )
    assert other == plain


# --- What is refused: (the group's keys, where, and why)

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
    ("type: v6e-16, slices: 1, max_run_hours: 24", "max_run_hours", "has no meaning with capacity 'on-demand'"),
    *(
        (
            f"type: v6e-16, slices: 1, capacity: queued, max_run_hours: {hours}",
            "max_run_hours",
            f"'{hours}' is not a whole number from 1 to 168",
        )
        for hours in ("0", "169", "0.5")
    ),
]


@pytest.mark.parametrize(("keys", "key", "because"), REFUSED_GROUPS)
def test_what_is_wrong_with_a_group_is_told_at_its_line(keys: str, key: str, because: str) -> None:
    (problem,) = refused_fleet(one_group(keys))
    place = f"fleet.yaml:2: tpu_pools.dev{'.' if key else ''}{key}: "
    assert problem.startswith(place + because), problem


REFUSED_TEAMS = [
    *(
        (f"share: {share}", "share", f"'{share}' is not a share; write a positive number of at most three decimals")
        for share in ("0", "0.0", "-1", "1e3", ".5", "1.2345", "yes", "1:30", ".nan", "many", "1234567", "٣")
    ),
    ("share: ", "share", "is empty; write one value"),
    ("priority: hihg", "priority", "'hihg' is no priority; did you mean 'high'?"),
    ("priority: 750", "priority", "'750' is no priority; there are verylow, low, medium, high, veryhigh"),
    *(
        (f"{key}: {limit}", key, f"'{limit}' is neither true nor false nor a number of slices from 0 to 10000")
        for key in ("borrowing", "lending")
        for limit in ("maybe", "-1", "1.5", "10001")
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
        )
    ),
    ("members: [Alice@example.com]", "members", "'Alice@example.com' has capital letters, which GKE tells from small"),
    ("members: [a@p.iam.gserviceaccount.com]", "members", "'a@p.iam.gserviceaccount.com' is a service account"),
    ("members: [a@b.com, a@b.com]", "members", "'a@b.com' is there twice; keep one"),
    ("members: ['group:a@b.com']", "members", "'group:a@b.com' needs RBAC_SECURITY_GROUP, without which"),
    ("member: [a@b.com]", "member", "is not a key; did you mean 'members'?"),
    ("share: 1, share: 2", "share", "is there twice, on lines 5 and 5; keep one"),
]


@pytest.mark.parametrize(("keys", "key", "because"), REFUSED_TEAMS)
def test_what_is_wrong_with_a_team_is_told_at_its_line(keys: str, key: str, because: str) -> None:
    (problem,) = refused_fleet(one_team(keys))
    assert problem.startswith(f"fleet.yaml:5: teams.research.{key}: {because}"), problem


@pytest.mark.parametrize("name", ["Dev", "1dev", "dev-", "-dev", "d_v", "d.v", "dév", "true story", "-"])
def test_a_name_that_no_node_pool_can_have_is_refused(name: str) -> None:
    (problem,) = refused_fleet(one_group("type: v6e-16, slices: 1").replace("dev", f'"{name}"'))
    assert f"'{name}' cannot name a pool group; use lower-case letters" in problem


def test_the_name_of_the_cpu_pool_is_taken() -> None:
    (problem,) = refused_fleet(one_group("type: v6e-16, slices: 1").replace("dev", "cpu"))
    assert problem.startswith("fleet.yaml:2: tpu_pools.cpu: is the name of the CPU nodes' pool")


@pytest.mark.parametrize("name", ["kube-system", "default", "kueue-system", "gke-jobs", "Lab", "lab_1"])
def test_a_name_that_no_team_s_namespace_can_have_is_refused(name: str) -> None:
    (problem,) = refused_fleet(one_group("type: v6e-16, slices: 1").replace("research", name))
    assert problem.startswith(f"fleet.yaml:4: teams.{name}: '{name}' ")


def test_a_long_value_is_refused_and_shortened_in_the_message() -> None:
    (problem,) = refused_fleet(one_group(f"type: v6e-16, slices: {'1' * 600}"))
    assert problem.startswith("fleet.yaml:2: tpu_pools.dev.slices: '1111") and len(problem) < 250
    assert problem.endswith("is 600 characters long; no value is longer than 512")


def test_names_that_yaml_takes_for_other_things_are_names() -> None:
    environment_ = with_fleet("tpu_pools: {no: {type: v6e-16, slices: 1}}\nteams: {null: {pools: [no]}, 1e3: }")
    assert [group.name for group in environment_.groups] == ["no"]
    assert [team.name for team in environment_.teams] == ["null", "1e3"]


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("", ["fleet.yaml:1: is empty; it should hold tpu_pools and teams"]),
        ("# nothing\n", ["fleet.yaml:1: is empty; it should hold tpu_pools and teams"]),
        ("- a\n", ["fleet.yaml:1: is a list; it should hold tpu_pools and teams"]),
        ("a\n", ["fleet.yaml:1: is one value; it should hold tpu_pools and teams"]),
        (
            "tpu_poolz: {}\nteams: {}\n",
            [
                "fleet.yaml:1: tpu_poolz: is not a key; did you mean 'tpu_pools'?",
                "fleet.yaml:1: has no tpu_pools; it should hold tpu_pools and teams",
                "fleet.yaml:2: teams: is empty; it needs one at least",
            ],
        ),
        (
            "tpu_pools:\n  - dev: {type: v6e-16, slices: 1}\nteams: {a: [share]}",
            [
                "fleet.yaml:1: tpu_pools: is a list; it should hold names, each with its keys",
                "fleet.yaml:3: teams.a: is a list; it should hold share, priority, members and more, or nothing",
            ],
        ),
        (
            "tpu_pools:\n  dev:\nteams:\n  a:\n",
            ["fleet.yaml:2: tpu_pools.dev: is empty; it should hold type, slices and more"],
        ),
        ("a: [\n", ["fleet.yaml:2: is not YAML: while parsing a flow node, expected the node content, but found"]),
        ("a: b: c\n", ["fleet.yaml:1: is not YAML: mapping values are not allowed here"]),
        ("a:\n\tb: c\n", ["fleet.yaml:2: is not YAML: while scanning for the next token, found character"]),
        ("a: *b\n", ["fleet.yaml:1: is not YAML: found undefined alias 'b'"]),
        ("a: 1\n---\nb: 2\n", ["fleet.yaml:3: begins a second document; a file holds one"]),
        ("a: 1\nb: \0\n", ["fleet.yaml:2: has a character that YAML does not allow (0x0000); remove it"]),
        ('"\\UFFFFFFFF": 1', ["fleet.yaml:1: is not YAML: it has an escaped character that does not exist"]),
        ("[" * 5_000, ["fleet.yaml:1: is nested too deeply"]),
        ("- " * 5_000, ["fleet.yaml:1: is nested too deeply"]),
        ("#" * 200_000, ["fleet.yaml: is larger than 128 KiB; it should hold tpu_pools and teams"]),
        (
            "teams: {? [a] : 1}\ntpu_pools: {x: {type: v6e-16, slices: 1}}",
            ["fleet.yaml:1: teams: line 1 has a key that"],
        ),
    ],
)
def test_what_is_not_a_fleet_at_all_is_refused(text: str, problems: list[str]) -> None:
    found = refused_fleet(text)
    assert len(found) == len(problems), found
    for problem, expected in zip(found, problems, strict=True):
        assert problem.startswith(expected), problem


def test_names_in_hints_are_shown_as_far_as_a_terminal_can() -> None:
    text = one_team("pools: [x]").replace("dev:", '"d\\n":')
    assert "; there are d\\n, big" in refused_fleet(text)[1]
    many = "".join(f"  g{i}: {{type: v6e-1, slices: 1}}\n" for i in range(13))
    (problem,) = refused_fleet(f"tpu_pools:\n{many}teams: {{a: {{pools: [x]}}, b: }}")
    assert problem.endswith("there are g0, g1, g2, g3, g4, g5, g6, g7, g8, g9, g10, g11, ...")


def test_text_that_is_not_utf_8_is_refused() -> None:
    (problem,) = refused_fleet(b"tpu_pools:\n  d\xff: 1\n")
    assert problem == "fleet.yaml: line 2 is not UTF-8 (byte 0xff); save the file as UTF-8"


def test_a_folder_or_a_broken_link_in_place_of_the_file_is_no_missing_file(tmp_path: Path) -> None:
    (tmp_path / "vars.env").write_text("PROJECT_ID=my-project\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name, because in (("folder", "cannot be read"), ("link", "there is no such file")):
        with pytest.raises(Refused, match=f"^{name}: {because}"):
            environment.load(tmp_path / "vars.env", {}, tmp_path / name)


def test_a_line_of_the_file_is_told_where_it_spans_several() -> None:
    text = (
        "\n\ntpu_pools:\n\n  dev:\n    type: v6e-16\n\n    slices: 0\n"
        "teams:\n  a:\n    members:\n    - a@b.com\n    - c\n"
    )
    assert [problem.split(": ")[:2] for problem in refused_fleet(text)] == [
        ["fleet.yaml:8", "tpu_pools.dev.slices"],
        ["fleet.yaml:13", "teams.a.members"],
    ]


def test_mistakes_of_both_files_are_told_at_once() -> None:
    text = "tpu_pools: {dev: {type: v6e-17, slices: 0}}\nteams: {a: {share: 0}}"
    problems = refused_fleet(text, REGION="x", CPU_MIN_NODES="9")
    assert [problem.split(": ")[0] for problem in problems] == [
        "REGION",
        *["fleet.yaml:1"] * 2,
        "fleet.yaml:2",
        "CPU_MIN_NODES",
    ]


def test_mistakes_of_the_fleet_are_told_beside_a_vars_env_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "fleet.yaml").write_text("a")
    with pytest.raises(Refused) as error:
        environment.load(tmp_path / "vars.env", {}, tmp_path / "fleet.yaml")
    assert [problem.split(": ")[0] for problem in error.value.problems] == ["vars.env", "fleet.yaml:1"]


def test_the_repository_s_vars_env_says_what_to_empty_beside_a_fleet_file(tmp_path: Path) -> None:
    (tmp_path / "fleet.yaml").write_text(one_group("type: v6e-16, slices: 1"))
    with pytest.raises(Refused) as error:
        environment.load(ROOT / "vars.env", {}, tmp_path / "fleet.yaml")
    assert error.value.problems == tuple(
        f"{key}: '{value}' is not used, because fleet.yaml says which TPUs and teams there are; leave it empty in "
        f"vars.env ({key}=), or remove fleet.yaml"
        for key, value in (("TPU_TYPE", "v6e-16"), ("NUM_TPU_POOLS", "2"), ("NAMESPACE", "tpu-training"))
    )


def test_a_variable_that_the_fleet_file_replaces_is_to_be_unset() -> None:
    (problem,) = refused_fleet(one_group("type: v6e-16, slices: 1"), {"TPU_TYPE": "v6e-17", "NAMESPACE": ""})
    assert problem.startswith(
        "TPU_TYPE: 'v6e-17' is not used, because fleet.yaml says which TPUs and teams there are; "
    )
    assert "; unset TPU_TYPE in your shell, or remove fleet.yaml" in problem


def test_empty_keys_are_no_contradiction() -> None:
    assert with_fleet(one_group("type: v6e-16, slices: 1"), TPU_TYPE="", NUM_TPU_POOLS="", NAMESPACE="")


def test_groups_are_members_where_gke_may_know_them() -> None:
    assert with_fleet(one_team("members: ['group:a@b.com']"), RBAC_SECURITY_GROUP=SECURITY)


@pytest.mark.parametrize(
    "group", ["gke-security-groups@", "groups@example.com", "gke-security-groups@Example.com", "x"]
)
def test_another_security_group_is_refused(group: str) -> None:
    (problem,) = refused_text(f"PROJECT_ID=my-project\nRBAC_SECURITY_GROUP={group}\n")
    assert problem.startswith(f"RBAC_SECURITY_GROUP: '{group}' is not the group that GKE looks for")


def test_ranges_must_hold_the_whole_fleet_with_every_autoscaled_group_at_its_largest() -> None:
    # 8 + 64 hosts x 32 addresses are 9 blocks of 256; 4 + 1 CPU nodes take 5 more: 14, so a /20
    text = one_group("type: v6e-16, slices: 2}\n  big: {type: v6e-256, slices: 1, capacity: flex-start")
    assert with_fleet(text, PODS_CIDR="10.4.0.0/20")
    (problem,) = refused_fleet(text, PODS_CIDR="10.4.0.0/21")
    assert problem.startswith("PODS_CIDR: 10.4.0.0/21 holds 64 nodes of 16 pods, this fleet needs 112 (72 TPU nodes")


def test_a_fleet_larger_than_a_cluster_is_refused_at_tpu_pools() -> None:
    problems = refused_fleet(one_group("type: v6e-256, slices: 1100"))
    assert any(
        problem.startswith("fleet.yaml:1: tpu_pools: '1100' slices make a cluster of 70404 nodes; GKE takes 65000")
        for problem in problems
    )


def test_more_groups_than_kueue_takes_in_a_queue_are_refused_for_the_teams_that_have_them() -> None:
    groups = "".join(f"  g{i}: {{type: v6e-1, slices: 1}}\n" for i in range(64))
    problems = refused_fleet(f"tpu_pools:\n{groups}teams:\n  all:\n  one: {{pools: [g0]}}\n")
    assert problems == (
        "fleet.yaml:67: teams.all: may use 64 pool groups; Kueue takes 63 in a queue, so name fewer in its pools",
    )
    most = ", ".join(f"g{i}" for i in range(1, 64))
    assert with_fleet(f"tpu_pools:\n{groups}teams:\n  most: {{pools: [{most}]}}\n  one: {{pools: [g0]}}\n")


def test_a_group_that_no_team_may_use_is_refused() -> None:
    (problem,) = refused_fleet(one_team("pools: [dev]").replace("others:", "others: {pools: [dev]}"))
    assert problem.startswith("fleet.yaml:3: tpu_pools.big: is in the pools of no team, so nobody could use it")


@pytest.mark.parametrize(
    ("small", "large"), [("borrowing: no", ""), ("", "lending: no"), ("borrowing: 0", "lending: 1"), ("", "lending: 0")]
)
def test_a_team_that_could_never_have_a_slice_is_refused(small: str, large: str) -> None:
    text = one_group("type: v6e-16, slices: 2").replace(
        "research:", f"small: {{{small}}}\n  large: {{share: 99, {large}}}"
    )
    (problem,) = refused_fleet(text)
    assert problem.startswith("fleet.yaml:4: teams.small: owns no slice by its share and can borrow none, so no job")


def test_teams_that_can_only_borrow_are_a_warning() -> None:
    (warning,) = case("twelve-teams-two-slices").warnings
    assert warning.startswith(
        "twelve-teams-two-slices.fleet.yaml:3: teams: by their shares biology, chemistry, economics and 7 more own no "
        "whole slice: their jobs start only on what other teams leave idle"
    )
    assert case("one-team").warnings == ()


def test_a_zone_where_google_lists_none_of_a_group_s_tpus_is_a_warning_at_its_line() -> None:
    stated, unstated = "type: v5p-128, slices: 1, zone: us-east5-c", "type: v5p-128, slices: 1"
    (warning,) = with_fleet(one_group(stated)).warnings
    assert warning.startswith(
        "fleet.yaml:2: tpu_pools.dev.zone: Google's list of November 2026 has no v5p in 'us-east5-c'"
    )
    (warning,) = with_fleet(one_group(unstated)).warnings
    assert warning.startswith(
        "fleet.yaml:2: tpu_pools.dev.type: Google's list of November 2026 has no v5p in 'us-east5-b'"
    )


def test_a_zone_of_the_settings_outside_the_region_is_one_mistake() -> None:
    (problem,) = refused_fleet(one_group("type: v6e-16, slices: 1"), ZONE="us-east1-d")
    assert problem.startswith("ZONE: 'us-east1-d' is not in REGION 'us-east5'")


def test_every_key_is_explained_where_the_file_is_read() -> None:
    explained = environment.fleet_file.__doc__ or ""
    for text in (one_group("type: v6e-16, slices: 1, x: 1"), one_team("x: 1")):
        (problem,) = refused_fleet(text)
        for key in problem.partition("there are ")[2].split(", "):
            assert key in explained, key
    assert all(mode.value in explained for mode in CapacityMode)
    assert all(priority in explained for priority in PRIORITIES)


def test_yaml_is_not_loaded_where_there_is_no_fleet_file() -> None:
    program = (
        "import sys, environment; from pathlib import Path\n"
        "environment.load(Path('tests/cases/default.env'), {}, Path('no-such.yaml')); print('yaml' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True, text=True)
    assert done.stdout == "False\n"


def test_aliases_cannot_make_a_small_file_a_long_wait() -> None:
    laughs = "".join(f"  x{i + 1}: &x{i + 1} [{', '.join([f'*x{i}'] * 9)}]\n" for i in range(30))
    start = time.process_time()
    assert refused_fleet(f"tpu_pools:\n  x0: &x0 [a]\n{laughs}teams:\n  t: {{members: *x30}}\n")
    members = ", ".join(f"a{i}@b.com" for i in range(500))
    teams = "".join(f"  t{i}: {{members: *m}}\n" for i in range(99))
    pools = "tpu_pools: {a: {type: v6e-16, slices: 99}}"
    assert with_fleet(f"{pools}\nteams:\n  t: {{members: &m [{members}]}}\n{teams}")
    assert time.process_time() - start < 5, "0.5 s on an idle machine"
    (problem,) = refused_fleet(one_team(f"members: [{members}, one@too.many]"))
    assert problem.startswith("fleet.yaml:5: teams.research.members: lists 501; no list takes more than 500")
