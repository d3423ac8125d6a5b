"""fleet.yaml files given as text, loaded beside a vars.env of settings given as keyword arguments."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

import environment
from environment import Environment, Refused
from tests.loading import VALID


def with_fleet(fleet: str | bytes, process_env: Mapping[str, str] | None = None, **keys: str) -> Environment:
    with tempfile.TemporaryDirectory() as folder:
        vars_env, path = Path(folder) / "vars.env", Path(folder) / "fleet.yaml"
        vars_env.write_text("".join(f"{key}={value}\n" for key, value in {**VALID, **keys}.items()))
        path.write_bytes(fleet.encode() if isinstance(fleet, str) else fleet)
        return environment.load(vars_env, process_env or {}, path)


def refused_fleet(fleet: str | bytes, process_env: Mapping[str, str] | None = None, **keys: str) -> tuple[str, ...]:
    """The problems of a fleet.yaml, and of the settings, that must not load."""
    try:
        with_fleet(fleet, process_env, **keys)
    except Refused as error:
        return error.problems
    raise AssertionError(f"{fleet!r} was not refused")


def one_group(keys: str) -> str:
    """A fleet.yaml of a pool group `dev`, on line 2, and a team that uses it."""
    return f"tpu_pools:\n  dev: {{{keys}}}\nteams:\n  research:\n"


def one_team(keys: str) -> str:
    """A fleet.yaml of two pool groups, a team `research`, on line 5, and another that gets the larger part."""
    return (
        "tpu_pools:\n  dev: {type: v6e-16, slices: 4}\n  big: {type: v6e-64, slices: 4}\n"
        f"teams:\n  research: {{{keys}}}\n  others:\n"
    )
