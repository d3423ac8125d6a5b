"""ALLOWED_IMAGES: what the namespace says, beside what this environment and GKE bring."""

from __future__ import annotations

from typing import Any

import pytest

from admission import explain
from environment.kubernetes.team_objects import namespace
from manifests.render import BadManifest, render, rendered
from stacks.policies import policies
from tests.admission_cases import codes_of, fleet, manifest_of
from tests.loading import loaded
from tpuenv.jobs.runs import run_of

OURS = "us-east5-docker.pkg.dev/my-project/tpu-images/hello-tpu:1"
SIDECAR = "gcs-fuse-csi-driver-sidecar-mounter:v1.18.3-gke.2"


def _codes(manifest: dict[str, Any], allowed: str) -> list[str]:
    environment = loaded(ALLOWED_IMAGES=allowed)
    (team,) = environment.teams
    return codes_of(explain([*fleet(), namespace(environment, team)], manifest))


@pytest.mark.parametrize(
    ("image", "allowed", "runs"),
    [
        ("python:3.12", "", True),
        ("python:3.12", "docker.io/library/python:", False),
        ("docker.io/library/python:3.12", "docker.io/library/python:", True),
        ("docker.io/library/python-evil:3.12", "docker.io/library/python:", False),
        ("gcr.io/my-project-of-others/train:1", "gcr.io/a/, gcr.io/my-project/", False),
        ("gcr.io/my-project/train:1", "gcr.io/a/, gcr.io/my-project/", True),
        (OURS, "gcr.io/a/", True),
        (f"gke.gcr.io/{SIDECAR}", "gcr.io/a/", True),
        (f"us-east5-artifactregistry.gcr.io/gke-release/gke-release/{SIDECAR}", "gcr.io/a/", True),
        (f"random-gke.gcr.io/{SIDECAR}", "gcr.io/a/", False),
        (f"europe-west4-artifactregistry.gcr.io/someone/{SIDECAR}", "gcr.io/a/", False),
    ],
)
@pytest.mark.parametrize("containers", ["containers", "initContainers"])
def test_an_image_begins_with_what_is_allowed(image: str, allowed: str, runs: bool, containers: str) -> None:
    manifest = manifest_of("job-cpu")
    pod = manifest["spec"]["template"]["spec"]
    pod["containers"][0]["image"] = OURS
    pod.setdefault(containers, [{**pod["containers"][0], "name": "before"}])[0]["image"] = image
    assert _codes(manifest, allowed) == ([] if runs else ["image"])


def test_an_image_that_is_mounted_is_an_image() -> None:
    manifest = manifest_of("job-cpu")
    pod = manifest["spec"]["template"]["spec"]
    pod["containers"][0]["image"] = OURS
    pod["volumes"] = [
        {"name": "scratch", "emptyDir": {}},
        {"name": "tools", "image": {"reference": "evil.example.com/a"}},
    ]
    assert _codes(manifest, "gcr.io/a/") == ["image"]


def test_the_api_server_compares_with_what_the_namespace_says() -> None:
    allowed = "namespaceObject.metadata.?annotations[?'tpuenv/allowed-images'].orValue('').split(',')"
    for name in ("jobs-of-members", "pods-of-teams"):
        (rule,) = [item for item in policies()[name]["validations"] if "ALLOWED_IMAGES" in item["message"]]
        assert rule["expression"].count(f"{allowed}.exists(p, ") == 2


def test_a_recipe_is_refused_where_it_is_run_and_hinders_no_other() -> None:
    environment = loaded(TPU_TYPE="v6e-4", ALLOWED_IMAGES="gcr.io/a/")
    assert "tpu-training/tpu/vllm/jobset.yaml" in render(environment)
    (team,) = environment.teams
    run = run_of(environment, "vllm", team=team.name, group=None, settings=["model=a/b"])
    with pytest.raises(BadManifest, match=r"image: is 'docker.io/vllm/.*': ALLOWED_IMAGES has no beginning of it"):
        rendered(run)
    assert rendered(run_of(environment, "hello-tpu", team=team.name, group=None))
