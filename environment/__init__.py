"""What the environment is: vars.env and the process environment, checked whole and turned into an Environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from environment.addresses import address_problems, address_warnings
from environment.fleet import (
    CapacityMode,
    Member,
    MemberKind,
    PoolGroup,
    Team,
    fleet_problems,
    fleet_warnings,
    groups_of,
    teams_of,
)
from environment.names import Names, name_problems, names_of
from environment.problems import Problem, Refused
from environment.settings import Settings, conflicts, read_settings, settings_warnings
from environment.vars_file import read_vars_file

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
    "load",
]


@dataclass(frozen=True, kw_only=True)
class Environment:
    """One environment, checked: what the stacks, the manifests and the commands are made from."""

    settings: Settings
    groups: tuple[PoolGroup, ...]
    teams: tuple[Team, ...]
    fair_sharing: bool  # whether Kueue weighs teams by their shares when several want what is idle
    warnings: tuple[str, ...]  # as the problems of Refused: `KEY: what may be wrong`

    @property
    def names(self) -> Names:
        return names_of(self.settings)


def load(vars_env: Path, process_env: Mapping[str, str]) -> Environment:
    """The environment that a vars.env describes. Raises Refused with every problem at once, and nothing else.

    A key of vars.env that is set in `process_env` wins over the file; one that is set and empty there counts as not
    set.
    """
    file = read_vars_file(vars_env)
    if not file.readable:
        raise Refused(tuple(_line(problem, process_env) for problem in file.problems))
    settings, problems, bad = read_settings(file, process_env)
    groups, teams = groups_of(settings), teams_of(settings)
    together = [
        *conflicts(settings),
        *address_problems(settings, groups),
        *fleet_problems(settings, groups),
        *name_problems(settings, groups, teams),
    ]
    # What is wrong with one key says nothing true about the keys it is checked with.
    problems += [problem for problem in together if not bad.intersection(problem.keys)]
    if problems:
        raise Refused(tuple(_line(problem, process_env) for problem in problems))
    warnings = [
        *settings_warnings(settings, datetime.now(timezone.utc)),
        *address_warnings(settings),
        *fleet_warnings(settings, groups),
    ]
    return Environment(
        settings=settings,
        groups=groups,
        teams=teams,
        fair_sharing=False,
        warnings=tuple(_line(warning, process_env) for warning in warnings),
    )


def _line(problem: Problem, process_env: Mapping[str, str]) -> str:
    outside = [key for key in problem.keys if process_env.get(key, "").strip()]
    origin = f" ({', '.join(outside)} from the process environment, which wins over vars.env)" if outside else ""
    return f"{problem.keys[0]}: {problem.message}{origin}"
