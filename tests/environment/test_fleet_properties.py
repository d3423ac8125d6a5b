"""No fleet.yaml makes anything but an environment or a refusal that can be printed."""

from __future__ import annotations

import copy
from typing import Any

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from environment import Environment, Refused
from tests.examples import examples
from tests.fleets import with_fleet

QUICK = settings(max_examples=examples(120), suppress_health_check=[HealthCheck.too_slow])

# Values that each key takes, so that some of the fleets are good ones.
GROUP_KEYS = {
    "type": ["v6e-16", "v5p-128", "ct5l-hightpu-8t-2x4"],
    "slices": ["1", "2", "40"],
    "capacity": ["on-demand", "spot", "reservation", "flex-start", "queued"],
    "zone": ["us-east5-a", "us-east5-b", "us-east1-b"],
    "reservation": ["mine", "projects/my-project/reservations/mine"],
    "reservation_block": ["block-1"],
    "autoscaled": ["true", "no"],
    "max_run_hours": ["24"],
}
TEAM_KEYS = {
    "share": ["1", "0.5", "90"],
    "priority": ["high"],
    "borrowing": ["true", "no", "1"],
    "host_access": ["true"],
    "lending": ["true", "no", "1"],
    "members": ["[a@b.com]", "[a@b.com, b@b.com]"],
    "pools": ["[dev]", "[big, dev]"],
}
SCALARS = st.sampled_from(
    [
        *(
            "v6e-16",
            "v5p-128",
            "v4-8",
            "ct5l-hightpu-8t-2x4",
            "1",
            "2",
            "0",
            "-1",
            "1.5",
            "1e9",
            "9" * 400,
            "0x1f",
            ".nan",
        ),
        *("on-demand", "spot", "reservation", "flex-start", "queued", "us-east5-a", "us-east5-b", "mine", "24"),
        *(
            "true",
            "no",
            "~",
            "",
            "null",
            "high",
            "[a@b.com]",
            "['group:a@b.com']",
            "[dev]",
            "[dev, big]",
            "{a: b}",
            "[]",
        ),
        *(
            '"\\ud800"',
            '"\\0"',
            '"\\u2028"',
            '"\\x1b[31m"',
            "'%'",
            "!!int x",
            "!x y",
            "&a b",
            "*a",
            "2001-01-01",
            "<<",
            "=",
            "é",
        ),
    ]
)
NAMES = st.sampled_from(
    ["dev", "big", "lab", "dev", "big", "cpu", "a" * 40, "Dev", "yes", "", "~", '"\\n"', "? [x] ", "google"]
)


@st.composite
def _mappings(draw: st.DrawFn, keys: dict[str, list[str]], needed: tuple[str, ...]) -> str:
    chosen = {*needed, *draw(st.lists(st.sampled_from(sorted(keys)), max_size=3))}
    pairs = {key: draw(st.sampled_from(keys[key])) for key in sorted(chosen)}
    if draw(st.integers(0, 9)) == 0:
        pairs[draw(st.sampled_from([*keys, "x"]))] = draw(SCALARS)
    return "{" + ", ".join(f"{key}: {value}" for key, value in pairs.items()) + "}"


SECTIONS = st.tuples(
    st.lists(st.tuples(NAMES, _mappings(GROUP_KEYS, ("type", "slices"))), min_size=1, max_size=3),
    st.lists(st.tuples(NAMES, _mappings(TEAM_KEYS, ())), min_size=1, max_size=3),
)


def outcome(fleet: str | bytes) -> Environment | Refused:
    try:
        return with_fleet(fleet)
    except Refused as refused:
        assert refused.problems
        for problem in refused.problems:
            key, colon, message = problem.partition(": ")
            assert key.startswith(("fleet.yaml", "PODS_CIDR", "SUBNET_CIDR", "RESOURCE_PREFIX")) and colon and message
            problem.encode()
            assert problem.isprintable()
        return refused


@QUICK
@given(st.binary(max_size=200))
def test_any_bytes(content: bytes) -> None:
    outcome(content)
    outcome(b"tpu_pools:\n  dev: {type: v6e-16, slices: 1}\nteams:\n" + content)


@QUICK
@given(st.text(alphabet="tpu_ols: {}[]-?&*!|>'\"%#@,\n\r\t\\ux01\ufeff\x85\u2028<<=~ytes", max_size=80))
def test_any_text_with_much_of_yaml_in_it(text: str) -> None:
    outcome(text)
    outcome(f"tpu_pools:\n  dev: {text}\nteams: {{a: {text}}}")


@settings(QUICK, max_examples=examples(120))
@given(SECTIONS)
def test_any_values_of_the_keys_that_there_are(sections: tuple[list[tuple[str, str]], list[tuple[str, str]]]) -> None:
    pools, teams = ("".join(f"  {name}: {value}\n" for name, value in section) for section in sections)
    result = outcome(f"tpu_pools:\n{pools}teams:\n{teams}")
    if isinstance(result, Environment):
        names = [group.name for group in result.groups]
        assert names and result.teams and len(set(names)) == len(names)
        assert all(team.pools and set(team.pools) <= set(names) and team.share > 0 for team in result.teams)
        for group in result.groups:
            assert bool(group.reservation) == (group.capacity.value == "reservation")
            assert group.autoscaled or not group.capacity.comes_and_goes


GOOD: dict[str, Any] = {
    "tpu_pools": {"dev": {"type": "v6e-16", "slices": 2}, "big": {"type": "v5p-128", "slices": 1}},
    "teams": {"lab": {"share": 2}, "school": {"pools": ["dev"]}},
    "fair_sharing": False,
}
PLACES = [
    *((key,) for key in GOOD),
    *((section, name) for section in ("tpu_pools", "teams") for name in (*GOOD[section], "other")),
    *(("tpu_pools", "dev", key) for key in (*GROUP_KEYS, "reservation_sub_block", "other")),
    *(("teams", "lab", key) for key in (*TEAM_KEYS, "other")),
]
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=30)
    | st.binary(max_size=8)
    | st.dates()
    | st.datetimes()
)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
)


@QUICK
@given(st.lists(st.tuples(st.sampled_from(PLACES), VALUES), min_size=1, max_size=3))
def test_any_value_at_every_key(changes: list[tuple[tuple[str, ...], Any]]) -> None:
    fleet = copy.deepcopy(GOOD)
    for place, value in changes:
        holder = fleet
        for key in place[:-1]:
            holder = holder.get(key) if isinstance(holder, dict) else None  # type: ignore[assignment]
        if isinstance(holder, dict):
            holder[place[-1]] = value
    outcome(yaml.safe_dump(fleet, allow_unicode=True))
