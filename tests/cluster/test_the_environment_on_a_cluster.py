"""The cluster's objects, made by the real provider: they stay, keep their promises, and go with jobs running."""

from __future__ import annotations

from dataclasses import replace

import pytest
import requests
import yaml

from environment import Environment
from stacks.controllers import ACCOUNTS
from tests.cluster.api import Object, Refused, until
from tests.cluster.deployed import Deployed
from tests.cluster.outcome import ADMITTED, Outcome, outcome_of
from tpuenv.jobs.diagnosis.diagnose import diagnose, obstacles
from tpuenv.jobs.diagnosis.snapshot import read_snapshot
from tpuenv.jobs.job import Job, State
from tpuenv.jobs.read_jobs import read_job, read_jobs
from tpuenv.jobs.submission import create
from tpuenv.kubernetes.client import Cluster
from tpuenv.kubernetes.errors import ApiError
from vocabulary.keys import LOCAL_QUEUE

pytestmark = pytest.mark.cluster

ALICE, CAROL, STRANGER = "alice@example.com", "carol@example.com", "mallory@example.com"
GROUP = "research@example.com"
JOBS = ("jobs.batch", "jobsets.jobset.x-k8s.io", "rayjobs.ray.io", "rayclusters.ray.io")
CHANGES = ("create", "update", "patch", "delete")


@pytest.mark.parametrize("stack", ["platform", "queues"])
def test_what_was_applied_plans_empty_the_second_time(deployed: Deployed, stack: str) -> None:
    assert deployed.stacks[stack].changes() == ""


def tpu_pod(labels: dict[str, str]) -> Object:
    container = {"name": "a", "image": "a", "resources": {"limits": {"google.com/tpu": "4"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "by-hand", "namespace": "research", "labels": labels},
        "spec": {"containers": [container]},
    }


def test_a_tpu_pod_that_kueue_did_not_admit_is_refused(deployed: Deployed) -> None:
    with pytest.raises(Refused, match="must come from a job that Kueue admitted"):
        deployed.api.create(tpu_pod({}), dry_run=True)
    deployed.api.create(tpu_pod({"kueue.x-k8s.io/podset": "slice"}), dry_run=True)


@pytest.mark.parametrize("account", ACCOUNTS)
def test_a_controller_changes_nothing_but_what_teams_have(deployed: Deployed, account: str) -> None:
    controller = replace(deployed.api, user=account, group="system:masters")
    parts = [
        ("Service", "v1", {"ports": [{"port": 80}]}),
        ("Job", "batch/v1", {"template": {"spec": {"restartPolicy": "Never", "containers": [container("a")]}}}),
    ]
    for kind, version, spec in parts:
        part: Object = {"apiVersion": version, "kind": kind, "metadata": {"name": "part"}, "spec": spec}
        for namespace in ("kube-system", "kueue-system"):
            with pytest.raises(Refused, match="in namespaces of teams, and nowhere else"):
                controller.create(part | {"metadata": {"name": "part", "namespace": namespace}}, dry_run=True)
        controller.create(part | {"metadata": {"name": "part", "namespace": "research"}}, dry_run=True)
    webhooks: Object = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "jobset-more"},
    }
    with pytest.raises(Refused, match="certificates of their own webhooks, and change nothing else"):
        controller.create(webhooks, dry_run=True)


def container(name: str) -> Object:
    return {"name": name, "image": name, "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}


@pytest.mark.parametrize(("user", "groups"), [(ALICE, ()), ("bob@example.com", (GROUP,))], ids=["person", "of a group"])
def test_a_member_works_in_the_own_namespace(deployed: Deployed, user: str, groups: tuple[str, ...]) -> None:
    def may(verb: str, resource: str, namespace: str = "research") -> bool:
        return deployed.api.may(verb, resource, user=user, groups=groups, namespace=namespace)

    assert all(may(verb, resource) for resource in (*JOBS, "configmaps", "services") for verb in CHANGES)
    assert all(may("get", resource) for resource in ("pods", "pods/log", "events", "workloads.kueue.x-k8s.io"))
    assert may("create", "pods/exec") and may("create", "pods/portforward")
    assert all(may("list", kind, "") for kind in ("clusterqueues.kueue.x-k8s.io", "resourceflavors.kueue.x-k8s.io"))


@pytest.mark.parametrize(("user", "groups"), [(ALICE, ()), ("bob@example.com", (GROUP,))], ids=["person", "of a group"])
def test_a_member_goes_round_no_queue_and_sees_no_other_team(
    deployed: Deployed, user: str, groups: tuple[str, ...]
) -> None:
    def may(verb: str, resource: str, namespace: str = "research") -> bool:
        return deployed.api.may(verb, resource, user=user, groups=groups, namespace=namespace)

    kept = (
        "pods",
        "localqueues.kueue.x-k8s.io",
        "workloads.kueue.x-k8s.io",
        "serviceaccounts",
        "roles.rbac.authorization.k8s.io",
    )
    assert not any(may(verb, resource) for resource in kept for verb in CHANGES)
    queues = ("clusterqueues.kueue.x-k8s.io", "resourceflavors.kueue.x-k8s.io", "namespaces", "nodes")
    assert not any(may(verb, resource, "") for resource in queues for verb in CHANGES)
    assert not any(may("get", resource, "serving") for resource in (*JOBS, "pods", "pods/log", "secrets"))
    assert not may("create", "pods/exec", "serving")


def test_who_is_no_member_may_nothing(deployed: Deployed) -> None:
    for resource in (*JOBS, "pods", "clusterqueues.kueue.x-k8s.io"):
        assert not deployed.api.may("list", resource, user=STRANGER, namespace="research")
    assert deployed.api.may("list", JOBS[0], user=CAROL, namespace="serving")
    assert not deployed.api.may("list", JOBS[0], user=CAROL, namespace="research")


def test_the_plan_account_reads_what_the_stacks_made_and_changes_nothing(
    deployed: Deployed, described: Environment
) -> None:
    account = described.names.account_email(described.names.plan_account)
    assert deployed.api.may("get", "clusterqueues.kueue.x-k8s.io", user=account)
    assert not any(deployed.api.may(verb, "clusterqueues.kueue.x-k8s.io", user=account) for verb in CHANGES)
    assert not deployed.api.may("get", "secrets", user=account, namespace="research")


def test_a_ready_manifest_is_admitted_in_the_queue_of_its_team(deployed: Deployed) -> None:
    for job in deployed.submit():
        assert deployed.admitted(job)
        deployed.api.delete(job)


def test_a_job_that_names_no_queue_is_in_the_default_one(deployed: Deployed) -> None:
    manifest = yaml.safe_load(
        sorted((deployed.output / "manifests" / "research").rglob("hello-tpu/jobset.yaml"))[0].read_text()
    )
    del manifest["metadata"]["labels"]
    job = deployed.api.create(manifest)
    assert deployed.admitted(job)
    kept = deployed.api.get("JobSet", job["metadata"]["name"], "research") or {}
    assert kept["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == LOCAL_QUEUE
    deployed.api.delete(job)


def test_jobs_that_tpuenv_submits_are_listed_with_their_place_in_the_queue_and_cancelled(deployed: Deployed) -> None:
    cluster = Cluster(address=deployed.api.address, name="lab", session=requests.Session())
    path = sorted((deployed.output / "manifests" / "research").rglob("hello-tpu/jobset.yaml"))[0]
    manifest = yaml.safe_load(path.read_text(encoding="utf-8"))
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "config-one", "namespace": "research"},
        "data": {"key": "value"},
    }
    for name in ("one", "two", "three"):  # the team's slice, that of the other team, and none
        manifest["metadata"]["name"] = name
        create(cluster, [config, manifest] if name == "one" else [manifest], recipe="hello-tpu")
        until(
            "Kueue to decide", lambda: all(job.workload.get("status") for job in read_jobs(cluster, "research")) or None
        )
    with pytest.raises(ApiError, match="it exists already"):
        create(cluster, [manifest], recipe="hello-tpu")

    def three() -> Job | None:
        job = read_job(cluster, team="research", kind="JobSet", name="three")
        return job if job and obstacles(job) else None

    waiting = until("the third job to wait", three)
    assert (waiting.state, waiting.position) == (State.WAITING, 1)
    assert "quota" in str(obstacles(waiting)[0])
    (cause, *_) = diagnose(read_snapshot(cluster, waiting, read_jobs(cluster, "research")))
    assert cause.cause.startswith("it waits for 1 slice of dev, in use by one (1 slice)")
    one = until("the first job's pods", lambda: read_job(cluster, team="research", kind="JobSet", name="one"))
    assert (one.state in (State.ADMITTED, State.STARTING), one.hosts, one.slices, one.group) == (True, 4, 1, "dev")
    for job in read_jobs(cluster, "research"):
        cluster.delete(job.kind, "research", job.name)
    until("the jobs to be deleted", lambda: None if read_jobs(cluster, "research") else True)
    until(
        "the first job's ConfigMap to be deleted",
        lambda: cluster.find("ConfigMap", "research", "config-one") is None or None,
    )
    with pytest.raises(ApiError, match="no such namespace"):
        cluster.create({**config, "metadata": {"name": "config", "namespace": "nowhere"}})
    with pytest.raises(ApiError, match=r"refuses to create JobSet(.|\n)*spec\.replicated"):
        cluster.create({**manifest, "spec": {"replicatedJob": []}})


def test_a_drain_ends_with_jobs_admitted_and_the_next_deploy_opens_the_queue_again(deployed: Deployed) -> None:
    research, serving, *_ = jobs = deployed.submit()
    assert deployed.admitted(research) and deployed.admitted(serving)
    done = deployed.drain("research")
    assert done.returncode == 0, done.stdout
    assert deployed.admitted(serving)
    stopped = outcome_of(deployed.api, research)
    assert isinstance(stopped, Outcome) and stopped.kind != ADMITTED
    assert deployed.stacks["queues"].changes() != ""
    deployed.stacks["queues"].apply()
    until("the job to be admitted again", lambda: deployed.admitted(research) or None)
    for job in jobs:
        deployed.api.delete(job)


def test_a_destroy_ends_with_jobs_admitted(deployed: Deployed) -> None:
    jobs = deployed.submit()
    assert all(deployed.admitted(job) for job in jobs)
    if not deployed.runs_pods:
        assert not any(deployed.drain(team).returncode for team in deployed.teams)
    for name in ("queues", "platform"):
        deployed.stacks[name].destroy()
    assert deployed.api.list("ClusterQueue") == []
    assert not {item["metadata"]["name"] for item in deployed.api.list("Namespace")} & {*deployed.teams}
