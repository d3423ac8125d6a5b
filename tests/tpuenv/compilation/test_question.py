"""What is compiled for a run: the topology of its slice, and the words that a training step depends on."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from environment.tpu import slice_for, tpu_types
from environment.tpu_catalogue import GENERATIONS
from manifests.mesh import devices
from manifests.render import BadManifest, rendered
from tests.fleets import one_group, with_fleet
from tests.tpuenv.compilation.ground import RECIPE, run
from tpuenv.compilation import alternatives
from tpuenv.compilation.question import question_of
from tpuenv.compilation.topology import Topology, topology


@pytest.mark.parametrize(
    ("tpu_type", "name", "config", "host", "wrap", "devices"),
    [
        ("v4-32", "v4:2x2x4", "megacore", (2, 2, 1), (False, False, False), 16),
        ("v4-128", "v4:4x4x4", "megacore", (2, 2, 1), (True, True, True), 64),
        ("v5litepod-16", "v5e:4x4", "default", (2, 2, 1), (False, False, False), 16),
        ("v5litepod-1", "v5e:1x1", "default", (1, 1, 1), (False, False, False), 1),
        ("ct5lp-hightpu-8t-2x4", "v5e:2x4", "default", (2, 4, 1), (False, False, False), 8),
        ("v5p-32", "v5:2x2x4", "megacore", (2, 2, 1), (False, False, False), 16),
        ("v6e-128", "v6e:8x16", "default", (2, 2, 1), (False, True, False), 128),
        ("v6e-256", "v6e:16x16", "default", (2, 2, 1), (True, True, False), 256),
        ("tpu7x-16", "tpu7x:2x2x2", "default", (2, 2, 1), (False, False, False), 16),
    ],
)
def test_the_topology_of_a_slice(
    tpu_type: str, name: str, config: str, host: tuple[int, int, int], wrap: tuple[bool, bool, bool], devices: int
) -> None:
    assert topology(slice_for(tpu_type)) == Topology(
        name=name, chip_config_name=config, chips_per_host_bounds=host, wrap=wrap, devices=devices
    )


@pytest.mark.parametrize("tpu_type", [name for generation in GENERATIONS for name in tpu_types(generation)])
def test_every_tpu_type_has_a_topology_of_its_devices(tpu_type: str) -> None:
    slice_ = slice_for(tpu_type)
    compiled_for = topology(slice_)
    assert math.prod(map(int, compiled_for.name.partition(":")[2].split("x"))) == slice_.chips
    assert compiled_for.devices == devices(slice_)


def test_the_words_are_those_of_the_run_without_the_bucket_and_google_cloud() -> None:
    words = question_of(run(model_name="llama3-8b", ici_tensor_parallelism="4")).arguments
    assert {"model_name=llama3-8b", "ici_tensor_parallelism=4", "ici_fsdp_parallelism=4"} <= {*words}
    assert {"enable_checkpointing=false", "enable_goodput_recording=false", "jax_cache_dir="} <= {*words}
    assert not any("gs://" in word for word in words)


def test_two_runs_that_compile_the_same_are_one_question() -> None:
    assert question_of(run()) == question_of(run(checkpoint_period="100", jax_cache_dir="gs://other"))


@pytest.mark.parametrize("change", [{"per_device_batch_size": "2"}, {"libtpu_init_args": "--flag"}])
def test_everything_that_changes_the_answer_changes_the_digest(change: dict[str, str]) -> None:
    assert question_of(run(**change)).digest != question_of(run()).digest


def test_the_slices_and_the_type_change_the_digest() -> None:
    others = [run(slices=2), run(with_fleet(one_group("type: v6e-32, slices: 1")))]
    assert len({question_of(each).digest for each in [run(), *others]}) == 3


def test_a_mesh_that_is_not_the_slices_is_refused_in_terms_of_the_slice() -> None:
    with pytest.raises(BadManifest, match=r"ici_tensor_parallelism=3 does not divide the 16 chips of a v6e-16 slice"):
        question_of(run(ici_tensor_parallelism="3"))


def changes(given: list[alternatives.Alternative]) -> list[str]:
    return [alternative.change for alternative in given]


def test_smaller_batches_halve_down_to_fractions() -> None:
    tried = changes(list(alternatives.smaller_batches(run(per_device_batch_size="5"))))
    assert tried[:4] == [f"--set per_device_batch_size={batch}" for batch in ("2", "1", "0.5", "0.25")]


def test_another_policy_keeps_less_than_the_runs_own() -> None:
    minimal, full = run(remat_policy="minimal"), run(remat_policy="full")
    offloaded = "--set remat_policy=custom --set decoder_layer_input=offload"
    assert changes(list(alternatives.other_policies(minimal))) == ["--set remat_policy=full"]
    assert changes(list(alternatives.other_policies(full))) == [offloaded]


def test_more_sharding_is_all_of_a_slice_then_matrices_then_more_slices() -> None:
    data = run(ici_data_parallelism="4")
    assert changes(list(alternatives.more_sharding(data))) == [
        "--set ici_data_parallelism=1 --set ici_fsdp_parallelism=16",
        "--slices 2 --set dcn_fsdp_parallelism=2",
    ]
    assert changes(list(alternatives.more_sharding(run(slices=4)))) == [
        "--set ici_tensor_parallelism=4 --set ici_fsdp_parallelism=4",
        "--set dcn_fsdp_parallelism=4",
    ]
    sharded = run(slices=4, dcn_fsdp_parallelism="4")
    assert changes(list(alternatives.more_sharding(sharded)))[1:] == [], "the group has four slices"


def test_every_alternative_is_a_run_that_is_possible() -> None:
    for each in (run(), run(ici_data_parallelism="4"), run(slices=2, dcn_data_parallelism="2")):
        for alternative in (*alternatives.other_policies(each), *alternatives.more_sharding(each)):
            question_of(alternative.run)


def test_flags_of_the_compiler_come_from_a_preset_as_they_do_in_the_manifest() -> None:
    with_flags = {**RECIPE.presets, "tuned": {"libtpu_init_args": "--xla_tpu_flag=${REGION}"}}
    tuned = replace(run(preset="tuned"), recipe=replace(RECIPE, presets=with_flags))
    assert question_of(tuned).flags == "--xla_tpu_flag=us-east5"
    assert f'value: "{question_of(tuned).flags}"' in rendered(tuned)["jobset.yaml"]
