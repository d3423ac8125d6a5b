"""MaxText as its pods would start it, with a tiny model on CPU devices: it learns, and goes on where it was ended."""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from environment import Environment
from install.steps import ROOT, Layout
from install.workloads import FOLDER as WORKLOADS
from install.workloads import TENSORBOARD_FOLDER
from manifests.recipes import FOLDER, recipe_named
from manifests.render import Run
from tests.generate.maxtext_keys import keys
from tests.workloads.hosts import SLICES_OF_PROCESSES, Ended, Pods, pods_of, ran, started
from tests.workloads.tiny_maxtext import ONE_SLICE_OF_TWO_HOSTS, TINY, TWO_SLICES_OF_ONE_HOST

pytestmark = pytest.mark.workloads("maxtext")

RECIPE = recipe_named("maxtext")

INTERRUPTED, REFUSED = 75, 2  # of train.py
SECONDS = 900  # within which a run ends also on a busy machine


def pods(environment: Environment, folder: Path, *, slices: int = 1, **settings: str) -> Pods:
    (team,) = environment.teams
    (group,) = environment.groups
    values: Mapping[str, str] = {**TINY, "base_output_directory": str(folder / "bucket"), **settings}
    run = Run(recipe=RECIPE, environment=environment, team=team, group=group, slices=slices, settings=values)
    return pods_of(run) if slices == 1 else pods_of(run).with_environment(PYTHONPATH=SLICES_OF_PROCESSES)


def losses(host: Ended) -> dict[int, float]:
    """The loss of each step that the host has completed."""
    found = re.findall(r"completed step: (\d+), .*? loss: ([0-9.]+)", host.stderr)
    return {int(step): float(loss) for step, loss in found}


def checkpoints(folder: Path) -> set[int]:
    """The steps of the complete checkpoints."""
    names = [path.name for path in (folder / "bucket" / "maxtext" / "checkpoints").iterdir()]
    return {int(name) for name in names if name.isdecimal()}


# Two files as TensorFlow Datasets writes them, in Python of the uploader, which has TensorFlow.
WRITE_DATASET = """
import sys
import tensorflow as tf
for file in range(2):
    with tf.io.TFRecordWriter(f"{sys.argv[1]}/c4-train.tfrecord-0000{file}-of-00002") as writer:
        for number in range(200):
            text = tf.train.BytesList(value=[f"{number} chips and {file} slices ".encode() * 4])
            features = tf.train.Features(feature={"text": tf.train.Feature(bytes_list=text)})
            writer.write(tf.train.Example(features=features).SerializeToString())
"""


def test_the_keys_are_those_of_the_installed_version() -> None:
    assert (FOLDER / "maxtext" / "keys.txt").read_text(encoding="utf-8") == keys()
    assert {*RECIPE.keys} >= {*keys().split()}


def test_two_hosts_learn_and_go_on_after_one_was_interrupted(tmp_path: Path) -> None:
    endless = pods(ONE_SLICE_OF_TWO_HOSTS, tmp_path, steps="100000", checkpoint_period="1000")
    with started(endless, tmp_path / "first") as hosts:
        hosts.wait_for("completed step: 2,", stream="stderr", seconds=SECONDS)
        hosts.signal(signal.SIGTERM, host=1)
        first = hosts.wait(seconds=SECONDS, until_each_ends=True)
    assert [host.code for host in first] == [INTERRUPTED, INTERRUPTED], "JobSet starts the run again for this"
    last = max(checkpoints(tmp_path))
    assert checkpoints(tmp_path) == {0, last}, "one of the step at which the hosts ended"
    assert max(losses(first[0])) in (last, last - 1)

    steps = last + 4
    second = ran(
        pods(ONE_SLICE_OF_TWO_HOSTS, tmp_path, steps=str(steps), checkpoint_period="1000"),
        tmp_path / "second",
        seconds=SECONDS,
    )
    assert [host.code for host in second] == [0, 0], second
    assert [*losses(second[0])] == [*range(last + 1, steps)]
    assert losses(second[0])[steps - 1] < losses(first[0])[0] - 1
    assert steps - 1 in checkpoints(tmp_path), "the last step is one too"
    events = (tmp_path / "bucket" / "maxtext" / "tensorboard" / "maxtext").glob("events.out.tfevents.*")
    assert len([path for path in events if path.stat().st_size > 1000]) == 2, "of each start, from the first host"


@pytest.mark.long
def test_two_slices_learn_with_the_mesh_of_the_recipe(tmp_path: Path) -> None:
    two_slices = pods(TWO_SLICES_OF_ONE_HOST, tmp_path, slices=2, steps="6", checkpoint_period="3")
    assert {"ici_fsdp_parallelism=4", "dcn_data_parallelism=2"} <= {*two_slices.command}
    hosts = ran(two_slices, tmp_path / "run", seconds=SECONDS)
    assert [host.code for host in hosts] == [0, 0], hosts
    found = losses(hosts[0])
    assert [*found] == [0, 1, 2, 3, 4, 5]
    assert found[5] < found[0] - 1
    assert checkpoints(tmp_path) == {0, 3, 5}


@pytest.mark.long
def test_a_dataset_in_the_folder_that_copy_data_fills_is_read(tmp_path: Path) -> None:
    dataset = tmp_path / "data" / "c4" / "en" / "3.0.1"
    dataset.mkdir(parents=True)
    python = Layout(root=ROOT, folder=TENSORBOARD_FOLDER).python
    subprocess.run([python, "-c", WRITE_DATASET, dataset], check=True)
    run = pods(
        ONE_SLICE_OF_TWO_HOSTS,
        tmp_path,
        steps="4",
        dataset_type="grain",
        dataset_path=str(tmp_path / "data"),
        dataset_name="c4/en:3.0.1",
        tokenizer_type="sentencepiece",
        tokenizer_path=str(
            next((ROOT / WORKLOADS).glob("lib/*/site-packages/maxtext/assets/tokenizers/tokenizer.llama2"))
        ),
    )
    hosts = ran(run, tmp_path / "run", seconds=SECONDS)
    assert [host.code for host in hosts] == [0, 0], hosts
    assert [*losses(hosts[0])] == [0, 1, 2, 3]
    assert "Found 2 files for train/eval with grain" in hosts[0].stderr


@pytest.mark.long
def test_a_host_that_is_killed_ends_the_others_and_the_next_start_goes_on_from_the_checkpoint(tmp_path: Path) -> None:
    endless = pods(TWO_SLICES_OF_ONE_HOST, tmp_path, slices=2, steps="100000", checkpoint_period="3")
    with started(endless, tmp_path / "first") as hosts:
        hosts.wait_for("completed step: 4,", stream="stderr", seconds=SECONDS)
        hosts.signal(signal.SIGKILL, slice_=1)
        first = hosts.wait(seconds=SECONDS, until_each_ends=True)
    assert first[1].code == -signal.SIGKILL
    assert first[0].code not in (0, INTERRUPTED), "this is a failure, and counts as a restart"

    last = max(checkpoints(tmp_path))
    assert last % 3 == 0
    again = pods(TWO_SLICES_OF_ONE_HOST, tmp_path, slices=2, steps=str(last + 3), checkpoint_period="3")
    second = ran(again, tmp_path / "second", seconds=SECONDS)
    assert [host.code for host in second] == [0, 0], second
    assert [*losses(second[0])] == [last + 1, last + 2]


@pytest.mark.long
def test_keys_that_maxtext_does_not_take_end_the_run_at_once(tmp_path: Path) -> None:
    (host, _) = ran(pods(ONE_SLICE_OF_TWO_HOSTS, tmp_path, weight_dtype="nope"), tmp_path / "run", seconds=SECONDS)
    assert host.code == REFUSED, "for which the JobSet fails, because another start would fail too"
    assert "MaxText does not take these keys: 1 validation error" in host.stderr
