"""The section `tpu_vms` of fleet.yaml -> TpuVm."""

from __future__ import annotations

import re
from typing import Any

from environment.fleet import values as fleet_values
from environment.fleet.model import CapacityMode, TpuVm
from environment.fleet.reader import Parse, Reader
from environment.settings import values
from environment.tpu import tpu_vm_slice
from environment.tpu_catalogue import TPU_VM_RUNTIMES
from vocabulary.printable import quoted
from vocabulary.yaml_text import Value, shown

# Flex-start is what the Cloud TPU API has for its alpha commands alone.
_MODES = {
    mode.value: mode
    for mode in (CapacityMode.ON_DEMAND, CapacityMode.SPOT, CapacityMode.RESERVATION, CapacityMode.QUEUED)
}
_capacity = fleet_values.one_of("capacity mode of TPU VMs", _MODES)


def _runtime(text: str) -> str:
    if re.fullmatch(r"[a-z0-9][a-z0-9.-]{0,62}", text):
        return text
    raise ValueError(f"is no software version of TPU VMs{fleet_values.meant(text, TPU_VM_RUNTIMES.values())}")


def tpu_vm(reader: Reader, name: str, value: Value, teams: tuple[str, ...], zone: str) -> TpuVm | None:
    """The TPU VM, or None if something in it is wrong; `zone` is that of TPU VMs that name none."""
    before = len(reader.problems)
    if not re.fullmatch("[a-z]([a-z0-9-]*[a-z0-9])?", name):
        reader.complain(
            value,
            f"{quoted(name)} cannot name TPU VMs; use lower-case letters, digits and hyphens, a letter first, no "
            "hyphen last",
        )
    keys: dict[str, Parse] = {
        "type": tpu_vm_slice,
        "team": fleet_values.one_of("team of teams", teams),
        "capacity": lambda text: _MODES[_capacity(text)],
        "zone": values.zone,
        "runtime": _runtime,
    }
    given = reader.known(reader.mapping(value, "type, team and more"), keys)
    said: dict[str, Any] = {key: reader.parsed(inner, keys[key]) for key, inner in given.items()}
    for key, example in (("type", "v6e-16"), ("team", shown(teams[0]) if teams else "research")):
        if key not in given and value.pairs is not None and not value.merges:
            reader.complain(value, f"has no {key}; add it, such as {key}: {example}")
    slice_, runtime = said.get("type"), said.get("runtime")
    if slice_ and runtime in TPU_VM_RUNTIMES.values() and runtime != TPU_VM_RUNTIMES[slice_.generation]:
        usual = TPU_VM_RUNTIMES[slice_.generation]
        reader.complain(given["runtime"], f"'{runtime}' is not for {slice_.generation}; use '{usual}', or remove it")
    if len(reader.problems) > before:
        return None
    # A message about a zone that is not set begins with the place of the type.
    reader.keys.setdefault(f"{value.path}.zone", reader.keys[f"{value.path}.type"])
    return TpuVm(
        name=name,
        slice=said["type"],
        team=said["team"],
        zone=said.get("zone", zone),
        runtime=runtime or TPU_VM_RUNTIMES[said["type"].generation],
        capacity=said.get("capacity", CapacityMode.ON_DEMAND),
    )
