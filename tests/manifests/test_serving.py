"""The recipes that serve models: what of the slices they take, where their state is, and who reaches them."""

from __future__ import annotations

import dataclasses
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

import environment
from environment.tpu import slice_for
from manifests.recipes import recipe_named
from manifests.render import Run, rendered
from tests.synthesis import HERE

DEFAULT = environment.load(HERE / "cases" / "default.env", {})
BUCKET = "my-project-tpu-tpu-training"

Object = dict[str, Any]


def run_on(recipe: str, tpu_type: str, *, slices: int = 1, **settings: str) -> tuple[Object, Object]:
    """The JobSet and the Service of a run named `mine` on slices of that type."""
    group = dataclasses.replace(DEFAULT.groups[0], slice=slice_for(tpu_type), slices=slices)
    run = Run(
        recipe=recipe_named(recipe),
        environment=DEFAULT,
        team=DEFAULT.teams[0],
        group=group,
        slices=slices,
        settings=settings,
        name="mine",
    )
    job_set, service = (yaml.safe_load(text) for text in rendered(run).values())
    return job_set, service


def pod_of(job_set: Object, part: str) -> Object:
    (job,) = (job for job in job_set["spec"]["replicatedJobs"] if job["name"] == part)
    return dict(job["template"]["spec"]["template"]["spec"])


def container_of(job_set: Object, part: str) -> Object:
    (container,) = pod_of(job_set, part)["containers"]
    return dict(container)


def environment_of(job_set: Object, part: str) -> dict[str, str]:
    return {item["name"]: item["value"] for item in container_of(job_set, part)["env"] if "value" in item}


def test_saxml_has_a_model_server_on_each_slice_and_derives_its_size() -> None:
    """The cell of Google's guide: two slices of v5e with 8 hosts of 4 chips."""
    job_set, _ = run_on("saxml", "v5litepod-32", slices=2)
    admin, slices, http = job_set["spec"]["replicatedJobs"]
    assert [job["name"] for job in (admin, slices, http)] == ["admin", "slice", "http"]
    assert (slices["replicas"], admin["replicas"], http["replicas"]) == (2, 1, 1)
    job = slices["template"]["spec"]
    assert (job["parallelism"], job["completions"], job["backoffLimit"]) == (8, 8, 0)
    container = container_of(job_set, "slice")
    assert container["args"] == ["--port=10001", "--sax_cell=/sax/test", "--platform_chip=tpuv5e"]
    assert container["resources"]["limits"] == {"google.com/tpu": "4"}
    four, _ = run_on("saxml", "v4-32")
    assert container_of(four, "slice")["args"][-1] == "--platform_chip=tpuv4"


@pytest.mark.parametrize(("recipe", "tpu_type"), [("saxml", "v5litepod-32"), ("vllm", "v6e-4")])
def test_the_servers_on_several_slices_are_not_one_program(recipe: str, tpu_type: str) -> None:
    job_set, _ = run_on(recipe, tpu_type, slices=2)
    assert environment_of(job_set, "slice")["MEGASCALE_NUM_SLICES"] == "", "GKE's webhook would set 2"


def test_all_parts_of_saxml_have_one_root_in_the_teams_bucket_which_no_other_run_has() -> None:
    job_set, _ = run_on("saxml", "v5litepod-4")
    root = f"gs://{BUCKET}/saxml/$(RUN_NAME)/sax-root"
    assert environment_of(job_set, "slice")["SAX_ROOT"] == environment_of(job_set, "http")["SAX_ROOT"] == root
    # The script of the admin server's image: --sax_root=gs://${GSBUCKET}/sax-root
    assert f"gs://{environment_of(job_set, 'admin')['GSBUCKET']}/sax-root" == root


@pytest.mark.parametrize(("recipe", "tpu_type"), [("saxml", "v5litepod-32"), ("vllm", "v6e-4")])
def test_pods_act_as_the_team_and_start_no_other_without_chips_on_a_slice(recipe: str, tpu_type: str) -> None:
    job_set, _ = run_on(recipe, tpu_type)
    for job in job_set["spec"]["replicatedJobs"]:
        pod = pod_of(job_set, job["name"])
        assert pod["serviceAccountName"] == "tpu-training"
        assert "hostNetwork" not in pod, "there the rights of the account do not hold"
        has_chips = "google.com/tpu" in container_of(job_set, job["name"])["resources"].get("limits", {})
        assert has_chips == ("nodeSelector" in pod)


@pytest.mark.parametrize(
    ("recipe", "tpu_type", "part", "settings"),
    [
        ("saxml", "v5litepod-32", "http", {}),
        ("vllm", "v6e-4", "slice", {}),
        ("vllm", "v6e-4", "slice", {"preset": "network"}),
    ],
)
def test_requests_reach_the_server_and_never_from_outside_of_the_network(
    recipe: str, tpu_type: str, part: str, settings: dict[str, str]
) -> None:
    job_set, service = run_on(recipe, tpu_type, **settings)
    spec = service["spec"]
    assert spec["selector"] == {
        "jobset.sigs.k8s.io/jobset-name": "mine",
        "jobset.sigs.k8s.io/replicatedjob-name": part,
    }
    (port,) = spec["ports"]
    assert {"containerPort": port["targetPort"]} in container_of(job_set, part)["ports"]
    outside = spec["type"] == "LoadBalancer"
    assert outside or spec["type"] == "ClusterIP"
    assert spec["externalTrafficPolicy"] == ("Local" if outside else None), "the team's NetworkPolicy lets no node in"
    (job,) = (item["template"]["spec"] for item in job_set["spec"]["replicatedJobs"] if item["name"] == part)
    assert job["template"]["metadata"]["labels"] == {"tpuenv/serves": "true"}
    assert service["metadata"]["annotations"] == {"networking.gke.io/load-balancer-type": "Internal"}
    assert service["metadata"]["name"] != job_set["metadata"]["name"], "JobSet's own Service has that name"
    assert container_of(job_set, part)["readinessProbe"], "only what is ready gets requests"


@pytest.mark.parametrize(
    ("tpu_type", "devices"), [("v6e-4", 4), ("ct6e-standard-8t-2x4", 8), ("v5litepod-1", 1), ("tpu7x-8", 8)]
)
def test_vllm_divides_a_model_among_all_devices_of_a_host(tpu_type: str, devices: int) -> None:
    job_set, _ = run_on("vllm", tpu_type, model="/bucket/models/mine", options="--max-num-seqs=64 --seed=1")
    container = container_of(job_set, "slice")
    assert container["args"][:2] == ["/bucket/models/mine", f"--tensor-parallel-size={devices}"]
    assert environment_of(job_set, "slice")["OPTIONS"] == "--max-num-seqs=64 --seed=1"
    (bucket,) = (volume["csi"] for volume in pod_of(job_set, "slice")["volumes"] if "csi" in volume)
    assert bucket["volumeAttributes"]["bucketName"] == BUCKET


def test_vllm_is_started_with_each_option_as_a_word_and_a_model_as_one(tmp_path: Path) -> None:
    job_set, _ = run_on("vllm", "v6e-4", model="/bucket/my model", options="--seed=1  --max-num-seqs * 64")
    container = container_of(job_set, "slice")
    program = tmp_path / "vllm"
    program.write_text('#!/bin/bash\nprintf "%s\\n" "$@"\n')
    program.chmod(0o755)
    printed = subprocess.check_output(
        [*container["command"], *container["args"]],
        env={**environment_of(job_set, "slice"), "PATH": f"{tmp_path}:/usr/bin:/bin"},
        text=True,
    )
    assert printed.splitlines() == ["serve", *container["args"], "--seed=1", "--max-num-seqs", "*", "64"]
    assert container["args"][0] == "/bucket/my model"


def test_vllm_gives_a_model_as_long_to_load_as_kueue_gives_its_pods() -> None:
    from stacks.platform import PODS_READY_TIMEOUT

    job_set, _ = run_on("vllm", "v6e-4")
    container = container_of(job_set, "slice")
    assert {container[probe]["httpGet"]["path"] for probe in ("startupProbe", "readinessProbe", "livenessProbe")} == {
        "/health"
    }
    probe = container["startupProbe"]
    assert f"{probe['periodSeconds'] * probe['failureThreshold'] // 60}m" == PODS_READY_TIMEOUT
