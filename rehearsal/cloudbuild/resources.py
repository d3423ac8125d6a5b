"""Cloud Build and what starts it: connected repositories, triggers, scheduled jobs."""

from __future__ import annotations

import re

from rehearsal.cloud import Attributes, Cloud
from rehearsal.google.errors import already_exists, bad_request, forbidden, not_found, require
from rehearsal.google.iam import ACCOUNT, ACCOUNT_BY_EMAIL
from rehearsal.google.locations import SCHEDULER_REGIONS
from rehearsal.google.resource import Change, GoogleResource, Reference
from rehearsal.terraform.values import block_at, value_at

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


def trigger_name_is_free(change: Change) -> None:
    """One name a location, though Google gives the id.

    https://cloud.google.com/build/docs/api/reference/rest/v1/projects.locations.triggers#BuildTrigger
    """
    name = str(change.values["name"] or "")
    if not name:
        return
    valid = re.fullmatch(r"(?=.{1,64}$)[a-zA-Z0-9]+(?:-[a-zA-Z0-9]+)*", name)
    require(valid, f"invalid trigger name {name!r}: 1 to 64 letters, digits and single dashes")
    place = change.name.rpartition("/")[0]
    for item in change.client.cloud.find(TRIGGER, prefix=f"{place}/"):
        if item.name != change.name and item.attributes.get("name") == name:
            raise already_exists(f"trigger {name!r} already exists in {place.removesuffix('/triggers')}")


def trigger_has_a_source(change: Change) -> None:
    """An event, or for one that is run by hand the repository and the file in it.

    https://cloud.google.com/build/docs/api/reference/rest/v1/projects.locations.triggers#BuildTrigger
    """
    values = change.values
    any_source = any(values.get(source) for source in _SOURCES)
    require(any_source, "Request contains an invalid argument: the trigger has no source")
    complete = not values.get(_BY_HAND) or values.get("git_file_source") or values.get("build")
    require(complete, "source_to_build needs git_file_source, or a build")


def repositories_are_connected(change: Change) -> None:
    """A repository of the 2nd generation is one that a person has connected, in the trigger's region.

    https://cloud.google.com/build/docs/repositories#whats_next
    """
    for block in ("repository_event_config", _BY_HAND, "git_file_source"):
        if name := str(value_at(change.values, f"{block}.repository") or ""):
            connected = change.get(REPOSITORY, name) is not None
            require(connected, f"Requested entity was not found: repository {name}", not_found)
            same_region = f"/locations/{name.split('/')[3]}/" in change.name
            require(same_region, f"repository {name} is in another region than the trigger {change.name}")


def repository_type(_: Change, given: Attributes) -> Attributes:
    """Of a connected repository Google gives back the type that the connection has, not the one that was sent."""
    return given | {
        block: [{**block_at(given, block), "repo_type": "GITHUB"}]
        for block in (_BY_HAND, "git_file_source")
        if block_at(given, block).get("repository")
    }


def branches_are_expressions(change: Change) -> None:
    """Branches are regular expressions. https://github.com/google/re2/wiki/Syntax"""
    for event in ("push", "pull_request"):
        branch = str(value_at(change.values, f"repository_event_config.{event}.branch") or "")
        try:
            re.compile(branch)
        except re.error as error:
            raise bad_request(f"invalid branch expression {branch!r}: {error}") from error


def substitutions_are_named(change: Change) -> None:
    """A user's own begin with an underscore.

    https://cloud.google.com/build/docs/configuring-builds/substitute-variable-values#using_user-defined_substitutions
    """
    for key in change.values.get("substitutions") or {}:
        valid = re.fullmatch(r"_[A-Z0-9_]{1,99}", key)
        require(valid, f"invalid build: key {key!r} in the substitution data is not valid")


def location_has_scheduler(change: Change) -> None:
    """A region without Cloud Scheduler is reported as a missing permission.

    https://docs.cloud.google.com/scheduler/docs/locations; hashicorp/terraform-provider-google issue 7001
    """
    region = change.name.split("/")[3]
    require(
        region in SCHEDULER_REGIONS,
        'The principal (user or service account) lacks IAM permission "cloudscheduler.jobs.create" for the '
        f'resource "projects/{change.project}/locations/{region}" (or the resource may not exist).',
        forbidden,
    )


def schedule_is_cron(change: Change) -> None:
    """https://cloud.google.com/scheduler/docs/configuring/cron-job-schedules"""
    schedule = str(change.values.get("schedule") or "")
    require(_CRON.fullmatch(schedule), f"Schedule or time zone is invalid: {schedule!r}")


RESOURCE_TYPES = (
    GoogleResource(
        type_=TRIGGER,
        checks=(
            trigger_name_is_free,
            trigger_has_a_source,
            repositories_are_connected,
            branches_are_expressions,
            substitutions_are_named,
            # https://cloud.google.com/build/docs/securing-builds/configure-user-specified-service-accounts
            Reference(
                attribute="service_account",
                type_=ACCOUNT,
                missing=lambda name: bad_request(f"service account {name} does not exist"),
            ),
        ),
        computed=lambda change: {"trigger_id": change.name.rsplit("/", 1)[-1]},
        stored=repository_type,
    ),
    GoogleResource(
        type_="google_cloud_scheduler_job",
        checks=(
            location_has_scheduler,
            schedule_is_cron,
            # https://cloud.google.com/scheduler/docs/http-target-auth
            Reference(
                attribute="http_target.oauth_token.service_account_email",
                type_=ACCOUNT,
                template=ACCOUNT_BY_EMAIL,
                missing=lambda name: not_found(f"service account {name.rpartition('/')[2]} was not found"),
            ),
        ),
        computed=lambda _: {"state": "ENABLED"},
    ),
)
