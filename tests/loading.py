"""Settings given as keyword arguments, loaded as a vars.env that holds them and nothing else."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

import environment
from environment import Environment, Refused

VALID = {"PROJECT_ID": "my-project"}


def load_bytes(content: bytes, process_env: Mapping[str, str] | None = None) -> Environment:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vars.env"
        path.write_bytes(content)
        return environment.load(path, process_env or {})


def load_text(text: str, process_env: Mapping[str, str] | None = None) -> Environment:
    return load_bytes(text.encode(), process_env)


def loaded(**keys: str) -> Environment:
    return load_text("".join(f"{key}={value}\n" for key, value in {**VALID, **keys}.items()))


def refused(**keys: str) -> tuple[str, ...]:
    """The problems of settings that must not load."""
    try:
        loaded(**keys)
    except Refused as error:
        return error.problems
    raise AssertionError(f"{keys} was not refused")


def refused_text(text: str, process_env: Mapping[str, str] | None = None) -> tuple[str, ...]:
    try:
        load_text(text, process_env)
    except Refused as error:
        return error.problems
    raise AssertionError(f"{text!r} was not refused")
