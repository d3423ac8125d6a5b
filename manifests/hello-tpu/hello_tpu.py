"""Checks every chip of a TPU slice, or of several: all are there, add up a sum, multiply matrices and gather an array.

Every host runs this program with words key=value: `size`, rows and columns of the matrices; `steps`, how often each
measurement is repeated; and a mesh, `ici_data` x `ici_model` devices of a slice and `dcn_data` x `dcn_model` slices.
With `bucket`, every host also checks that it may use that bucket and none of `other_buckets` (bucket_access.py), and
with `other_services` that it reaches none of these addresses (service_access.py).
The environment variables EXPECTED_SLICES, EXPECTED_HOSTS and EXPECTED_CHIPS, the last two of one slice, say what must
be there.

Each host prints one line of JSON, and host 0 a last line with the verdict. Exit code: 0 if everything is as expected on
every host, 1 if not, 2 for words that cannot be used.
"""

from __future__ import annotations

import functools
import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import bucket_access
import jax
import jax.numpy as jnp
import numpy as np
import service_access
from jax.experimental import mesh_utils, multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec

# What a chip's data sheet says, by JAX's name of the device: bf16 TFLOP/s, and GB/s of its links to other chips
# (ICI), both directions together. docs.cloud.google.com/tpu/docs/v4, v5e, v5p, v6e, tpu7x; v4 has six links of
# 50 GB/s in each direction (Jouppi et al., 2023, https://arxiv.org/abs/2304.01433).
DATA_SHEETS: Mapping[str, tuple[float, float]] = {
    "TPU v4": (275, 600),
    "TPU v5 lite": (197, 400),
    "TPU v5e": (197, 400),
    "TPU v5": (459, 1200),
    "TPU v5p": (459, 1200),
    "TPU v6 lite": (918, 800),
    "TPU v6e": (918, 800),
    "TPU7x": (2307, 1200),
}

# The largest sum of a product is 105 x size, and float32 holds every whole number up to 2**24.
LARGEST_SIZE = 2**16

_TEXTS = ("bucket", "other_buckets", "other_services")


class BadInput(ValueError):
    """A word or a variable that cannot be used; the text names it, its value, and what to write."""


@dataclass(frozen=True, kw_only=True)
class Words:
    """What the words say. A mesh without words is one device, on one slice. `other_buckets` and `other_services` have
    commas between them.
    """

    size: int = 8192
    steps: int = 10
    ici_data: int = 1
    ici_model: int = 1
    dcn_data: int = 1
    dcn_model: int = 1
    bucket: str = ""
    other_buckets: str = ""
    other_services: str = ""


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What the manifest says must be there; hosts and chips of one slice."""

    slices: int
    hosts: int
    chips: int


def read_words(words: Sequence[str]) -> Words:
    """Raises BadInput."""
    known = Words.__dataclass_fields__
    values: dict[str, Any] = {}
    for word in words:
        key, is_given, value = word.partition("=")
        if not is_given or key not in known:
            raise BadInput(f"{word!r}: write key=value, with one of the keys {', '.join(known)}")
        if key in values:
            raise BadInput(f"{key}={value}: {key} is there twice; write it once")
        values[key] = value if key in _TEXTS else _number(key, value)
    read = Words(**values)
    if read.size > LARGEST_SIZE:
        raise BadInput(f"size={read.size}: sums would not be exact; write {LARGEST_SIZE} or less")
    return read


def read_expected(variables: Mapping[str, str]) -> Expected:
    """Raises BadInput."""
    names = ("EXPECTED_SLICES", "EXPECTED_HOSTS", "EXPECTED_CHIPS")
    slices, hosts, chips = (_number(name, variables.get(name, "")) for name in names)
    return Expected(slices=slices, hosts=hosts, chips=chips)


def _number(key: str, value: str) -> int:
    if not (value.isascii() and value.isdigit() and len(value) <= 12 and int(value) > 0):
        raise BadInput(f"{key}={value}: is not a whole number from 1; write one such as {key}=16")
    return int(value)


def check_mesh(words: Words, *, devices: int, slices: int) -> None:
    """Raises BadInput if the mesh is not that of so many slices with so many devices each."""
    for keys, number, what in (
        (("ici_data", "ici_model"), devices, f"the {devices} devices of a slice"),
        (("dcn_data", "dcn_model"), slices, f"the number of slices, {slices}"),
    ):
        data, model = (getattr(words, key) for key in keys)
        if data * model != number:
            raise BadInput(
                f"{keys[0]}={data} {keys[1]}={model}: their product is {data * model}, not {what}; write numbers "
                f"whose product is {number}"
            )


def main(arguments: Sequence[str]) -> int:
    started = time.perf_counter()
    try:
        words, expected = read_words(arguments), read_expected(os.environ)
        access, denied = check_access(words)
        if expected.slices * expected.hosts > 1:
            # Without arguments it takes what GKE says in the environment: TPU_WORKER_ID and others.
            jax.distributed.initialize()
        here = Hardware(expected)
        problems = here.problems()
        if not problems:
            check_mesh(words, devices=here.devices_a_slice, slices=expected.slices)
    except BadInput as error:
        print(f"hello-tpu: {error}", file=sys.stderr, flush=True)
        return 2
    report = here.description()
    if not problems:
        measured, problems = measure(here, words)
        report |= measured
    problems = [*denied, *problems]
    report |= {**access, "seconds": round(time.perf_counter() - started, 1), "problems": problems}
    print(json.dumps(report), flush=True)
    return verdict(here, problems)


def check_access(words: Words) -> tuple[dict[str, Any], list[str]]:
    """As bucket_access.check and service_access.check; nothing of either without its words."""
    report: dict[str, Any] = {}
    problems: list[str] = []
    if words.bucket:
        run = os.environ.get("RUN_NAME") or "hello-tpu"
        report, problems = bucket_access.check(words.bucket, _listed(words.other_buckets), run=run)
    if words.other_services:
        report["other_services"], reached = service_access.check(_listed(words.other_services))
        problems = [*problems, *reached]
    return report, problems


def _listed(word: str) -> list[str]:
    return [item for item in word.split(",") if item]


def verdict(here: Hardware, problems: Sequence[str]) -> int:
    """Host 0 prints it. All hosts return the same exit code: 1 if any of them has a problem."""
    counts = multihost_utils.process_allgather(np.array([len(problems)]))
    failed = [host for host, (count,) in enumerate(counts.reshape(-1, 1)) if count]
    if jax.process_index() == 0:
        what = f"hosts {len(counts)}, chips {here.chips}, slices {here.slices}"
        if failed:
            lines = "; ".join(problems) or "their lines say what"
            print(f"verdict: failed on hosts {', '.join(map(str, failed))} ({what}): {lines}", flush=True)
        else:
            print(f"verdict: ok ({what})", flush=True)
    return 1 if failed else 0


class Hardware:
    """The devices that JAX sees, by slice, and what a chip of them can do."""

    def __init__(self, expected: Expected) -> None:
        self.expected = expected
        self.is_tpu = jax.default_backend() == "tpu"
        self.by_slice: dict[int, list[Any]] = {}
        for device in jax.devices():
            self.by_slice.setdefault(self._slice_of(device), []).append(device)
        self.own_slice = self._slice_of(jax.local_devices()[0])
        self.slices = len(self.by_slice)
        self.devices = jax.device_count()
        self.devices_a_slice = len(self.by_slice[self.own_slice])
        self.chips = sum(map(self._chips_of, self.by_slice.values()))
        self.kind = jax.devices()[0].device_kind
        self.data_sheet = DATA_SHEETS.get(self.kind)

    def _slice_of(self, device: Any) -> int:
        # Of CPU devices JAX does not say it; it numbers the hosts slice by slice.
        return int(getattr(device, "slice_index", 0) if self.is_tpu else device.process_index // self.expected.hosts)

    def _chips_of(self, devices: Sequence[Any]) -> int:
        """A chip of tpu7x, and one of v4 without megacore, has two devices, at the same place."""
        return len({tuple(device.coords) for device in devices}) if self.is_tpu else len(devices)

    def problems(self) -> list[str]:
        """What is not as expected; the same on every host."""

        expected = self.expected
        found = [
            ("slices", self.slices, expected.slices),
            ("hosts", jax.process_count(), expected.hosts * expected.slices),
            *(
                (f"chips of slice {number}", self._chips_of(devices), expected.chips)
                for number, devices in sorted(self.by_slice.items())
            ),
        ]
        return [f"{what}: {number}, expected {right}" for what, number, right in found if number != right]

    def description(self) -> dict[str, Any]:
        return {
            "run": os.environ.get("RUN_NAME"),
            "host": jax.process_index(),
            "hosts": jax.process_count(),
            "slice": self.own_slice,
            "slices": self.slices,
            "devices_here": jax.local_device_count(),
            "devices": self.devices,
            "chips": self.chips,
            "device": self.kind,
        }

    def mesh(self, *, ici: tuple[int, int], dcn: tuple[int, int] | None = None) -> Any:
        """A mesh with the axes data and model, of this host's slice, or of all slices if `dcn` is given.

        `ici` are the sizes of the axes within a slice, `dcn` those across slices; an axis has their product.
        """

        numbers = sorted(self.by_slice) if dcn else [self.own_slice]
        grids = [_arranged(ici, self.by_slice[number]) for number in numbers]
        data, model = dcn or (1, 1)
        grid = np.array(grids).reshape(data, model, *ici).transpose(0, 2, 1, 3)
        return Mesh(grid.reshape(data * ici[0], model * ici[1]), ("data", "model"))


def _arranged(shape: tuple[int, int], devices: Sequence[Any]) -> np.ndarray:
    """The devices of a slice as a mesh, along the links between the chips.

    For chips of v4 with two devices JAX knows no such arrangement; they stay in its order.
    """
    try:
        return mesh_utils.create_device_mesh(shape, devices, allow_split_physical_axes=True)
    except (AssertionError, NotImplementedError):
        return np.array(devices).reshape(shape)


def measure(here: Hardware, words: Words) -> tuple[dict[str, Any], list[str]]:
    """All measurements, and what is wrong in them."""
    report: dict[str, Any] = {}
    problems: list[str] = []
    devices, slices = here.devices_a_slice, here.slices
    everything = here.mesh(ici=(devices, 1), dcn=(slices, 1))

    total, right = all_reduce(everything)
    report["all_reduce"] = {"sum": total, "expected": right}
    if total != right:
        problems.append(f"all-reduce: {total}, expected {right}")

    ways: dict[str, tuple[tuple[int, int], tuple[int, int]]] = {
        "data": ((devices, 1), (slices, 1)),
        "model": ((1, devices), (1, slices)),
        "data and model": ((words.ici_data, words.ici_model), (words.dcn_data, words.dcn_model)),
    }
    report["products"] = []
    for way, (ici, dcn) in ways.items():
        for scope in ("slice", "slices") if slices > 1 else ("slice",):
            mesh = here.mesh(ici=ici, dcn=dcn if scope == "slices" else None)
            data, model = mesh.devices.shape
            if way == "data and model" and 1 in (data, model):
                continue  # this mesh is one of the others
            seconds, flops, error = product(mesh, words)
            chips = here.chips if scope == "slices" else here.chips // slices
            report["products"].append(
                {
                    "sharded_by": way,
                    "within": scope,
                    "data": data,
                    "model": model,
                    "ms": round(seconds * 1e3, 3),
                    "tflops_per_chip": _rounded(flops / seconds / chips / 1e12),
                    "error": error,
                }
            )
            if error:
                problems.append(f"product sharded by {way} within {scope}: wrong by up to {error:g}")

    seconds, flops, error = multiplication(everything, words)
    tflops = flops / seconds / here.chips / 1e12
    report["multiplication"] = {
        "tflops_per_chip": _rounded(tflops),
        "share_of_data_sheet": _rounded(tflops / here.data_sheet[0]) if here.data_sheet else None,
        "error": error,
    }
    if error:
        problems.append(f"multiplication: wrong by up to {error:g}")

    report["all_gather"] = []
    for scope in ("slice", "slices") if slices > 1 else ("slice",):
        mesh = everything if scope == "slices" else here.mesh(ici=(devices, 1))
        if mesh.size == 1:
            continue
        seconds, nbytes, error = all_gather(mesh, words)
        chips = here.chips if scope == "slices" else here.chips // slices
        # What a chip must receive, whatever the way; the links carry as much in each direction.
        gbytes = nbytes * (chips - 1) / chips / seconds / 1e9
        of_sheet = gbytes / (here.data_sheet[1] / 2) if here.data_sheet and scope == "slice" else None
        report["all_gather"].append(
            {
                "within": scope,
                "gbytes_per_second_per_chip": _rounded(gbytes),
                "share_of_data_sheet": _rounded(of_sheet) if of_sheet is not None else None,
                "error": error,
            }
        )
        if error:
            problems.append(f"all-gather within {scope}: wrong by up to {error:g}")
    return report, problems


def _rounded(number: float) -> float:
    return float(f"{number:.4g}")


def all_reduce(mesh: Any) -> tuple[int, int]:
    """The sum of 1, 2, 3, ... over all devices, each with one number, and what it must be."""
    spread = NamedSharding(mesh, PartitionSpec(("data", "model")))
    numbers = jax.jit(lambda: jnp.arange(1, mesh.size + 1, dtype=jnp.int32), out_shardings=spread)()
    total = jax.jit(jnp.sum, out_shardings=NamedSharding(mesh, PartitionSpec()))(numbers)
    return int(total), mesh.size * (mesh.size + 1) // 2


def product(mesh: Any, words: Words) -> tuple[float, int, float]:
    """X W U: X sharded by rows over the axis data, W by columns and U by rows over model, so its sums are all-reduced.

    X[i,k] = a[i] s[k], W[k,j] = b[j], U[j,l] = t[j] c[l] with small whole numbers, X W divided by the sum of s. So all
    numbers are exact in bfloat16, all sums in float32, and the product is a[i] c[l] (sum of b t), exactly.
    Seconds of one product, its floating-point operations, and the largest difference from what it must be.
    """
    size = -(-words.size // mesh.size) * mesh.size  # every axis divides it
    sum_s = sum(1 + k % 2 for k in range(size))
    sum_bt = sum((1 + j % 3) * (1 + j % 2) for j in range(size))

    def sharded(*axes: str | None) -> NamedSharding:
        return NamedSharding(mesh, PartitionSpec(*axes))

    shardings = (sharded("data", None), sharded(None, "model"), sharded("model", None))

    @functools.partial(jax.jit, out_shardings=shardings)
    def factors() -> tuple[Any, Any, Any]:
        numbers = jnp.arange(size, dtype=jnp.int32)
        x = jnp.outer(1 + numbers % 7, 1 + numbers % 2)
        w = jnp.broadcast_to(1 + numbers % 3, (size, size))
        u = jnp.outer(1 + numbers % 2, 1 + numbers % 5)
        return x.astype(jnp.bfloat16), w.astype(jnp.bfloat16), u.astype(jnp.bfloat16)

    @functools.partial(jax.jit, in_shardings=shardings, out_shardings=sharded("data", None))
    def multiply(x: Any, w: Any, u: Any) -> Any:
        hidden = jnp.dot(x, w, preferred_element_type=jnp.float32) / sum_s
        return jnp.dot(hidden.astype(jnp.bfloat16), u, preferred_element_type=jnp.float32)

    @functools.partial(jax.jit, out_shardings=sharded())
    def difference(result: Any) -> Any:
        numbers = jnp.arange(size, dtype=jnp.int32)
        right = sum_bt * jnp.outer(1 + numbers % 7, 1 + numbers % 5)
        return jnp.max(jnp.abs(result - right.astype(jnp.float32)))

    result, seconds = timed(multiply, factors(), words.steps)
    return seconds, 4 * size**3, float(difference(result))


def multiplication(mesh: Any, words: Words) -> tuple[float, int, float]:
    """Every device multiplies two matrices of its own, so nothing but its speed matters. Returns as `product`."""
    size, devices = words.size, mesh.size
    sum_s = sum(1 + k % 2 for k in range(size))
    spread = NamedSharding(mesh, PartitionSpec(("data", "model")))

    @functools.partial(jax.jit, out_shardings=(spread, spread))
    def factors() -> tuple[Any, Any]:
        numbers = jnp.arange(size, dtype=jnp.int32)
        x = jnp.broadcast_to(jnp.outer(1 + numbers % 7, 1 + numbers % 2), (devices, size, size))
        w = jnp.broadcast_to(1 + numbers % 3, (devices, size, size))
        return x.astype(jnp.bfloat16), w.astype(jnp.bfloat16)

    @functools.partial(jax.jit, out_shardings=spread)
    def multiply(x: Any, w: Any) -> Any:
        return jnp.matmul(x, w, preferred_element_type=jnp.float32)

    @functools.partial(jax.jit, out_shardings=NamedSharding(mesh, PartitionSpec()))
    def difference(result: Any) -> Any:
        numbers = jnp.arange(size, dtype=jnp.int32)
        right = sum_s * jnp.outer(1 + numbers % 7, 1 + numbers % 3)
        return jnp.max(jnp.abs(result - right.astype(jnp.float32)))

    result, seconds = timed(multiply, factors(), words.steps)
    return seconds, 2 * size**3 * devices, float(difference(result))


def all_gather(mesh: Any, words: Words) -> tuple[float, int, float]:
    """Every device gets the whole of an array of which each has one row.

    Seconds of one all-gather, the bytes of the array, and the largest difference from what it must be.
    """
    shape = (mesh.size, -(-(words.size**2) // mesh.size))
    spread = NamedSharding(mesh, PartitionSpec(("data", "model")))
    everywhere = NamedSharding(mesh, PartitionSpec())

    @functools.partial(jax.jit, out_shardings=spread)
    def rows() -> Any:
        return jax.lax.broadcasted_iota(jnp.float32, shape, 0)

    @functools.partial(jax.jit, out_shardings=everywhere)
    def gather(array: Any) -> Any:
        return array

    @functools.partial(jax.jit, out_shardings=everywhere)
    def difference(result: Any) -> Any:
        return jnp.max(jnp.abs(result - jax.lax.broadcasted_iota(jnp.float32, shape, 0)))

    result, seconds = timed(gather, (rows(),), words.steps)
    return seconds, 4 * shape[0] * shape[1], float(difference(result))


def timed(function: Callable[..., Any], arguments: tuple[Any, ...], steps: int) -> tuple[Any, float]:
    """What the function returns, and the seconds of one call, of `steps` after one that compiles."""
    result = jax.block_until_ready(function(*arguments))
    started = time.perf_counter()
    for _ in range(steps):
        result = function(*arguments)
    jax.block_until_ready(result)
    return result, (time.perf_counter() - started) / steps


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
