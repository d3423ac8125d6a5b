"""The settings of the pipeline: what they take, what is refused, and the names that follow from them."""

from __future__ import annotations

import pytest

from environment.settings.values import repository_parts
from tests.loading import loaded, refused

REPOSITORY = "projects/my-project/locations/us-central1/connections/github/repositories/tpu-environment"
IMAGE = "us-east5-docker.pkg.dev/my-project/tpu-builder/builder@sha256:" + "0123456789abcdef" * 4
PIPELINE = {"BUILD_REPOSITORY": REPOSITORY, "BUILDER_IMAGE": IMAGE}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("BUILD_BRANCH", "main"),
        ("BUILD_BRANCH", "release/2027.1"),
        ("BUILDER_IMAGE", IMAGE),
        ("BUILDER_IMAGE", IMAGE.replace("@", ":2027-01@")),
        ("BUILDER_IMAGE", IMAGE.replace("us-east5-docker.pkg.dev", "mirror.example.com:5000")),
    ],
)
def test_a_good_value_is_taken_as_it_is(key: str, value: str) -> None:
    assert getattr(loaded(**{key: value}).settings, key.lower()) == value


@pytest.mark.parametrize(
    ("key", "value", "because"),
    [
        ("BUILD_REPOSITORY", "https://github.com/me/mine", "is the address of a Git repository; connect it"),
        ("BUILD_REPOSITORY", "git@github.com:me/mine", "is the address of a Git repository; connect it"),
        ("BUILD_REPOSITORY", "me/mine", "is not a repository of Cloud Build's 2nd generation"),
        ("BUILD_REPOSITORY", REPOSITORY.rpartition("/repositories/")[0], "is not a repository of Cloud Build's"),
        ("BUILD_REPOSITORY", REPOSITORY.replace("us-central1", "global"), "is in location 'global'"),
        ("BUILD_BRANCH", "^main", "is not a branch"),
        ("BUILD_BRANCH", ".*", "is not a branch"),
        ("BUILD_BRANCH", "a..b", "is not a branch"),
        ("BUILD_BRANCH", "a//b", "is not a branch"),
        ("BUILD_BRANCH", "main.lock", "is not a branch"),
        ("BUILDER_IMAGE", IMAGE.partition("@")[0], "names no digest"),
        ("BUILDER_IMAGE", IMAGE[:-1], "is not an image with its digest"),
        ("BUILDER_IMAGE", "https://" + IMAGE, "is not an image with its digest"),
    ],
)
def test_a_bad_value_is_refused_in_one_line_with_its_key_and_value(key: str, value: str, because: str) -> None:
    (problem,) = [problem for problem in refused(**{**PIPELINE, key: value}) if problem.startswith(f"{key}: ")]
    assert problem.startswith(f"{key}: '{value[:60]}") and because in problem, problem


def test_a_pipeline_needs_its_builder_image() -> None:
    (problem,) = refused(BUILD_REPOSITORY=REPOSITORY)
    assert problem.startswith("BUILDER_IMAGE: is empty while BUILD_REPOSITORY is set; build the image")
    assert loaded(BUILDER_IMAGE=IMAGE).settings.build_repository == "", "the image is there before the repository"


def test_a_repository_that_another_project_connected_is_refused() -> None:
    elsewhere = REPOSITORY.replace("my-project", "other-project")
    (problem,) = refused(**{**PIPELINE, "BUILD_REPOSITORY": elsewhere})
    assert problem.startswith("BUILD_REPOSITORY: is connected to project 'other-project', and triggers of PROJECT_ID")
    numbered = REPOSITORY.replace("my-project", "123456789012")
    assert loaded(**{**PIPELINE, "BUILD_REPOSITORY": numbered, "PROJECT_NUMBER": "123456789012"})
    (problem,) = refused(**{**PIPELINE, "BUILD_REPOSITORY": numbered, "PROJECT_NUMBER": "999999999999"})
    assert problem.startswith("BUILD_REPOSITORY: is connected to project '123456789012'")


def test_a_number_that_may_be_this_project_s_is_not_called_another_project() -> None:
    numbered = REPOSITORY.replace("my-project", "123456789012")
    (problem,) = refused(**{**PIPELINE, "BUILD_REPOSITORY": numbered})
    assert problem.startswith("BUILD_REPOSITORY: names its project by the number '123456789012'; write projects/my-pro")


def test_the_triggers_region_is_the_repository_s() -> None:
    assert repository_parts(REPOSITORY) == {
        "project": "my-project",
        "location": "us-central1",
        "connection": "github",
        "repository": "tpu-environment",
    }


def test_a_prefix_may_be_as_long_as_the_deploy_account_s_name_allows() -> None:
    assert loaded(**PIPELINE, RESOURCE_PREFIX="p" * 23, PROJECT_ID="my-project")
    (problem,) = refused(**PIPELINE, RESOURCE_PREFIX="p" * 24)
    assert problem.startswith(f"RESOURCE_PREFIX: makes the service account name '{'p' * 24}-deploy' 31 characters long")
    assert loaded(RESOURCE_PREFIX="p" * 24), "without a pipeline there is no such account"


def test_a_team_whose_bucket_would_be_the_pipeline_s_is_refused() -> None:
    (problem,) = refused(**PIPELINE, NAMESPACE="plans")
    assert problem.startswith("NAMESPACE: the bucket of team 'plans' would be 'my-project-tpu-plans', which holds")
    assert "reviewed plans" in problem and problem.endswith("change NAMESPACE")
    assert loaded(NAMESPACE="plans")


def test_a_team_whose_bucket_would_be_that_of_image_builds_is_refused() -> None:
    (problem,) = refused(NAMESPACE="builds")
    assert "would be 'my-project-tpu-builds', which holds the source of image builds; change NAMESPACE" in problem
