"""What the environment is: an Environment, from vars.env, fleet.yaml and the process environment, checked together.

Pure Python, no cdktf, no I/O but reading the two files and the tables of its own, and checking the output folder.
Imports vocabulary/ alone.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from environment.addresses import address_problems, address_warnings
from environment.fleet.checks import fleet_problems, fleet_warnings, misnamed_fleet
from environment.fleet.model import (
    CapacityMode,
    Fleet,
    PoolGroup,
    Team,
    TpuVm,
    implicit_fleet,
)
from environment.fleet.quotas import quota_problems, quota_warnings
from environment.locations import unlisted
from environment.members import Member, MemberKind
from environment.name_limits import name_problems
from environment.names import Names
from environment.problems import Problem, Refused
from environment.settings.checks import conflicts, settings_warnings
from environment.settings.file import read_vars_file
from environment.settings.model import KEYS, Settings, read_settings
from environment.settings.near_keys import near_key_warnings

__all__ = [
    "CapacityMode",
    "Environment",
    "Member",
    "MemberKind",
    "Names",
    "PoolGroup",
    "Refused",
    "Settings",
    "Team",
    "TpuVm",
    "load",
]


@dataclass(frozen=True, kw_only=True)
class Environment:
    """One environment, checked: the input of the stacks, the manifests and the commands."""

    settings: Settings
    groups: tuple[PoolGroup, ...]
    teams: tuple[Team, ...]
    fair_sharing: bool  # whether Kueue weighs teams by their shares when several ask for what is idle
    warnings: tuple[str, ...]  # as the problems of Refused: `KEY: what may be wrong`
    unlisted: tuple[
        str, ...
    ] = ()  # those of the warnings that are about what Google does not publish: new, or mistyped
    tpu_vms: tuple[TpuVm, ...] = ()

    @property
    def names(self) -> Names:
        return Names(self.settings)


def load(vars_env: Path, process_env: Mapping[str, str], fleet: Path | None = None) -> Environment:
    """The environment that a vars.env describes, and a fleet.yaml if `fleet` is there.

    Raises Refused with every problem of both at once, and nothing else. A key of vars.env that is set in `process_env`
    takes precedence over the file; one that is set and empty there counts as not set.
    """
    file = read_vars_file(vars_env)
    # A broken link counts as a file that cannot be read: the defaults must not replace what it should say.
    fleet_file = fleet if fleet and os.path.lexists(fleet) else None
    settings, problems, bad = read_settings(file, process_env, fleet_file=fleet_file.name if fleet_file else "")
    described, of_fleet = _fleet(fleet_file, settings)
    if fleet and not fleet_file:
        of_fleet += misnamed_fleet(fleet)
    if not file.readable:
        raise Refused(tuple(_line(problem, process_env) for problem in (*file.problems, *of_fleet)))
    now = datetime.now(timezone.utc)
    together = [
        *conflicts(settings, now),
        *address_problems(settings, described),
        *fleet_problems(settings, described),
        *name_problems(settings, described),
        # Shares mean nothing while parts of the fleet are left out because of their problems.
        *(() if of_fleet else quota_problems(described)),
    ]
    # A check that involves a key without a known value would report nonsense.
    problems += of_fleet + [problem for problem in together if not bad.intersection(problem.keys)]
    if problems:
        raise Refused(tuple(_line(problem, process_env) for problem in problems))
    warnings = [
        *near_key_warnings(process_env),
        *settings_warnings(settings, now),
        *address_warnings(settings),
        *fleet_warnings(settings, described),
        *quota_warnings(described),
    ]
    new = list(unlisted(settings, described))
    return Environment(
        settings=settings,
        groups=described.groups,
        teams=described.teams,
        fair_sharing=described.fair_sharing,
        warnings=tuple(_line(warning, process_env) for warning in (*warnings, *new)),
        unlisted=tuple(_line(problem, process_env) for problem in new),
        tpu_vms=described.tpu_vms,
    )


def _fleet(file: Path | None, settings: Settings) -> tuple[Fleet, list[Problem]]:
    if file is None:
        return implicit_fleet(settings), []
    # Imported only where it is needed: importing PyYAML takes time, and nothing else here does.
    from environment.fleet.file import read_fleet_file

    return read_fleet_file(file, settings)


def _line(problem: Problem, process_env: Mapping[str, str]) -> str:
    outside = [key for key in problem.keys if key in KEYS and process_env.get(key, "").strip()]
    origin = (
        f" ({', '.join(outside)} from the process environment, which takes precedence over vars.env)" if outside else ""
    )
    return f"{problem.keys[0]}: {problem.message}{origin}"
