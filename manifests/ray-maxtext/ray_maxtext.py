"""Trains with MaxText on every host of the Ray cluster's TPU slices: Ray Train's JaxTrainer runs MaxText's entry point.

    ray_maxtext.py [slices=N] [least_slices=N] [max_failures=N] KEY=VALUE...

The first three words are for Ray. It waits for `slices`, or takes those that are there. When a host is lost, or the
training fails, it starts all processes again, `max_failures` times, and MaxText goes on from its last checkpoint. With
`least_slices` it does so as soon as so many slices are there, and starts them again when the others are back.

All other words are MaxText's, unchanged, but for dcn_data_parallelism with `least_slices`: this is then what the other
dcn_ keys leave of the slices that are there. Without the word run_name, that is the name of the RayJob.

Exit code: 0 when the training is done, 1 when it failed for good, 2 for words that Ray or MaxText does not take.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import ray
from ray.train import FailureConfig, RunConfig, ScalingConfig
from ray.train.v2.jax import JaxTrainer
from tpu_slices import NoSlices, Slices, wait_for_slices

RAY_WORDS = {"slices": 1, "least_slices": 0, "max_failures": 0}  # with the least that each may be

# How long Ray Train waits for all hosts before it counts the slices again. A lost host is replaced in minutes; where
# the others go on without it they should do so soon, and for a while Ray still counts a host that is gone.
START_SECONDS = "RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S"
FOR_ALL_SLICES, FOR_SOME_SLICES = "1800", "120"


class BadInput(ValueError):
    """A word that cannot be used; the text names it and says what to write."""


def read_words(words: Sequence[str]) -> tuple[dict[str, int], list[str]]:
    """The words for Ray that are there, and MaxText's. Raises BadInput."""
    for_ray, for_maxtext = {}, []
    for word in words:
        key, _, value = word.partition("=")
        if key not in RAY_WORDS:
            for_maxtext.append(word)
        elif value.isdecimal() and int(value) >= RAY_WORDS[key]:
            for_ray[key] = int(value)
        else:
            raise BadInput(f"{word!r}: write {key}=N, with a whole number from {RAY_WORDS[key]}")
    least, slices = for_ray.get("least_slices", 0), for_ray.get("slices", sys.maxsize)
    if least > slices:
        raise BadInput(f"least_slices={least}: is more than slices={slices}")
    if least:
        # The number of slices can change, and -1 is what the others leave.
        fixed = [word for word in for_maxtext if not word.startswith("dcn_data_parallelism=")]
        for_maxtext = [*fixed, "dcn_data_parallelism=-1"]
    return for_ray, for_maxtext


def run_name(words: Sequence[str], variables: Mapping[str, str]) -> str:
    """MaxText's word run_name, or else the name of the RayJob, to which KubeRay adds a dash and five letters for the
    Ray cluster. Raises BadInput without either.
    """
    for word in words:
        if word.startswith("run_name="):
            return word.partition("=")[2]
    name = variables.get("RAY_CLUSTER_NAME", "").rpartition("-")[0]
    if not name:
        raise BadInput("run_name: write run_name=NAME; the next run of that name goes on from its last checkpoint")
    return name


def train(config: Mapping[str, Any]) -> str:
    """On every host: what `python -m maxtext.trainers.pre_train.train` does with the same words.

    Returns why MaxText does not take them, or "". An exception would be a failure, which starts the training again.
    """
    from maxtext.configs import pyconfig
    from maxtext.trainers.pre_train import train as maxtext

    initialize = pyconfig.initialize
    refused = []

    def initialized(*words: Any, **keys: Any) -> Any:
        try:
            return initialize(*words, **keys)
        except ValueError as error:
            refused.append(str(error))
            raise

    pyconfig.initialize = initialized
    try:
        maxtext.main(["maxtext", *config["words"]])
    except ValueError:
        if not refused:
            raise
    return "".join(refused)


def trainer(size: Slices, for_ray: Mapping[str, int], words: Sequence[str], name: str) -> JaxTrainer:
    """A worker a host, of `least_slices` to `slices` slices."""
    slices = for_ray.get("slices", size.slices)
    least = for_ray.get("least_slices") or slices
    return JaxTrainer(
        train,
        train_loop_config={
            "words": [f"run_name={name}", *(word for word in words if not word.startswith("run_name="))]
        },
        scaling_config=ScalingConfig(
            use_tpu=True,
            topology=size.topology,
            accelerator_type=size.accelerator,
            num_workers=slices * size.hosts if least == slices else (least * size.hosts, slices * size.hosts),
            resources_per_worker={"TPU": size.chips, "CPU": 1},
            placement_strategy="SPREAD",
        ),
        # Ray Train's own folder of the run is on the head: it has no checkpoints, because MaxText writes them.
        run_config=RunConfig(name=name, failure_config=FailureConfig(max_failures=for_ray.get("max_failures", 0))),
    )


def main(words: Sequence[str]) -> int:
    try:
        for_ray, for_maxtext = read_words(words)
        name = run_name(for_maxtext, os.environ)
    except BadInput as error:
        print(f"ray-maxtext: {error}", file=sys.stderr, flush=True)
        return 2
    os.environ.setdefault(START_SECONDS, FOR_SOME_SLICES if for_ray.get("least_slices") else FOR_ALL_SLICES)
    ray.init()
    try:
        size = wait_for_slices(for_ray.get("least_slices") or for_ray.get("slices", 1))
        result = trainer(size, for_ray, for_maxtext, name).fit()
    except (NoSlices, ray.train.TrainingFailedError) as error:
        print(f"ray-maxtext: {error}", file=sys.stderr, flush=True)
        return 1
    if result.return_value:
        print(f"ray-maxtext: MaxText does not take these words: {result.return_value}", file=sys.stderr, flush=True)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
