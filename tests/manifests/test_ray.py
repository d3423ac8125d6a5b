"""The recipes for Ray: on which slices they run, and what KubeRay makes of their names."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import environment
from admission import Verdict
from environment import CapacityMode
from environment.tpu import slice_for
from manifests.recipes import BadManifest, Recipe, all_recipes
from manifests.render import LONGEST_NAME, Run, rendered
from tests.synthesis import HERE
from tpuenv.jobs.check import answers
from tpuenv.jobs.manifests import documents_in

RAY = [recipe for recipe in all_recipes() if recipe.name.startswith("ray-")]
EVERY_RECIPE = pytest.mark.parametrize("recipe", RAY, ids=lambda recipe: recipe.name)
DEFAULT = environment.load(HERE / "cases" / "default.env", {})


def run_on(recipe: Recipe, tpu_type: str = "v6e-16", **changes: Any) -> Run:
    """A run on the default environment's one group, with slices of another type, or of another capacity mode."""
    groups = tuple(dataclasses.replace(item, slice=slice_for(tpu_type), **changes) for item in DEFAULT.groups)
    configured = dataclasses.replace(DEFAULT, groups=groups)
    return Run(recipe=recipe, environment=configured, team=configured.teams[0], group=groups[0])


def cluster_spec(run: Run) -> dict[str, Any]:
    (made,) = yaml.safe_load_all("".join(rendered(run).values()))
    spec: dict[str, Any] = made["spec"]
    return spec.get("rayClusterSpec", spec)


@EVERY_RECIPE
def test_a_worker_group_is_whole_slices_of_any_type_but_two_hosts_of_2x4(recipe: Recipe) -> None:
    for tpu_type in ("v4-32", "v5litepod-4", "v5litepod-8", "v5p-128", "v6e-8", "v6e-16", "tpu7x-32"):
        slice_ = slice_for(tpu_type)
        run = run_on(recipe, tpu_type)
        if (slice_.topology, slice_.hosts) == ("2x4", 2):
            with pytest.raises(BadManifest, match="Ray takes a slice of 2x4 for one host of 8 chips"):
                rendered(run)
            continue
        (workers,) = cluster_spec(run)["workerGroupSpecs"]
        assert [workers[key] for key in ("replicas", "minReplicas", "maxReplicas")] == [1, 1, 1]
        (container,) = workers["template"]["spec"]["containers"]
        assert workers["groupName"] == "slice"
        assert workers["numOfHosts"] * int(container["resources"]["limits"]["google.com/tpu"]) == slice_.chips


@EVERY_RECIPE
def test_a_recipe_and_its_manifest_are_refused_alike_on_queued_provisioning(recipe: Recipe) -> None:
    queued = run_on(recipe, capacity=CapacityMode.QUEUED)
    with pytest.raises(BadManifest, match="queued provisioning takes jobs of one kind of pod"):
        rendered(queued)
    elsewhere = "".join(rendered(run_on(recipe)).values())
    (answer,) = answers(queued.environment, list(documents_in(elsewhere, file="ray.yaml")), "")
    assert answer.explanation
    assert answer.explanation.verdict == Verdict.NEVER
    assert [reason.code for reason in answer.explanation.reasons] == ["ray-slice"]


@EVERY_RECIPE
def test_the_dashboard_is_reached_from_inside_the_cluster_alone(recipe: Recipe) -> None:
    head = cluster_spec(run_on(recipe))["headGroupSpec"]
    assert head["serviceType"] == "ClusterIP"
    assert not head.get("enableIngress")
    assert head["template"]["spec"]["nodeSelector"] == {"tpuenv/pool-group": "cpu"}


@EVERY_RECIPE
def test_the_dashboard_asks_for_a_token_and_check_says_where_it_would_not(recipe: Recipe) -> None:
    run = run_on(recipe)
    assert cluster_spec(run)["authOptions"] == {"mode": "token"}
    (text,) = rendered(run).values()
    assert "authOptions" not in str(_notes(run, text))
    for without in (text.replace("{mode: token}", "{}"), re.sub(".*authOptions.*", "", text)):
        (note,) = _notes(run, without)
        assert note.endswith(
            "authOptions is not {mode: token}: whoever reaches its dashboard can run programs as the team"
        )


def _notes(run: Run, text: str) -> tuple[str, ...]:
    (answer,) = answers(run.environment, list(documents_in(text, file="x")), run.team.name)
    assert answer.explanation
    assert answer.explanation.verdict == Verdict.ADMITTED
    return answer.explanation.notes


@EVERY_RECIPE
def test_every_pod_mounts_the_bucket_of_the_team_as_the_teams_service_account(recipe: Recipe) -> None:
    spec = cluster_spec(run_on(recipe))
    for group in (spec["headGroupSpec"], *spec["workerGroupSpecs"]):
        template = group["template"]
        assert template["metadata"]["annotations"]["gke-gcsfuse/volumes"] == "true"
        (volume,) = template["spec"]["volumes"]
        assert volume["csi"]["volumeAttributes"]["bucketName"] == DEFAULT.names.bucket("tpu-training")
        assert template["spec"]["serviceAccountName"] == "tpu-training"
        (container,) = template["spec"]["containers"]
        assert container["volumeMounts"] == [{"name": volume["name"], "mountPath": "/bucket"}]


@given(
    name=st.from_regex(rf"[a-z]([a-z0-9-]{{0,{LONGEST_NAME - 2}}}[a-z0-9])?", fullmatch=True),
    replica=st.integers(0, 999),
)
def test_a_name_of_a_run_fits_every_name_that_kuberay_makes_of_it(name: str, replica: int) -> None:
    """KubeRay 1.7.0, controllers/ray/utils/util.go: GenerateRayClusterName, PodName, CheckName, GenerateIdentifier."""
    group = "slice"  # of every recipe, as its replicas are slices
    cluster = f"{name}-abcde"
    assert len(name) <= 47
    assert len(cluster) <= 50, "so KubeRay cuts the name of no head, and the names of two runs stay two"
    made = [
        f"{cluster}-head-abcde",
        f"{f'{cluster}-{group}'[:50]}-worker-abcde",
        f"{cluster}-head-svc",
        f"{cluster}-worker",
        f"{group}-{replica}-{replica}",
    ]
    assert all(re.fullmatch(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?", one) for one in made), made
