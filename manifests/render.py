"""Fills in the ${NAMES} of the workloads' YAML files with the values of an environment."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from environment import Environment, PoolGroup, Team
from vocabulary.keys import LOCAL_QUEUE, POOL_GROUP_LABEL, TEAM_ACCOUNT
from vocabulary.printable import limited, printable, shortened
from vocabulary.text_file import Unreadable, read_text

WORKLOADS = Path(__file__).parent

# The priority class of the jobs of a team that sets none: other jobs can still go before or behind them by their label.
DEFAULT_PRIORITY = "medium"

_MOST_MISTAKES = 20
_NAME = re.compile(r"(\$?)\$\{([^}\n]*)\}?")  # $${NAME} is the text ${NAME}; $NAME and $(NAME) are left as they are


class BadManifest(ValueError):
    """Files in manifests/ that cannot be rendered. The text has a line for every mistake."""


def render(environment: Environment, *, workloads: Path = WORKLOADS) -> dict[str, str]:
    """The text of every workload for every team and every pool group that the team may use, by its path.

    A workload is a folder in `workloads`. Its only YAML file becomes `{team}/{group}/{workload}.yaml`; if it has
    several, each keeps its name in `{team}/{group}/{workload}/`. Raises BadManifest if a file cannot be read, has a
    ${NAME} that does not exist, or has the path of another.
    """
    try:
        return _texts(environment, workloads)
    except OSError as error:
        path = error.filename or workloads
        raise BadManifest(f"{printable(str(path))}: {error.strerror or error}") from None


def _texts(environment: Environment, workloads: Path) -> dict[str, str]:
    texts: dict[str, str] = {}
    mistakes: dict[str, None] = {}  # a dict keeps their order; each is the same for every team and group
    templates: dict[Path, Path] = {}  # by the path of what each is rendered to
    for workload, template, path in _templates(workloads):
        shown = _shown(template, workloads)
        try:
            str(template).encode()
            text = read_text(template, holds="Kubernetes objects")
        except UnicodeEncodeError:
            mistakes[f"{shown}: its name is not UTF-8; rename it"] = None
            continue
        except Unreadable as error:
            mistakes[f"{shown}: {error}"] = None
            continue
        for other in templates:
            if other == path or other in path.parents or path in other.parents:
                both = f"{_shown(templates[other], workloads)} and {shown}"
                written = printable(str(min(path, other, key=lambda clashing: len(clashing.parts))))
                mistakes[f"{both}: both would be written to {written}; rename one of the workloads"] = None
        templates[path] = template
        for team in environment.teams:
            for group in (group for group in environment.groups if group.name in team.pools):
                names = _names(environment, team, group, workload)
                mistakes |= dict.fromkeys(f"{shown}:{line}" for line in _unknown(text, names))
                texts[str(Path(team.name, group.name, path))] = _filled(text, names)
    if mistakes:
        raise BadManifest(limited(mistakes, most=_MOST_MISTAKES))
    return texts


def _templates(workloads: Path) -> Iterator[tuple[str, Path, Path]]:
    """Each YAML file of each workload: the workload's name, the file, and the path of what it is rendered to."""
    for workload in sorted(path for path in workloads.iterdir() if path.is_dir() and not _is_hidden(path.name)):
        files = sorted(_yaml_files(workload))
        for file in files:
            several = len(files) > 1
            yield workload.name, file, file.relative_to(workloads) if several else Path(f"{workload.name}.yaml")


def _yaml_files(workload: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(workload, onerror=_raise):
        folders[:] = [name for name in folders if not _is_hidden(name)]
        paths = (Path(folder, name) for name in names if not _is_hidden(name))
        yield from (path for path in paths if path.suffix in (".yaml", ".yml") and path.is_file())


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or name == "__pycache__"


def _raise(error: OSError) -> None:
    raise error


def _unknown(text: str, names: Mapping[str, str]) -> Iterator[str]:
    """A message for each ${NAME} that does not exist, after the number of its line."""
    for match in _NAME.finditer(text):
        dollar, name = match.groups()
        if not dollar and name not in names:
            nearest = difflib.get_close_matches(name.upper()[:64], names, n=1, cutoff=0.6)
            hint = f"; did you mean ${{{nearest[0]}}}?" if nearest else ";"
            shown = shortened(match[0], longest=60)
            line = text.count("\n", 0, match.start()) + 1
            yield (
                f"{line}: {shown} is not a name that is filled in{hint} there are {', '.join(sorted(names))}; "
                f"write ${shown} where the manifest itself needs that text"
            )


def _filled(text: str, names: Mapping[str, str]) -> str:
    return _NAME.sub(lambda match: match[0][1:] if match[1] else names.get(match[2], ""), text)


def _shown(template: Path, workloads: Path) -> str:
    return printable(str(template.relative_to(workloads.parent)))


def _names(environment: Environment, team: Team, group: PoolGroup, workload: str) -> dict[str, str]:
    slice_ = group.slice
    return {
        "NAMESPACE": team.name,
        "QUEUE": LOCAL_QUEUE,
        "PRIORITY": team.priority or DEFAULT_PRIORITY,
        "SERVICE_ACCOUNT": TEAM_ACCOUNT,
        "BUCKET": environment.names.bucket(team.name),
        "IMAGE": f"{environment.names.registry_url}/{workload}",
        "POOL_GROUP_LABEL": POOL_GROUP_LABEL,
        "POOL_GROUP": group.name,
        "TPU_TYPE": slice_.tpu_type,
        "ACCELERATOR": slice_.accelerator,
        "TOPOLOGY": slice_.topology,
        "HOSTS": str(slice_.hosts),
        "CHIPS_PER_HOST": str(slice_.chips_per_host),
        "CHIPS": str(slice_.chips),
        "SLICES": str(group.slices),
    }
