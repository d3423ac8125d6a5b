"""Options that several subcommands have, and how their values are read."""

from __future__ import annotations

import argparse
import re


def add_waiting(parser: argparse._ActionsContainer) -> None:
    """The options about locks."""
    parser.add_argument(
        "--wait",
        type=seconds,
        default="60m",
        metavar="TIME",
        help="how long to wait for another apply or destroy of this environment (default: 60m)",
    )
    parser.add_argument(
        "--lock-timeout",
        type=_duration,
        default="10m",
        metavar="TIME",
        help="how long Terraform waits for the lock of a stack's state (default: 10m)",
    )


def _duration(text: str) -> str:
    if not re.fullmatch(r"\d+[smh]", text):
        raise argparse.ArgumentTypeError(f"'{text}' is not a time; write 90s, 10m or 1h")
    return text


def seconds(text: str) -> float:
    """Of a time as it is typed: 90s, 10m or 1h."""
    return float(_duration(text)[:-1]) * {"s": 1, "m": 60, "h": 3600}[text[-1]]
