"""Turn the failures of rehearsal.terraform.failures on and off."""

from __future__ import annotations

from rehearsal.cloud import Cloud
from rehearsal.terraform.failures import KIND, NAME
from rehearsal.terraform.failures import REFUSE as REFUSE
from rehearsal.terraform.failures import SILENT as SILENT


def turn_on(cloud: Cloud, mode: str, *, after: int, types: str = ".*") -> None:
    """Fails every change but the first `after` of resource types that match the regular expression `types`.

    REFUSE answers 403 and changes nothing. SILENT makes the change, and does not answer until it is turned off.
    """
    assert mode in (REFUSE, SILENT)
    cloud.put(KIND, NAME, {"mode": mode, "after": after, "types": types, "seen": 0})


def turn_off(cloud: Cloud) -> None:
    """From now on nothing fails, and who waits for an answer gets it."""
    cloud.delete(KIND, NAME)


def failing(cloud: Cloud) -> int:
    """How many changes have failed since it was turned on."""
    switch = cloud.get(KIND, NAME) or {"seen": 0, "after": 0}
    return max(0, int(switch["seen"]) - int(switch["after"]))
