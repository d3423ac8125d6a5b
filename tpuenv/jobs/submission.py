"""Creates what a run consists of: all of it or, where a part is refused, nothing."""

from __future__ import annotations

import copy
import re
import secrets
import time
from collections.abc import Iterator, Sequence

from admission.workload import KINDS
from tpuenv.failure import Failed, Interrupted
from tpuenv.jobs.job import Job
from tpuenv.kubernetes.client import CREATED, Cluster
from tpuenv.kubernetes.errors import ApiError, Unreachable
from tpuenv.kubernetes.objects import Object
from vocabulary.keys import RECIPE_LABEL, SUBMISSION_ANNOTATION
from vocabulary.printable import quoted

# How often what may have been created is looked up: a request goes on in the API server after its client has gone.
_LOOKS = 4


def create(cluster: Cluster, manifests: Sequence[Object], *, recipe: str) -> Job:
    """Creates the objects of a run, and returns its job: the first of them that is one.

    The job comes first and owns the others, so that they are deleted with it; until Kueue starts it, it is suspended.
    `recipe` is the name that they get as a label, "" for none. Where one is refused, or Ctrl-C comes, those that were
    created are deleted, and no other object of their names.
    Raises Failed, and Interrupted where something may remain after Ctrl-C.
    """
    of = f"recipe {recipe}" if recipe else "manifest"
    if mistakes := [f"{of}: {mistake}" for manifest in manifests for mistake in _mistakes(manifest)]:
        raise Failed("\n".join(mistakes))
    job = next((manifest for manifest in manifests if manifest["kind"] in KINDS), None)
    if job is None:
        raise Failed(f"{of}: its manifests hold no {', '.join(KINDS[:-1])} or {KINDS[-1]}, so nothing runs")
    labels = {RECIPE_LABEL: recipe} if recipe else {}
    marks = {"labels": labels, "annotations": {SUBMISSION_ANNOTATION: secrets.token_hex(16)}}
    created: list[Object] = []
    sent: list[Object] = []
    try:
        for manifest in [job, *(other for other in manifests if other is not job)]:
            sent.append(_marked(manifest, marks, owner=created[0] if created else None))
            created.append(_created(cluster, sent[-1]))
    except BaseException as error:
        # Of the last it is not known whether it was created, unless the API server refused it.
        unknown = None if isinstance(error, ApiError) or len(sent) == len(created) else sent[-1]
        _remove(cluster, created, unknown, error)
        raise
    metadata = created[0]["metadata"]
    return Job(
        kind=job["kind"], team=metadata["namespace"], name=metadata["name"], body=created[0], workload={}, pods=()
    )


def _mistakes(manifest: Object) -> Iterator[str]:
    """Why an object cannot be created with its job."""
    kind, metadata = str(manifest["kind"]), manifest.get("metadata")
    if kind not in CREATED:
        yield f"tpuenv creates no {quoted(kind)[1:-1]}, only {', '.join(CREATED)}; remove it, or create it with kubectl"
    for key, name in (("name", "NAME"), ("namespace", "NAMESPACE")):
        value = metadata.get(key) if isinstance(metadata, dict) else None
        if not isinstance(value, str) or not value:
            yield f'{quoted(kind)[1:-1]}: metadata.{key} is no text; write {key}: "${{{name}}}"'
    for key in ("labels", "annotations"):
        if isinstance(metadata, dict) and not isinstance(metadata.get(key) or {}, dict):
            yield f"{quoted(kind)[1:-1]}: metadata.{key} is no mapping; write keys and values"


def _marked(manifest: Object, marks: dict[str, Object], *, owner: Object | None) -> Object:
    metadata = {**manifest["metadata"]}
    metadata |= {key: {**(metadata.get(key) or {}), **mark} for key, mark in marks.items()}
    if owner and metadata["namespace"] == owner["metadata"]["namespace"]:
        reference = {key: owner[key] for key in ("apiVersion", "kind")}
        reference |= {key: owner["metadata"][key] for key in ("name", "uid")}
        metadata["ownerReferences"] = [reference]
    return {**manifest, "metadata": metadata}


def _created(cluster: Cluster, manifest: Object) -> Object:
    """The object as created. A try whose answer was an error of a proxy may have created it before the next."""
    try:
        return cluster.create(manifest)
    except ApiError as error:
        if without_token := _without_token(manifest, error):
            cluster.say("GKE's Ray add-on here is older than KubeRay 1.5.1: Ray's dashboard will ask for no token")
            return _created(cluster, without_token)
        created = _created_here(cluster, manifest) if error.reason == "AlreadyExists" else None
        if created is None:
            raise
        return created


def _without_token(manifest: Object, error: ApiError) -> Object | None:
    """Of what describes a Ray cluster, where the add-on is too old to know its authOptions."""
    field = re.search(r'unknown field "spec\.(rayClusterSpec\.)?authOptions"', error.said)
    if field is None:
        return None
    without = copy.deepcopy(manifest)
    ray = without["spec"]["rayClusterSpec"] if field[1] else without["spec"]
    return without if ray.pop("authOptions", None) else None


def _created_here(cluster: Cluster, manifest: Object) -> Object | None:
    """The object that this submission created; None where there is none, or one of its name that something else did."""
    metadata = manifest["metadata"]
    there = cluster.find(manifest["kind"], metadata["namespace"], metadata["name"])
    return there if there and _is_same(there, manifest) else None


def _is_same(there: Object, manifest: Object) -> bool:
    """Whether the object was created from the manifest by this submission."""
    marks = [item["metadata"].get("annotations") or {} for item in (there, manifest)]
    return bool(marks[0].get(SUBMISSION_ANNOTATION) == marks[1][SUBMISSION_ANNOTATION])


def _remove(cluster: Cluster, created: Sequence[Object], unknown: Object | None, error: BaseException) -> None:
    """Deletes the objects, of the unknown one what was created. Raises Failed, with what remains, where that fails."""
    remains = [item for item in (*created, unknown) if item]
    # Of other objects than the job Kubernetes deletes what appears after their owner has gone.
    in_flight = not created and (not isinstance(error, Failed) or isinstance(error, Unreachable))
    stopped: BaseException = error
    for item in list(remains):
        try:
            is_there = item is not unknown or _was_created(cluster, item, looks=_LOOKS if in_flight else 1)
            if is_there:
                cluster.delete(item["kind"], item["metadata"]["namespace"], item["metadata"]["name"])
            elif is_there is None and in_flight:
                continue
        except Failed as refused:
            if not (isinstance(refused, ApiError) and refused.code == 404):
                continue
        except KeyboardInterrupt as interrupt:  # a second one, which ends it at once
            stopped = interrupt
            break
        remains.remove(item)
    if remains:
        places = [(item["kind"], item["metadata"]["namespace"], item["metadata"]["name"]) for item in remains]
        names = ", ".join(f"{kind} {team}/{name}" for kind, team, name in places)
        may = "may remain" if remains[-1] is unknown else "remains"
        commands = [f"\n  tpuenv cancel {name} --team {team}" for kind, team, name in places if kind in KINDS]
        raise (Interrupted if isinstance(stopped, KeyboardInterrupt) else Failed)(
            f"{str(error) or 'interrupted'}\n"
            f"What was created before could not be deleted, and {may}: {names}"
            + "".join(["; to delete it:" if commands else "", *commands])
        ) from stopped


def _was_created(cluster: Cluster, manifest: Object, *, looks: int) -> bool | None:
    """Whether this submission created the object; None if at none of so many looks there is one of its name."""
    metadata = manifest["metadata"]
    for number in range(looks):
        time.sleep(cluster.patience.poll if number else 0)
        there = cluster.find(manifest["kind"], metadata["namespace"], metadata["name"])
        if there:
            return _is_same(there, manifest)
    return None
