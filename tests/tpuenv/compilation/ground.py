"""Runs to compile, answers as the real compiler gave them, and a workloads' Python that is a script of the test."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

from environment import Environment
from manifests.recipes import recipe_named
from manifests.render import Run
from tests.fleets import one_group, with_fleet
from tests.python_program import write_python_program
from tpuenv.compilation.answers import Answer, answer_from

RECIPE = recipe_named("maxtext")
ANSWERS = Path(__file__).with_name("answers")
V6E = with_fleet(one_group("type: v6e-16, slices: 4"))


def run(environment: Environment = V6E, *, slices: int = 1, **settings: str) -> Run:
    (team,), (group,) = environment.teams, environment.groups
    return Run(recipe=RECIPE, environment=environment, team=team, group=group, slices=slices, settings=settings)


def recorded_json(name: str) -> Any:
    """What compile_step.py printed for a real model: a file of answers/."""
    return json.loads((ANSWERS / f"{name}.json").read_text(encoding="utf-8"))


def recorded(name: str) -> Answer:
    return answer_from(recorded_json(name))


def workloads(folder: Path, program: str) -> Path:
    """A .venv-workloads with the packages of the lock, whose Python runs `program` whatever it is given."""
    (folder / "bin").mkdir(parents=True)
    write_python_program(folder / "bin" / "python", textwrap.dedent(program), "-I")
    packages = folder / "lib" / "python3.12" / "site-packages"
    for line in (RECIPE.folder / "requirements.txt").read_text(encoding="utf-8").splitlines():
        name, _, version = line.removesuffix("\\").strip().partition("==")
        if name in ("jax", "jaxlib", "libtpu", "maxtext"):
            (packages / f"{name}-{version}.dist-info").mkdir(parents=True)
    return folder


def answering(name: str) -> str:
    """A program that gives a recorded answer, and counts in its folder how often it ran."""
    return f"""
        import json, pathlib, sys
        sys.stdin.readline()
        with open(pathlib.Path(sys.argv[0]).parent / "ran", "a") as ran:
            ran.write("x")
        print(json.dumps({{"doing": "compiling"}}))
        print(json.dumps({{"answer": json.loads(pathlib.Path({str(ANSWERS / name)!r} + ".json").read_text())}}))
    """
