"""The pages are true: their tables and links, and every command, option, setting, stack and file that they name."""

from __future__ import annotations

import dataclasses
import hashlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

import environment
from environment import Settings
from environment.kubernetes.queues import queue_objects
from environment.names import PIPELINE, TPU_VMS
from manifests.render import render
from tests import published
from tests.generate.docs_tables import PAGES, with_tables
from tests.synthesis import STACKS
from tpuenv import main

ROOT = Path(__file__).resolve().parent.parent
DOCS = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("docs/*.md"))
TEXTS = {
    page: (ROOT / page).read_text(encoding="utf-8") for page in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", *DOCS)
}
KEYS = {field.name.upper() for field in dataclasses.fields(Settings)}
# Variables and placeholders that are no settings.
OTHER_VARIABLES = {
    "CASE",
    "CONNECTION",
    "CRD_DIR",
    "GENERATION",
    "KUBECONFIG",
    "NO_COLOR",
    "RAY_AUTH_MODE",
    "RAY_AUTH_TOKEN",
    "PYTHON",
    "PYTHON_WORKLOADS",
    "TF_REATTACH_PROVIDERS",
    "TPUENV_CLUSTER_ENDPOINT",
    "TPUENV_FOLDER",
    "TPUENV_PLAIN_BINDINGS",
}
SANDBOX = "docs/from-the-sandbox.md"
LONGEST_README = 12_000  # bytes
DEFAULT = ROOT / "tests" / "cases" / "default.env"


def mentions(pattern: str) -> list[tuple[str, str]]:
    """Every (page, text) that the group of the pattern matches, once a page."""
    return sorted({(page, match) for page, text in TEXTS.items() for match in re.findall(pattern, text, re.MULTILINE)})


def code(text: str) -> str:
    """The lines of fenced blocks, and what stands in backticks."""
    blocks = re.findall(r"^```(?:sh|text)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return "\n".join([*blocks, *re.findall(r"`([^`\n]+)`", text)])


def anchors(text: str) -> set[str]:
    """The anchors that GitHub gives to the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize(
    ("page", "stacks"), mentions(rf"tpuenv destroy((?: (?:{'|'.join(STACKS)}))+)(?! *-- --ignore)\b")
)
def test_a_shown_destroy_has_all_stacks_that_depend_on_its_stacks(page: str, stacks: str) -> None:
    """Each depends on the one before, and cdktf refuses to leave one out."""
    lowest = min(STACKS.index(stack) for stack in stacks.split())
    assert sorted(stacks.split()) == sorted(STACKS[lowest:]), page


def test_the_readme_can_be_read_in_two_minutes() -> None:
    assert len((ROOT / "README.md").read_bytes()) <= LONGEST_README


@pytest.mark.parametrize("page", PAGES)
def test_tables_are_what_the_code_says(page: str) -> None:
    assert with_tables(page) == TEXTS[page], f"{page} is old: run python -m tests.generate.docs_tables"


@pytest.mark.parametrize(("page", "link"), mentions(r"\]\(((?!https?:)[^)\s]+)\)"))
def test_every_relative_link_leads_somewhere(page: str, link: str) -> None:
    path, _, anchor = link.partition("#")
    target = (ROOT / page).parent / path if path else ROOT / page
    assert target.exists(), f"{page}: {link}"
    if anchor:
        assert anchor in anchors(target.read_text(encoding="utf-8")), f"{page}: {link}"


@pytest.mark.parametrize("page", DOCS)
def test_every_page_is_in_the_index(page: str) -> None:
    name = page.removeprefix("docs/")
    assert name == "README.md" or f"({name})" in TEXTS["docs/README.md"] or f"({page})" in TEXTS["CONTRIBUTING.md"]


@pytest.mark.parametrize(("page", "target"), mentions(r"(?:^|`|=\S+ )make ([a-z-]+)"))
def test_every_make_target_exists(page: str, target: str) -> None:
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE), page


def tpuenv_commands() -> Iterator[tuple[str, str]]:
    """Every (page, command line after `tpuenv`) in the code of the pages."""
    for page, text in TEXTS.items():
        for line in code(text).splitlines():
            called = re.search(r"(?:^|[A-Z]=\S+ |\$ |-m |\$\()tpuenv ([^#&|)]+)", line)
            if called:
                yield page, called.group(1).strip()


def test_every_tpuenv_command_and_option_exists(capsys: pytest.CaptureFixture[str]) -> None:
    helps: dict[str, str] = {}

    def help_of(command: str) -> str:
        if command not in helps:
            assert main.main([*command.split(), "--help"]) == 0, command
            helps[command] = capsys.readouterr().out
        return helps[command]

    assert len(list(tpuenv_commands())) > 50
    for page, line in tpuenv_commands():
        own = line.partition(" -- ")[0].split()
        command = " ".join([] if own[0].startswith("-") else own[: 2 if own[0] == "state" else 1])
        text = help_of(command)
        for option in (word.partition("=")[0] for word in own if word.startswith("-")):
            assert re.search(rf"(?<![\w-]){option}(?![\w-])", text), f"{page}: tpuenv {line}"


def test_every_stack_in_a_command_exists() -> None:
    named = [
        (page, stack)
        for page, text in TEXTS.items()
        for words in re.findall(
            r"(?:cdktf|tpuenv) (?:deploy|destroy|plan|state \w+) ([a-z][a-z -]*?)(?= --|  |\n| #| [A-Z])",
            code(text) + "\n",
        )
        for stack in words.split()
    ]
    assert {"queues", "foundation", PIPELINE} <= {stack for _, stack in named}
    for page, stack in named:
        assert stack in {*STACKS, PIPELINE, TPU_VMS}, f"{page}: {stack}"


def test_every_setting_exists() -> None:
    named = [
        (page, key)
        for page, text in TEXTS.items()
        for key in re.findall(r"(?<![\w$-])[A-Z][A-Z_]+(?==)|^[A-Z]+(?:_[A-Z]+)+$", code(text), re.MULTILINE)
        if page != SANDBOX
    ]
    assert {"DELETION_PROTECTION", "DESTROY_DATA", "TPU_TYPE"} <= {key for _, key in named}
    for page, key in named:
        assert key in KEYS | OTHER_VARIABLES, f"{page}: {key}"


def test_every_file_exists() -> None:
    folders = "|".join(
        path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith((".", "cdktf."))
    )
    named = mentions(rf"`((?:{folders})/[\w./-]*)`")
    assert len(named) > 20
    for page, name in named:
        assert any(ROOT.glob(name.replace("TYPE", "*"))), f"{page}: {name}"


def test_the_layout_names_what_exists_and_every_package() -> None:
    layout = re.search(r"^## Layout\n\n((?:    .*\n)+)", TEXTS["README.md"], re.MULTILINE)
    assert layout
    named = {name for line in layout.group(1).splitlines() for name in line[4:24].split()}
    for name in named:
        assert (ROOT / name).exists(), name
    packages = {f"{path.parent.name}/" for path in ROOT.glob("[a-z]*/__init__.py")}
    assert packages <= named


def test_the_check_that_is_shown_prints_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = render(environment.load(DEFAULT, {}))["tpu-training/tpu/hello-tpu/jobset.yaml"]
    for before, after in (
        ("name: hello-tpu\n  namespace", "name: my-job\n  namespace"),
        ("replicas: 1", "replicas: 3"),
        ('gke-tpu-topology: "4x4"', 'gke-tpu-topology: "4x8"'),
        ('google.com/tpu: "4"', 'google.com/tpu: "8"'),
    ):
        assert before in text
        text = text.replace(before, after)
    (tmp_path / "my-job.yaml").write_text(text, encoding="utf-8")
    monkeypatch.setenv("TPUENV_FOLDER", str(published.folder(tmp_path)))
    assert main.main(["check", str(tmp_path / "my-job.yaml")]) == 1
    (shown,) = re.findall(r"^\$ tpuenv check my-job.yaml\n(.*?)^```", TEXTS["docs/jobs.md"], re.MULTILINE | re.DOTALL)
    assert capsys.readouterr().out == shown


def test_the_fleet_divides_the_slices_as_its_page_says(tmp_path: Path) -> None:
    page = TEXTS["docs/fleet.md"]
    (block,) = re.findall(r"```yaml\n(tpu_pools:.*?)```", page, re.DOTALL)
    (tmp_path / "fleet.yaml").write_text(block, encoding="utf-8")
    fleet = environment.load(DEFAULT, {}, fleet=tmp_path / "fleet.yaml")
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
    assert "research owns two slices of\n`pretrain` and three of `dev`, and serving owns one of each" in page
    assert slices == {
        ("research", "pretrain"): 2,
        ("research", "dev"): 3,
        ("serving", "pretrain"): 1,
        ("serving", "dev"): 1,
    }


def test_the_sandboxs_variables_are_mapped_to_settings_that_exist() -> None:
    table = TEXTS[SANDBOX].split("<!-- sandbox:begin -->")[1].split("<!-- sandbox:end -->")[0]
    rows = [row.split("|") for row in table.strip().splitlines()[2:]]
    assert len(rows) >= 18
    for _, theirs, ours, _ in rows:
        for key in re.findall(r"`([A-Z][A-Z_]+)`", ours):
            assert key in KEYS, f"{theirs.strip()} is mapped to {key}, which is no setting"


def test_the_hooks_of_pre_commit_run_what_the_setup_installs() -> None:
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    (repository,) = config["repos"]
    assert repository["repo"] == "local"
    assert {hook["language"] for hook in repository["hooks"]} == {"system"}
    programs = {hook["entry"].split()[0] for hook in repository["hooks"]}
    assert programs == {".venv/bin/ruff", ".venv/bin/mypy", ".venv/bin/hadolint"}
    for program in programs:
        assert (Path(sys.prefix) / "bin" / Path(program).name).exists(), program


def test_the_changelog_has_this_version() -> None:
    version = re.search(r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
    assert version
    assert f"## [{version.group(1)}]" in TEXTS["CHANGELOG.md"]


def test_the_license_is_apaches_word_for_word() -> None:
    """https://www.apache.org/licenses/LICENSE-2.0.txt"""
    digest = hashlib.sha256((ROOT / "LICENSE").read_bytes()).hexdigest()
    assert digest == "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"
