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

KIND, NAME = "failure", "switch"

REFUSE = "refuse"
SILENT = "silent"

_POLL_SECONDS = 0.02


@contextmanager
def around(cloud: Cloud, type_: str) -> Iterator[None]:
    """Around one change of a resource of that type. Raises Refusal."""
    mode = _mode(cloud, type_)
    if mode == REFUSE:
        raise Refusal(
            f"Error changing {type_}: googleapi: Error 403: The caller does not have permission, forbidden",
        )
    yield
    while mode == SILENT and cloud.get(KIND, NAME) is not None:
        time.sleep(_POLL_SECONDS)


def _mode(cloud: Cloud, type_: str) -> str:
    """How this change fails, "" if it does not; it is counted."""
    if cloud.get(KIND, NAME) is None:
        return ""
    with cloud.transaction():
        switch: Attributes | None = cloud.get(KIND, NAME)
        if switch is None or not re.fullmatch(str(switch["types"]), type_):
            return ""
        switch["seen"] += 1
        cloud.put(KIND, NAME, switch)
        return str(switch["mode"]) if switch["seen"] > switch["after"] else ""
