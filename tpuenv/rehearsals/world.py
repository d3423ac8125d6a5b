"""Opens the world of a rehearsal: a fake project for an environment, in a folder, until the rehearsal ends."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from environment import Environment, Refused, project
from environment.services import SERVICES
from environment.settings.model import Settings
from tpuenv.failure import Failed

if TYPE_CHECKING:
    from rehearsal.world import World

FOLDER = project.ROOT / ".venv" / "rehearsal"
_CACHE = project.ROOT / ".venv" / "cache" / "rehearsal"

# The project number where PROJECT_NUMBER gives none.
_NUMBER = "123456789012"


def environment_to_rehearse(command: str, *, yes_it_exists: bool) -> Environment:
    """The environment of the settings. Raises environment.Refused, unless `yes_it_exists` also for a region, zone or
    GKE version that is not on Google's published lists: the advice names `command`, the subcommand that rehearses.
    """
    environment = project.load()
    if environment.unlisted and not yes_it_exists:
        advice = f"if it exists, run `tpuenv {command} --yes-it-exists`"
        raise Refused(tuple(f"{line}; {advice}" for line in environment.unlisted))
    return environment


@contextlib.contextmanager
def open_world(environment: Environment, folder: Path, settings: Mapping[str, str]) -> Iterator[World]:
    """A world in `folder`: the project of the settings, as `tpuenv bootstrap` leaves it.

    Raises Failed when it cannot start, or is lost before the rehearsal ends.
    """
    from rehearsal.work_folder import CannotStart
    from rehearsal.world import Lost, Project, World

    fake_project = Project(
        id_=environment.settings.project_id,
        number=environment.settings.project_number or _NUMBER,
        region=environment.settings.region,
        state_bucket=environment.names.state_bucket,
        services=list(SERVICES),
        repository=environment.settings.build_repository,
        offered=_places(environment) if environment.unlisted else (),
    )
    world = World(
        folder=folder.absolute(),
        project=fake_project,
        cache=_CACHE,
        settings={project.FOLDER: str(project.folder()), **settings},
        ours=folder.absolute() == FOLDER and not FOLDER.is_symlink(),
    )
    try:
        with _leaving_on_signals(), world:
            yield world
    except (CannotStart, Lost) as error:
        raise Failed(str(error)) from error


def _places(environment: Environment) -> list[str]:
    """The regions, zones and GKE version of the environment, which Google offers because a person said so."""
    settings = environment.settings
    zones = [settings.zone_of_cpu_nodes, *(group.zone for group in environment.groups)]
    zones += [vm.zone for vm in environment.tpu_vms]
    return [*dict.fromkeys([settings.region, settings.tensorboard_region, *zones, settings.gke_version])]


def overrides(process_env: Mapping[str, str]) -> dict[str, str]:
    """The settings in the process environment: nothing else of it reaches the stacks."""
    keys = [field.name.upper() for field in fields(Settings)]
    return {key: process_env[key] for key in keys if key in process_env}


@contextlib.contextmanager
def _leaving_on_signals() -> Iterator[None]:
    """Ends what was started on SIGTERM, which a pipeline sends that gives up, and SIGHUP, of a closed terminal."""
    signals = [number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) != signal.SIG_IGN]

    def leave(number: int, _frame: FrameType | None) -> None:
        for other in signals:
            signal.signal(other, signal.SIG_IGN)
        with contextlib.suppress(OSError):  # the terminal may be gone
            os.write(2, b"interrupted\n")
        sys.exit(128 + number)

    before = {number: signal.signal(number, leave) for number in signals}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
