"""What to change in a run that does not fit: each change by itself, as a run of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from manifests.mesh import devices
from manifests.render import Run, arguments

BATCH = "per_device_batch_size"

LEAST_BATCH = 1 / 64  # sequences a device and step; less is not tried
_POLICY = "remat_policy"
_LEAST_MEMORY = "full"  # the policy that keeps the least of a layer: its input alone
_LAYER_INPUT = "decoder_layer_input"
_TENSOR = "ici_tensor_parallelism"
_TENSOR_FACTORS = (4, 2)
_SLICES_SHARDED = "dcn_fsdp_parallelism"


@dataclass(frozen=True, kw_only=True)
class Alternative:
    """A run with one change. `change` is what to type for it."""

    change: str
    run: Run


def batch_of(run: Run) -> float:
    """The sequences a device and step. Raises BadManifest when the run is not possible."""
    return float(arguments(run)[BATCH])


def with_batch(run: Run, batch: float) -> Alternative:
    """The same with another batch."""
    return _setting(run, {BATCH: f"{batch:g}"})


def smaller_batches(run: Run) -> Iterator[Alternative]:
    """Half of the batch, half of that, and so on; below one sequence a device, MaxText refuses most meshes."""
    batch = batch_of(run)
    while batch > LEAST_BATCH:
        batch = half(batch)
        yield with_batch(run, batch)


def half(batch: float) -> float:
    """Half of a batch: whole numbers from 1, and 1/2, 1/4, ... below."""
    return float(batch // 2) if batch >= 2 else batch / 2


def other_policies(run: Run) -> Iterator[Alternative]:
    """Keeping less for the backward pass: of each layer its input alone, or that in the host's memory."""
    words = arguments(run)
    if words.get(_POLICY, _LEAST_MEMORY) != _LEAST_MEMORY:
        yield _setting(run, {_POLICY: _LEAST_MEMORY})
    elif words.get(_LAYER_INPUT) != "offload":
        yield _setting(run, {_POLICY: "custom", _LAYER_INPUT: "offload"})


def more_sharding(run: Run) -> Iterator[Alternative]:
    """The parameters over all devices of a slice, or their matrices over some of them; then over more slices."""
    part = run.recipe.mesh.within_slice
    if part is None or run.group is None:
        return
    words, all_devices = arguments(run), devices(run.group.slice)
    factors = {key: int(words.get(key, 1)) for key in part.keys}
    if factors[part.rest] < all_devices:
        ones = {key: "1" for key, factor in factors.items() if factor > 1 and key != part.rest}
        yield _setting(run, {**ones, part.rest: str(all_devices)})
    elif factor := next((factor for factor in _TENSOR_FACTORS if all_devices % factor == 0), 0):
        yield _setting(run, {_TENSOR: str(factor), part.rest: str(all_devices // factor)})
    yield from _more_slices(run)


def _more_slices(run: Run) -> Iterator[Alternative]:
    part = run.recipe.mesh.across_slices
    if part is None or run.group is None:
        return
    sharded = int(arguments(run).get(_SLICES_SHARDED, 1)) == run.slices
    slices = 2 * run.slices if sharded else run.slices
    if slices <= run.group.slices:
        ones = {key: "1" for key in part.keys if key != _SLICES_SHARDED and run.settings.get(key, "1") != "1"}
        yield _setting(replace(run, slices=slices), {**ones, _SLICES_SHARDED: str(slices)}, slices=run.slices)


def _setting(run: Run, values: dict[str, str], *, slices: int | None = None) -> Alternative:
    """`slices` are those of the run that it is an alternative to."""
    more = [f"--slices {run.slices}"] if slices not in (None, run.slices) else []
    words = [*more, *(f"--set {key}={value}" for key, value in values.items())]
    return Alternative(change=" ".join(words), run=replace(run, settings={**run.settings, **values}))
