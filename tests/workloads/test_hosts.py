"""The processes that stand for a run's hosts: what they get from manifest and GKE, and that none outlives a run."""

from __future__ import annotations

import dataclasses
import signal
from pathlib import Path

import pytest

from manifests.recipes import recipe_named
from manifests.render import Run
from tests.fleets import one_group, with_fleet
from tests.recipe_folders import recipes_with
from tests.workloads.hosts import PYTHON, HostsFailed, Pods, host_environment, pods_of, ran, started

MANIFEST = """\
kind: JobSet
metadata: {name: "${NAME}"}
spec:
  replicatedJobs:
  - name: others
    replicas: 1
    template: {spec: {parallelism: 1, template: {spec: {containers: [{name: other}]}}}}
  - name: slice
    replicas: ${SLICES}
    template:
      spec:
        parallelism: ${HOSTS}
        template:
          spec:
            containers:
            - name: serve
              command: [python, serve.py, /serve.py, /elsewhere.py]
              args: ["run=$(RUN_NAME)", "path=$(FOLDER)/a", "as-it-is=$$(RUN_NAME)", "unknown=$(NOBODY)"]
              env:
              - name: RUN_NAME
                valueFrom: {fieldRef: {fieldPath: "metadata.labels['jobset.sigs.k8s.io/jobset-name']"}}
              - {name: FOLDER, value: runs/$(RUN_NAME)}
              resources: {limits: {google.com/tpu: "${CHIPS_PER_HOST}"}}
"""

ENVIRONMENT = with_fleet(one_group("type: v5p-16, slices: 2, zone: us-east5-a"))


def run_of(folder: Path) -> Run:
    recipes = recipes_with(folder, "serve", server=MANIFEST)
    (recipes / "serve" / "serve.py").touch()
    (team,), (group,) = ENVIRONMENT.teams, ENVIRONMENT.groups
    recipe = recipe_named("serve", recipes)
    return Run(recipe=recipe, environment=ENVIRONMENT, team=team, group=group, slices=2, name="serve-7")


def shell(*lines: str, hosts: int = 2) -> Pods:
    """Hosts of a shell script, which knows its number as TPU_WORKER_ID."""
    return Pods(
        command=("sh", "-c", "\n".join(lines)),
        environment={},
        slices=1,
        hosts=hosts,
        devices=4,
        tpu_type="v5p-16",
        topology="2x2x2",
    )


def test_the_command_is_the_manifests_with_the_files_of_this_machine(tmp_path: Path) -> None:
    pods = pods_of(run_of(tmp_path))
    program = str(tmp_path / "manifests" / "serve" / "serve.py")
    assert pods.command[:4] == (str(PYTHON), program, program, "/elsewhere.py")
    assert pods.command[4:] == ("run=serve-7", "path=runs/serve-7/a", "as-it-is=$(RUN_NAME)", "unknown=$(NOBODY)")
    assert pods.environment == {"RUN_NAME": "serve-7", "FOLDER": "runs/serve-7"}
    assert (pods.slices, pods.hosts, pods.devices) == (2, 2, 4)


def test_a_host_gets_what_gke_gives_its_pod(tmp_path: Path) -> None:
    pods = pods_of(run_of(tmp_path))
    variables = host_environment(pods, slice_=1, host=0, port=1, folder=tmp_path)
    assert {name: value for name, value in variables.items() if name.startswith(("TPU_", "MEGASCALE_"))} == {
        "TPU_ACCELERATOR_TYPE": "v5p-16",
        "TPU_TOPOLOGY": "2x2x2",
        "TPU_SKIP_MDS_QUERY": "true",
        "TPU_WORKER_ID": "0",
        "TPU_WORKER_HOSTNAMES": "localhost,localhost",
        "MEGASCALE_NUM_SLICES": "2",
        "MEGASCALE_SLICE_ID": "1",
        "MEGASCALE_COORDINATOR_ADDRESS": "localhost",
    }
    assert variables["RUN_NAME"] == "serve-7"
    one_slice = host_environment(dataclasses.replace(pods, slices=1), slice_=0, host=1, port=1, folder=tmp_path)
    assert {value for name, value in one_slice.items() if name.startswith("MEGASCALE_")} == {""}


def test_what_each_host_writes_is_kept_apart(tmp_path: Path) -> None:
    hosts = ran(shell("echo out $TPU_WORKER_ID; echo err $TPU_WORKER_ID >&2"), tmp_path, seconds=60)
    assert [(host.host, host.code, host.stdout, host.stderr) for host in hosts] == [
        (0, 0, "out 0\n", "err 0\n"),
        (1, 0, "out 1\n", "err 1\n"),
    ]


@pytest.mark.slow
def test_a_host_that_fails_ends_the_others(tmp_path: Path) -> None:
    hosts = ran(shell("[ $TPU_WORKER_ID = 0 ] && exec sleep 600; exit 3"), tmp_path, seconds=60)
    assert [host.code for host in hosts] == [-signal.SIGKILL, 3]


@pytest.mark.slow
def test_when_the_time_is_over_it_says_who_still_runs_and_ends_them(tmp_path: Path) -> None:
    slow = shell("echo waiting; [ $TPU_WORKER_ID = 0 ] || exec sleep 600", hosts=3)
    with started(slow, tmp_path) as hosts:
        hosts.wait_for("waiting", host=2, seconds=60)
        with pytest.raises(
            HostsFailed, match=r"after 1 s hosts .*0-2 still run\n(.*\n)*--- host 0-2, stdout:\nwaiting"
        ):
            hosts.wait(seconds=1)
    assert [host.code for host in hosts.wait(seconds=60)] == [0, -signal.SIGKILL, -signal.SIGKILL]


def test_a_host_that_ends_without_what_is_waited_for_is_no_endless_wait(tmp_path: Path) -> None:
    with started(shell("exit 0"), tmp_path) as hosts, pytest.raises(HostsFailed, match="0-0 ended without 'step'"):
        hosts.wait_for("step", seconds=600)
