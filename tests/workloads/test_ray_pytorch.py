"""ray-pytorch as its RayJob would start it, on the CPU devices of PyTorch/XLA: one device, and all of a host.

On several hosts it cannot run here: PyTorch/XLA has no exchange between processes of its CPU backend.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from install.steps import ROOT, Layout
from install.workloads import PYTORCH_FOLDER
from manifests.recipes import recipe_named
from manifests.render import Run
from tests.fleets import one_group, with_fleet
from tests.workloads.ray_cluster import RayJob, ran, ray_job_of

pytestmark = [pytest.mark.pytorch, pytest.mark.timeout(1800)]

RECIPE = recipe_named("ray-pytorch")
PYTHON = Layout(root=ROOT, folder=PYTORCH_FOLDER).python

ONE_HOST = with_fleet(one_group("type: v6e-4, slices: 1"))

SECONDS = 900  # within which a run ends also on a busy machine


def job(**settings: str) -> RayJob:
    (team,), (group,) = ONE_HOST.teams, ONE_HOST.groups
    run = Run(recipe=RECIPE, environment=ONE_HOST, team=team, group=group, slices=1, settings=settings)
    return ray_job_of(run, python=PYTHON)


@pytest.mark.parametrize(("on", "devices"), [("chip", 1), ("host", 4), ("slice", 4)])
def test_it_trains_on_one_device_and_on_all_of_a_host(tmp_path: Path, on: str, devices: int) -> None:
    program = ran(job(on=on), tmp_path, seconds=SECONDS, PJRT_DEVICE="CPU", CPU_NUM_DEVICES=str(devices))
    assert program.code == 0, program
    (line,) = program.lines
    assert (line["devices"], line["sum over all devices"]) == (devices, devices * (devices + 1) // 2)
    assert line["last_loss"] < line["first_loss"]
    assert program.stdout.splitlines()[-1] == (f"verdict: ok (on one {on} of TPU-V6E 2x2, hosts 1, devices {devices})")


def test_a_device_too_many_gives_a_red_verdict(tmp_path: Path) -> None:
    program = ran(job(on="chip"), tmp_path, seconds=SECONDS, PJRT_DEVICE="CPU", CPU_NUM_DEVICES="4")
    assert program.code == 1, program
    assert program.stdout.splitlines()[-1].endswith("host 0: devices: 4, expected 1")
