"""Kueue's flavors, queues and priorities, applied; and a drain before every queue that goes."""

from __future__ import annotations

from typing import Any

from cdktf import TerraformResourceLifecycle
from cdktf_cdktf_provider_kubernetes.manifest import (
    Manifest,
    ManifestFieldManager,
    ManifestWait,
    ManifestWaitCondition,
)
from constructs import Construct

from environment import Environment
from environment.kubernetes.queues import queue_objects
from stacks.base import ClusterUser
from stacks.drain import Drain
from vocabulary.keys import LOCAL_QUEUE

# Every kind, after the kinds whose objects it names.
ORDER: dict[str, tuple[str, ...]] = {
    "WorkloadPriorityClass": (),
    "PriorityClass": (),
    "ResourceFlavor": (),
    "ProvisioningRequestConfig": (),
    "AdmissionCheck": ("ProvisioningRequestConfig",),
    "ClusterQueue": ("ResourceFlavor", "AdmissionCheck"),
    "LocalQueue": ("ClusterQueue",),
    "ResourceQuota": (),
    "ConfigMap": (),
}

# Kueue keeps an object of these kinds for as long as a ClusterQueue names it. Terraform would delete it, and wait for
# that, before it updates the queue; of what it creates before it destroys, it updates the queue first.
HELD_BY_QUEUES = ("ResourceFlavor", "ProvisioningRequestConfig", "AdmissionCheck")


class Queues(ClusterUser):
    """On the way up: flavors, ClusterQueues, LocalQueues. On the way down each ClusterQueue is drained before anything
    goes.

    Deleting a ClusterQueue while it admits a job hangs until that job ends, so a drain depends on the queue. When a
    deploy removes a team, the drain in `platform` has emptied its queue before.
    """

    def __init__(self, scope: Construct, id_: str, *, environment: Environment) -> None:
        super().__init__(scope, id_, environment=environment)
        objects = queue_objects(environment)
        of_kind: dict[str, dict[str, Manifest]] = {}
        for kind, needed in ORDER.items():
            after = [manifest for kind in needed for manifest in of_kind[kind].values()]
            of_kind[kind] = {
                _key(manifest): self._manifest(manifest, after) for manifest in objects if manifest["kind"] == kind
            }
        for team in environment.teams:
            of_team = [
                of_kind[manifest["kind"]][_key(manifest)]
                for manifest in objects
                if manifest["metadata"].get("namespace") == team.name
            ]
            Drain(
                self,
                environment.names.drain(team.name),
                environment=environment,
                team=team.name,
                goes_before=[of_kind["ClusterQueue"][team.name], *of_team],
            )
            self.output(
                f"queue_{team.name}",
                f"{team.name}/{LOCAL_QUEUE}",
                f"Namespace and LocalQueue that team {team.name} submits to; its ClusterQueue is named after the team",
            )

    def _manifest(self, manifest: dict[str, Any], after: list[Manifest]) -> Manifest:
        wait = None
        if manifest["kind"] == "ClusterQueue":
            active = "False" if self.environment.settings.hold_queues else "True"
            wait = ManifestWait(condition=[ManifestWaitCondition(type="Active", status=active)])
        return Manifest(
            self,
            f"{manifest['kind'].lower()}-{_key(manifest)}",
            manifest=manifest,
            wait=wait,
            # A drain that was given up leaves its stopPolicy and cohort behind; the next deploy takes them back.
            field_manager=ManifestFieldManager(name="tpuenv", force_conflicts=True),
            lifecycle=(
                TerraformResourceLifecycle(create_before_destroy=True) if manifest["kind"] in HELD_BY_QUEUES else None
            ),
            depends_on=after,
        )


def _key(manifest: dict[str, Any]) -> str:
    """Unique among the objects of a kind."""
    metadata = manifest["metadata"]
    return f"{metadata['namespace']}-{metadata['name']}" if "namespace" in metadata else str(metadata["name"])
