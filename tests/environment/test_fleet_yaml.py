"""fleet.yaml as YAML: in any of its ways it means the same, and what is none is refused in a line."""

from __future__ import annotations

from pathlib import Path

import pytest

import environment
from environment import Refused
from tests.fleets import one_team, refused_fleet, with_fleet


def test_yaml_may_be_written_in_any_of_its_ways() -> None:
    plain = with_fleet("tpu_pools: {dev: {type: v6e-16, slices: 2}}\nteams: {a: {share: 2}, b: {share: 2}}")
    other = with_fleet(
        '\ufeff%YAML 1.1\n--- # a comment\n"tpu_pools":\r\n  ? dev\r\n  : &x !!map\r\n    type: "v6e-16"\r\n'
        "    slices: !!int '2'\r\nteams:\r\n  a: &t {share: 2}\r\n  b: *t\r\n...\n"
    )
    assert other == plain


@pytest.mark.nested_too_deeply
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
        (
            "a:\n\tb: c\n",
            ["fleet.yaml:2: has a tab, which YAML does not allow there; write spaces instead"],
        ),
        (
            "a: {b:\tc}\n",
            ["fleet.yaml:1: has a tab, which YAML does not allow there; write spaces instead"],
        ),
        (
            "tpu_pools:\n  a: &a {type: v6e-16, slices: 1}\n  b:\n    <<: *a\n    slices: 2\nteams:\n  t: {<<: *a}\n",
            [
                "fleet.yaml:4: tpu_pools.b.<<: merges another mapping, which is not understood here; write its keys",
                "fleet.yaml:7: teams.t.<<: merges another mapping, which is not understood here; write its keys",
            ],
        ),
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
    reported = refused_fleet(text)
    assert len(reported) == len(problems), reported
    for problem, expected in zip(reported, problems, strict=True):
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


def test_a_mistake_is_reported_at_its_line_in_a_value_over_several_lines() -> None:
    text = (
        "\n\ntpu_pools:\n\n  dev:\n    type: v6e-16\n\n    slices: 0\n"
        "teams:\n  a:\n    members:\n    - a@b.com\n    - c\n"
    )
    assert [problem.split(": ")[:2] for problem in refused_fleet(text)] == [
        ["fleet.yaml:8", "tpu_pools.dev.slices"],
        ["fleet.yaml:13", "teams.a.members"],
    ]


@pytest.mark.slow
def test_aliases_cannot_make_a_small_file_a_long_wait() -> None:
    laughs = "".join(f"  x{i + 1}: &x{i + 1} [{', '.join([f'*x{i}'] * 9)}]\n" for i in range(30))
    # Read as often as they are named, these 9^30 lists would never end.
    assert refused_fleet(f"tpu_pools:\n  x0: &x0 [a]\n{laughs}teams:\n  t: {{members: *x30}}\n")
    members = ", ".join(f"a{i}@b.com" for i in range(500))
    teams = "".join(f"  t{i}: {{members: *m}}\n" for i in range(99))
    pools = "tpu_pools: {a: {type: v6e-16, slices: 99}}"
    assert with_fleet(f"{pools}\nteams:\n  t: {{members: &m [{members}]}}\n{teams}")
    (problem,) = refused_fleet(one_team(f"members: [{members}, one@too.many]"))
    assert problem.startswith("fleet.yaml:5: teams.research.members: lists 501; no list takes more than 500")
