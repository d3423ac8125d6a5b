"""Names: what they are made of, and that none is one that Google or Kubernetes would refuse."""

from __future__ import annotations

import re

import pytest

from tests.fleets import one_group, refused_fleet, with_fleet
from tests.loading import loaded, refused


def test_names_are_made_of_the_prefix_and_global_ones_of_the_project_too() -> None:
    names = loaded(RESOURCE_PREFIX="lab").names
    assert (names.network, names.subnet, names.router, names.nat) == (
        "lab-network",
        "lab-subnet",
        "lab-router",
        "lab-nat",
    )
    assert (names.pods_range, names.services_range) == ("lab-pods", "lab-services")
    assert (names.cluster, names.registry, names.tensorboard) == ("lab-cluster", "lab-images", "lab-tensorboard")
    assert (names.node_account, names.webhook_firewall, names.cpu_pool) == ("lab-nodes", "lab-webhooks", "cpu")
    assert names.node_account_email == "lab-nodes@my-project.iam.gserviceaccount.com"
    assert names.registry_url == "us-east5-docker.pkg.dev/my-project/lab-images"
    assert names.bucket("research") == "my-project-lab-research"
    assert names.workload_policy("tpu") == "lab-tpu"
    assert (names.state_bucket, names.state_prefix) == ("my-project-lab-tf-state", "lab")


def test_the_place_of_the_state_can_be_chosen() -> None:
    names = loaded(TF_STATE_BUCKET="our-state", TF_STATE_PREFIX="a/b").names
    assert (names.state_bucket, names.state_prefix) == ("our-state", "a/b")


def test_two_environments_of_one_project_share_no_name() -> None:
    one, other = loaded(RESOURCE_PREFIX="one").names, loaded(RESOURCE_PREFIX="other").names
    for attribute in ("network", "cluster", "node_account", "registry", "state_bucket", "state_prefix"):
        assert getattr(one, attribute) != getattr(other, attribute)


@pytest.mark.parametrize("length", [1, 2, 24])
def test_names_of_the_longest_and_shortest_prefix_are_within_the_limits(length: int) -> None:
    names = loaded(PROJECT_ID="p" * 29, RESOURCE_PREFIX="a" * length, NAMESPACE="n" * 7).names
    assert 6 <= len(names.node_account) <= 30
    assert len(names.cluster) <= 40
    assert len(names.bucket("n" * 7)) <= 63
    assert len(names.state_bucket) <= 63
    assert re.fullmatch("[a-zA-Z0-9_.]{3,64}", names.tensorboard_role)


def test_a_prefix_that_makes_a_name_too_long_is_refused_once_with_the_way_to_shorten() -> None:
    name = "a" * 25 + "-nodes"
    assert refused(RESOURCE_PREFIX="a" * 25) == (
        f"RESOURCE_PREFIX: makes the service account name '{name}' 31 characters long, 30 are allowed; shorten "
        "RESOURCE_PREFIX by 1",
    )
    assert loaded(RESOURCE_PREFIX="a" * 24)


def test_a_project_and_a_prefix_that_make_the_state_bucket_too_long_are_refused() -> None:
    keys = {"PROJECT_ID": "p" * 30, "RESOURCE_PREFIX": "a" * 24, "NAMESPACE": "n"}
    (problem,) = refused(**keys)
    assert problem.startswith("RESOURCE_PREFIX: makes the bucket name '") and problem.endswith("RESOURCE_PREFIX by 1")
    assert loaded(**keys, TF_STATE_BUCKET="our-state")


def test_a_namespace_that_makes_the_bucket_too_long_is_refused() -> None:
    fits = "n" * (63 - len("p" * 30 + "-tpu-"))
    assert loaded(PROJECT_ID="p" * 30, NAMESPACE=fits)
    (problem,) = refused(PROJECT_ID="p" * 30, NAMESPACE=fits + "n")
    assert problem.startswith("NAMESPACE: makes the bucket name '") and "64 characters long, 63 are allowed" in problem
    assert problem.endswith("shorten NAMESPACE or RESOURCE_PREFIX by 1")


def test_a_namespace_that_makes_a_helm_release_too_long_is_refused() -> None:
    fits = "n" * (53 - len("drain-"))
    assert loaded(PROJECT_ID="p12345", NAMESPACE=fits)
    (problem,) = refused(PROJECT_ID="p12345", NAMESPACE=fits + "n")
    assert problem.startswith("NAMESPACE: makes the Helm release name 'drain-")


def test_a_node_pool_name_over_forty_characters_is_refused_at_its_line() -> None:
    assert with_fleet(one_group("type: v6e-16, slices: 11").replace("dev", "g" * 37))
    (problem,) = refused_fleet(one_group("type: v6e-16, slices: 11").replace("dev", "g" * 38))
    name = "g" * 38
    assert problem == (
        f"fleet.yaml:2: tpu_pools.{name}: makes the node pool name '{name}-10' 41 characters long, 40 are allowed; "
        f"shorten tpu_pools.{name} by 1"
    )


def test_the_longest_prefix_and_the_longest_group_fit_into_a_workload_policy() -> None:
    names = loaded(RESOURCE_PREFIX="a" * 24).names
    assert len(names.workload_policy("g" * 38)) == 63


def test_a_team_s_name_that_makes_a_name_too_long_is_refused_at_its_line() -> None:
    teams = ["n" * 47, "m" * 48, "ok"]
    text = "tpu_pools: {dev: {type: v6e-16, slices: 9}}\nteams:\n" + "".join(f"  {name}:\n" for name in teams)
    assert refused_fleet(text, PROJECT_ID="p12345") == (
        f"fleet.yaml:4: teams.{'m' * 48}: makes the Helm release name 'drain-{'m' * 48}' 54 characters long, 53 are "
        f"allowed; shorten teams.{'m' * 48} by 1",
    )


def test_a_team_of_a_fleet_file_may_not_take_the_bucket_of_the_state() -> None:
    (problem,) = refused_fleet(one_group("type: v6e-16, slices: 1").replace("research", "tf-state"))
    assert problem.startswith(
        "fleet.yaml:4: teams.tf-state: the bucket of team 'tf-state' would be 'my-project-tpu-tf-"
    )
    assert problem.endswith("change teams.tf-state or TF_STATE_BUCKET")


def test_a_team_s_name_that_cloud_storage_reserves_is_refused_at_its_line() -> None:
    (problem,) = refused_fleet(one_group("type: v6e-16, slices: 1").replace("research", "google-team"))
    assert problem.startswith("fleet.yaml:4: teams.google-team: makes the bucket name 'my-project-tpu-google-team'")
    assert problem.endswith("change teams.google-team")


@pytest.mark.parametrize(
    ("keys", "key"),
    [
        ({"PROJECT_ID": "my-google-project"}, "PROJECT_ID"),
        ({"RESOURCE_PREFIX": "g00gle"}, "RESOURCE_PREFIX"),
        ({"NAMESPACE": "google-research"}, "NAMESPACE"),
        ({"TF_STATE_BUCKET": "google-state"}, "TF_STATE_BUCKET"),
        ({"PROJECT_ID": "googol-project"}, "PROJECT_ID"),
    ],
)
def test_bucket_names_that_cloud_storage_reserves_are_refused(keys: dict[str, str], key: str) -> None:
    problems = refused(**keys)
    assert {problem.split(":")[0] for problem in problems} == {key}
    assert all("Cloud Storage refuses names with 'g" in problem for problem in problems)


def test_a_team_whose_bucket_would_be_that_of_the_state_is_refused() -> None:
    (problem,) = refused(NAMESPACE="tf-state")
    assert problem.startswith("NAMESPACE: the bucket of team 'tf-state' would be 'my-project-tpu-tf-state'")
    assert refused(TF_STATE_BUCKET="my-project-tpu-tpu-training")
