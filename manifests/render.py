"""Fills in the ${NAMES} of the workloads' YAML files with the values of an environment."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from environment import Environment, PoolGroup, Team
from vocabulary.keys import LOCAL_QUEUE, POOL_GROUP_LABEL, TEAM_ACCOUNT
from vocabulary.text_file import Unreadable, read_text

WORKLOADS = Path(__file__).parent

# The priority class of the jobs of a team that sets none: other jobs can still go before or behind them by their label.
DEFAULT_PRIORITY = "medium"

_RECORD = ".rendered"  # in the output folder: the files that the last run wrote, one a line
_NAME = re.compile(r"(\$?)\$\{([^}\n]*)\}?")  # $${NAME} is the text ${NAME}; $NAME and $(NAME) are left as they are


class BadManifest(ValueError):
    """Files in manifests/ that cannot be rendered. The text has a line for every mistake."""


def render(environment: Environment, folder: Path, *, workloads: Path = WORKLOADS) -> tuple[Path, ...]:
    """Writes every workload for every team and every pool group that the team may use; returns the files.

    A workload is a folder in `workloads`. Its only YAML file becomes `{team}/{group}/{workload}.yaml` in `folder`; if
    it has several, each keeps its name in `{team}/{group}/{workload}/`. Files that an earlier run wrote and this one
    did not are deleted. Raises BadManifest, and writes nothing, if a file cannot be read or has a ${NAME} that does
    not exist.
    """
    texts: dict[Path, str] = {}
    mistakes: dict[str, None] = {}  # a dict keeps their order; each is the same for every team and group
    for workload, template, path in _templates(workloads):
        try:
            text = read_text(template, holds="Kubernetes objects")
        except Unreadable as error:
            mistakes[f"{_shown(template, workloads)}: {error}"] = None
            continue
        for team in environment.teams:
            for group in (group for group in environment.groups if group.name in team.pools):
                names = _names(environment, team, group, workload)
                mistakes |= dict.fromkeys(f"{_shown(template, workloads)}:{line}" for line in _unknown(text, names))
                texts[folder / team.name / group.name / path] = _filled(text, names)
    if mistakes:
        raise BadManifest("\n".join(mistakes))
    for file, text in texts.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    _delete_earlier(folder, texts)
    return tuple(texts)


def _templates(workloads: Path) -> Iterator[tuple[str, Path, Path]]:
    """Each YAML file of each workload: the workload's name, the file, and the path of what it is rendered to."""
    for workload in sorted(path for path in workloads.iterdir() if path.is_dir()):
        files = sorted(path for path in workload.rglob("*") if path.suffix in (".yaml", ".yml") and path.is_file())
        for file in files:
            several = len(files) > 1
            yield workload.name, file, file.relative_to(workloads) if several else Path(f"{workload.name}.yaml")


def _unknown(text: str, names: Mapping[str, str]) -> Iterator[str]:
    """A message for each ${NAME} that does not exist, after the number of its line."""
    for match in _NAME.finditer(text):
        dollar, name = match.groups()
        if not dollar and name not in names:
            nearest = difflib.get_close_matches(name.upper()[:64], names, n=1, cutoff=0.6)
            hint = f"; did you mean ${{{nearest[0]}}}?" if nearest else ";"
            line = text.count("\n", 0, match.start()) + 1
            yield (
                f"{line}: {match[0]} is not a name that is filled in{hint} There are {', '.join(sorted(names))}; "
                f"write ${match[0]} where the manifest itself needs that text"
            )


def _filled(text: str, names: Mapping[str, str]) -> str:
    return _NAME.sub(lambda match: match[0][1:] if match[1] else names.get(match[2], ""), text)


def _delete_earlier(folder: Path, written: Iterable[Path]) -> None:
    """Deletes what the last run wrote and this one did not, which could still be submitted: nobody else's files."""
    record = folder / _RECORD
    earlier = set(record.read_text(encoding="utf-8").splitlines()) if record.exists() else set()
    now = [str(file.relative_to(folder)) for file in written]
    for file in [file for file in folder.rglob("*") if str(file.relative_to(folder)) in earlier.difference(now)]:
        file.unlink()
        for parent in file.relative_to(folder).parents[:-1]:
            if not any((folder / parent).iterdir()):
                (folder / parent).rmdir()
    folder.mkdir(parents=True, exist_ok=True)
    record.write_text("".join(f"{path}\n" for path in now), encoding="utf-8")


def _shown(template: Path, workloads: Path) -> str:
    return str(template.relative_to(workloads.parent))


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
