"""What fleet.yaml can say, and what it means."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

import environment
import environment.fleet.file
from environment import CapacityMode, Environment, Member, MemberKind
from environment.fleet.model import PRIORITIES
from tests.fleets import one_group, one_team, refused_fleet, with_fleet
from tests.loading import loaded

ROOT = Path(__file__).parent.parent.parent
CASES = ROOT / "tests" / "cases"


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


def test_groups_named_like_another_s_node_pools_share_none_with_it() -> None:
    one = "{type: v6e-1, slices: 12}"
    groups = with_fleet(f"tpu_pools: {{a: {one}, a-1: {one}, a-1-0: {one}, cpu-0: {one}}}\nteams: {{lab: }}").groups
    pools = ["cpu", *(pool for group in groups for pool in group.node_pools)]
    assert len(set(pools)) == len(pools) == 49


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
        (
            'reservation: "projects/example.com:other-project/reservations/mine"',
            "projects/example.com:other-project/reservations/mine",
        ),
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
    for said, hours in (("", 168), (", max_run_hours: 24", 24)):
        (group,) = with_fleet(one_group(text + said)).groups
        assert group.max_run_seconds == hours * 3600, "GKE's own default is a week, and it is written out"


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


def test_names_that_yaml_takes_for_other_things_are_names() -> None:
    environment_ = with_fleet("tpu_pools: {no: {type: v6e-16, slices: 1}}\nteams: {null: {pools: [no]}, 1e3: }")
    assert [group.name for group in environment_.groups] == ["no"]
    assert [team.name for team in environment_.teams] == ["null", "1e3"]


def test_every_key_is_explained_where_the_file_is_read() -> None:
    explained = environment.fleet.file.__doc__ or ""
    for text in (one_group("type: v6e-16, slices: 1, x: 1"), one_team("x: 1")):
        (problem,) = refused_fleet(text)
        for key in problem.partition("there are ")[2].split(", "):
            assert key in explained, key
    assert all(mode.value in explained for mode in CapacityMode)
    assert all(priority in explained for priority in PRIORITIES)


def test_every_key_is_explained_in_its_page() -> None:
    page = (ROOT / "docs" / "fleet.md").read_text(encoding="utf-8")
    for words in (one_group("type: v6e-16, slices: 1, x: 1"), one_team("x: 1")):
        (problem,) = refused_fleet(words)
        for key in problem.partition("there are ")[2].split(", "):
            assert f"`{key}`" in page, key
    for word in (*PRIORITIES, *(mode.value for mode in CapacityMode), "fair_sharing: true"):
        assert f"`{word}`" in page, word


def test_yaml_is_not_loaded_where_there_is_no_fleet_file() -> None:
    program = (
        "import sys, environment; from pathlib import Path\n"
        "environment.load(Path('tests/cases/default.env'), {}, Path('no-such.yaml')); print('yaml' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True, text=True)
    assert done.stdout == "False\n"
