"""Jobs that hold quota without pods, made on a real Kueue and JobSet: they are found, named and freed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
import requests
import yaml

import tpuenv.jobs.job
from environment import Environment
from tests.cluster.api import ApiServer, Object, until
from tests.cluster.deployed import MEMBERS, Deployed
from tests.cluster.hosts import running
from tests.cluster.invariants import running_pods
from tpuenv.jobs.diagnosis.answer import answer
from tpuenv.jobs.diagnosis.snapshot import read_snapshot
from tpuenv.jobs.job import Job, State
from tpuenv.jobs.read_jobs import read_job
from tpuenv.jobs.requeue import requeue
from tpuenv.kubernetes.client import Cluster
from tpuenv.kubernetes.objects import is_true
from tpuenv.status.read_status import read_status

pytestmark = pytest.mark.cluster

TEAM, GROUP, HOSTS, CHIPS = "research", "dev", 4, 16


@dataclass(frozen=True, kw_only=True)
class Ground:
    """A cluster in which one slice's job of `research` can run; what tpuenv reads of it."""

    api: ApiServer
    environment: Environment
    output: Path

    @property
    def cluster(self) -> Cluster:
        return Cluster(address=self.api.address, name="lab", session=requests.Session())

    def manifest(self, *, backoff_limit: int = 0) -> Object:
        path = self.output / "manifests" / TEAM / GROUP / "hello-tpu" / "jobset.yaml"
        manifest: Object = yaml.safe_load(path.read_text(encoding="utf-8"))
        manifest["metadata"]["name"] = "train"
        manifest["spec"]["replicatedJobs"][0]["template"]["spec"]["backoffLimit"] = backoff_limit
        return manifest

    def job(self) -> Job:
        job = read_job(self.cluster, team=TEAM, kind="JobSet", name="train")
        assert job is not None
        return job

    def is_stuck(self) -> Job:
        return until("the job to be stuck", lambda: job if (job := self.job()).state == State.STUCK else None)

    def runs(self) -> None:
        until("all of its pods to run", lambda: True if len(running_pods(self.api, TEAM)) == HOSTS else None)
        until("tpuenv to see it run", lambda: True if self.job().state == State.RUNNING else None)

    def why(self) -> str:
        return "\n".join(answer(self.cluster, read_snapshot(self.cluster, self.job())))

    def stuck_chips(self) -> int:
        (dev,) = (item for item in read_status(self.cluster, self.environment, [TEAM]).slices if item.group == GROUP)
        return dev.stuck_chips

    def is_freed(self) -> None:
        """By a member of the team, whom the policies let submit what Kueue has written into the job."""
        member = self.cluster
        member.session.headers["Impersonate-User"] = MEMBERS[TEAM]
        requeue(member, self.job())
        self.runs()
        assert self.stuck_chips() == 0


@pytest.fixture
def ground(deployed: Deployed, described: Environment, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ground]:
    monkeypatch.setattr(tpuenv.jobs.job, "STUCK_AFTER", timedelta(seconds=4))
    ground = Ground(api=deployed.api, environment=described, output=deployed.output)
    with running(deployed.api, described) as ready:
        if not ready:
            pytest.skip("no pod starts here: the cluster has no KWOK, which would keep the hosts of the fleet alive")
        yield ground
        for item in deployed.api.list("JobSet", TEAM):
            deployed.api.delete({"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", **item})
        kinds = ("JobSet", "Job", "Workload", "Pod")
        until("all to be gone", lambda: None if any(deployed.api.list(kind, TEAM) for kind in kinds) else True)


@contextmanager
def no_webhooks_of(api: ApiServer, name: str) -> Iterator[None]:
    """Nobody answers where the API server asks those of a controller."""
    kinds = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
    found = [(kind, item) for kind in kinds for item in api.list(kind) if name in item["metadata"]["name"]]
    assert found
    down = {"clientConfig": {"url": "https://127.0.0.1:9/"}, "failurePolicy": "Fail", "timeoutSeconds": 1}
    try:
        for kind, item in found:
            hooks = [{**hook, **down} for hook in item["webhooks"]]
            api.merge(kind, item["metadata"]["name"], {"webhooks": hooks})
        yield
    finally:
        for kind, item in found:
            api.merge(kind, item["metadata"]["name"], {"webhooks": item["webhooks"]})


def end(api: ApiServer, pods: Sequence[Object]) -> None:
    """As if their programs had failed."""
    for pod in pods:
        api.merge("Pod", f"{pod['metadata']['name']}/status", {"status": {"phase": "Failed"}}, namespace=TEAM)


def test_a_job_without_pods_because_a_webhook_is_down(ground: Ground) -> None:
    ground.api.create(ground.manifest())
    ground.runs()
    with no_webhooks_of(ground.api, "jobset"):
        for pod in running_pods(ground.api, TEAM):
            ground.api.delete({"apiVersion": "v1", "kind": "Pod", "metadata": pod["metadata"]})
        ground.is_stuck()
        said = ground.why()
        assert "its pods cannot be created: the webhook" in said and "does not answer" in said, said
        assert f"it holds 1 slice of {GROUP}" in said and "tpuenv requeue train" in said
        assert ground.stuck_chips() == CHIPS
    ground.is_freed()


def test_followers_that_jobset_refuses_for_ever(ground: Ground) -> None:
    """The first pod of a slice is there twice, once as it failed: JobSet 0.12.0 expects one."""
    ground.api.create(ground.manifest(backoff_limit=9))
    ground.runs()
    end(ground.api, running_pods(ground.api, TEAM))
    words = "its pods cannot be created: JobSet refuses those that follow the first of a slice"
    until("JobSet to refuse them", lambda: True if words in ground.why() else None)
    ground.is_stuck()
    assert ground.stuck_chips() == CHIPS
    ground.is_freed()


def test_a_job_that_kueue_stopped_and_whose_quota_it_cannot_take_back(ground: Ground) -> None:
    """A node is lost, and Kueue cannot suspend the JobSet, because its webhook does not answer."""
    ground.api.create(ground.manifest())
    ground.runs()
    lost = running_pods(ground.api, TEAM)[0]
    with no_webhooks_of(ground.api, "jobset"):
        ground.api.delete({"apiVersion": "v1", "kind": "Node", "metadata": {"name": lost["spec"]["nodeName"]}})
        for pod in running_pods(ground.api, TEAM):
            ground.api.delete({"apiVersion": "v1", "kind": "Pod", "metadata": pod["metadata"]})
        (workload,) = ground.api.list("Workload", TEAM)
        ground.api.merge("Workload", workload["metadata"]["name"], {"spec": {"active": False}}, namespace=TEAM)
        job = ground.is_stuck()
        assert is_true(job.workload, "Evicted") and is_true(job.workload, "QuotaReserved")
        said = ground.why()
        assert f"it holds 1 slice of {GROUP}" in said, said
        assert ground.stuck_chips() == CHIPS
    until("Kueue to take it back", lambda: None if is_true(ground.job().workload, "QuotaReserved") else True)
