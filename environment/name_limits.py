"""Names that Google or Kubernetes would refuse: too long, reserved, or needed for something else."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from environment.fleet.model import Fleet, Team
from environment.names import Names
from environment.problems import Problem
from environment.settings.model import Settings


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
    names = Names(settings)
    prefix = {"RESOURCE_PREFIX": settings.resource_prefix}
    project = {"PROJECT_ID": settings.project_id}
    state_bucket = {"TF_STATE_BUCKET": settings.tf_state_bucket} if settings.tf_state_bucket else prefix | project
    uses = [
        _Use(kind="service account", name=names.node_account, longest=30, parts=prefix),
        _Use(kind="cluster", name=names.cluster, longest=40, parts=prefix),
        _Use(kind="firewall rule", name=names.webhook_firewall, longest=63, parts=prefix),
        _Use(kind="service account", name=names.build_account, longest=30, parts=prefix),
        _Use(kind="image registry", name=names.builder_registry, longest=63, parts=prefix),
        _Use(kind="bucket", name=names.build_bucket, longest=63, parts=prefix | project),
        _Use(kind="bucket", name=names.state_bucket, longest=63, parts=state_bucket),
    ]
    if settings.build_repository:
        for account in (names.test_account, names.plan_account, names.deploy_account, names.scheduler_account):
            uses.append(_Use(kind="service account", name=account, longest=30, parts=prefix))
        uses.append(_Use(kind="bucket", name=names.records_bucket, longest=63, parts=prefix | project))
    for team in fleet.teams:
        part = {fleet.key("teams", team.name): team.name}
        uses.append(_Use(kind="bucket", name=names.bucket(team.name), longest=63, parts=part | prefix | project))
        for release in (names.drain(team.name), names.eviction(team.name)):
            uses.append(_Use(kind="Helm release", name=release, longest=53, parts=part))
    for vm in fleet.tpu_vms:
        part = {fleet.key("tpu_vms", vm.name): vm.name}
        uses.append(_Use(kind="TPU VM", name=names.tpu_vm(vm.name), longest=63, parts=part | prefix))
        account, part = names.tpu_vm_account(vm.team), {fleet.key("teams", vm.team): vm.team}
        uses.append(_Use(kind="service account", name=account, longest=30, parts=part | prefix))
    for group in fleet.groups:
        part = {fleet.key("tpu_pools", group.name): group.name}
        uses.append(_Use(kind="node pool", name=group.node_pools[-1], longest=40, parts=part))
    return uses


def name_problems(settings: Settings, fleet: Fleet) -> list[Problem]:
    """Names that are too long, that Cloud Storage refuses, or that two things would share."""
    names = Names(settings)
    uses = _uses(settings, fleet)
    problems = _too_long(uses)
    problems += [problem for use in uses if use.kind == "bucket" for problem in _bucket_problems(use)]
    for team in fleet.teams:
        problems += _taken_buckets(settings, names, team, fleet.key("teams", team.name))
    return problems


def _taken_buckets(settings: Settings, names: Names, team: Team, key: str) -> list[Problem]:
    """A team whose bucket would be one that the environment needs for itself."""
    taken = [
        (names.state_bucket, "the Terraform state", "TF_STATE_BUCKET"),
        (names.build_bucket, "the source of image builds", "RESOURCE_PREFIX"),
    ]
    if settings.build_repository:
        taken.append((names.records_bucket, "the pipeline's reviewed plans", "BUILD_REPOSITORY"))
    return [
        Problem(
            keys=tuple(dict.fromkeys((key, other, "RESOURCE_PREFIX", "PROJECT_ID"))),
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
