"""A variable of the shell that is nearly a key is a warning, and no other variable is."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environment import load
from environment.settings.model import KEYS
from environment.settings.near_keys import near_key_warnings
from tests.loading import load_text

FACTS = Path(__file__).parent.parent / "facts"
USUAL = [
    name
    for line in (FACTS / "usual-variables.txt").read_text().splitlines()
    if not line.startswith("#")
    for name in line.split()
]


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("TPU_TYP", "TPU_TYPE"),
        ("TPU_TPYE", "TPU_TYPE"),
        ("TPUTYPE", "TPU_TYPE"),
        ("tpu_type", "TPU_TYPE"),
        ("NUM_TPU_POOL", "NUM_TPU_POOLS"),
        ("NUM_TPUS_POOLS", "NUM_TPU_POOLS"),
        ("PROJECTID", "PROJECT_ID"),
        ("ZOEN", "ZONE"),
        ("REGIONS", "REGION"),
        ("DELETE_PROTECTION", ""),
        ("DELETON_PROTECTON", "DELETION_PROTECTION"),
        ("MEMBER", "MEMBERS"),
    ],
)
def test_a_variable_that_is_nearly_a_key_is_a_warning(typed: str, meant: str) -> None:
    warnings = load_text("PROJECT_ID=my-project\n", {typed: "x"}).warnings
    expected = f"{typed}: is set in your shell and is not a setting; did you mean {meant}? Unset it if not"
    assert warnings == ((expected,) if meant else ())


def test_what_is_meant_being_set_too_there_is_nothing_to_say() -> None:
    assert not load_text("PROJECT_ID=my-project\n", {"TPU_TYP": "v6e-32", "TPU_TYPE": "v6e-32"}).warnings


@given(st.sampled_from(KEYS), st.integers(1, 60), st.integers(0, 2), st.sampled_from("AEIOSTX_"))
def test_any_slip_after_the_first_letter_is_noticed(key: str, place: int, slip: int, letter: str) -> None:
    at = 1 + place % (len(key) - 1)
    typed = (
        key[:at] + letter + key[at:],
        key[:at] + key[at + 1 :],
        key[: at - 1] + key[at] + key[at - 1] + key[at + 1 :] if at > 1 else key[:at] + letter + key[at + 1 :],
    )[slip]
    if typed not in KEYS:
        (warning,) = near_key_warnings({typed: "x"})
        assert warning.keys == (typed,)


def test_no_variable_of_a_usual_shell_or_pipeline_is_taken_for_a_slip() -> None:
    assert len(USUAL) > 400
    assert [warning.keys[0] for warning in near_key_warnings(dict.fromkeys(USUAL, "x"))] == []


def test_a_name_that_cannot_be_printed_is_shown_as_escapes() -> None:
    (warning,) = load(Path("vars.env"), {"PROJECT_ID": "my-project", "REGIO\udcff": "x"}).warnings
    assert warning.startswith(r"REGIO\udcff: is set")
