"""What the environment is: vars.env and the process environment, checked whole and turned into an Environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from environment.fleet import PoolGroup, Team, groups_of, teams_of
from environment.names import Names, name_problems, names_of
from environment.problems import Problem, Refused
from environment.settings import Settings, conflicts, read_settings
from environment.vars_file import read_vars_file

__all__ = ["Environment", "Names", "PoolGroup", "Refused", "Settings", "Team", "load"]


@dataclass(frozen=True, kw_only=True)
class Environment:
    """One environment, checked: what the stacks, the manifests and the commands are made from."""

    settings: Settings
    groups: tuple[PoolGroup, ...]
    teams: tuple[Team, ...]
    warnings: tuple[str, ...]

    @property
    def names(self) -> Names:
        return names_of(self.settings)


def load(vars_env: Path, process_env: Mapping[str, str]) -> Environment:
    """Reads `vars_env`; a key that is set, and not empty, in `process_env` wins. Raises Refused with all problems."""
    file = read_vars_file(vars_env)
    settings, problems, bad = read_settings(file, process_env)
    groups, teams = groups_of(settings), teams_of(settings)
    together = [
        *conflicts(settings),
        *name_problems(
            settings,
            teams=[team.name for team in teams],
            groups=[group.name for group in groups],
            node_pools=[pool for group in groups for pool in group.node_pools],
        ),
    ]
    problems = [*file.problems, *problems, *(each for each in together if not bad.intersection(each.keys))]
    if problems:
        raise Refused(tuple(_line(problem, process_env) for problem in problems))
    return Environment(settings=settings, groups=groups, teams=teams, warnings=())


def _line(problem: Problem, process_env: Mapping[str, str]) -> str:
    return f"{problem.keys[0]}: {problem.message}"
