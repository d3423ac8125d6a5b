"""What the namespace of a team must not take, and what the team must not reach: asked of the API server, row by row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from environment.names import KUEUE_NAMESPACE
from manifests.render import Run
from tpuenv.failure import Failed, Interrupted
from tpuenv.kubernetes.client import Cluster
from tpuenv.kubernetes.errors import ApiError
from tpuenv.kubernetes.objects import Object
from tpuenv.verification.rows import Row, Verdict, row, shortly
from vocabulary.keys import TPU

_SYSTEM = "kube-system"
_KUEUE = f"kueue-webhook-service.{KUEUE_NAMESPACE}.svc.cluster.local:443"
_MOST_SERVICES = 20  # each is a wait of seconds
_READ = ("Secret", "Job")  # what is asked for in other namespaces


def with_other_services(cluster: Cluster, runs: list[Run]) -> list[Run]:
    """The runs with the addresses that their programs must not reach: that of Kueue, which is always there, and those
    of the Services of other teams, as far as the caller may read them.
    """
    addresses = {team.name: _addresses(cluster, team.name) for run in runs for team in run.environment.teams}
    return [replace(run, settings={**run.settings, "other_services": _of_others(addresses, run)}) for run in runs]


def _of_others(addresses: dict[str, list[str]], run: Run) -> str:
    found = [address for name, of_team in addresses.items() if name != run.team.name for address in of_team]
    return ",".join([_KUEUE, *found][:_MOST_SERVICES])


def _addresses(cluster: Cluster, namespace: str) -> list[str]:
    """The first port of each Service that has one."""
    try:
        services = cluster.all("Service", namespace)
    except ApiError as error:
        if error.code != 403:
            raise
        return []
    ports = [(item["metadata"]["name"], item["spec"].get("ports")) for item in services]
    return [f"{name}.{namespace}.svc.cluster.local:{listed[0]['port']}" for name, listed in ports if listed]


def tried(cluster: Cluster, run: Run) -> list[Row]:
    """The rows of the team of a run. Nothing is created."""
    run = replace(run, group=None)
    # Whoever may patch the jobs of all namespaces is a controller to the policy on jobs, and exempt (stacks/policies).
    administers = cluster.may("patch", "Job", _SYSTEM)
    return [*_forbidden(cluster, run, administers=administers), *_elsewhere(cluster, run, administers=administers)]


def rows(cluster: Cluster, runs: list[Run]) -> Iterator[Row]:
    """The rows of each team, once; one that says why where it could not be tried."""
    for run in {run.team.name: run for run in runs}.values():
        try:
            yield from tried(cluster, run)
        except Interrupted:
            raise
        except Failed as failed:
            words = " ".join(str(failed).split())
            yield row(replace(run, group=None), "boundary", "is tried", words, Verdict.FAILED, "correct that")


def _forbidden(cluster: Cluster, run: Run, *, administers: bool) -> Iterator[Row]:
    objects = _objects(run)
    if administers:
        del objects["a job with a forged owner"]
    taken = [what for what, body in objects.items() if not cluster.refuses(body)]
    yield row(
        run,
        "forbidden objects",
        f"{len(objects)} refused",
        f"takes {shortly(taken)}" if taken else f"{len(objects)} refused",
        Verdict.FAILED if taken else Verdict.OK,
        "`tpuenv deploy` puts the policies back: docs/security.md",
    )


def _elsewhere(cluster: Cluster, run: Run, *, administers: bool) -> Iterator[Row]:
    """Of an administrator, what the programs of the team may read; of a member, what the member may."""
    environment, team = run.environment, run.team.name
    account = (team, environment.names.team_account) if administers else None
    others = [*(item.name for item in environment.teams if item.name != team), _SYSTEM]
    readable = [name for name in others if any(cluster.may("list", kind, name, account=account) for kind in _READ)]
    verdict = Verdict.FAILED if administers else Verdict.NOT_VERIFIED
    yield row(
        run,
        "other namespaces",
        f"{len(others)} refused",
        f"can read {shortly(readable)}" if readable else f"{len(others)} refused",
        verdict if readable else Verdict.OK,
        f"`kubectl get rolebindings -n {readable[0]}` and Google's IAM say who may; take it away, where it is no member"
        if readable
        else "",
    )


def _objects(run: Run) -> dict[str, Object]:
    """Each breaks one rule of vocabulary/team_rules and none else."""
    image = f"{run.environment.names.registry_url}/hello-tpu"
    owner = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "none", "uid": "0", "controller": True}

    def made(api_version: str, kind: str, **parts: Any) -> Object:
        metadata = {"name": "tpuenv-verify", "namespace": run.team.name, **parts.pop("metadata", {})}
        return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **parts}

    def pod(container: Object, **spec: Any) -> Object:
        containers = [{"name": "main", "image": image, **container}]
        return made("v1", "Pod", spec={"containers": containers, "restartPolicy": "Never", **spec})

    return {
        "a privileged pod": pod({"securityContext": {"privileged": True}}),
        "a pod with a priority of Google's": pod({}, priorityClassName="system-cluster-critical"),
        "a pod with chips past the queue": pod({"resources": {"requests": {TPU: "1"}, "limits": {TPU: "1"}}}),
        "a public Service": made("v1", "Service", spec={"type": "LoadBalancer", "ports": [{"port": 8265}]}),
        "a token that never ends": made(
            "v1",
            "Secret",
            type="kubernetes.io/service-account-token",
            metadata={"annotations": {"kubernetes.io/service-account.name": run.environment.names.team_account}},
        ),
        "a job with a forged owner": made(
            "batch/v1",
            "Job",
            metadata={"ownerReferences": [owner]},
            spec={"suspend": True, "template": {"spec": pod({})["spec"]}},
        ),
    }
