"""`python -m setup`: installs what is not installed yet, one step after another, once.

`--check` installs nothing, and exits 0 if there is nothing to install.
"""

from __future__ import annotations

import fcntl
import os
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from setup import cdktf_cli, packages, terraform
from setup.steps import Done, Layout, SetupError, content, fail, progress, run, say, write_program


@dataclass(frozen=True, kw_only=True)
class Step:
    """One thing to install. It is done again when its inputs change or what it made is gone."""

    name: str
    doing: str
    inputs: Callable[[Layout], list[str]]
    install: Callable[[Layout], object]
    made: Callable[[Layout], list[Path]]


def _install_commands(layout: Layout) -> None:
    """`.venv/bin/tpuenv` and `.venv/bin/cdktf`, which work from any folder and need no activated environment."""
    cdktf_cli.write_command(layout)
    program = (
        f"import runpy, sys; sys.path[0] = {str(layout.root)!r}; "
        'runpy.run_module("cli", run_name="__main__", alter_sys=True)'
    )
    write_program(
        layout.bin / "tpuenv",
        "#!/bin/sh\n"
        f"PATH={shlex.quote(str(layout.bin))}:$PATH\n"
        "export PATH\n"
        f'exec {shlex.quote(str(layout.python))} -c {shlex.quote(program)} "$@"\n',
    )


def _warm_up(layout: Layout) -> None:
    shutil.rmtree(layout.jsii_cache, ignore_errors=True)
    layout.jsii_cache.mkdir(parents=True)
    run([layout.python, "-m", "setup.warm_up"], layout=layout)


STEPS = (
    Step(
        name="packages",
        doing="Python packages and Node (about 700 MB)",
        inputs=packages.inputs,
        install=packages.install,
        made=lambda layout: [layout.python, layout.node],
    ),
    Step(
        name="cdktf-cli",
        doing="CDKTF CLI (about 400 MB)",
        inputs=cdktf_cli.inputs,
        install=cdktf_cli.install,
        made=lambda layout: [layout.node_modules / "cdktf-cli"],
    ),
    # The next two are in the virtual environment's own folder, so they go whenever that is made anew.
    Step(
        name="terraform",
        doing="Terraform",
        inputs=lambda layout: [*packages.inputs(layout), *terraform.inputs(layout)],
        install=terraform.install,
        made=lambda layout: [layout.bin / "terraform"],
    ),
    Step(
        name="commands",
        doing="Commands",
        inputs=lambda layout: [*packages.inputs(layout), content(layout.root / "setup" / "__main__.py")],
        install=_install_commands,
        made=lambda layout: [layout.bin / "cdktf", layout.bin / "tpuenv"],
    ),
    Step(
        name="warm-up",
        doing="Unpacking and indexing the provider bindings (about 600 MB)",
        inputs=lambda layout: [str(layout.root), content(layout.root / "requirements.txt")],
        install=_warm_up,
        made=lambda layout: [layout.jsii_cache],
    ),
)


def _to_do(layout: Layout) -> list[Step]:
    done = Done(layout)
    return [
        step
        for step in STEPS
        if not done.is_done(step.name, step.inputs(layout)) or not all(path.exists() for path in step.made(layout))
    ]


def _install(layout: Layout) -> None:
    started = time.monotonic()
    done = Done(layout)
    first = True
    # Asked anew before each step: one that is done again may take with it what another had made.
    while steps := _to_do(layout):
        if first:
            say(f"installing into {layout.venv}")
            first = False
        step = steps[0]
        done.forget(step.name)
        with progress(step.doing):
            note = step.install(layout)
        if isinstance(note, str):
            say(f"using {note}")
        done.record(step.name, step.inputs(layout))
    if not first:
        say(f"done in {time.monotonic() - started:.0f} s")


@contextmanager
def _alone(layout: Layout) -> Iterator[None]:
    """Wait until no other setup works on the same folder. The lock ends with the process that holds it."""
    folder = os.open(layout.root / "setup", os.O_RDONLY)
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another setup is at work here; waiting for it")
            fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def main(arguments: list[str]) -> int:
    layout = Layout()
    if arguments == ["--check"]:
        return 1 if _to_do(layout) else 0
    if arguments:
        return fail("usage: setup/run [--check]")
    try:
        with _alone(layout):
            _install(layout)
    except SetupError as error:
        return fail(error)
    except OSError as error:
        return fail(f"cannot write {error.filename or layout.venv}: {error.strerror or error}")
    except KeyboardInterrupt:
        return fail("stopped; the next one continues from here")
    return 0


sys.exit(main(sys.argv[1:]))
