"""Every Kubernetes object that this project makes is one that a strict API server takes."""

from __future__ import annotations

import copy
import runpy
from pathlib import Path

import pytest
import yaml

from tests.crd_schemas import errors_of
from tests.synthesis import CASES, ROOT, Synthesis


@pytest.mark.parametrize("case", CASES)
def test_every_object_of_a_case_is_valid_to_the_last_key(case: str, synthesis: Synthesis) -> None:
    objects = synthesis.kubernetes_objects(case)
    assert {"ClusterQueue", "LocalQueue", "ResourceFlavor", "JobSet", "ValidatingAdmissionPolicy"} <= {
        item["kind"] for item in objects
    }
    assert {f"{item['kind']}: {error}" for item in objects for error in errors_of(item)} == set()


def test_the_objects_that_the_gate_tries_are_valid() -> None:
    gate = runpy.run_path(str(ROOT / "charts" / "gate" / "files" / "gate.py"))
    assert [errors_of(body) for _, body in gate["objects"]("tpu-training")] == [[]] * 4


def test_a_key_of_an_older_version_is_refused_and_not_pruned(synthesis: Synthesis) -> None:
    queue = next(item for item in synthesis.kubernetes_objects("default") if item["kind"] == "ClusterQueue")
    old = copy.deepcopy(queue)
    old["spec"]["cohort"] = old["spec"].pop("cohortName")
    assert any("cohort" in error for error in errors_of(old))


@pytest.mark.parametrize("case", CASES)
def test_kueue_is_spoken_to_in_one_version(case: str, synthesis: Synthesis) -> None:
    versions = {item["apiVersion"] for item in synthesis.kubernetes_objects(case) if "kueue" in item["apiVersion"]}
    assert versions == {"kueue.x-k8s.io/v1beta2"}


@pytest.mark.parametrize("case", CASES)
def test_hello_tpu_fills_a_slice_and_has_one_of_several_hosts_to_itself(case: str, synthesis: Synthesis) -> None:
    environment = synthesis.environment(case)
    for team, group in ((team, group) for team in environment.teams for group in environment.groups):
        if group.name not in team.pools:
            assert Path(team.name) / group.name / "hello-tpu" / "jobset.yaml" not in synthesis.manifests(case)
            continue
        job_set = yaml.safe_load(synthesis.manifests(case)[Path(team.name) / group.name / "hello-tpu" / "jobset.yaml"])
        assert job_set["metadata"]["namespace"] == team.name
        assert job_set["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] == (team.priority or "medium")
        assert "annotations" not in job_set["metadata"]
        (replicated,) = job_set["spec"]["replicatedJobs"]
        exclusive = {"alpha.jobset.sigs.k8s.io/exclusive-topology": "cloud.google.com/gke-nodepool"}
        assert replicated["template"]["metadata"]["annotations"] == (exclusive if group.slice.hosts > 1 else {})
        job = replicated["template"]["spec"]
        assert job["parallelism"] == job["completions"] == group.slice.hosts
        pod = job["template"]["spec"]
        assert pod["containers"][0]["resources"]["limits"] == {"google.com/tpu": str(group.slice.chips_per_host)}
        # Of Autopilot's nodes: tests/environment/test_autopilot.py.
        selected = ("cloud.google.com/gke-tpu-accelerator", "cloud.google.com/gke-tpu-topology", "tpuenv/pool-group")
        assert {key: value for key, value in pod["nodeSelector"].items() if key in selected} == {
            "cloud.google.com/gke-tpu-accelerator": group.slice.accelerator,
            "cloud.google.com/gke-tpu-topology": group.slice.topology,
            **({} if environment.settings.autopilot else {"tpuenv/pool-group": group.name}),
        }
        assert "tolerations" not in pod, "Kueue gives the pods what their flavor tolerates"
