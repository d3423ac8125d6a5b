"""Fills in the ${NAMES} of the workloads' YAML files with the values of an environment."""

from __future__ import annotations

import difflib
import json
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from environment import Environment, PoolGroup, Team
from vocabulary.keys import LOCAL_QUEUE, POOL_GROUP_LABEL, TEAM_ACCOUNT
from vocabulary.printable import printable, shortened
from vocabulary.text_file import Unreadable, read_text

WORKLOADS = Path(__file__).parent

# The priority class of the jobs of a team that sets none: other jobs can still go before or behind them by their label.
DEFAULT_PRIORITY = "medium"

_RECORD = ".rendered"  # in the output folder: the files that the last run wrote, as a JSON list
_MOST_MISTAKES = 20
_NAME = re.compile(r"(\$?)\$\{([^}\n]*)\}?")  # $${NAME} is the text ${NAME}; $NAME and $(NAME) are left as they are


class BadManifest(ValueError):
    """Files in manifests/ that cannot be rendered. The text has a line for every mistake."""


def render(environment: Environment, folder: Path, *, workloads: Path = WORKLOADS) -> tuple[Path, ...]:
    """Writes every workload for every team and every pool group that the team may use; returns the files.

    A workload is a folder in `workloads`. Its only YAML file becomes `{team}/{group}/{workload}.yaml` in `folder`; if
    it has several, each keeps its name in `{team}/{group}/{workload}/`. Files that an earlier run wrote and this one
    did not are deleted. Raises BadManifest, and writes nothing, if a file cannot be read, has a ${NAME} that does not
    exist, or would replace a file that no run wrote; and if the file system refuses.
    """
    try:
        texts = _texts(environment, workloads)
        earlier = _earlier(folder)
        stale = _stale(folder, set(earlier or ()).difference(texts))
        _refuse(_obstacles(folder, texts, earlier, stale))
        _write(folder, texts, earlier or (), stale)
    except OSError as error:
        path = error.filename2 or error.filename or folder
        raise BadManifest(f"{printable(str(path))}: {error.strerror or error}") from None
    return tuple(folder / path for path in texts)


def _texts(environment: Environment, workloads: Path) -> dict[str, str]:
    """What every file is to hold, by its path in the output folder. Raises BadManifest."""
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
    _refuse(mistakes)
    return texts


def _refuse(mistakes: Iterable[str]) -> None:
    """Raises BadManifest if there are any."""
    lines = list(mistakes)
    if len(lines) > _MOST_MISTAKES:
        lines[_MOST_MISTAKES:] = [f"and {len(lines) - _MOST_MISTAKES} more"]
    if lines:
        raise BadManifest("\n".join(lines))


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


def _earlier(folder: Path) -> frozenset[str] | None:
    """What the last run wrote, as paths in the folder; None if there is no record of it that can be read."""
    try:
        paths = json.loads((folder / _RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        return None
    return frozenset(str(Path(path)) for path in paths)


def _stale(folder: Path, paths: Iterable[str]) -> list[Path]:
    """The files of these that are in the folder itself, not behind `..` or a symbolic link."""
    inside = (folder / path for path in paths if ".." not in Path(path).parts)
    return [
        file
        for file in inside
        if os.path.lexists(file)
        and file.is_relative_to(folder)
        and not any(parent.is_symlink() for parent in _between(folder, file))
        and (file.is_symlink() or not file.is_dir())
    ]


def _between(folder: Path, file: Path) -> list[Path]:
    """The folders in `folder` that the file is in, the innermost first."""
    return [folder / parent for parent in file.relative_to(folder).parents[:-1]]


def _obstacles(
    folder: Path, texts: Mapping[str, str], earlier: Collection[str] | None, stale: Collection[Path]
) -> Iterator[str]:
    """A message for each path where a file cannot be written, or would replace one that no run wrote."""
    going = {*stale, *(parent for file in stale for parent in _between(folder, file))}
    obstacles = {}
    for path, text in texts.items():
        file = folder / path
        for parent in _between(folder, file):
            if parent.is_symlink() or (parent.exists() and not parent.is_dir()):
                obstacles[parent] = parent not in stale
        if file.is_symlink() or file.is_file():
            equal = not file.is_symlink() and file.read_bytes() == text.encode()
            obstacles[file] = earlier is not None and path not in earlier and not equal
        elif file.exists():
            obstacles[file] = not going.issuperset([file, *file.rglob("*")])
    for file, stays in obstacles.items():
        if stays:
            yield f"{printable(str(file))}: not written by an earlier synthesis; move it away"


def _write(folder: Path, texts: Mapping[str, str], earlier: Iterable[str], stale: Iterable[Path]) -> None:
    """Deletes what is stale, which could still be submitted, then writes the files."""
    folder.mkdir(parents=True, exist_ok=True)
    # Both, so that the next run knows its predecessor's files wherever this one ends.
    _replace(folder / _RECORD, json.dumps(sorted({*earlier, *texts})))
    for file in stale:
        file.unlink()
        for parent in _between(folder, file):
            if not any(parent.iterdir()):
                parent.rmdir()
    for path, text in texts.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        _replace(file, text)
    _replace(folder / _RECORD, json.dumps(list(texts)))


def _replace(file: Path, text: str) -> None:
    """Writes the file whole, and never through a symbolic link."""
    new = file.with_name(f"{_RECORD}.{os.getpid()}")
    new.unlink(missing_ok=True)
    try:
        with new.open("x", encoding="utf-8") as stream:
            stream.write(text)
        new.replace(file)
    finally:
        new.unlink(missing_ok=True)


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
