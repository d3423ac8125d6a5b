"""fleet.yaml -> Fleet: the kinds of slice and the teams, where one of each is not enough.

    tpu_pools:                                          # by name; a node pool is called {name}-{number}
      pretrain: {type: v5p-256, slices: 2, capacity: reservation, reservation: my-reservation}
      dev:      {type: v6e-16, slices: 4, capacity: spot, zone: us-east5-a}
    teams:                                              # by name; also its namespace, its queue, part of its bucket
      research: {share: 3, members: [alice@example.com, "group:tpu-users@example.com"]}
      serving:  {share: 1, priority: high, pools: [dev]}

Of a pool group:
  type                   as TPU_TYPE; required
  slices                 how many; required
  capacity               on-demand (default), spot, reservation, flex-start or queued
  zone                   in REGION; default ZONE
  reservation            name of the reservation, or projects/PROJECT/reservations/NAME if another project shares it
  reservation_block      name of a block of it, and reservation_sub_block of a part of that block
  autoscaled             true: a slice's hosts exist while jobs use them; default false, and always so with flex-start
                         and queued, which know no other way
  max_run_hours          flex-start and queued: how long a slice stays, 1 to 168; default 168

Of a team, everything optional:
  share                  its part of every pool group that it may use, relative to the others'; 3 or 1.5; default 1
  pools                  the pool groups that it may use; default all
  priority               verylow, low, medium, high or veryhigh, in the manifests rendered for it; default medium
  borrowing              of other teams' idle slices: true (default), false, or the most of each pool group
  lending                of its own idle slices to other teams: true (default), false, or the most of each pool group
  host_access            true: its pods with TPUs may be privileged and use the network of their host, as those of xpk
                         do (docs/security.md); default false, and true with XPK_COMPATIBILITY
  members                who may submit its jobs: email addresses, with `group:` before that of a Google group

And `fair_sharing: true` beside the two: what is idle goes to the team that has borrowed least for its share. Without
it, first come, first served.

And `tpu_vms`, optional, by name: slices without GKE (docs/tpu-vms.md), such as

    tpu_vms:
      lab: {type: v6e-16, team: research}

  type                   as TPU_TYPE, with a number; required
  team                   whose they are: its members log in, and the VMs have its bucket; required
  capacity               on-demand (default), spot, reservation or queued
  zone                   in REGION; default ZONE
  runtime                Google's software version of the VMs; default the one for JAX and PyTorch
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from environment.fleet import values as fleet_values
from environment.fleet.model import LONGEST_RUN_HOURS, PRIORITIES, CapacityMode, Fleet, PoolGroup, Team
from environment.fleet.reader import Parse, Reader
from environment.fleet.tpu_vms import tpu_vm
from environment.members import member
from environment.problems import Problem
from environment.settings import values
from environment.settings.model import MOST_SLICES, Settings
from environment.tpu import slice_for
from vocabulary.keys import CPU_GROUP, SYSTEM_GROUP
from vocabulary.printable import quoted
from vocabulary.text_file import Unreadable, read_text
from vocabulary.yaml_text import NotYaml, Value, parse

_MOST_KIB = 128

_GROUP: dict[str, Parse] = {
    "type": slice_for,
    "slices": fleet_values.whole(1, MOST_SLICES),
    "capacity": fleet_values.capacity,
    "zone": values.zone,
    "reservation": fleet_values.reservation,
    "reservation_block": fleet_values.block,
    "reservation_sub_block": fleet_values.block,
    "autoscaled": fleet_values.true_or_false,
    "max_run_hours": fleet_values.whole(1, LONGEST_RUN_HOURS),
}
_TEAM: dict[str, Parse] = {
    "share": fleet_values.share,
    "priority": fleet_values.one_of("priority", PRIORITIES),
    "borrowing": fleet_values.limit,
    "lending": fleet_values.limit,
    "host_access": fleet_values.true_or_false,
}


def read_fleet_file(path: Path, settings: Settings) -> tuple[Fleet, list[Problem]]:
    """The fleet, and every problem of the file; what has a problem is left out of the fleet. Raises nothing."""
    reader = Reader(name=path.name)
    try:
        root = parse(read_text(path, holds="tpu_pools and teams", most_kib=_MOST_KIB))
    except Unreadable as error:
        return _no_fleet(), [Problem(keys=(path.name,), message=str(error))]
    except NotYaml as error:
        return _no_fleet(), [Problem(keys=(f"{path.name}:{error.line}",), message=str(error))]
    return _fleet(reader, root, settings), reader.problems


def _no_fleet() -> Fleet:
    return Fleet(groups=(), teams=())


def _fleet(reader: Reader, root: Value, settings: Settings) -> Fleet:
    holds = "tpu_pools and teams"
    if root.empty:
        reader.complain(root, f"is empty; it should hold {holds}")
        return _no_fleet()
    values_ = reader.known(reader.mapping(root, holds), ("tpu_pools", "teams", "fair_sharing", "tpu_vms"))
    sections: dict[str, dict[str, Value]] = {}
    for key in ("tpu_pools", "teams"):
        if key in values_:
            sections[key] = reader.mapping(values_[key], "names, each with its keys")
            if values_[key].pairs == []:
                reader.complain(values_[key], "is empty; it needs one at least")
        elif root.pairs is not None:
            reader.complain(root, f"has no {key}; it should hold {holds}")
    if "tpu_vms" in values_:
        sections["tpu_vms"] = reader.mapping(values_["tpu_vms"], "names, each with its keys")
    fair = "fair_sharing" in values_ and reader.parsed(values_["fair_sharing"], fleet_values.true_or_false)
    declared = sections.get("tpu_pools", {})
    groups = tuple(filter(None, (_group(reader, *item, settings) for item in declared.items())))
    host_access = settings.xpk_compatibility
    described = sections.get("teams", {}).items()
    teams = tuple(filter(None, (_team(reader, *item, tuple(declared), host_access=host_access) for item in described)))
    names = tuple(sections.get("teams", {}))
    vms = (tpu_vm(reader, *item, names, settings.zone) for item in sections.get("tpu_vms", {}).items())
    return Fleet(
        groups=groups,
        teams=teams,
        tpu_vms=tuple(filter(None, vms)),
        fair_sharing=bool(fair),
        keys=reader.keys,
        size_keys=(reader.keys.get("tpu_pools", reader.name),),
    )


def _group(reader: Reader, name: str, value: Value, settings: Settings) -> PoolGroup | None:
    """The pool group, or None if something in it is wrong."""
    before = len(reader.problems)
    if wrong := _wrong_group_name(name):
        reader.complain(value, wrong)
    given = reader.known(reader.mapping(value, "type, slices and more"), _GROUP)
    said: dict[str, Any] = {key: reader.parsed(inner, _GROUP[key]) for key, inner in given.items()}
    for key, example in (("type", "v6e-16"), ("slices", "1")):
        if key not in given and value.pairs is not None and not value.merges:
            reader.complain(value, f"has no {key}; add it, such as {key}: {example}")
    said.setdefault("capacity", CapacityMode.ON_DEMAND)
    for key, message in _contradictions(said):
        reader.complain(given[key], message)
    if settings.autopilot and said.get("autoscaled") is False:
        reader.complain(
            given["autoscaled"],
            "'false' cannot be with CLUSTER_MODE=autopilot, where slices exist while jobs need them; remove it",
        )
    if len(reader.problems) > before:
        return None
    # A message about a zone that is not set begins with the place of the type.
    reader.keys.setdefault(f"{value.path}.zone", reader.keys[f"{value.path}.type"])
    hours, capacity = said.get("max_run_hours"), said["capacity"]
    return PoolGroup(
        name=name,
        slice=said["type"],
        slices=said["slices"],
        zone=said.get("zone", settings.zone),
        capacity=capacity,
        reservation=_affinity(said),
        autoscaled=said.get("autoscaled", capacity.comes_and_goes or settings.autopilot),
        max_run_seconds=(hours or LONGEST_RUN_HOURS) * 3600 if capacity.comes_and_goes else None,
    )


def _wrong_group_name(name: str) -> str:
    if name in (CPU_GROUP, SYSTEM_GROUP):
        return "is the name of a node pool without TPUs; choose another"
    if re.fullmatch("[a-z]([a-z0-9-]*[a-z0-9])?", name):
        return ""
    return (
        f"{quoted(name)} cannot name a pool group; use lower-case letters, digits and hyphens, a letter first, no "
        "hyphen last"
    )


def _contradictions(said: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Keys that are right one by one and wrong together: the key to complain of, and what is wrong."""
    capacity, slice_ = said["capacity"], said.get("type")
    if capacity is None:
        return
    mode = capacity.value
    if capacity.comes_and_goes and slice_ and not slice_.machine_type.flex_start:
        yield "capacity", f"'{mode}' does not exist for {slice_.machine_type.name}; use on-demand, spot or reservation"
    if capacity.comes_and_goes and said.get("autoscaled") is False:
        yield (
            "autoscaled",
            f"'false' cannot be with capacity '{mode}', which has nodes only while jobs need them; remove it",
        )
    if not capacity.comes_and_goes and "max_run_hours" in said:
        yield "max_run_hours", f"has no meaning with capacity '{mode}', which has no end; remove it"
    if capacity is CapacityMode.RESERVATION and "reservation" not in said:
        yield "capacity", "'reservation' does not say which; add reservation: NAME"
    for key, needed in (
        ("reservation_block", "reservation"),
        ("reservation_sub_block", "reservation_block"),
    ):
        if key in said and needed not in said:
            yield key, f"needs {needed}, of which it is a part"
    if "reservation" in said and capacity is not CapacityMode.RESERVATION:
        yield "reservation", f"is not used with capacity '{mode}'; set capacity: reservation, or remove it"


def _affinity(said: Mapping[str, Any]) -> str:
    """https://cloud.google.com/kubernetes-engine/docs/how-to/consuming-reservations"""
    parts = [said.get("reservation", "")]
    if "reservation_block" in said:
        parts += ["reservationBlocks", said["reservation_block"]]
    if "reservation_sub_block" in said:
        parts += ["reservationSubBlocks", said["reservation_sub_block"]]
    return "/".join(parts)


def _team(reader: Reader, name: str, value: Value, declared: tuple[str, ...], *, host_access: bool) -> Team | None:
    """The team, or None if its name is wrong. `host_access` is what it has if it says nothing.

    A wrong value counts as absent, so that later checks still run.
    """
    named = True
    try:
        values.namespace(name)
    except ValueError as error:
        reader.complain(value, f"{quoted(name)} {error}")
        named = False
    inner = {} if value.empty else reader.mapping(value, "share, priority, members and more, or nothing")
    given = reader.known(inner, (*_TEAM, "members", "pools"))
    parsed = {key: reader.parsed(given[key], parse_) for key, parse_ in _TEAM.items() if key in given}
    said = {key: known for key, known in parsed.items() if known is not None}
    members = reader.listed(given["members"], member) if "members" in given else []
    a_pool = fleet_values.one_of("pool group of tpu_pools", declared)
    pools = reader.listed(given["pools"], a_pool) if "pools" in given else declared
    if not named:
        return None
    return Team(
        name=name,
        share=said.get("share", Fraction(1)),
        pools=tuple(group for group in declared if group in pools),
        priority=said.get("priority"),
        borrowing_limit=said.get("borrowing", fleet_values.NO_LIMIT).slices,
        lending_limit=said.get("lending", fleet_values.NO_LIMIT).slices,
        members=tuple(members),
        host_access=said.get("host_access", host_access),
    )
