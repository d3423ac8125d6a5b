"""Every name that more than one room uses, and the limits Google and Kubernetes put on them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from environment.problems import Problem
from environment.settings import Settings

POOL_GROUP_LABEL = "tpuenv/pool-group"  # node label: a pool group's name, or CPU_GROUP; its Kueue flavor selects by it
TEAM_LABEL = "tpuenv/team"  # label of a team's namespace
TEAM_ACCOUNT = "training"  # the Kubernetes service account that jobs of a team run as
LOCAL_QUEUE = "default"  # in each team's namespace; jobs that name no queue go there
CPU_GROUP = "cpu"
CPU_FLAVOR = "cpu"
KUEUE_NAMESPACE = "kueue-system"
JOBSET_NAMESPACE = "jobset-system"

_STANDARD = "[a-z]([a-z0-9-]*[a-z0-9])?"  # RFC 1035


@dataclass(frozen=True, kw_only=True)
class Names:
    """Names computed from the settings, never random: a stack may use a name without a token of another stack."""

    project_id: str
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
    def cluster(self) -> str:
        return f"{self.prefix}-cluster"

    @property
    def registry(self) -> str:
        return f"{self.prefix}-images"

    @property
    def tensorboard(self) -> str:
        return f"{self.prefix}-tensorboard"

    @property
    def cpu_pool(self) -> str:
        return "cpu"

    def bucket(self, team: str) -> str:
        """A team's bucket. Bucket names are global, so the project's id is part of it."""
        return f"{self.project_id}-{self.prefix}-{team}"

    def workload_policy(self, group: str) -> str:
        return f"{self.prefix}-{group}"


def names_of(settings: Settings) -> Names:
    return Names(
        project_id=settings.project_id,
        prefix=settings.resource_prefix,
        state_bucket=settings.tf_state_bucket or f"{settings.project_id}-{settings.resource_prefix}-tf-state",
        state_prefix=settings.tf_state_prefix or settings.resource_prefix,
    )


@dataclass(frozen=True, kw_only=True)
class _Rule:
    """A name, what it names, how long it may be, and the keys it is made of."""

    kind: str
    name: str
    longest: int
    keys: tuple[str, ...]
    shortest: int = 1


def name_problems(
    settings: Settings, *, teams: Iterable[str], node_pools: Iterable[str], groups: Iterable[str]
) -> list[Problem]:
    """Names that are longer than Google allows, or otherwise refused."""
    names = names_of(settings)
    prefix = ("RESOURCE_PREFIX",)
    rules = [
        _Rule(kind="cluster", name=names.cluster, longest=40, keys=prefix),
        _Rule(kind="service account", name=names.node_account, longest=30, shortest=6, keys=prefix),
    ]
    found = [problem for rule in rules for problem in _length(rule)]
    return found


def _length(rule: _Rule) -> Iterator[Problem]:
    if len(rule.name) > rule.longest:
        yield Problem(
            keys=rule.keys,
            message=f"makes the {rule.kind} name '{rule.name}', {len(rule.name)} characters long; the limit is "
            f"{rule.longest}",
        )
    elif not re.fullmatch(_STANDARD, rule.name):
        yield Problem(keys=rule.keys, message=f"makes the {rule.kind} name '{rule.name}', which Google refuses")
