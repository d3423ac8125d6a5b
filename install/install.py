"""The steps of the setup. A step runs again only if its inputs have changed or its results are missing."""

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
from install.steps import Completed, Layout, Progress, SetupError, content, run, say, write_program


@dataclass(frozen=True, kw_only=True)
class Step:
    """One thing to install: what decides whether it is current, how to install it, and the paths that result.

    `install` sets `detail` of the Progress it gets, and returns a note for the user or None.
    """

    name: str
    doing: str
    inputs: Callable[[Layout], list[str]]
    install: Callable[[Layout, Progress], str | None]
    results: Callable[[Layout], list[Path]]


def _install_commands(layout: Layout, _: Progress) -> None:
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


def _warm_up(layout: Layout, _: Progress) -> None:
    shutil.rmtree(layout.jsii_cache, ignore_errors=True)
    layout.jsii_cache.mkdir(parents=True)
    run([layout.python, "-m", "install.warm_up"], layout=layout)


STEPS: tuple[Step, ...] = (
    # First, because it is the one thing that a person may have to install by hand, so it must not wait.
    Step(
        name="terraform",
        doing="Terraform",
        inputs=terraform.inputs,
        install=lambda layout, _: terraform.install(layout),
        results=lambda layout: [layout.terraform],
    ),
    Step(
        name="packages",
        doing="Python packages and Node (about 1.1 GB)",
        inputs=packages.inputs,
        install=packages.install,
        results=lambda layout: [layout.python, layout.node],
    ),
    Step(
        name="cdktf-cli",
        doing="CDKTF CLI (about 400 MB)",
        inputs=cdktf_cli.inputs,
        install=lambda layout, _: cdktf_cli.install(layout),
        results=lambda layout: [layout.node_modules / "cdktf-cli"],
    ),
    # In the virtual environment's own folder, so it is deleted whenever that is created again.
    Step(
        name="commands",
        doing="Commands",
        inputs=lambda layout: [*packages.inputs(layout), *_own_files(layout)],
        install=_install_commands,
        results=lambda layout: [layout.bin / name for name in ("cdktf", "terraform", "terraform-for-cdktf", "tpuenv")],
    ),
    Step(
        name="warm-up",
        doing="Unpacking and indexing the provider bindings (about 500 MB)",
        inputs=lambda layout: [str(layout.root), content(layout.root / "requirements.txt")],
        install=_warm_up,
        results=lambda layout: [layout.jsii_cache],
    ),
)


def to_do(layout: Layout, steps: Sequence[Step]) -> list[Step]:
    """The steps that were not completed, or with other inputs, or whose results are missing."""
    completed = Completed(layout)
    return [
        step
        for step in steps
        if not completed.is_current(step.name, step.inputs(layout))
        or not all(path.exists() for path in step.results(layout))
    ]


def install(layout: Layout, steps: Sequence[Step]) -> None:
    """Runs the steps that are to be run, and reports them. Raises SetupError; completed steps stay completed."""
    started = time.monotonic()
    completed = Completed(layout)
    remaining = to_do(layout, steps)
    if not remaining:
        return
    say(f"installing into {layout.venv}")
    # Computed again after every step: a step that runs again may delete the results of another.
    while remaining:
        step = remaining[0]
        completed.forget(step.name)
        with Progress(f"[{steps.index(step) + 1}/{len(steps)}] {step.doing}") as progress:
            note = step.install(layout, progress)
        if note:
            say(f"using {note}")
        if missing := [path for path in step.results(layout) if not path.exists()]:
            raise SetupError(f"{step.doing}: {missing[0]} was not created; the log is {layout.log}")
        completed.record(step.name, step.inputs(layout))
        remaining = to_do(layout, steps)
    say(f"done in {time.monotonic() - started:.0f} s")


@contextmanager
def alone(layout: Layout) -> Iterator[None]:
    """Waits until no other setup works on the same folder.

    The programs that a setup starts hold the lock too: one that outlives a killed setup is waited for as well.
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
