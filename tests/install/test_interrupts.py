"""What `cdktf_patches/interrupts.cjs` makes of a signal and of Terraform's end, for a program like cdktf."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from install.steps import ROOT, Layout

# As cdktf, it runs Terraform in a terminal, aborts when it is interrupted, and ends with 0.
CLI = """\
const terminals = require("@cdktf/node-pty-prebuilt-multiarch");
process.on("SIGINT", () => { console.log("aborted"); clearTimeout(working); });
process.on("SIGTERM", () => { console.log("aborted"); clearTimeout(working); });
const working = setTimeout(() => {}, 20000);
if (process.argv[2]) {
  const terminal = terminals.spawn(process.argv[2], [], { env: process.env });
  terminal.onData((data) => process.stdout.write(data));
  terminal.onExit(({ exitCode }) => { console.log(`ended with ${exitCode}`); clearTimeout(working); });
} else console.log("started");
"""


def start(tmp_path: Path, *terraform: str) -> subprocess.Popen[str]:
    """Of Terraform, the lines of a shell script; without one nothing runs yet."""
    (tmp_path / "cli.js").write_text(CLI)
    # Of the setup that this Python is from: a build has the checkout elsewhere.
    (tmp_path / "node_modules").symlink_to(Layout(root=Path(sys.prefix).parent).node_modules)
    program = tmp_path / "terraform"
    program.write_text("\n".join(["#!/bin/sh", *terraform]) + "\n")
    program.chmod(0o755)
    node = str(Path(sys.executable).with_name("node"))
    command = [node, "--require", str(ROOT / "cdktf_patches" / "interrupts.cjs"), str(tmp_path / "cli.js")]
    return subprocess.Popen(
        [*command, *([str(program)] if terraform else [])], stdout=subprocess.PIPE, text=True, start_new_session=True
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=str)
@pytest.mark.parametrize(("code", "told"), [(1, 1), (0, 130)])
def test_a_signal_goes_to_terraform_whose_end_is_a_failure(
    tmp_path: Path, number: signal.Signals, code: int, told: int
) -> None:
    waits = [f"trap 'echo stopping; exit {code}' INT", "echo started", "for i in $(seq 100); do sleep 0.05; done"]
    with start(tmp_path, *waits) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "started\n"
        running.send_signal(number)
        said = running.stdout.read()
    assert said.replace("^C", "") == f"stopping\nended with {told}\n"
    assert running.returncode == 130


def test_a_terraform_that_was_killed_has_not_succeeded(tmp_path: Path) -> None:
    with start(tmp_path, "kill -9 $$") as running:
        assert running.stdout is not None
        assert running.stdout.read() == "ended with 137\n"
    assert running.returncode == 0, "what cdktf makes of it"


def test_before_terraform_runs_cdktf_hears_the_signal_and_ends_with_130(tmp_path: Path) -> None:
    with start(tmp_path) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "started\n"
        running.send_signal(signal.SIGINT)
        assert running.stdout.read() == "aborted\n"
    assert running.returncode == 130


def test_without_an_interrupt_the_exit_code_is_terraforms_and_cdktfs_own(tmp_path: Path) -> None:
    with start(tmp_path, "exit 3") as running:
        assert running.stdout is not None
        assert running.stdout.read() == "ended with 3\n"
    assert running.returncode == 0
