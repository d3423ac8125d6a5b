"""The recipe maxtext: its mesh on every slice, its presets, and what follows when a part of a run ends."""

from __future__ import annotations

import ast
import dataclasses
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import environment
from environment.tpu import slice_for, tpu_types
from environment.tpu_catalogue import GENERATIONS
from manifests.mesh import devices
from manifests.recipes import FOLDER, recipe_named
from manifests.render import Run, arguments, rendered
from tests.synthesis import HERE

RECIPE = recipe_named("maxtext")
DEFAULT = environment.load(HERE / "cases" / "default.env", {})
EVERY_TYPE = [name for generation in GENERATIONS for name in tpu_types(generation)]


def run_of(tpu_type: str = "v6e-16", *, slices: int = 1, **settings: str) -> Run:
    group = dataclasses.replace(DEFAULT.groups[0], slice=slice_for(tpu_type), slices=slices)
    return Run(
        recipe=RECIPE,
        environment=DEFAULT,
        team=DEFAULT.teams[0],
        group=group,
        slices=slices,
        settings=settings,
    )


def words(run: Run) -> dict[str, str]:
    return arguments(run)


def job_set() -> dict[str, Any]:
    (text,) = rendered(run_of()).values()
    loaded: dict[str, Any] = yaml.safe_load(text)
    return loaded


def constants(program: Path) -> Mapping[str, int]:
    """The numbers that a program gives names to at its top."""
    return {
        target.id: statement.value.value
        for statement in ast.parse(program.read_text(encoding="utf-8")).body
        if isinstance(statement, ast.Assign)
        and isinstance(statement.value, ast.Constant)
        and isinstance(target := statement.targets[0], ast.Name)
    }


@given(
    st.sampled_from([type_ for type_ in EVERY_TYPE if slice_for(type_).hosts > 1]),
    st.sampled_from([1, 2, 4, 6]),
    st.sampled_from(["", "ici_tensor_parallelism", "ici_fsdp_parallelism", "ici_data_parallelism"]),
    st.sampled_from(["", "dcn_fsdp_parallelism", "dcn_data_parallelism"]),
)
def test_the_mesh_is_every_device_of_every_slice(tpu_type: str, slices: int, within: str, across: str) -> None:
    chips = slice_for(tpu_type).chips
    settings = {key: str(number) for key, number in ((within, min(4, chips)), (across, slices)) if key}
    if within == "ici_fsdp_parallelism":
        settings["ici_data_parallelism"] = "-1"
    given_ = words(run_of(tpu_type, slices=slices, **settings))

    def product(network: str) -> int:
        return math.prod(int(value) for key, value in given_.items() if re.fullmatch(f"{network}_.*_parallelism", key))

    assert (product("ici"), product("dcn")) == (devices(slice_for(tpu_type)), slices)


def test_every_key_of_the_mesh_is_one_of_maxtext() -> None:
    keys = (FOLDER / "maxtext" / "keys.txt").read_text(encoding="utf-8").split()
    assert {*RECIPE.mesh.keys} == {key for key in keys if re.fullmatch("(ici|dcn)_.*_parallelism", key)}
    assert {*RECIPE.arguments} <= {*keys}


def test_the_sandbox_has_the_numbers_of_2023_under_the_keys_of_today() -> None:
    given_ = words(run_of("v4-32", preset="sandbox-6.5b"))
    assert given_["ici_fsdp_parallelism"] == "16"
    assert (
        given_.items()
        >= {
            "steps": "200",
            "log_period": "50",
            "checkpoint_period": "100",
            "per_device_batch_size": "16",
            "remat_policy": "full",
            "base_emb_dim": "4096",
            "base_num_query_heads": "16",
            "base_num_kv_heads": "16",
            "base_mlp_dim": "16384",
            "head_dim": "256",
            "base_num_decoder_layers": "32",
        }.items()
    )


def test_a_preset_and_any_key_of_maxtext_can_be_set_and_the_name_of_a_run_cannot() -> None:
    given_ = words(run_of(preset="llama3-8b", per_device_batch_size="0.5", opt_type="sgd"))
    assert (given_["model_name"], given_["per_device_batch_size"], given_["opt_type"]) == ("llama3-8b", "0.5", "sgd")
    assert "run_name" not in RECIPE.keys


def test_checkpoints_metrics_and_compiled_programs_are_in_the_teams_bucket() -> None:
    bucket = f"gs://{DEFAULT.names.bucket(DEFAULT.teams[0].name)}/"
    slice_, tensorboard = (
        job["template"]["spec"]["template"]["spec"]["containers"][0] for job in job_set()["spec"]["replicatedJobs"]
    )
    assert f"base_output_directory={bucket}maxtext" in slice_["command"]
    assert f"--folder={bucket}maxtext/$(RUN_NAME)/tensorboard" in tensorboard["args"]
    assert f"jax_cache_dir={bucket}jax-cache" in slice_["args"]


def action(reason: str, message: str) -> str:
    """What JobSet does about a failed Job: the first rule that fits, without one a restart that counts.

    https://jobset.sigs.k8s.io/docs/tasks/failure_policy/
    """
    for rule in job_set()["spec"]["failurePolicy"]["rules"]:
        patterns = rule.get("onJobFailureMessagePatterns", [""])
        if reason in rule["onJobFailureReasons"] and any(re.search(pattern, message) for pattern in patterns):
            return str(rule["action"])
    return "RestartJobSet"


def test_an_interruption_uses_up_no_restart_and_refused_keys_are_not_tried_again() -> None:
    """The messages are those of Kubernetes' Job controller (pkg/controller/job/pod_failure_policy.go)."""
    codes = constants(FOLDER / "maxtext" / "train.py")
    pod = "for pod tpu-training/maxtext-slice-0-0-abcde failed with exit code"
    for message in (
        "Pod tpu-training/maxtext-slice-0-0-abcde has condition DisruptionTarget matching FailJob rule at index 0",
        f"Container maxtext {pod} {codes['INTERRUPTED']} matching FailJob rule at index 1",
    ):
        assert action("PodFailurePolicy", message) == "RestartJobSetAndIgnoreMaxRestarts"
    refused = f"Container maxtext {pod} {codes['REFUSED']} matching FailJob rule at index 1"
    assert action("PodFailurePolicy", refused) == "FailJobSet"
    assert action("BackoffLimitExceeded", "Job has reached the specified backoff limit") == "RestartJobSet"
    slice_ = job_set()["spec"]["replicatedJobs"][0]["template"]["spec"]
    disrupted, by_code = slice_["podFailurePolicy"]["rules"]
    assert disrupted["onPodConditions"] == [{"type": "DisruptionTarget", "status": "True"}]
    assert sorted(by_code["onExitCodes"]["values"]) == sorted([codes["INTERRUPTED"], codes["REFUSED"]])


def test_the_upload_takes_no_tpus_decides_nothing_and_ends_with_the_training() -> None:
    spec = job_set()["spec"]
    slice_, tensorboard = spec["replicatedJobs"]
    assert spec["successPolicy"] == {"operator": "All", "targetReplicatedJobs": [slice_["name"]]}
    job = tensorboard["template"]["spec"]
    assert (job["template"]["spec"]["restartPolicy"], job["backoffLimit"]) == ("OnFailure", 2**31 - 1)
    (container,) = job["template"]["spec"]["containers"]
    assert "google.com/tpu" not in str(container["resources"])
    assert "annotations" not in tensorboard["template"].get("metadata", {}), "it shares the node pool of the CPU nodes"


@pytest.mark.parametrize("key", ["ici_tensor_parallelism", "dcn_fsdp_parallelism"])
def test_a_mesh_that_does_not_fit_is_said_in_terms_of_the_slices(key: str) -> None:
    with pytest.raises(ValueError, match=rf"^{key}=3 does not divide the (16 chips of a v6e-16 slice|2 slices)"):
        rendered(run_of(slices=2, **{key: "3"}))
