"""Cloud Build in the fake cloud: triggers of connected repositories, jobs that start them, conditions of bindings."""

from __future__ import annotations

from typing import Any

import pytest

from rehearsal.cloudbuild.resources import connect
from rehearsal.google.conditions import BadCondition, holds, operators
from rehearsal.terraform.resource_type import Refusal
from tests.rehearsal.fake import FakeCloud

REPOSITORY = "projects/my-project/locations/us-central1/connections/github/repositories/mine"
ACCOUNT = "builder@my-project.iam.gserviceaccount.com"
TRIGGER: dict[str, Any] = {
    "name": "deploy",
    "location": "us-central1",
    "filename": "cloudbuild/deploy.yaml",
    "repository_event_config": [{"repository": REPOSITORY, "push": [{"branch": "^main$"}]}],
    "service_account": f"projects/my-project/serviceAccounts/{ACCOUNT}",
    "substitutions": {"_BUILDER": "image"},
}
JOB: dict[str, Any] = {
    "name": "nightly",
    "region": "us-central1",
    "schedule": "30 4 * * *",
    "http_target": [{"uri": "https://example.com", "oauth_token": [{"service_account_email": ACCOUNT}]}],
}


@pytest.fixture
def building(empty: FakeCloud) -> FakeCloud:
    """A project with an account for builds, and a repository that a person has connected."""
    connect(empty.cloud, REPOSITORY)
    empty.make("google_service_account.builder", account_id="builder")
    return empty


def test_a_trigger_comes_stays_changes_and_goes(building: FakeCloud) -> None:
    made = building.make("google_cloudbuild_trigger.deploy", **TRIGGER).state or {}
    assert made["id"] == f"projects/my-project/locations/us-central1/triggers/{made['trigger_id']}"
    assert building.unchanged("google_cloudbuild_trigger.deploy")
    changed = building.change("google_cloudbuild_trigger.deploy", filename="cloudbuild/other.yaml")
    assert changed["id"] == made["id"]
    _, replaced = building.plan("google_cloudbuild_trigger.deploy", location="us-east5")
    assert replaced == [("location",)]
    assert building.imported("google_cloudbuild_trigger.deploy", str(made["id"])) == changed
    building.destroy("google_cloudbuild_trigger.deploy")
    assert len(building.cloud.find("google_cloudbuild_trigger")) == 0


def test_google_returns_the_connection_s_type_of_repository_and_ignores_the_one_sent(building: FakeCloud) -> None:
    """Required, and not computed: without ignore_changes it is set again at every deploy."""
    ours = {"repository": REPOSITORY, "repo_type": "UNKNOWN"}
    by_hand = {
        **{key: value for key, value in TRIGGER.items() if key not in ("filename", "repository_event_config")},
        "source_to_build": [{**ours, "ref": "refs/heads/main"}],
        "git_file_source": [{**ours, "path": "cloudbuild/drift.yaml"}],
    }
    building.make("google_cloudbuild_trigger.drift", **by_hand)
    trigger = building.read("google_cloudbuild_trigger.drift")
    assert trigger is not None
    assert [trigger[block][0]["repo_type"] for block in ("source_to_build", "git_file_source")] == ["GITHUB", "GITHUB"]
    assert trigger["source_to_build"][0]["ref"] == "refs/heads/main"
    assert not building.unchanged("google_cloudbuild_trigger.drift")


def test_a_second_trigger_of_a_name_is_refused(building: FakeCloud) -> None:
    building.make("google_cloudbuild_trigger.deploy", **TRIGGER)
    with pytest.raises(Refusal, match="Error 409: trigger 'deploy' already exists"):
        building.make("google_cloudbuild_trigger.again", **TRIGGER)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": "no_underscores"}, "invalid trigger name"),
        ({"name": "d" * 65}, "invalid trigger name"),
        ({"repository_event_config": []}, "the trigger has no source"),
        ({"location": "us-east5"}, "is in another region than the trigger"),
        (
            {"repository_event_config": [{"repository": REPOSITORY + "-not", "push": [{"branch": "^main$"}]}]},
            "Error 404: Requested entity was not found: repository .*mine-not",
        ),
        (
            {"repository_event_config": [{"repository": REPOSITORY, "push": [{"branch": "^main($"}]}]},
            "invalid branch expression",
        ),
        ({"substitutions": {"BUILDER": "image"}}, "key 'BUILDER' in the substitution data is not valid"),
        ({"service_account": "projects/my-project/serviceAccounts/nobody@x"}, "nobody@x does not exist"),
        (
            {
                "filename": None,
                "repository_event_config": [],
                "source_to_build": [{"repository": REPOSITORY, "ref": "refs/heads/main", "repo_type": "UNKNOWN"}],
            },
            "source_to_build needs git_file_source",
        ),
    ],
)
def test_what_cloud_build_refuses_of_a_trigger(building: FakeCloud, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(Refusal, match=words):
        building.make("google_cloudbuild_trigger.deploy", **(TRIGGER | changes))


def test_no_trigger_before_its_api_is_on(building: FakeCloud) -> None:
    building.cloud.delete("google_project_service", "projects/my-project/services/cloudbuild.googleapis.com")
    with pytest.raises(Refusal, match=r"cloudbuild\.googleapis\.com has not been used in project"):
        building.make("google_cloudbuild_trigger.deploy", **TRIGGER)


@pytest.mark.parametrize("schedule", ["30 4 * * *", "*/15 * * * 1-5", "0 0,12 1 */2 *"])
def test_a_job_comes_stays_and_goes(building: FakeCloud, schedule: str) -> None:
    building.make("google_cloud_scheduler_job.nightly", **(JOB | {"schedule": schedule}))
    assert building.unchanged("google_cloud_scheduler_job.nightly")
    with pytest.raises(Refusal, match=r"Error 409: Job .*/jobs/nightly already exists"):
        building.make("google_cloud_scheduler_job.again", **JOB)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"region": "us-east5"},
            r'403: The principal .* lacks IAM permission "cloudscheduler.jobs.create" for the '
            r'resource "projects/my-project/locations/us-east5" \(or the resource may not exist\)',
        ),
        ({"schedule": "every night"}, "Schedule or time zone is invalid: 'every night'"),
        ({"schedule": "30 4 * *"}, "Schedule or time zone is invalid"),
        (
            {"http_target": [{"uri": "https://x", "oauth_token": [{"service_account_email": "nobody@x"}]}]},
            "service account nobody@x was not found",
        ),
    ],
)
def test_what_cloud_scheduler_refuses_of_a_job(building: FakeCloud, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(Refusal, match=words):
        building.make("google_cloud_scheduler_job.nightly", **(JOB | changes))


ONLY = "api.getAttribute('iam.googleapis.com/modifiedGrantsByRole', []).hasOnly(['roles/a', 'roles/b'])"


@pytest.mark.parametrize(
    ("expression", "name", "roles", "held"),
    [
        (ONLY, "", ["roles/a"], True),
        (ONLY, "", ["roles/a", "roles/c"], False),
        (ONLY, "", [], True),
        ('resource.name.startsWith("projects/_/buckets/mine-")', "projects/_/buckets/mine-1", [], True),
        ('resource.name.startsWith("projects/_/buckets/mine-")', "projects/_/buckets/other", [], False),
        ('!resource.name.startsWith("a") && resource.name != "b"', "c", [], True),
        ('!resource.name.startsWith("a") && resource.name != "b"', "b", [], False),
        ('resource.name == "a" || (resource.name == "b" && resource.name.endsWith("b"))', "b", [], True),
        (f'resource.name == "a" && {ONLY}', "a", ["roles/c"], False),
        ("destination.port == 22", "a", [], False),
        ("destination.port != 22", "a", [], True),
    ],
)
def test_a_condition_holds_or_not(expression: str, name: str, roles: list[str], held: bool) -> None:
    attributes = {"iam.googleapis.com/modifiedGrantsByRole": roles}
    assert holds(expression, resource={"name": name}, attributes=attributes) is held


@pytest.mark.parametrize(
    "expression",
    ["resource.name", "resource.nome == 'a'", "request.time < now", "true &&", "resource.name.matches('a')", "(a", "'"],
)
def test_a_condition_that_is_none_or_is_not_supported_is_refused(expression: str, building: FakeCloud) -> None:
    with pytest.raises(BadCondition):
        holds(expression, resource={"name": ""}, attributes={})
    with pytest.raises(Refusal, match="Error 400: Error in expression"):
        _member(building, expression)


def test_a_condition_of_more_operators_than_google_takes_is_refused(building: FakeCloud) -> None:
    twelve = " && ".join(['resource.name != "a"'] * 13)
    assert operators(twelve) == 12
    _member(building, twelve)
    with pytest.raises(Refusal, match="more than 12 logical operators"):
        _member(building, twelve + ' && resource.name != "b"')


def _member(fake: FakeCloud, expression: str) -> None:
    fake.make(
        "google_project_iam_member.m",
        project="my-project",
        role="roles/viewer",
        member=f"serviceAccount:{ACCOUNT}",
        condition=[{"title": "t", "expression": expression}],
    )
