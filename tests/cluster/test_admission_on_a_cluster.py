"""Every manifest of tests/admission gets from the real Kueue what the answer above it says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.admission_cases import CASES, fleet
from tests.cluster.api import KUEUE, ApiServer, Object, until
from tests.cluster.outcome import ADMITTED, NOT_QUEUED, Outcome, expected, outcome_of, submitted
from tests.yaml_files import documents
from vocabulary.keys import TEAM_LABEL

pytestmark = pytest.mark.cluster

KINDS = (
    "ResourceFlavor",
    "PriorityClass",
    "WorkloadPriorityClass",
    "ProvisioningRequestConfig",
    "AdmissionCheck",
    "ClusterQueue",
    "LocalQueue",
)


def _read(path: Path) -> tuple[Object, Object]:
    answer, *manifests = documents(path)
    return answer, manifests[0]


ANSWERS = {path.stem: _read(path) for path in sorted(CASES.glob("*.yaml"))}
# One fleet after the other: its cases follow each other.
BY_FLEET = sorted(ANSWERS, key=lambda name: (ANSWERS[name][0]["fleet"], name))


@pytest.fixture(scope="module")
def queues(api: ApiServer, controllers: None, request: pytest.FixtureRequest) -> Iterator[ApiServer]:
    """The queues of a fleet, and the namespaces of its teams."""
    described = [item for item in fleet(request.param) if item["kind"] in KINDS]  # nodes are nothing to Kueue
    objects = sorted(described, key=lambda item: KINDS.index(item["kind"]))
    namespaces = [_namespace(name) for name in {item["metadata"].get("namespace", "") for item in objects} - {""}]
    for item in [*namespaces, *objects]:
        api.create(item)
    for item in objects:
        if item["kind"] == "ClusterQueue":
            until("the queue to be active", lambda name=item["metadata"]["name"]: _active(api, name))
    yield api
    made = [*namespaces, *objects]
    for item in reversed(made):
        api.delete(item)
    until("the fleet to be deleted", lambda: None if any(_is_there(api, item) for item in made) else True)


@pytest.mark.parametrize(
    ("queues", "name"), [(ANSWERS[name][0]["fleet"], name) for name in BY_FLEET], indirect=["queues"]
)
def test_kueue_does_what_the_answer_says(queues: ApiServer, name: str) -> None:
    answer, manifest = ANSWERS[name]
    if not queues.serves(manifest["kind"]):
        pytest.skip(f"this cluster does not serve {manifest['kind']}: KubeRay's CRDs are not installed")
    holders: list[Object] = []
    made: Object | Outcome | None = None
    try:
        for usage in answer.get("in_use", []):
            holders += _holding(queues, usage)
        made = submitted(queues, manifest)
        decided = made if isinstance(made, Outcome) else _decided(queues, expected(answer), made)
        assert decided.kind in expected(answer), decided
        assert [_full_name(holder) for holder in holders if _stopped(queues, holder)] == answer.get("preempts", [])
        if answer["verdict"] == "admitted" and "flavors" in answer:
            assert dict(decided.flavors) == {pod_set: flavor for pod_set, flavor in answer["flavors"].items() if flavor}
    finally:
        for workload in [*holders, *([made] if isinstance(made, dict) else [])]:
            queues.delete(workload)
        until("the jobs to be deleted", lambda: True if not queues.list("Workload") else None)


def _decided(api: ApiServer, meant: tuple[str, ...], job: Object) -> Outcome:
    """Of a job that is meant to be admitted, not before others are stopped for it.

    Of another, Kueue may keep no Workload at all. That is certain when it has admitted a job that came later.
    """
    if ADMITTED in meant:
        return until("Kueue to admit it", lambda: _admitted(outcome_of(api, job)))
    later = _later(api)
    try:
        until("Kueue to admit a later job", lambda: _admitted(outcome_of(api, later)))
        return outcome_of(api, job) or Outcome(kind=NOT_QUEUED)
    finally:
        api.delete(later)


def _admitted(outcome: Outcome | None) -> Outcome | None:
    return outcome if outcome and outcome.kind == ADMITTED else None


def _stopped(api: ApiServer, holder: Object) -> bool:
    decided = outcome_of(api, holder) if holder["kind"] == "Job" else None
    return decided is not None and decided.kind != ADMITTED


def _full_name(job: Object) -> str:
    return f"{job['metadata'].get('namespace', '')}/{job['metadata']['name']}"


def _later(api: ApiServer) -> Object:
    """A Job that asks for nothing, in a queue that is open."""
    active = [item["metadata"]["name"] for item in api.list("ClusterQueue") if _active(api, item["metadata"]["name"])]
    queue = next(item for item in api.list("LocalQueue") if item["spec"]["clusterQueue"] in active)
    pod = {"restartPolicy": "Never", "containers": [{"name": "asks-nothing", "image": "none"}]}
    return api.create(_job("later", queue["metadata"]["namespace"], queue["metadata"]["name"], pod))


def _job(name: str, namespace: str, queue: str, pod: Object, **labels: str) -> Object:
    metadata = {"name": name, "namespace": namespace, "labels": {"kueue.x-k8s.io/queue-name": queue, **labels}}
    spec = {"suspend": True, "template": {"spec": pod}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def _holding(api: ApiServer, use: Object) -> Iterator[Object]:
    """A Job that holds what the answer says is in use, admitted; and its priority class, if the fleet has none such."""
    labels = {}
    if value := use["priority"]:
        classes = {item["value"]: item["metadata"]["name"] for item in api.list("WorkloadPriorityClass")}
        if value not in classes:
            classes[value] = f"priority-{value}"
            metadata = {"name": classes[value]}
            yield api.create(
                {"apiVersion": KUEUE, "kind": "WorkloadPriorityClass", "metadata": metadata, "value": value}
            )
        labels["kueue.x-k8s.io/priority-class"] = classes[value]
    flavor = (api.get("ResourceFlavor", use["flavor"]) or {})["spec"]
    resources = {"requests": use["resourceUsage"], "limits": use["resourceUsage"]}
    pod: dict[str, Any] = {
        "restartPolicy": "Never",
        "nodeSelector": flavor.get("nodeLabels", {}),
        "containers": [{"name": "holds", "image": "none", "resources": resources}],
    }
    job = api.create(_job(use["workload"], use["clusterQueue"], "default", pod, **labels))
    yield job
    until("the job to hold its quota", lambda: _admitted(outcome_of(api, job)))


def _namespace(name: str) -> Object:
    metadata = {"name": name, "labels": {TEAM_LABEL: name}}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def _active(api: ApiServer, queue: str) -> bool | None:
    """None while Kueue has not said whether it is."""
    conditions = (api.get("ClusterQueue", queue) or {}).get("status", {}).get("conditions", [])
    return next((condition["status"] == "True" for condition in conditions if condition["type"] == "Active"), None)


def _is_there(api: ApiServer, manifest: Object) -> bool:
    metadata = manifest["metadata"]
    return api.get(manifest["kind"], metadata["name"], metadata.get("namespace", "")) is not None
