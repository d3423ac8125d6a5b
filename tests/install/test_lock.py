"""The lock files say everything once: exact versions with checksums, for what is asked for and what depends on them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from stacks.bindings import BINDINGS, JSII_VERSION

ROOT = Path(__file__).parent.parent.parent

# A requirement and the lines that go on after a backslash.
LOCKED = re.compile(r"^([a-z0-9-]+)==(\S+)((?:.*\\\n)+.*)", re.MULTILINE)


def locked() -> dict[str, set[str]]:
    """The versions of each package: more than one where they differ between Pythons."""
    versions: dict[str, set[str]] = {}
    for name, version, _ in LOCKED.findall((ROOT / "requirements.txt").read_text()):
        versions.setdefault(name, set()).add(version)
    return versions


def node_packages() -> dict[str, dict[str, Any]]:
    return dict(json.loads((ROOT / "package-lock.json").read_text())["packages"])


def test_every_python_package_is_one_version_with_checksums() -> None:
    text = (ROOT / "requirements.txt").read_text()
    names = [line.split("==")[0] for line in text.splitlines() if re.match(r"[a-zA-Z0-9]", line)]
    checked = [name for name, _, rest in LOCKED.findall(text) if "--hash=sha256:" in rest]
    assert names == checked
    assert len(names) > 50


def test_everything_asked_for_is_locked_as_asked() -> None:
    versions = locked()
    lines = (ROOT / "requirements.in").read_text().splitlines()
    for line in (line for line in lines if line and not line.startswith("#")):
        name, _, exact = line.partition("==")
        name = re.split(r"[<>=]", name)[0].lower()
        assert name in versions, line
        assert not exact or versions[name] == {exact}, line


def test_the_bindings_that_are_made_fast_are_the_locked_ones() -> None:
    versions = locked()
    assert versions["jsii"] == {JSII_VERSION}
    for binding in BINDINGS:
        assert versions[binding.package.replace("_", "-")] == {binding.version}


def test_the_cdktf_cli_is_the_version_of_the_library() -> None:
    assert {node_packages()["node_modules/cdktf-cli"]["version"]} == locked()["cdktf"]


def test_every_node_package_has_a_checksum_and_no_address_of_its_own() -> None:
    """So any registry will do, and what it gives is what was locked."""
    for path, package in node_packages().items():
        assert "resolved" not in package, path
        assert not path or package.get("inBundle") or package["integrity"].startswith("sha512-"), path
