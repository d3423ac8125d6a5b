"""Names that the environment takes: free, or already its own; and who else has the names of its identities."""

from __future__ import annotations

from collections.abc import Iterator

from environment import Environment
from tpuenv.preflight.question import Answers, Check, Question
from tpuenv.preflight.row import Row, compared, unknown
from tpuenv.state.versions import state_name
from vocabulary.printable import listed

_FREE = "free, or this environment's"
_OTHER_CLUSTERS = "other clusters"


def cluster(environment: Environment) -> Question:
    settings, names = environment.settings, environment.names
    return Question(
        host="container.googleapis.com",
        path=f"/v1/projects/{settings.project_id}/locations/{settings.region}/clusters/{names.cluster}",
        permission="container.clusters.get",
        role="roles/container.viewer",
    )


def _clusters(environment: Environment) -> Question:
    """https://cloud.google.com/kubernetes-engine/docs/reference/rest/v1/projects.locations.clusters/list"""
    return Question(
        host="container.googleapis.com",
        path=f"/v1/projects/{environment.settings.project_id}/locations/-/clusters",
        permission="container.clusters.list",
        role="roles/container.clusterViewer",
    )


def _network(environment: Environment) -> Question:
    return Question(
        host="compute.googleapis.com",
        path=f"/compute/v1/projects/{environment.settings.project_id}/global/networks/{environment.names.network}",
        permission="compute.networks.get",
        role="roles/compute.viewer",
    )


def _own_buckets(environment: Environment) -> Question:
    """https://cloud.google.com/storage/docs/json_api/v1/buckets/list"""
    return Question(
        host="storage.googleapis.com",
        path=f"/storage/v1/b?project={environment.settings.project_id}",
        permission="storage.buckets.list",
        role="roles/storage.admin",
    )


def _bucket(name: str) -> Question:
    """https://cloud.google.com/storage/docs/json_api/v1/buckets/get"""
    return Question(
        host="storage.googleapis.com",
        path=f"/storage/v1/b/{name}",
        permission="storage.buckets.get",
        role="roles/storage.admin",
    )


def _states(environment: Environment) -> Question:
    names = environment.names
    return Question(
        host="storage.googleapis.com",
        path=f"/storage/v1/b/{names.state_bucket}/o?prefix={names.state_prefix}/",
        permission="storage.objects.list",
        role="roles/storage.objectViewer",
    )


def _buckets(environment: Environment) -> Iterator[tuple[str, str]]:
    """Each bucket with the setting that names it."""
    names = environment.names
    yield names.state_bucket, "TF_STATE_BUCKET"
    yield names.build_bucket, "RESOURCE_PREFIX"
    yield from ((names.bucket(team.name), "RESOURCE_PREFIX") for team in environment.teams)
    if environment.settings.build_repository:
        yield names.records_bucket, "RESOURCE_PREFIX"


def is_deployed(environment: Environment, answers: Answers) -> bool:
    """Whether the cluster is there."""
    return not answers[cluster(environment)].why


def _bucket_rows(environment: Environment, answers: Answers) -> Iterator[Row]:
    listed = answers[_own_buckets(environment)]
    own = {str(bucket["name"]) for bucket in listed.body.get("items", [])}
    for name, setting in _buckets(environment):
        answer, what = answers[_bucket(name)], f"bucket {name}"
        if not answer.exists:
            yield compared(what, _FREE, "free", ok=True, fix="")
        elif name in own:
            yield compared(what, _FREE, "in this project", ok=True, fix="")
        elif listed.why:
            yield listed.unknown(what, _FREE)
        elif answer.why and answer.code != 403:
            yield answer.unknown(what, _FREE)
        else:
            # Who may not read a bucket that is not in the project's list learns that much: it is another project's.
            yield compared(what, _FREE, "another project's", ok=False, fix=f"choose another {setting}")


def _other_clusters(environment: Environment, answers: Answers) -> Row:
    """A Kubernetes service account is to IAM its namespace and its name, in whichever cluster of the project.

    https://cloud.google.com/kubernetes-engine/docs/concepts/workload-identity#identity_sameness
    """
    settings, answer, need = environment.settings, answers[_clusters(environment)], "none with its identities"
    if answer.why:
        return answer.unknown(_OTHER_CLUSTERS, need)
    own, pool = (environment.names.cluster, settings.region), f"{settings.project_id}.svc.id.goog"
    others = [
        f"{cluster['name']} in {cluster['location']}"
        for cluster in answer.body.get("clusters", [])
        if (cluster["name"], cluster["location"]) != own
        and (cluster.get("workloadIdentityConfig") or {}).get("workloadPool") == pool
    ]
    if not others:
        return compared(_OTHER_CLUSTERS, need, "none", ok=True, fix="")
    fix = (
        "deploy into a project of its own, or let only those create namespaces in these clusters whom you trust with "
        "the data of every team"
    )
    return unknown(_OTHER_CLUSTERS, need, f"{listed(others)}; who creates namespaces there is not known here", fix)


def _rows(environment: Environment, answers: Answers) -> Iterator[Row]:
    yield from _bucket_rows(environment, answers)
    states = answers[_states(environment)]
    stored = {str(blob["name"]) for blob in states.body.get("items", [])}
    for what, question, stack in (
        (f"network {environment.names.network}", _network(environment), "foundation"),
        (f"cluster {environment.names.cluster}", cluster(environment), "cluster"),
    ):
        answer = answers[question]
        if not answer.exists:
            yield compared(what, _FREE, "free", ok=True, fix="")
        elif answer.why:
            yield answer.unknown(what, _FREE)
        elif states.why and states.exists:
            yield states.unknown(what, _FREE)
        else:
            ours = state_name(environment.names, stack) in stored
            have = "deployed by this environment" if ours else "there, and not in this environment's state"
            fix = "choose another RESOURCE_PREFIX; if it was yours: tpuenv recover"
            yield compared(what, _FREE, have, ok=ours, fix=fix)
    yield _other_clusters(environment, answers)


def _questions(environment: Environment) -> Iterator[Question]:
    yield from (_own_buckets(environment), _states(environment), _network(environment), cluster(environment))
    yield _clusters(environment)
    yield from (_bucket(name) for name, _ in _buckets(environment))


CHECK = Check("names", _questions, _rows)
