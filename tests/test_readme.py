"""The README is true: its tables, its commands, the files it names."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

import environment
from environment import Settings
from environment.kubernetes.queues import queue_objects
from tests.generate.readme_tables import README, ROOT, replaced
from tests.synthesis import STACKS

TEXT = README.read_text(encoding="utf-8")
KEYS = {field.name.upper() for field in dataclasses.fields(Settings)}


def test_its_tables_are_what_the_code_says() -> None:
    assert replaced(TEXT) == TEXT, "the README's tables are old: run python -m tests.generate.readme_tables"


def test_it_maps_the_sandboxs_variables_to_settings_that_exist() -> None:
    table = TEXT.split("<!-- sandbox:begin -->")[1].split("<!-- sandbox:end -->")[0]
    rows = [row.split("|") for row in table.strip().splitlines()[2:]]
    assert len(rows) >= 18
    for _, theirs, ours, _ in rows:
        for key in re.findall(r"`([A-Z][A-Z_]+)`", ours):
            assert key in KEYS, f"{theirs.strip()} is mapped to {key}, which is no setting"


@pytest.mark.parametrize("target", sorted(set(re.findall(r"(?:^|`|=\S+ )make ([a-z-]+)", TEXT, re.MULTILINE))))
def test_every_make_target_that_it_names_exists(target: str) -> None:
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)


def test_every_stack_that_it_names_exists() -> None:
    named = re.findall(r"cdktf (?:deploy|destroy) ([a-z- ]+?)(?: --|`|  |\n)", TEXT)
    assert named
    assert {stack for stacks in named for stack in stacks.split()} <= set(STACKS)


def test_its_fleet_is_one_and_shares_the_slices_as_it_says(tmp_path: Path) -> None:
    (block,) = re.findall(r"```yaml\n(tpu_pools:.*?)```", TEXT, re.DOTALL)
    (tmp_path / "fleet.yaml").write_text(block, encoding="utf-8")
    fleet = environment.load(ROOT / "tests" / "cases" / "default.env", {}, fleet=tmp_path / "fleet.yaml")
    slices = {
        (queue["metadata"]["name"], flavor["name"]): int(quota["nominalQuota"]) // group.slice.chips
        for queue in queue_objects(fleet)
        if queue["kind"] == "ClusterQueue"
        for flavor in queue["spec"]["resourceGroups"][0]["flavors"]
        for group in fleet.groups
        if group.name == flavor["name"]
        for quota in flavor["resources"]
        if quota["name"] == "google.com/tpu"
    }
    assert "research owns\ntwo slices of `pretrain` and three of `dev`, serving one of each" in TEXT
    assert slices == {
        ("research", "pretrain"): 2,
        ("research", "dev"): 3,
        ("serving", "pretrain"): 1,
        ("serving", "dev"): 1,
    }


def test_every_setting_that_its_commands_set_exists() -> None:
    named = set(re.findall(r"\b([A-Z][A-Z_]+)=[a-z0-9]", TEXT))
    assert {"DELETION_PROTECTION", "DESTROY_DATA", "TPU_TYPE"} <= named <= KEYS


def test_every_folder_and_file_of_its_layout_exists() -> None:
    layout = re.search(r"^## How it is built\n\n((?:    .*\n)+)", TEXT, re.MULTILINE)
    assert layout
    for line in layout.group(1).splitlines():
        for name in line[4:24].split():
            assert (ROOT / name).exists(), name
