"""The admission webhooks of Kueue, JobSet and GKE's Ray add-on: those of charts are not there at first.

A ready pod does not mean that its webhook answers yet: kubernetes-sigs/kueue issue 13036. How often it still refuses
is counted and not timed, so that a rehearsal goes the same way every time.
"""

from __future__ import annotations

from typing import Any

from rehearsal.kubernetes import kuberay, policies, warden
from rehearsal.kubernetes.objects import Objects
from rehearsal.kubernetes.status import Status

KIND = "webhook"  # in the cloud: one object for every installed controller with webhooks
REFUSALS = 2  # calls that a new webhook does not answer

_JOBS = {
    ("batch/v1", "Job"): "batch-v1-job",
    ("jobset.x-k8s.io/v1alpha2", "JobSet"): "jobset-x-k8s-io-v1alpha2-jobset",
    ("ray.io/v1", "RayJob"): "ray-io-v1-rayjob",
    ("ray.io/v1", "RayCluster"): "ray-io-v1-raycluster",
}


def installed(api: Objects, controller: str) -> bool:
    """Whether a controller ("kueue", "jobset") is there with its webhooks."""
    return api.cloud.get(KIND, f"{api.cluster}|{controller}") is not None


def install(api: Objects, controller: str) -> None:
    """The controller's chart has been installed: its webhooks are registered and do not answer yet."""
    api.cloud.put(KIND, f"{api.cluster}|{controller}", {"refusals": REFUSALS})


def uninstall(api: Objects, controller: str) -> None:
    api.cloud.delete(KIND, f"{api.cluster}|{controller}")


def review(api: Objects, body: dict[str, Any], *, old: dict[str, Any] | None = None) -> None:
    """Ask the webhooks that watch this kind; raises Status when one does not answer or says no."""
    version, kind = body["apiVersion"], body["kind"]
    policies.review(api, body, operation="UPDATE" if old else "CREATE")
    warden.review(api, body)
    if version.startswith("jobset.x-k8s.io/"):
        _answers(api, "jobset", f"m{kind.lower()}.kb.io", _JOBS[version, kind])
    if version.startswith("kueue.x-k8s.io/") and kind in ("ClusterQueue", "ResourceFlavor", "Workload", "Cohort"):
        _answers(api, "kueue", f"m{kind.lower()}.kb.io", f"kueue-x-k8s-io-v1beta2-{kind.lower()}")
    if (version, kind) in _JOBS:
        _answers(api, "kueue", f"m{kind.lower()}.kb.io", _JOBS[version, kind])
    if kind == "RayCluster" and old is None:
        kuberay.review(body)
    if kind == "ClusterQueue":
        _cluster_queue(body)
    if kind == "LocalQueue" and old is not None:
        _unchanged(body, old, "clusterQueue")


def _answers(api: Objects, controller: str, webhook: str, path: str) -> None:
    webhook_server = api.cloud.get(KIND, f"{api.cluster}|{controller}")
    if webhook_server is None or not webhook_server["refusals"]:
        return
    api.cloud.put(KIND, f"{api.cluster}|{controller}", {"refusals": webhook_server["refusals"] - 1})
    service = f"https://{controller}-webhook-service.{controller}-system.svc:443/mutate-{path}?timeout=10s"
    raise Status(
        500,
        f'Internal error occurred: failed calling webhook "{webhook}": failed to call webhook: Post "{service}":'
        " dial tcp 10.1.0.9:443: connect: connection refused",
    )


def _cluster_queue(body: dict[str, Any]) -> None:
    """A flavor and a resource are in one group only; a flavor lists its group's resources in their order; limits need a
    cohort.

    https://kueue.sigs.k8s.io/docs/reference/kueue.v1beta2/
    """
    spec = body.get("spec", {})
    seen: set[str] = set()
    known: set[str] = set()
    for at, group in enumerate(spec.get("resourceGroups", [])):
        covered = group.get("coveredResources", [])
        for twice in sorted(known.intersection(covered)):
            raise _invalid(body, f'spec.resourceGroups[{at}].coveredResources: Duplicate value: "{twice}"')
        known.update(covered)
        for flavor in group.get("flavors", []):
            if flavor["name"] in seen:
                raise _invalid(body, f"spec.resourceGroups[{at}]: flavor {flavor['name']} is in two resource groups")
            seen.add(flavor["name"])
            listed = [resource["name"] for resource in flavor.get("resources", [])]
            if listed != covered:
                raise _invalid(
                    body,
                    f"spec.resourceGroups[{at}].flavors[{flavor['name']}].resources: must be the same as"
                    f" coveredResources, and in their order: {', '.join(covered)}",
                )
            limited = [item for item in flavor["resources"] if {"borrowingLimit", "lendingLimit"} & item.keys()]
            if limited and not spec.get("cohortName"):
                raise _invalid(body, "borrowingLimit and lendingLimit must be nil when cohortName is empty")


def _unchanged(body: dict[str, Any], old: dict[str, Any], field: str) -> None:
    if body.get("spec", {}).get(field) != old.get("spec", {}).get(field):
        raise _invalid(body, f"spec.{field}: field is immutable")


def _invalid(body: dict[str, Any], words: str) -> Status:
    kind, name = body["kind"], body["metadata"]["name"]
    return Status(422, f'{kind}.kueue.x-k8s.io "{name}" is invalid: {words}')
