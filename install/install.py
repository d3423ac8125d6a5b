"""The steps of the setup, each done once: again only if what it is made from has changed or what it made is gone."""

from __future__ import annotations

import fcntl
import os
import shlex
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from install import cdktf_cli, packages, terraform
from install.steps import Done, Layout, SetupError, content, progress, run, say, write_program


@dataclass(frozen=True, kw_only=True)
class Step:
    """One thing to install: what it is made from, how, and what must be there afterwards."""

    name: str
    doing: str
    inputs: Callable[[Layout], list[str]]
    install: Callable[[Layout], str | None]
    made: Callable[[Layout], list[Path]]


def _install_commands(layout: Layout) -> None:
    """`.venv/bin/tpuenv` and `.venv/bin/cdktf`, which work from any folder and need no activated environment; and
    `.venv/bin/terraform`.
    """
    cdktf_cli.write_command(layout)
    (layout.bin / "terraform").unlink(missing_ok=True)
    (layout.bin / "terraform").symlink_to(os.path.relpath(layout.terraform, layout.bin))
    program = (
        f"import runpy, sys; sys.path[0] = {str(layout.root)!r}; "
        'runpy.run_module("tpuenv", run_name="__main__", alter_sys=True)'
    )
    write_program(
        layout.bin / "tpuenv",
        "#!/bin/sh\n"
        f"PATH={shlex.quote(str(layout.bin))}:$PATH\n"
        "export PATH\n"
        "unset PYTHONPATH PYTHONHOME\n"
        f'exec {shlex.quote(str(layout.python))} -c {shlex.quote(program)} "$@"\n',
    )


def _own_files(layout: Layout) -> list[str]:
    return [content(layout.root / "install" / name) for name in ("install.py", "cdktf_cli.py")]


def _warm_up(layout: Layout) -> None:
    shutil.rmtree(layout.jsii_cache, ignore_errors=True)
    layout.jsii_cache.mkdir(parents=True)
    run([layout.python, "-m", "install.warm_up"], layout=layout)


STEPS = (
    # First, because it is the one thing that a person may have to install: nobody waits minutes to hear so.
    Step(
        name="terraform",
        doing="Terraform",
        inputs=terraform.inputs,
        install=terraform.install,
        made=lambda layout: [layout.terraform],
    ),
    Step(
        name="packages",
        doing="Python packages and Node (about 1.1 GB)",
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
    # In the virtual environment's own folder, so it goes whenever that is made anew.
    Step(
        name="commands",
        doing="Commands",
        inputs=lambda layout: [*packages.inputs(layout), *_own_files(layout)],
        install=_install_commands,
        made=lambda layout: [layout.bin / name for name in ("cdktf", "terraform", "terraform-for-cdktf", "tpuenv")],
    ),
    Step(
        name="warm-up",
        doing="Unpacking and indexing the provider bindings (about 500 MB)",
        inputs=lambda layout: [str(layout.root), content(layout.root / "requirements.txt")],
        install=_warm_up,
        made=lambda layout: [layout.jsii_cache],
    ),
)


def to_do(layout: Layout, steps: Sequence[Step]) -> list[Step]:
    """The steps that were not completed, or not with the inputs of today, or whose work is gone."""
    done = Done(layout)
    return [
        step
        for step in steps
        if not done.is_done(step.name, step.inputs(layout)) or not all(path.exists() for path in step.made(layout))
    ]


def install(layout: Layout, steps: Sequence[Step]) -> None:
    """Do what is to be done, and say so. Raises SetupError; what was completed before stays done."""
    started = time.monotonic()
    done = Done(layout)
    remaining = to_do(layout, steps)
    if not remaining:
        return
    say(f"installing into {layout.venv}")
    # Asked anew each time: a step that is done again may take with it what another had made.
    while remaining:
        step = remaining[0]
        done.forget(step.name)
        with progress(step.doing):
            note = step.install(layout)
        if note:
            say(f"using {note}")
        if missing := [path for path in step.made(layout) if not path.exists()]:
            raise SetupError(f"{step.doing}: {missing[0]} was not made; the log is {layout.log}")
        done.record(step.name, step.inputs(layout))
        remaining = to_do(layout, steps)
    say(f"done in {time.monotonic() - started:.0f} s")


@contextmanager
def alone(layout: Layout) -> Iterator[None]:
    """Wait until no other setup works on the same folder.

    The programs that a setup starts hold the lock too, so one that outlives a killed setup is also waited for.
    """
    folder = os.open(layout.root / "install", os.O_RDONLY)
    os.set_inheritable(folder, True)
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another setup is at work here; waiting for it")
            fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)
