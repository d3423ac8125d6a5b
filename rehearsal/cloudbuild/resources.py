"""Cloud Build and what starts it: connections to repositories, triggers, worker pools, scheduled jobs."""

from __future__ import annotations

import re

from rehearsal.cloud import Attributes, Cloud
from rehearsal.google.iam import ACCOUNT
from rehearsal.google.resource import ApiError, Change, GoogleResource, one

BUILD = "cloudbuild.googleapis.com"
SCHEDULER = "cloudscheduler.googleapis.com"

TRIGGER = "google_cloudbuild_trigger"
CONNECTION = "google_cloudbuildv2_connection"
REPOSITORY = "google_cloudbuildv2_repository"

# The blocks that start a trigger, or say what one without an event builds.
_SOURCES = (
    "repository_event_config",
    "source_to_build",
    "trigger_template",
    "github",
    "pubsub_config",
    "webhook_config",
    "bitbucket_server_trigger_config",
    "developer_connect_event_config",
)
_BY_HAND = "source_to_build"

# https://docs.cloud.google.com/scheduler/docs/locations
SCHEDULER_REGIONS = frozenset(
    {
        f"{place}{number}"
        for place, numbers in {
            "northamerica-northeast": (1, 2),
            "southamerica-east": (1,),
            "us-central": (1,),
            "us-east": (1, 4),
            "us-west": (1, 2, 3, 4),
            "europe-central": (2,),
            "europe-west": (1, 2, 3, 4, 6, 12),
            "asia-east": (1, 2),
            "asia-northeast": (1, 2, 3),
            "asia-south": (1, 2),
            "asia-southeast": (1, 2, 3),
            "australia-southeast": (1,),
            "me-central": (1, 2),
            "me-west": (1,),
        }.items()
        for number in numbers
    }
)

# https://cloud.google.com/scheduler/docs/configuring/cron-job-schedules
_FIELD = r"(?:\*|\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*)(?:/\d+)?"
_CRON = re.compile(rf"{_FIELD}(?: +{_FIELD}){{4}}")


def connect(cloud: Cloud, repository: str) -> None:
    """What a person does once in the console: connect a repository, projects/../connections/../repositories/NAME.

    https://cloud.google.com/build/docs/automating-builds/github/connect-repo-github?generation=2nd-gen
    """
    connection, _, name = repository.partition("/repositories/")
    _, project, _, location, _, short = connection.split("/")
    cloud.put(CONNECTION, connection, {"id": connection, "name": short, "project": project, "location": location})
    cloud.put(REPOSITORY, repository, {"id": repository, "name": name, "parent_connection": connection})


def account_exists(change: Change) -> None:
    """A build runs as an account that exists.

    https://cloud.google.com/build/docs/securing-builds/configure-user-specified-service-accounts
    """
    given = change.values.get("service_account")
    if given and change.get(ACCOUNT, str(given)) is None:
        raise ApiError(400, f"service account {given} does not exist", "badRequest")


def trigger_name_is_free(change: Change) -> None:
    """One name a location, though Google gives the id.

    https://cloud.google.com/build/docs/api/reference/rest/v1/projects.locations.triggers#BuildTrigger
    """
    name = str(change.values["name"] or "")
    if name and not re.fullmatch(r"(?=.{1,64}$)[a-zA-Z0-9]+(?:-[a-zA-Z0-9]+)*", name):
        raise ApiError(400, f"invalid trigger name {name!r}: 1 to 64 letters, digits and single dashes", "badRequest")
    place = change.name.rpartition("/")[0]
    for item in change.client.cloud.find(TRIGGER, prefix=f"{place}/"):
        if name and item.name != change.name and item.attributes.get("name") == name:
            raise ApiError(
                409, f"trigger {name!r} already exists in {place.removesuffix('/triggers')}", "alreadyExists"
            )


def trigger_has_a_source(change: Change) -> None:
    """An event, or for one that is run by hand the repository and the file in it."""
    values = change.values
    if not any(values.get(source) for source in _SOURCES):
        raise ApiError(400, "Request contains an invalid argument: the trigger has no source", "badRequest")
    if values.get(_BY_HAND) and not (values.get("git_file_source") or values.get("build")):
        raise ApiError(400, "source_to_build needs git_file_source, or a build", "badRequest")


def repositories_are_connected(change: Change) -> None:
    """A repository of the 2nd generation is one that a person has connected, in the trigger's region.

    https://cloud.google.com/build/docs/repositories#whats_next
    """
    for block in ("repository_event_config", _BY_HAND, "git_file_source"):
        name = str(one(change.values, block).get("repository") or "")
        if not name:
            continue
        if change.get(REPOSITORY, name) is None:
            raise ApiError(404, f"Requested entity was not found: repository {name}", "notFound")
        if f"/locations/{name.split('/')[3]}/" not in change.name:
            raise ApiError(400, f"repository {name} is in another region than the trigger {change.name}", "badRequest")


def repository_type(_: Change, given: Attributes) -> Attributes:
    """Of a connected repository Google gives back the type that the connection has, whatever was sent."""
    return given | {
        block: [{**one(given, block), "repo_type": "GITHUB"}]
        for block in (_BY_HAND, "git_file_source")
        if one(given, block).get("repository")
    }


def branches_are_expressions(change: Change) -> None:
    """Branches are regular expressions. https://github.com/google/re2/wiki/Syntax"""
    event = one(change.values, "repository_event_config")
    for block in ("push", "pull_request"):
        branch = str(one(event, block).get("branch") or "")
        try:
            re.compile(branch)
        except re.error as error:
            raise ApiError(400, f"invalid branch expression {branch!r}: {error}", "badRequest") from error


def substitutions_are_named(change: Change) -> None:
    """A user's own begin with an underscore.

    https://cloud.google.com/build/docs/configuring-builds/substitute-variable-values#using_user-defined_substitutions
    """
    for key in change.values.get("substitutions") or {}:
        if not re.fullmatch(r"_[A-Z0-9_]{1,99}", key):
            raise ApiError(400, f"invalid build: key {key!r} in the substitution data is not valid", "badRequest")


def connection_exists(change: Change) -> None:
    """https://cloud.google.com/build/docs/repositories"""
    name = str(change.values["parent_connection"])
    if name.startswith("projects/") and change.get(CONNECTION, name) is None:
        raise ApiError(404, f"Resource '{name}' was not found", "notFound")


def location_has_scheduler(change: Change) -> None:
    """A region without Cloud Scheduler is told as a lack of permission.

    https://docs.cloud.google.com/scheduler/docs/locations; hashicorp/terraform-provider-google issue 7001
    """
    region = change.name.split("/")[3]
    if region not in SCHEDULER_REGIONS:
        raise ApiError(
            403,
            'The principal (user or service account) lacks IAM permission "cloudscheduler.jobs.create" for the '
            f'resource "projects/{change.project}/locations/{region}" (or the resource may not exist).',
            "forbidden",
        )


def schedule_is_cron(change: Change) -> None:
    """https://cloud.google.com/scheduler/docs/configuring/cron-job-schedules"""
    schedule = str(change.values.get("schedule") or "")
    if not _CRON.fullmatch(schedule):
        raise ApiError(400, f"Schedule or time zone is invalid: {schedule!r}", "badRequest")


def caller_exists(change: Change) -> None:
    """A job calls as an account of its project. https://cloud.google.com/scheduler/docs/http-target-auth"""
    given = str(one(one(change.values, "http_target"), "oauth_token").get("service_account_email") or "")
    if given and change.get(ACCOUNT, f"projects/{change.project}/serviceAccounts/{given}") is None:
        raise ApiError(404, f"service account {given} was not found", "notFound")


RESOURCE_TYPES = (
    GoogleResource(
        type_=TRIGGER,
        path="projects/{project}/locations/{location}/triggers/{number}",
        word="Trigger",
        service=BUILD,
        checks=(
            trigger_name_is_free,
            trigger_has_a_source,
            repositories_are_connected,
            branches_are_expressions,
            substitutions_are_named,
            account_exists,
        ),
        computed=lambda change: {"trigger_id": change.name.rsplit("/", 1)[-1]},
        stored=repository_type,
    ),
    GoogleResource(
        type_="google_cloudbuild_worker_pool",
        path="projects/{project}/locations/{location}/workerPools/{name}",
        word="WorkerPool",
        service=BUILD,
        computed=lambda _: {"state": "RUNNING"},
    ),
    GoogleResource(
        type_=CONNECTION,
        path="projects/{project}/locations/{location}/connections/{name}",
        word="Connection",
        service=BUILD,
    ),
    GoogleResource(
        type_=REPOSITORY,
        path="{parent_connection}/repositories/{name}",
        word="Repository",
        service=BUILD,
        checks=(connection_exists,),
    ),
    GoogleResource(
        type_="google_cloud_scheduler_job",
        path="projects/{project}/locations/{region}/jobs/{name}",
        word="Job",
        service=SCHEDULER,
        exists="Job {name} already exists.",
        checks=(location_has_scheduler, schedule_is_cron, caller_exists),
        computed=lambda _: {"state": "ENABLED"},
    ),
)
