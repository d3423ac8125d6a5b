"""Fleet -> the text of the fleet.yaml that describes it: environment/fleet/file.py reads the same fleet from it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from fractions import Fraction

from environment.fleet.model import CapacityMode, PoolGroup, Team, TpuVm
from environment.tpu_catalogue import TPU_VM_RUNTIMES

_LONGEST_LINE = 118
_PLAIN = "[A-Za-z0-9][A-Za-z0-9._/@-]*"
_NOT_TEXT = ("y", "n", "yes", "no", "on", "off", "true", "false", "null")  # in one YAML or another

_Pair = tuple[str, str | list[str]]  # a key, and its value or the values of its list as YAML writes them


def fleet_text(
    groups: Sequence[PoolGroup],
    teams: Sequence[Team],
    tpu_vms: Sequence[TpuVm] = (),
    *,
    fair_sharing: bool,
    zone: str,
    host_access: bool,
) -> str:
    """What differs from the defaults, and the shares; `zone` is that of groups and TPU VMs that name none, and
    `host_access` what teams have that say nothing.
    """
    lines = ["tpu_pools:"]
    for group in groups:
        lines += _entry(group.name, list(_of_group(group, zone)))
    lines.append("teams:")
    for team in teams:
        lines += _entry(team.name, list(_of_team(team, groups, host_access=host_access)))
    if tpu_vms:
        lines.append("tpu_vms:")
    for vm in tpu_vms:
        lines += _entry(vm.name, list(_of_tpu_vm(vm, zone)))
    if fair_sharing:
        lines.append("fair_sharing: true")
    return "\n".join(lines) + "\n"


def _of_group(group: PoolGroup, zone: str) -> Iterator[_Pair]:
    yield "type", group.slice.tpu_type
    yield "slices", str(group.slices)
    if group.capacity is not CapacityMode.ON_DEMAND:
        yield "capacity", group.capacity.value
    if group.zone != zone:
        yield "zone", group.zone
    name, *parts = re.split("/(reservation(?:Sub)?Block)s/", group.reservation)
    if name:
        yield "reservation", _scalar(name)
    for part, value in zip(parts[::2], parts[1::2], strict=True):
        yield re.sub("[A-Z]", lambda capital: f"_{capital[0].lower()}", part), _scalar(value)
    if group.autoscaled and not group.capacity.comes_and_goes:
        yield "autoscaled", "true"
    if group.max_run_seconds is not None:
        yield "max_run_hours", str(group.max_run_seconds // 3600)


def _of_tpu_vm(vm: TpuVm, zone: str) -> Iterator[_Pair]:
    yield "type", vm.accelerator_type
    yield "team", _scalar(vm.team)
    if vm.capacity is not CapacityMode.ON_DEMAND:
        yield "capacity", vm.capacity.value
    if vm.zone != zone:
        yield "zone", vm.zone
    if vm.runtime != TPU_VM_RUNTIMES[vm.slice.generation]:
        yield "runtime", vm.runtime


def _of_team(team: Team, groups: Sequence[PoolGroup], *, host_access: bool) -> Iterator[_Pair]:
    yield "share", _share(team.share)
    if team.priority is not None:
        yield "priority", team.priority
    if team.pools != tuple(group.name for group in groups):
        yield "pools", [_scalar(pool) for pool in team.pools]
    for key, limit in (("borrowing", team.borrowing_limit), ("lending", team.lending_limit)):
        if limit is not None:
            yield key, str(limit)
    if team.host_access != host_access:
        yield "host_access", str(team.host_access).lower()
    if team.members:
        yield "members", [_scalar(str(member)) for member in team.members]


def _share(share: Fraction) -> str:
    """At most three decimals, which is all that a share has."""
    return str(share) if share.denominator == 1 else f"{float(share):.3f}".rstrip("0")


def _entry(name: str, pairs: list[_Pair]) -> list[str]:
    """On one line if that has room, and else a line a key and a line a member of a list."""
    flat = [(key, value if isinstance(value, str) else f"[{', '.join(value)}]") for key, value in pairs]
    flow = ", ".join(f"{key}: {value}" for key, value in flat)
    line = f"  {_scalar(name)}: {{{flow}}}"
    if len(line) <= _LONGEST_LINE:
        return [line]
    lines = [f"  {_scalar(name)}:"]
    for key, value in pairs:
        if isinstance(value, str):
            lines.append(f"    {key}: {value}")
        else:
            lines += [f"    {key}:", *(f"      - {item}" for item in value)]
    return lines


def _scalar(text: str) -> str:
    plain = re.fullmatch(_PLAIN, text) and text.lower() not in _NOT_TEXT
    return text if plain else json.dumps(text)
