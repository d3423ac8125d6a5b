"""Failures on purpose: from a certain change on, the fake cloud refuses changes, or makes them and never answers.

The switch is an object of the fake cloud, so that any process can turn it while others work.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rehearsal.cloud import Attributes, Cloud
from rehearsal.terraform.resource_type import Refusal

KIND = "failure"
_NAME = "switch"

REFUSE = "refuse"
SILENT = "silent"

_POLL_SECONDS = 0.02


def turn_on(cloud: Cloud, mode: str, *, after: int, types: str = ".*") -> None:
    """Fails every change but the first `after` of resource types that match the regular expression `types`.

    REFUSE answers 403 and changes nothing. SILENT makes the change, and does not answer until it is turned off.
    """
    assert mode in (REFUSE, SILENT)
    cloud.put(KIND, _NAME, {"mode": mode, "after": after, "types": types, "seen": 0})


def turn_off(cloud: Cloud) -> None:
    """From now on nothing fails, and who waits for an answer gets it."""
    cloud.delete(KIND, _NAME)


def failing(cloud: Cloud) -> int:
    """How many changes have failed since it was turned on."""
    switch = cloud.get(KIND, _NAME) or {"seen": 0, "after": 0}
    return max(0, int(switch["seen"]) - int(switch["after"]))


@contextmanager
def around(cloud: Cloud, type_: str) -> Iterator[None]:
    """Around one change of a resource of that type. Raises Refusal."""
    mode = _mode(cloud, type_)
    if mode == REFUSE:
        raise Refusal(
            f"Error changing {type_}: googleapi: Error 403: The caller does not have permission, forbidden",
        )
    yield
    while mode == SILENT and cloud.get(KIND, _NAME) is not None:
        time.sleep(_POLL_SECONDS)


def _mode(cloud: Cloud, type_: str) -> str:
    """How this change fails, "" if it does not; it is counted."""
    if cloud.get(KIND, _NAME) is None:
        return ""
    with cloud.transaction():
        switch: Attributes | None = cloud.get(KIND, _NAME)
        if switch is None or not re.fullmatch(str(switch["types"]), type_):
            return ""
        switch["seen"] += 1
        cloud.put(KIND, _NAME, switch)
        return str(switch["mode"]) if switch["seen"] > switch["after"] else ""
