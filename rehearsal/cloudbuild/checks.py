"""All build files of a checkout, checked before one of them runs: each by itself, with its trigger and its images."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rehearsal.cloudbuild.config import LOGGED, Config, NotABuild, parse_file
from rehearsal.cloudbuild.images import DOCKER, Images, NoSuchImage
from rehearsal.cloudbuild.triggers import Trigger

FOLDER = "cloudbuild"


def problems(checkout: Path, triggers: Sequence[Trigger], images: Images) -> list[str]:
    """Everything wrong, a line each: `file:line: key: what is wrong`.

    A file that no trigger runs is a person's to start. It is not supported, so it may use Docker.
    """
    files = {f"{FOLDER}/{path.name}" for path in (checkout / FOLDER).glob("*.yaml")}
    named = {trigger.file: trigger for trigger in triggers}
    lines = [f"{file}: is not there, and trigger {named[file].name} runs it" for file in sorted(named.keys() - files)]
    for file in sorted(files):
        config, wrong = parse_file(checkout / file, name=file)
        if config.steps:
            wrong += _of_file(config, named.get(file), images)
        lines += sorted(dict.fromkeys(wrong), key=_line)
    return lines


def _line(problem: str) -> int:
    number = problem.split(":")[1]
    return int(number) if number.isdigit() else 0


def _of_file(config: Config, trigger: Trigger | None, images: Images) -> Iterator[str]:
    given = trigger.substitutions if trigger else {}
    if trigger:
        yield from _of_trigger(config, trigger)
    try:
        filled = config.filled({key: value for key, value in given.items() if key in config.substitutions}, {})
    except NotABuild as wrong:
        yield from wrong.problems
        return
    for written, step in zip(config.steps, filled.steps, strict=True):
        if not written.name or (trigger is None and step.name == DOCKER):
            continue
        try:
            images.program(step.name, step.entrypoint)
        except NoSuchImage as wrong:
            yield f"{step.where}: {'' if written.name == step.name else written.name + ' is '}{wrong}"


def _of_trigger(config: Config, trigger: Trigger) -> Iterator[str]:
    """A substitution needs a declaration, and a value from one or the other."""
    for name in sorted(trigger.substitutions.keys() - config.substitutions.keys()):
        yield f"{config.declared_at}: substitutions: {name} is given by trigger {trigger.name} and not declared"
    for name in sorted(config.substitutions.keys() - trigger.substitutions.keys()):
        if not config.substitutions[name]:
            yield (
                f"{config.declared_at}: substitutions.{name}: is empty, and trigger {trigger.name} does not give it; "
                "write a value"
            )
    if config.logging != LOGGED:
        yield f"{config.file}: options.logging: is not {LOGGED}; a build with a service account of its own needs it"
