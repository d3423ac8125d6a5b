"""Trains a few steps with PyTorch/XLA on TPUs of a Ray cluster: on one chip, on one host, or on all hosts of a slice.

    ray_pytorch.py [on=chip|host|slice] [steps=N]

`on=slice` is the default. How many hosts and chips there are, it reads from the cluster. Ray starts one task on each
host, and each is one process of PyTorch/XLA, whose devices are the chips of all hosts (SPMD): the batch is divided
among them, and XLA adds up their gradients.

Prints one line of JSON a host and a last line with the verdict. Exit code: 0 if every chip is there, the sum over all
of them is right and the loss has fallen, 1 if not or a host failed, 2 for a word that cannot be used.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Sequence
from typing import Any

import ray
from ray.exceptions import RayError
from ray.util.tpu import run_on_slice, slice_placement_group
from tpu_slices import NoSlices, wait_for_slices

PLACES = ("chip", "host", "slice")
LEARNING_RATE = 0.05
ROWS = 64  # of the batch, for each device


@ray.remote(max_retries=0)
def train(steps: int, devices: int) -> dict[str, Any]:
    """Trains y = sum(x) on `devices` devices, those of all hosts together. Every host has the same batch."""
    # On a TPU host PyTorch/XLA would take it by itself, but only if it has libtpu and sees the chips.
    os.environ.setdefault("PJRT_DEVICE", "TPU")

    # Only now: PyTorch/XLA takes the chips of the host for the process that asks for its devices.
    import numpy as np
    import torch
    import torch_xla
    import torch_xla.distributed.spmd as spmd
    import torch_xla.runtime as runtime

    # Before the first tensor is on a device: each process then has one device, which stands for all.
    runtime.use_spmd()
    present = runtime.global_runtime_device_count()
    mesh = spmd.Mesh(np.arange(present), (present,), ("data",))
    device = torch_xla.device()

    numbers = torch.arange(1, present + 1, dtype=torch.float32).to(device)
    spmd.mark_sharding(numbers, mesh, ("data",))
    total = int(numbers.sum().item())

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE)
    batch = torch.randn(ROWS * present, 16)
    inputs, targets = batch.to(device), batch.sum(1, keepdim=True).to(device)
    for tensor in (inputs, targets):
        spmd.mark_sharding(tensor, mesh, ("data", None))
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
        torch_xla.sync()
        losses.append(loss.item())

    problems = []
    if present != devices:
        problems.append(f"devices: {present}, expected {devices}")
    if total != present * (present + 1) // 2:
        problems.append(f"sum over all devices: {total}, expected {present * (present + 1) // 2}")
    if not losses[-1] < losses[0]:
        problems.append(f"loss: {losses[-1]:.4g} after {steps} steps, and {losses[0]:.4g} before")
    return {
        "host": int(os.environ.get("TPU_WORKER_ID") or 0),
        "device": runtime.device_type(),
        "devices_here": runtime.addressable_runtime_device_count(),
        "devices": present,
        "sum over all devices": total,
        "first_loss": losses[0],
        "last_loss": losses[-1],
        "problems": problems,
    }


def results(tasks: Sequence[ray.ObjectRef[Any]]) -> list[Any]:
    """What all tasks return. Raises RayError as soon as one fails, because the others may wait for it for ever."""
    waiting = list(tasks)
    while waiting:
        done, waiting = ray.wait(waiting)
        ray.get(done)
    return list(ray.get(list(tasks)))


def read_words(words: Sequence[str]) -> tuple[str, int]:
    """Where it trains, and how many steps. Raises ValueError, whose text says what to write."""
    values = {"on": "slice", "steps": "20"}
    for word in words:
        key, _, value = word.partition("=")
        if key not in values:
            raise ValueError(f"{word!r}: write on=chip, on=host or on=slice, or steps=N")
        values[key] = value
    if values["on"] not in PLACES:
        raise ValueError(f"on={values['on']}: write one of {', '.join(PLACES)}")
    if not values["steps"].isdecimal() or int(values["steps"]) < 2:
        raise ValueError(f"steps={values['steps']}: write a whole number from 2")
    return values["on"], int(values["steps"])


def main(words: Sequence[str]) -> int:
    try:
        on, steps = read_words(words)
    except ValueError as error:
        print(f"ray-pytorch: {error}", file=sys.stderr, flush=True)
        return 2
    # Without the logs of the hosts, in which lines of JSON would be hard to see.
    ray.init(log_to_driver=False)
    try:
        size = wait_for_slices()
        if on == "host" and size.hosts > 1:
            print(
                f"ray-pytorch: on=host: a slice here has {size.hosts} hosts, which work together only; write on=slice"
            )
            return 2
        # tpu7x has two devices a chip.
        per_chip = 2 if size.accelerator == "TPU-V7X" else 1
        if on == "chip":
            tasks = [train.options(num_cpus=0, resources={"TPU": 1}).remote(steps, per_chip)]
        else:
            chips = math.prod(map(int, size.topology.split("x")))
            reserved = slice_placement_group(size.topology, size.accelerator)
            tasks = run_on_slice(train, steps, chips * per_chip, tpu_slice=reserved)
        reports = results(tasks)
    except (NoSlices, RayError) as error:
        print(f"verdict: failed: {error}", flush=True)
        return 1
    reports.sort(key=lambda report: report["host"])
    for report in reports:
        print(json.dumps(report), flush=True)
    problems = [f"host {one['host']}: {', '.join(one['problems'])}" for one in reports if one["problems"]]
    what = f"on one {on} of {size.accelerator} {size.topology}, hosts {len(reports)}, devices {reports[0]['devices']}"
    print(f"verdict: failed ({what}): {'; '.join(problems)}" if problems else f"verdict: ok ({what})", flush=True)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
