"""Writes tests/facts/documented_manifests.yaml from the repositories in the folder CORPUS:
python -m tests.generate.documented_manifests

The folder has a bare repository for each, OWNER+NAME/repo. Repositories, commits and reasons stay as the file has them.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from admission import boundary
from admission.workload import KINDS, Field, NotAWorkload, Workload

FACTS = Path(__file__).parent.parent / "facts" / "documented_manifests.yaml"
HEADER = """\
# Which documented manifests a team's namespace refuses: written by tests.generate.documented_manifests, but for the
# reasons and the commits. `taken` are not refused, `unread` are templates or excerpts. Of those that are refused,
# `codes` are rules of vocabulary/team_rules.py, and `host_access` those of them that stay for a team with host_access.
"""

# What is tried out by a project's own tests is not what it documents.
_NOT_DOCUMENTED = re.compile(r"(^|/)(test|tests|testdata)/")
_FILES = re.compile(r"\.(ya?ml|md|j2|tpl|template)$")
_KIND = re.compile(rf"^kind: *[\"']?({'|'.join(KINDS)})[\"']? *$", re.MULTILINE)
# In a page, between other text: what is indented as its first line is, or further.
_IN_PAGE = re.compile(r"^(?P<by> *)(?:apiVersion|kind): .*\n(?:(?:(?P=by)(?: |#|\w+:).*)?\n)*", re.MULTILINE)


def computed(facts: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The facts as the repositories in the folder have them."""
    rows = [{key: row[key] for key in ("repository", "commit")} for row in facts["repositories"]]
    return facts | {"repositories": [row | _answers(_git_folder(folder, row), row["commit"]) for row in rows]}


def written(facts: dict[str, Any]) -> str:
    flow = {"reasons": False, "repositories": None}  # None: the innermost lists are on one line
    return HEADER + "".join(
        yaml.safe_dump({key: facts[key]}, sort_keys=False, default_flow_style=style, width=200)
        for key, style in flow.items()
    )


def _git_folder(folder: Path, row: dict[str, str]) -> Path:
    return folder / row["repository"].replace("/", "+") / "repo"


def _answers(repository: Path, commit: str) -> dict[str, Any]:
    taken, unread, refused = 0, 0, []
    for path, text in _documents(repository, commit):
        try:
            manifest = yaml.safe_load(text)
            codes, left = (_codes(manifest, host_access=host_access) for host_access in (False, True))
        except (yaml.YAMLError, NotAWorkload):
            unread += 1
            continue
        if codes:
            named = manifest.get("metadata") or {}
            name = named.get("name") or named.get("generateName", "")
            row = {"path": path, "kind": manifest["kind"], "name": name, "codes": codes}
            refused.append(row | ({"host_access": left} if left else {}))
        taken += not codes
    return {"taken": taken, "unread": unread, "refused": refused}


def _codes(manifest: Any, *, host_access: bool) -> list[str]:
    whole = Field(manifest)
    workload = Workload(kind=whole.get("kind").text(), name="", namespace="", labels={}, pod_sets=(), manifest=whole)
    within = boundary.Boundary(host_access=host_access)
    rules = [boundary.within(within, rule) for rule in boundary.BOOK.rules]
    return sorted({reason.code for rule in rules for reason in rule.reasons(workload)})


def _documents(repository: Path, commit: str) -> Iterator[tuple[str, str]]:
    """Each that says one of the kinds, with the path of its file."""
    kinds = [word for kind in KINDS for word in ("-e", f"kind: *[\"']?{kind}")]
    for found in _git(repository, "grep", "-lzE", *kinds, commit).split("\0"):
        path = found.partition(":")[2]
        if _FILES.search(path) and not _NOT_DOCUMENTED.search(path):
            text = _git(repository, "show", f"{commit}:{path}")
            page = path.endswith(".md")
            parts = [match[0] for match in _IN_PAGE.finditer(text)] if page else re.split(r"(?m)^---.*$", text)
            yield from ((path, textwrap.dedent(part)) for part in parts if _KIND.search(textwrap.dedent(part)))


def _git(repository: Path, *words: str) -> str:
    return subprocess.run(
        ["git", "-C", str(repository), *words], capture_output=True, check=True, text=True, errors="replace"
    ).stdout


def main() -> None:
    facts = yaml.safe_load(FACTS.read_text(encoding="utf-8"))
    FACTS.write_text(written(computed(facts, Path(os.environ["CORPUS"]))), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
