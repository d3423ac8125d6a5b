"""The form of vars.env: what people write in such files is read as they mean it, or refused with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

import environment
from environment import Refused
from tests.loading import load_bytes, load_text, refused_text


def project_of(text: str) -> str:
    return load_text(text).settings.project_id


@pytest.mark.parametrize(
    "line",
    [
        "PROJECT_ID=my-project",
        "PROJECT_ID='my-project'",
        'PROJECT_ID="my-project"',
        "  PROJECT_ID \t=\t my-project  ",
        "export PROJECT_ID=my-project",
        "export\tPROJECT_ID='my-project'",
        "PROJECT_ID=my-project # ours",
        "PROJECT_ID=my-project\t#ours",
        'PROJECT_ID="my-project" # ours',
        'PROJECT_ID="my-project"# ours',
        "# first\n\n   # second\nPROJECT_ID=my-project",
        "PROJECT_ID=my-project\r\nZONE=us-east5-b\r\n",
        "PROJECT_ID=my-project\rZONE=us-east5-b\r",
        "\ufeffPROJECT_ID=my-project\n",
        "PROJECT_ID=my-project\nZONE= # the default\n",
        "PROJECT_ID=my-project\nTF_STATE_PREFIX=''\n",
    ],
)
def test_ways_to_write_a_value(line: str) -> None:
    assert project_of(line) == "my-project"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("ZONE", "vars.env: line 2: 'ZONE' is not of the form KEY=value"),
        ("=us-east5-b", "vars.env: line 2: '=us-east5-b' is not of the form KEY=value"),
        ("MY-ZONE=x", "vars.env: line 2: 'MY-ZONE=x' is not of the form KEY=value"),
        ("ZONE: us-east5-b", "vars.env: line 2: 'ZONE: us-east5-b' is not of the form KEY=value"),
        (
            'ZONE="us-east5-b',
            "ZONE: line 2: '\"us-east5-b' has a quote that is not closed, or text after the closing one",
        ),
        (
            "ZONE='us'-east5-b",
            "ZONE: line 2: ''us'-east5-b' has a quote that is not closed, or text after the closing one",
        ),
        (
            "RESOURCE_PREFIX=rt-${PROJECT_ID}",
            "RESOURCE_PREFIX: line 2: 'rt-${PROJECT_ID}' has a '$'; nothing is expanded here, write the value out",
        ),
        ("ZONE=us-east5-b#x", "ZONE: 'us-east5-b#x' is not a zone; write one such as us-east5-b"),
    ],
)
def test_a_line_that_cannot_be_read_is_reported_by_its_number(line: str, problem: str) -> None:
    assert refused_text(f"PROJECT_ID=my-project\n{line}\n") == (problem,)


def test_a_key_that_is_set_twice_is_refused_with_both_lines() -> None:
    assert refused_text("PROJECT_ID=my-project\nZONE=us-east5-b\n\nZONE=us-east5-b\n") == (
        "ZONE: is set twice, on lines 2 and 4; keep one",
    )


def test_a_key_that_is_set_twice_is_refused_even_if_the_process_environment_sets_it() -> None:
    problems = refused_text("PROJECT_ID=my-project\nZONE=us-east5-b\nZONE=x\n", {"ZONE": "us-east5-a"})
    assert len(problems) == 1 and problems[0].startswith("ZONE: is set twice")


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"PROJECT_ID=my-project\nZONE=\xff\n", "line 2"),
        ("PROJECT_ID=my-project".encode("utf-16"), "line 1"),
        ("# Größe\nPROJECT_ID=my-project".encode("latin-1"), "line 1"),
    ],
)
def test_a_file_that_is_not_utf8_is_refused_and_nothing_else_is_said(content: bytes, line: str) -> None:
    with pytest.raises(Refused) as error:
        load_bytes(content)
    (problem,) = error.value.problems
    assert problem.startswith(f"vars.env: {line} is not UTF-8 (byte 0x") and "save the file as UTF-8" in problem


def test_comments_may_be_in_any_language() -> None:
    assert project_of("# Größe 大きさ\nPROJECT_ID=my-project # ünser\n") == "my-project"


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused) as error:
        environment.load(tmp_path / "vars.env", {"PROJECT_ID": "my-project"})
    assert error.value.problems == (f"vars.env: there is no such file in '{tmp_path}'",)


def test_a_folder_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="cannot be read"):
        environment.load(tmp_path, {})


def test_a_path_that_cannot_exist_is_refused() -> None:
    with pytest.raises(Refused, match="cannot be read"):
        environment.load(Path("a\0b"), {})


def test_a_huge_file_is_refused() -> None:
    with pytest.raises(Refused, match="larger than 1024 KiB"):
        load_bytes(b"#" * (2 << 20))


def test_the_refusal_shows_a_problem_a_line() -> None:
    with pytest.raises(Refused) as error:
        load_text("ZONE\nREGION=x\n")
    assert str(error.value).splitlines() == list(error.value.problems)
    assert len(error.value.problems) == 3
