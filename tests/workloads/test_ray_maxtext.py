"""ray-maxtext as its RayJob would start it, with a tiny model on CPU devices: it learns, and goes on without a host."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from environment import Environment
from manifests.recipes import recipe_named
from manifests.render import Run
from tests.workloads.hosts import PYTHON, SLICES_OF_PROCESSES, Ended
from tests.workloads.ray_cluster import RayJob, ran, ray_job_of, started_cluster
from tests.workloads.tiny_maxtext import ONE_SLICE_OF_TWO_HOSTS, TINY, TWO_SLICES_OF_ONE_HOST

pytestmark = [pytest.mark.workloads("ray-maxtext"), pytest.mark.timeout(3600)]

RECIPE = recipe_named("ray-maxtext")

SECONDS = 1500  # within which a run ends also on a busy machine


def job(environment: Environment, folder: Path, *, slices: int = 1, **settings: str) -> RayJob:
    (team,), (group,) = environment.teams, environment.groups
    values = {**TINY, "base_output_directory": str(folder / "bucket"), **settings}
    return ray_job_of(
        Run(recipe=RECIPE, environment=environment, team=team, group=group, slices=slices, settings=values)
    )


def losses(program: Ended) -> dict[int, float]:
    """The loss of each step that a host has completed."""
    lines = re.findall(r"completed step: (\d+), .*? loss: ([0-9.]+)", program.stdout + program.stderr)
    return {int(step): float(loss) for step, loss in lines}


def checkpoints(folder: Path) -> set[int]:
    """The steps of the complete checkpoints of the run, which has the name of the RayJob."""
    names = [path.name for path in (folder / "bucket" / "ray-maxtext" / "checkpoints").iterdir()]
    return {int(name) for name in names if name.isdecimal()}


@pytest.mark.long
def test_one_slice_of_two_hosts_learns(tmp_path: Path) -> None:
    program = ran(job(ONE_SLICE_OF_TWO_HOSTS, tmp_path, steps="6", checkpoint_period="3"), tmp_path, seconds=SECONDS)
    assert program.code == 0, program
    assert [*losses(program)] == [0, 1, 2, 3, 4, 5]
    assert losses(program)[5] < losses(program)[0] - 1
    assert checkpoints(tmp_path) == {0, 3, 5}


@pytest.mark.long
@pytest.mark.parametrize("least_slices", ["0", "1"], ids=["when it is back", "without it"])
def test_two_slices_go_on_from_the_checkpoint_after_a_host_was_lost(tmp_path: Path, least_slices: str) -> None:
    settings = {"steps": "12", "checkpoint_period": "3", "least_slices": least_slices}
    training = job(TWO_SLICES_OF_ONE_HOST, tmp_path, slices=2, **settings)
    with (
        started_cluster(training, tmp_path, PYTHONPATH=SLICES_OF_PROCESSES) as cluster,
        cluster.submitted() as process,
    ):
        cluster.wait_for("completed step: 4,", process, seconds=SECONDS)
        cluster.kill(1, 0)
        if least_slices == "0":
            cluster.start_host(1, 0)
        program = cluster.wait(process, seconds=SECONDS)
    assert program.code == 0, program
    assert re.findall(r"Started training worker group of size (\d)", program.stderr + program.stdout) == [
        "2",
        "1" if least_slices == "1" else "2",
    ]
    (step,) = {int(step) for step in re.findall(r"restoring from this run's directory step (\d+)", program.stderr)}
    assert step >= 3
    assert step % 3 == 0
    assert {step, 11} <= checkpoints(tmp_path)
    assert losses(program)[11] < losses(program)[0] - 1


@pytest.mark.long
def test_words_that_maxtext_does_not_take_end_the_run_at_once(tmp_path: Path) -> None:
    training = job(ONE_SLICE_OF_TWO_HOSTS, tmp_path, weight_dtype="nope", max_failures="5")
    program = ran(training, tmp_path, seconds=SECONDS)
    assert program.code == 2, program
    assert "ray-maxtext: MaxText does not take these words: 1 validation error" in program.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["slices=two"], "'slices=two': write slices=N, with a whole number from 1"),
        (["slices=2", "least_slices=3"], "least_slices=3: is more than slices=2"),
        (["slices=2"], "run_name: write run_name=NAME; the next run of that name goes on from its last checkpoint"),
    ],
    ids=["number", "least", "name"],
)
def test_words_that_cannot_be_used_end_it_with_what_to_write(words: list[str], message: str) -> None:
    program = [PYTHON, RECIPE.folder / "ray_maxtext.py", *words]
    done = subprocess.run(program, env={"PATH": os.environ["PATH"]}, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (2, f"ray-maxtext: {message}\n")
