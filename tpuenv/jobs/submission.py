"""Creates what a run consists of: all of it or, where a part is refused, nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from admission.workload import KINDS
from tpuenv.failure import Failed
from tpuenv.jobs.job import Job
from tpuenv.kubernetes.client import Cluster
from tpuenv.kubernetes.errors import ApiError
from vocabulary.keys import RECIPE_LABEL

Object = dict[str, Any]


def create(cluster: Cluster, manifests: Sequence[Object], *, recipe: str) -> Job:
    """Creates the objects of a run, and returns its job: the first of them that is one.

    The job comes first and owns the others, so that they are deleted with it; until Kueue starts it, it is suspended.
    Where one is refused, or Ctrl-C comes, those that were created are deleted. Raises Failed.
    """
    job = next((manifest for manifest in manifests if manifest["kind"] in KINDS), None)
    if job is None:
        raise Failed(f"recipe {recipe}: its manifests hold no {', '.join(KINDS[:-1])} or {KINDS[-1]}, so nothing runs")
    created: list[Object] = []
    asked: list[Object] = []
    try:
        for manifest in [job, *(other for other in manifests if other is not job)]:
            asked.append(manifest)
            created.append(cluster.create(_labelled(manifest, recipe, owner=created[0] if created else None)))
    except BaseException as error:
        # Of the last nobody knows whether it was created, unless the API server refused it.
        unknown = [] if isinstance(error, ApiError) else asked[len(created) :]
        _remove(cluster, [*created, *unknown], error)
        raise
    metadata = created[0]["metadata"]
    return Job(
        kind=job["kind"], team=metadata["namespace"], name=metadata["name"], body=created[0], workload={}, pods=()
    )


def _labelled(manifest: Object, recipe: str, *, owner: Object | None) -> Object:
    metadata = {**manifest["metadata"], "labels": {**(manifest["metadata"].get("labels") or {}), RECIPE_LABEL: recipe}}
    if owner and metadata["namespace"] == owner["metadata"]["namespace"]:
        reference = {key: owner[key] for key in ("apiVersion", "kind")}
        reference |= {key: owner["metadata"][key] for key in ("name", "uid")}
        metadata["ownerReferences"] = [reference]
    return {**manifest, "metadata": metadata}


def _remove(cluster: Cluster, objects: Iterable[Object], error: BaseException) -> None:
    """Deletes the objects. Raises Failed, with what remains, where that fails too."""
    remains = []
    for item in objects:
        kind, metadata = item["kind"], item["metadata"]
        try:
            cluster.delete(kind, metadata["namespace"], metadata["name"])
        except Failed as refused:
            if not (isinstance(refused, ApiError) and refused.code == 404):
                remains.append(f"{kind} {metadata['namespace']}/{metadata['name']}")
    if remains:
        raise Failed(
            f"{error or 'interrupted'}\nWhat was created before could not be deleted, and remains: {', '.join(remains)}"
        ) from error
