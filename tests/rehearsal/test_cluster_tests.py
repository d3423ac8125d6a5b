"""The tests' own judgement, where no cluster is to be had: on the fake API server, and on synthesized stacks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rehearsal.google.network import CLUSTER
from rehearsal.kubernetes.server import PREFIX
from tests.cluster.api import ApiServer, Object, Refused
from tests.cluster.ground import CannotUse, can_run_pods, reached, refuse_a_cluster_in_use, what_is_ours
from tests.cluster.lab import CONTROLLERS, for_a_lab, releases_of_local_charts
from tests.cluster.outcome import ADMITTED, PENDING, REFUSED, Outcome, outcome_of, submitted
from tests.rehearsal.deployed import of_any_name
from tests.rehearsal.fake import FakeCloud
from tests.synthesis import Synthesis

MANIFEST = Path("tpu-training") / "tpu" / "hello-tpu" / "jobset.yaml"


@pytest.fixture
def api(deployed: FakeCloud) -> Iterator[ApiServer]:
    """The fake API server of the default environment, over HTTP."""
    (cluster,) = deployed.cloud.find(CLUSTER)
    yield ApiServer(address=f"{deployed.place.address}{PREFIX}{cluster.name}")


@pytest.fixture
def hello(synthesis: Synthesis) -> Object:
    return of_any_name(synthesis.folder("default") / "manifests" / MANIFEST)


def test_a_cluster_that_holds_an_environment_is_refused_and_says_what_is_there(api: ApiServer) -> None:
    with pytest.raises(
        CannotUse, match=r"in use.*: ClusterQueue tpu-training, .* and \d+ more\..*name an empty cluster"
    ):
        refuse_a_cluster_in_use(api, [])
    names = what_is_ours(api, ["kueue-system"])
    assert {
        "Namespace tpu-training",
        "Namespace kueue-system",
        "ValidatingAdmissionPolicy jobs-of-members",
    } <= {*names}


def test_without_queues_and_namespaces_of_ours_nothing_is_refused(api: ApiServer) -> None:
    for line in what_is_ours(api, []):
        kind, name = line.split()
        namespace = "tpu-training" if kind == "LocalQueue" else ""
        manifest = api.get(kind, name, namespace)
        assert manifest is not None
        api.delete(manifest)
    refuse_a_cluster_in_use(api, ["research"])


@pytest.mark.parametrize("kubeconfig", ["", "no-such-file"])
def test_without_a_cluster_it_says_what_to_name(kubeconfig: str) -> None:
    with pytest.raises(CannotUse, match=r"KUBECONFIG|kubectl"), reached(kubeconfig):
        pass


def test_a_job_is_admitted_then_pending_and_one_that_is_refused_says_why(api: ApiServer, hello: Object) -> None:
    slices = [submitted(api, hello) for _ in range(3)]
    kinds = [None if isinstance(job, Outcome) else outcome_of(api, job) for job in slices]
    assert [kind and kind.kind for kind in kinds] == [ADMITTED, ADMITTED, PENDING]
    assert kinds[0] is not None and kinds[0].flavors == {"slice": "tpu"}
    hello["metadata"]["namespace"] = "nowhere"
    refused = submitted(api, hello)
    assert isinstance(refused, Outcome) and refused.kind == REFUSED and "nowhere" in refused.message


def test_an_error_is_raised_in_the_servers_words_and_nothing_is_none(api: ApiServer) -> None:
    assert api.get("ClusterQueue", "nothing") is None
    with pytest.raises(Refused, match=r"409 .*already exists"):
        api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "tpu-training"}})


@pytest.mark.parametrize(
    ("node", "runs"),
    [
        ({"spec": {}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}, True),
        ({"spec": {}, "status": {"conditions": [{"type": "Ready", "status": "False"}]}}, False),
        ({"spec": {"unschedulable": True}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}, False),
        ({"spec": {}}, False),
    ],
)
def test_pods_run_where_a_node_is_ready_and_takes_them(
    api: ApiServer, monkeypatch: pytest.MonkeyPatch, node: Object, runs: bool
) -> None:
    monkeypatch.setattr(ApiServer, "list", lambda self, kind, namespace="": [node])
    assert can_run_pods(api) is runs


@pytest.mark.parametrize("stack", ["platform", "queues"])
def test_a_stack_for_a_lab_has_nothing_of_googles_and_depends_on_nothing_that_is_left_out(
    synthesis: Synthesis, stack: str
) -> None:
    whole = synthesis.stack("pipeline", stack)
    charts = releases_of_local_charts(whole)
    lab = for_a_lab(whole, "http://127.0.0.1:1", without=[*CONTROLLERS, *charts])
    assert charts
    there = {f"{type_}.{id_}" for type_, by_id in lab["resource"].items() for id_ in by_id}
    assert there == {
        address
        for type_, by_id in whole["resource"].items()
        for id_ in by_id
        if not (address := f"{type_}.{id_}").startswith("google_") and address not in (*CONTROLLERS, *charts)
    }
    assert "google" not in lab["terraform"]["required_providers"]
    assert "data.google" not in str(lab)
    for by_id in lab["resource"].values():
        for resource in by_id.values():
            assert {*resource.get("depends_on", [])} <= there
