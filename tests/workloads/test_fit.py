"""`tpuenv fit` with the real compiler: the verdicts on runs of MaxText, and what it is told about chips."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from environment import Environment
from environment.tpu import slice_for
from environment.tpu_catalogue import GENERATIONS
from manifests.recipes import recipe_named
from manifests.render import Run
from tests.fleets import one_group, with_fleet
from tests.workloads.hosts import PYTHON
from tpuenv.compilation import verdict
from tpuenv.compilation.answers import Answer, Compiled, Refused, TooLarge
from tpuenv.compilation.chips import CHIPS
from tpuenv.compilation.compiler import Compiler
from tpuenv.compilation.question import question_of
from tpuenv.compilation.topology import topology

pytestmark = [pytest.mark.workloads("maxtext"), pytest.mark.timeout(900)]

RECIPE = recipe_named("maxtext")
TINY = {"model_name": "gpt3-52k"}

# Fills each device with half of `gib` as an argument and half as a result.
FILLING = """
import json, os, sys
os.environ.update(TPU_SKIP_MDS_QUERY="1", ALLOW_MULTIPLE_LIBTPU_LOAD="1", JAX_PLATFORMS="cpu")
import jax, jax.numpy as jnp, numpy as np
from jax.experimental.topologies import get_topology_desc
from jax.sharding import Mesh, NamedSharding, PartitionSpec
question = json.loads(sys.argv[1])
topology = get_topology_desc(
    platform="tpu", topology_name=question["name"], chip_config_name=question["chip_config_name"],
    chips_per_host_bounds=tuple(question["chips_per_host_bounds"]), wrap=tuple(question["wrap"]),
)
assert len(topology.devices) == question["devices"], len(topology.devices)
sharding = NamedSharding(Mesh(np.array(topology.devices), ("x",)), PartitionSpec("x", None))
rows = int(question["gib"]) * 2**30 // 2 // 2 // 1024 * len(topology.devices)
double = jax.jit(lambda x: x * 2, in_shardings=sharding, out_shardings=sharding)
try:
    double.lower(jax.ShapeDtypeStruct((rows, 1024), jnp.bfloat16)).compile()
    print("compiled")
except Exception as error:
    print(str(error).replace("\\n", " "))
"""


@pytest.fixture
def compiler(tmp_path: Path) -> Compiler:
    """The installed compiler without what has been compiled with it."""
    for name in ("bin", "lib", "pyvenv.cfg"):
        (tmp_path / name).symlink_to(PYTHON.parent.parent / name)
    return Compiler(tmp_path)


def of_one_group(tpu_type: str, *, slices: int = 1) -> Environment:
    return with_fleet(one_group(f"type: {tpu_type}, slices: {slices}"))


def asked(compiler: Compiler, tpu_type: str, *, slices: int = 1, **settings: str) -> tuple[Run, Answer]:
    environment = of_one_group(tpu_type, slices=slices)
    (team,), (group,) = environment.teams, environment.groups
    run = Run(recipe=RECIPE, environment=environment, team=team, group=group, slices=slices, settings=settings)
    return run, compiler.answer(question_of(run), RECIPE.folder, doing=lambda _: None)


def test_a_tiny_model_fits_on_two_slices(compiler: Compiler) -> None:
    run, answer = asked(compiler, "v6e-16", slices=2, max_target_length="128", **TINY)
    assert isinstance(answer, Compiled)
    assert verdict.in_one_line(run, answer).startswith("fits: peak 0.0")
    assert answer.tokens == 2 * 16 * 128
    assert {"parameters", "optimizer state", "batch", "temporary"} <= {part.name for part in answer.parts}
    assert sum(part.bytes for part in answer.parts) <= answer.peak_bytes
    assert compiler.known(question_of(run)) == answer


def test_a_model_of_8_billion_parameters_does_not_fit_on_small_chips(compiler: Compiler) -> None:
    run, answer = asked(
        compiler, "v5litepod-16", model_name="llama3-8b", max_target_length="4096", per_device_batch_size="8"
    )
    assert verdict.in_one_line(run, answer) == "does not fit: 29.69 of 15.75 GiB a chip, 13.94 GiB too much"
    assert isinstance(answer, TooLarge)
    assert answer.parts[0].bytes == pytest.approx(4 * 8.03e9 / 16, rel=0.01), "parameters of 4 bytes on 16 devices"


def test_a_policy_that_maxtext_does_not_have_is_invalid(compiler: Compiler) -> None:
    run, answer = asked(compiler, "v6e-16", remat_policy="none-such", **TINY)
    assert isinstance(answer, Refused)
    assert verdict.in_one_line(run, answer).startswith("invalid: MaxText refuses it: Remat policy needs to be on list")


@pytest.mark.long
@pytest.mark.parametrize(
    ("tpu_type", "settings", "line"),
    [
        ("v4-32", {"preset": "sandbox-6.5b"}, "fits: peak 26.13 of 30.75 GiB a chip (85 %)"),
        (
            "v6e-16",
            {"model_name": "llama3-8b", "max_target_length": "4096", "per_device_batch_size": "1"},
            "fits: peak 11.1",
        ),
    ],
)
def test_a_model_of_billions_of_parameters_fits(
    compiler: Compiler, tpu_type: str, settings: dict[str, str], line: str
) -> None:
    run, answer = asked(compiler, tpu_type, **settings)
    assert verdict.in_one_line(run, answer).startswith(line)


@pytest.mark.long
@pytest.mark.parametrize("tpu_type", ["ct6e-standard-8t-2x4", "ct5lp-hightpu-8t-2x4", "v5p-8", "tpu7x-8", "v6e-1"])
def test_a_tiny_model_fits_on_slices_of_one_host(compiler: Compiler, tpu_type: str) -> None:
    _, answer = asked(compiler, tpu_type, max_target_length="128", **TINY)
    assert isinstance(answer, Compiled), answer


@pytest.mark.parametrize("tpu_type", ["v4-32", "v5litepod-16", "v5p-32", "v6e-16", "tpu7x-32"])
def test_the_compiler_lets_a_program_use_as_much_memory_as_our_table_says(tpu_type: str, tmp_path: Path) -> None:
    slice_ = slice_for(tpu_type)
    compiled_for, usable = topology(slice_), CHIPS[slice_.generation].usable_gib
    too_much = {**vars(compiled_for), "gib": 4 * usable}
    ended = subprocess.run(
        [PYTHON, "-c", FILLING, json.dumps(too_much)],
        cwd=tmp_path,
        env={"HOME": str(tmp_path), "TPU_LOG_DIR": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"{usable:.2f}G" in ended.stdout, ended.stdout


def test_the_topologies_are_those_of_maxtexts_table_where_that_has_them(tmp_path: Path) -> None:
    """Where the two differ in the shape, it is another slice: of sizes that Google does not document, for example."""
    (file,) = PYTHON.parent.parent.glob("lib/python3*/site-packages/maxtext/utils/accelerator_to_spec_map.py")
    listing = (
        "import dataclasses, json, runpy, sys; rows = runpy.run_path(sys.argv[1]);"
        "table = rows['UserFacingNameToSystemCharacteristics'];"
        "print(json.dumps({name: dataclasses.asdict(row) for name, row in table.items()}))"
    )
    printed = subprocess.run([PYTHON, "-c", listing, file], capture_output=True, text=True, check=True).stdout
    compared = 0
    for name, row in json.loads(printed).items():
        family = name.partition("-")[0]
        if row["platform"] != "tpu" or not any(family in generation.aliases for generation in GENERATIONS.values()):
            continue
        mine = topology(slice_for(f"{family}-{row['topology_name'].partition(':')[2]}"))
        assert json.loads(json.dumps(vars(mine))) == {
            "name": row["topology_name"],
            "chip_config_name": row["chip_config_name"],
            "chips_per_host_bounds": row["chips_per_host_bounds"],
            "wrap": row["wrap"],
            "devices": row["devices_per_slice"],
        }
        compared += 1
    assert compared > 100
