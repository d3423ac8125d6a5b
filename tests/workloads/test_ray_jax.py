"""ray-jax as its RayJob would start it, on CPU devices: every host sees the devices of all, or the verdict is red."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from environment import Environment
from manifests.recipes import recipe_named
from manifests.render import Run
from tests.fleets import one_group, with_fleet
from tests.workloads.hosts import PYTHON, Ended
from tests.workloads.ray_cluster import RayJob, ran, ray_job_of

pytestmark = [pytest.mark.workloads("ray-jax"), pytest.mark.timeout(1800)]

RECIPE = recipe_named("ray-jax")

ONE_HOST = with_fleet(one_group("type: v6e-4, slices: 1"))
TWO_HOSTS = with_fleet(one_group("type: v5p-16, slices: 2, zone: us-east5-a"))

SECONDS = 900  # within which a run ends also on a busy machine


def job(environment: Environment, *, slices: int = 1) -> RayJob:
    (team,), (group,) = environment.teams, environment.groups
    return ray_job_of(Run(recipe=RECIPE, environment=environment, team=team, group=group, slices=slices))


def verdict(program: Ended) -> str:
    return program.stdout.splitlines()[-1]


def test_one_slice_of_one_host(tmp_path: Path) -> None:
    program = ran(job(ONE_HOST), tmp_path, seconds=SECONDS)
    assert program.code == 0, program
    assert verdict(program) == "verdict: ok (TPU-V6E 2x2, slices 1, hosts 1, chips 4)"


@pytest.mark.long
def test_two_slices_of_two_hosts(tmp_path: Path) -> None:
    program = ran(job(TWO_HOSTS, slices=2), tmp_path, seconds=SECONDS)
    assert program.code == 0, program
    assert verdict(program) == "verdict: ok (TPU-V5P 2x2x2, slices 2, hosts 4, chips 16)"
    assert [(line["slice"], line["host"]) for line in program.lines] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    for line in program.lines:
        assert (line["devices_here"], line["devices"], line["sum over all devices"]) == (4, 16, 136)


@pytest.mark.long
def test_chips_that_are_missing_give_a_red_verdict(tmp_path: Path) -> None:
    """On one slice of two hosts, each of which has two devices fewer than its slice must have."""
    program = ran(job(TWO_HOSTS), tmp_path, seconds=SECONDS, JAX_NUM_CPU_DEVICES="2")
    assert program.code == 1
    assert verdict(program) == (
        "verdict: failed (TPU-V5P 2x2x2, slices 1, hosts 2, chips 4): slice 0 host 0: chips: 4, expected 8; "
        "slice 0 host 1: chips: 4, expected 8"
    )
    assert json.loads(program.stdout.splitlines()[0])["hosts"] == 2


def test_a_word_that_cannot_be_used_ends_it_with_what_to_write() -> None:
    done = subprocess.run([PYTHON, RECIPE.folder / "ray_jax.py", "slices=two"], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == "ray-jax: 'slices=two': write slices=N, with a whole number from 1, or nothing\n"
