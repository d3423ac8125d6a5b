"""docs/operate.md has no command that is neither run by tests/rehearsal/test_operate.py nor compared with what its
program takes.
"""

from __future__ import annotations

import csv
import re

import click
import pytest

from environment.project import ROOT
from tests.operate_page import BLOCKS, FENCED, PAGE, TABLE, blocks, words
from tpuenv.main import tpuenv

FACTS = ROOT / "tests" / "facts" / "cloud-commands.csv"
GIT = (["git", "pull"],)
TARGETS = re.findall("^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
# The only lines that are more than one command, or that a shell changes before it runs them.
SHELL = re.compile("[;&|`$<>]")
WITH_SHELL = {
    "kubectl create secret generic hugging-face -n research --from-literal=token=hf_... --dry-run=client -o yaml"
    " | kubectl apply -f -"
}

with FACTS.open(encoding="utf-8", newline="") as file:
    DOCUMENTED = {row["command"]: {*row["options"].split()} for row in csv.DictReader(file)}


def check_command(command: str) -> None:
    """Refuses what its program does not take: an AssertionError, or click's UsageError."""
    assert command in WITH_SHELL or not SHELL.search(command), f"{command}: not one command"
    for typed in map(words, command.split(" | ")):
        assert typed, f"{command}: no command"
        if typed[0] == "tpuenv":
            assert len(typed) > 1, command
            subcommand = tpuenv.get_command(click.Context(tpuenv), typed[1])
            assert subcommand  # never None: click refuses a name that does not exist
            subcommand.make_context(typed[1], typed[2:])
        elif typed[0] == "make":
            assert len(typed) == 2 and typed[1] in TARGETS, command
        elif typed[0] == "git":
            assert typed in GIT, command
        else:
            names = [name for name in DOCUMENTED if f"{' '.join(typed)} ".startswith(f"{name} ")]
            assert names, f"{command}: not in {FACTS.name}"
            given = {word.partition("=")[0] for word in typed if word.startswith("-") and word != "-"}
            assert given <= DOCUMENTED[names[0]], f"{command}: {given - DOCUMENTED[names[0]]}"


def check_page(page: str) -> None:
    """Refuses a command that the long test would not run, unless it is one of `NOT_RUN` or in a sentence, and right."""
    of_page = [*blocks(page)]
    assert {block.kind for block in of_page} == {"yaml", "diff", "sh", "text"}
    for block in of_page:
        assert "```" not in block.text, block.text
        if block.kind == "diff":
            assert re.fullmatch(r"--- \S+\n(?:[ +-].*\n)+", block.text), block.text
        if block.kind == "text":
            assert re.findall(r"^\s*\$ (\S*)", block.text, re.MULTILINE) == ["tpuenv"], block.text
            assert block.text.startswith("$ "), block.text
    table = page.partition(f"## {TABLE}\n")[2].partition("\n## ")[0]
    assert len(of_page[0].commands) == len(re.findall(r"^\|", table, re.MULTILINE)) - 2, "a command in each row"
    prose = re.sub(FENCED, "", page, flags=re.MULTILINE)
    assert not re.search("```|~~~| {4}|\t|<", prose), "a block that is not seen here"
    in_sentences = "`([^`\n]+)`"
    without_code = re.sub(in_sentences, "", prose)
    assert not re.search(r"`|\b(tpuenv|gcloud|kubectl)\s", without_code), "a command that is not seen here"
    for command in [command for block in of_page for command in block.commands]:
        check_command(command)
    for command in re.findall(in_sentences, prose):
        if " " in command:
            check_command(command)


def test_the_page_has_no_command_that_is_neither_run_nor_right() -> None:
    check_page(PAGE)
    assert {command for block in BLOCKS for command in block.commands if SHELL.search(command)} == WITH_SHELL


@pytest.mark.parametrize(
    "added",
    [
        *(
            f"```sh\n{line}\n```"
            for line in (
                "gcloud container clusters update tpu-cluster --region us-east5 && tpuenv frobnicate",
                "kubectl get pods -n research | tpuenv plan",
                'kubectl get pods -n "$(tpuenv plan)"',
                "kubectl get pods -n `tpuenv plan`",
                "kubectl get pods > pods.txt",
                "kubectl get pods --frobnicate",
                "kubectl frobnicate",
                "make setup; tpuenv plan",
                "make setup & tpuenv plan",
                "make frobnicate",
                "git push --force",
                "tpuenv",
                "tpuenv frobnicate",
                "tpuenv plan --frobnicate",
                "bash run.sh",
                "# tpuenv plan",
                "A=a B=b tpuenv plan",
            )
        ),
        "```text\n$ kubectl get pods -n research\ncompared with nothing\n```",
        "```text\n$ tpuenv status\n...\n$ tpuenv plan\n```",
        "```text\ntpuenv plan\n$ tpuenv status\n```",
        "```diff\n--- vars.env\n-A=1\n$ tpuenv plan\n+A=2\n```",
        "```text\n$ tpuenv status\n``` \n\n```sh\ntpuenv plan\n```",
        "```SH\ntpuenv plan\n```",
        "````sh\ntpuenv plan\n````",
        "~~~sh\ntpuenv plan\n~~~",
        "    tpuenv plan",
        "\ttpuenv plan",
        ">     make setup",
        "> ```sh\n> tpuenv plan\n> ```",
        "*     make setup",
        "<pre>\nmake setup\n</pre>",
        "<code>make setup</code>",
        "* item\n\n  $ tpuenv plan",
        "Run `tpuenv frobnicate`.",
        "Run `tpuenv plan --frobnicate`.",
        "Run `sudo tpuenv plan`.",
        "Run `make frobnicate`.",
        "Run `tpuenv\nplan`.",
        "Run tpuenv plan.",
        "| do | run |\n|---|---|\n| x | `kubectl frobnicate` |",
    ],
)
def test_a_command_that_is_neither_run_nor_right_is_refused(added: str) -> None:
    heading = "## Upgrade Kueue and JobSet\n"
    assert PAGE.count(heading) == 1
    with pytest.raises((AssertionError, click.UsageError)):
        check_page(PAGE.replace(heading, f"{heading}\n{added}\n"))
