"""Every name that more than one room uses, and the limits that Google and Kubernetes set to them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from environment.fleet.model import Fleet, Team
from environment.problems import Problem
from environment.settings.model import Settings

CPU_FLAVOR = "cpu"
KUEUE_NAMESPACE = "kueue-system"
JOBSET_NAMESPACE = "jobset-system"


@dataclass(frozen=True, kw_only=True)
class Names:
    """Names computed from the settings, never random: a stack may use a name without a token of another stack."""

    project_id: str
    region: str
    prefix: str
    state_bucket: str
    state_prefix: str

    @property
    def network(self) -> str:
        return f"{self.prefix}-network"

    @property
    def subnet(self) -> str:
        return f"{self.prefix}-subnet"

    @property
    def pods_range(self) -> str:
        return f"{self.prefix}-pods"

    @property
    def services_range(self) -> str:
        return f"{self.prefix}-services"

    @property
    def router(self) -> str:
        return f"{self.prefix}-router"

    @property
    def nat(self) -> str:
        return f"{self.prefix}-nat"

    @property
    def webhook_firewall(self) -> str:
        return f"{self.prefix}-webhooks"

    @property
    def node_account(self) -> str:
        """The id of the nodes' Google service account."""
        return f"{self.prefix}-nodes"

    @property
    def node_account_email(self) -> str:
        return self.account_email(self.node_account)

    @property
    def cluster(self) -> str:
        return f"{self.prefix}-cluster"

    @property
    def registry(self) -> str:
        return f"{self.prefix}-images"

    @property
    def registry_url(self) -> str:
        """What image names begin with."""
        return f"{self.region}-docker.pkg.dev/{self.project_id}/{self.registry}"

    @property
    def tensorboard(self) -> str:
        return f"{self.prefix}-tensorboard"

    @property
    def tensorboard_role(self) -> str:
        """The id of the project's custom role that writes TensorBoard experiments; role ids have no hyphens."""
        return f"{self.prefix.replace('-', '_')}_tensorboard_writer"

    @property
    def cpu_pool(self) -> str:
        return "cpu"

    def bucket(self, team: str) -> str:
        """A team's bucket. Bucket names are global, so the project's id is part of it."""
        return f"{self.project_id}-{self.prefix}-{team}"

    def drain(self, team: str) -> str:
        """The Helm release that drains a team's ClusterQueue before it goes."""
        return f"drain-{team}"

    def eviction(self, team: str) -> str:
        """The Helm release that drains the queue before the team's namespace goes; no team's `drain` is named so."""
        return f"evict-{team}"

    def workload_policy(self, group: str) -> str:
        return f"{self.prefix}-{group}"

    @property
    def plan_account(self) -> str:
        """The id of the account that plans: what pull requests, and the drift check, run as."""
        return f"{self.prefix}-plan"

    @property
    def deploy_account(self) -> str:
        """The id of the account that deploys and destroys."""
        return f"{self.prefix}-deploy"

    @property
    def scheduler_account(self) -> str:
        """The id of the account that starts the drift check every night."""
        return f"{self.prefix}-drift"

    def account_email(self, account: str) -> str:
        return f"{account}@{self.project_id}.iam.gserviceaccount.com"

    def trigger(self, build: str) -> str:
        """The Cloud Build trigger of cloudbuild/{build}.yaml."""
        return f"{self.prefix}-{build}"

    def pipeline_role(self, purpose: str) -> str:
        """The id of a custom role of the pipeline; role ids have no hyphens."""
        return f"{self.prefix.replace('-', '_')}_{purpose}"

    @property
    def records_bucket(self) -> str:
        """Plans as they were reviewed."""
        return f"{self.project_id}-{self.prefix}-plans"

    @property
    def logs_bucket(self) -> str:
        """Logs of the builds."""
        return f"{self.project_id}-{self.prefix}-build-logs"


def names_of(settings: Settings) -> Names:
    return Names(
        project_id=settings.project_id,
        region=settings.region,
        prefix=settings.resource_prefix,
        state_bucket=settings.tf_state_bucket or f"{settings.project_id}-{settings.resource_prefix}-tf-state",
        state_prefix=settings.tf_state_prefix or settings.resource_prefix,
    )


@dataclass(frozen=True, kw_only=True)
class _Use:
    """A name, what it is for, the longest it may be, and what it is made of by key: first the one to change."""

    kind: str
    name: str
    longest: int
    parts: Mapping[str, str]

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(self.parts)


# Limits: Compute Engine, Cloud Storage and Artifact Registry names 63 (bucket names without dots), GKE cluster and node
# pool names 40, service account ids 30, Helm release names 53.
def _uses(settings: Settings, fleet: Fleet) -> list[_Use]:
    names = names_of(settings)
    prefix = {"RESOURCE_PREFIX": settings.resource_prefix}
    project = {"PROJECT_ID": settings.project_id}
    state_bucket = {"TF_STATE_BUCKET": settings.tf_state_bucket} if settings.tf_state_bucket else prefix | project
    uses = [
        _Use(kind="service account", name=names.node_account, longest=30, parts=prefix),
        _Use(kind="cluster", name=names.cluster, longest=40, parts=prefix),
        _Use(kind="firewall rule", name=names.webhook_firewall, longest=63, parts=prefix),
        _Use(kind="image registry", name=names.registry, longest=63, parts=prefix),
        _Use(kind="bucket", name=names.state_bucket, longest=63, parts=state_bucket),
    ]
    if settings.build_repository:
        for account in (names.plan_account, names.deploy_account, names.scheduler_account):
            uses.append(_Use(kind="service account", name=account, longest=30, parts=prefix))
        for bucket in (names.records_bucket, names.logs_bucket):
            uses.append(_Use(kind="bucket", name=bucket, longest=63, parts=prefix | project))
    for team in fleet.teams:
        part = {fleet.key("teams", team.name): team.name}
        uses.append(_Use(kind="bucket", name=names.bucket(team.name), longest=63, parts=part | prefix | project))
        for release in (names.drain(team.name), names.eviction(team.name)):
            uses.append(_Use(kind="Helm release", name=release, longest=53, parts=part))
    for group in fleet.groups:
        part = {fleet.key("tpu_pools", group.name): group.name}
        uses.append(_Use(kind="node pool", name=group.node_pools[-1], longest=40, parts=part))
    return uses


def name_problems(settings: Settings, fleet: Fleet) -> list[Problem]:
    """Names that are too long, that Cloud Storage refuses, or that two things would share."""
    names = names_of(settings)
    uses = _uses(settings, fleet)
    found = _too_long(uses)
    found += [problem for use in uses if use.kind == "bucket" for problem in _bucket_problems(use)]
    for team in fleet.teams:
        found += _taken_buckets(settings, names, team, fleet.key("teams", team.name))
    return found


def _taken_buckets(settings: Settings, names: Names, team: Team, key: str) -> list[Problem]:
    """A team whose bucket would be one that the environment needs for itself."""
    taken = [(names.state_bucket, "the Terraform state", "TF_STATE_BUCKET")]
    if settings.build_repository:
        taken.append((names.records_bucket, "the pipeline's reviewed plans", "BUILD_REPOSITORY"))
        taken.append((names.logs_bucket, "the pipeline's logs", "BUILD_REPOSITORY"))
    return [
        Problem(
            keys=(key, other, "RESOURCE_PREFIX", "PROJECT_ID"),
            message=f"the bucket of team '{team.name}' would be '{bucket}', which holds {what}; change "
            f"{_without_place(key)}" + (f" or {other}" if other == "TF_STATE_BUCKET" else ""),
        )
        for bucket, what, other in taken
        if names.bucket(team.name) == bucket
    ]


def _too_long(uses: list[_Use]) -> list[Problem]:
    """One problem for each set of keys: the name that is furthest over its limit."""
    worst: dict[tuple[str, ...], _Use] = {}
    for use in sorted(uses, key=lambda use: use.longest - len(use.name)):
        if len(use.name) > use.longest:
            worst.setdefault(use.keys, use)
    return [
        Problem(
            keys=use.keys,
            message=f"makes the {use.kind} name '{use.name}' {len(use.name)} characters long, {use.longest} are allowed"
            f"; shorten {' or '.join(_without_place(key) for key in use.keys if key != 'PROJECT_ID')} by "
            f"{len(use.name) - use.longest}",
        )
        for use in worst.values()
    ]


def _bucket_problems(use: _Use) -> list[Problem]:
    """https://cloud.google.com/storage/docs/buckets#naming"""
    match = re.search("google|g00gle", use.name) or re.match("goog", use.name)
    if match is None:
        return []
    to_blame = next((key for key, part in use.parts.items() if match.group() in part), use.keys[0])
    return [
        Problem(
            keys=(to_blame, *(key for key in use.keys if key != to_blame)),
            message=f"makes the bucket name '{use.name}', and Cloud Storage refuses names with '{match.group()}'; "
            f"change {_without_place(to_blame)}",
        )
    ]


def _without_place(key: str) -> str:
    """A key as it reads in the middle of a message: `teams.research`, without file and line."""
    return key.rpartition(": ")[2]
