"""The client of the API server: what it reads and writes, and its errors, of the fake cluster over HTTP."""

from __future__ import annotations

import json

import pytest

from rehearsal.google.permissions import TOKEN, token_of
from rehearsal.http_server import Request, Response, json_response
from tests.rehearsal.job_sets import job_set
from tests.tpuenv.jobs.conftest import Ground, act_as, quick
from tpuenv.failure import Failed
from tpuenv.kubernetes.client import Cluster
from tpuenv.kubernetes.connection import ADDRESS, connect
from tpuenv.kubernetes.errors import ApiError, Unreachable

TEAM = "tpu-training"


def test_a_job_is_created_read_and_deleted_with_its_workload(ground: Ground, cluster: Cluster) -> None:
    created = cluster.create(job_set())
    assert cluster.find("JobSet", TEAM, "train") == created
    (workload,) = cluster.all("Workload", TEAM)
    assert workload["kind"] == "Workload"
    cluster.delete("JobSet", TEAM, "train")
    assert cluster.find("JobSet", TEAM, "train") is None
    assert cluster.all("Workload", TEAM) == []
    assert "GET /v1/projects/my-project/locations/us-east5/clusters/tpu-cluster" in ground.requests[0]


def test_a_list_in_chunks_is_read_to_its_end_and_selects_by_labels(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tpuenv.kubernetes.client._CHUNK", 3)
    for name in ("one", "two"):
        cluster.create(job_set(name))
    assert len(cluster.all("Pod", TEAM)) == 8
    labels = {"jobset.sigs.k8s.io/jobset-name": "two", "batch.kubernetes.io/job-completion-index": "3"}
    (pod,) = cluster.all("Pod", TEAM, labels=labels)
    assert pod["metadata"]["name"].startswith("two-slice-0-3-")


def test_an_api_server_that_asks_for_no_credentials_is_reached_by_its_address(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GOOGLE_OAUTH_ACCESS_TOKEN")
    name = "projects/my-project/locations/us-east5/clusters/tpu-cluster"
    monkeypatch.setenv(ADDRESS, f"{ground.address}/clusters/{name}")
    assert connect(ground.environment).all("JobSet", TEAM) == []


def test_a_project_without_the_cluster_says_how_to_create_it(ground: Ground) -> None:
    ground.fake.cloud.delete("google_container_cluster", "projects/my-project/locations/us-east5/clusters/tpu-cluster")
    with pytest.raises(Failed, match=r"no cluster tpu-cluster in region us-east5 of project my-project.*tpuenv deploy"):
        connect(ground.environment)


def test_no_request_names_a_quota_project(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a member of a team may not use the project's services."""
    monkeypatch.setenv("GOOGLE_CLOUD_QUOTA_PROJECT", "my-project")
    seen: list[str | None] = []
    ground.before.append(lambda request: seen.append(request.headers.get("x-goog-user-project")))
    connect(ground.environment).all("JobSet", TEAM)
    assert seen == [None, None]


def test_a_member_may_what_the_commands_need_and_nothing_of_another_team(
    fleet: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    act_as("alice@example.com", monkeypatch)
    cluster = quick(connect(fleet.environment))
    manifest = job_set()
    manifest["metadata"]["namespace"] = "research"
    selector = manifest["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["nodeSelector"]
    selector["tpuenv/pool-group"] = "dev"
    cluster.create(manifest)
    (pod, *_) = cluster.all("Pod", "research")
    assert list(cluster.log("research", pod["metadata"]["name"]))
    for kind in ("Workload", "Event", "JobSet", "Job", "RayJob"):
        if kind != "RayJob":  # GKE's Ray operator is off
            cluster.all(kind, "research")
    assert {queue["metadata"]["name"] for queue in cluster.all("ClusterQueue")} >= {"research", "serving"}
    cluster.delete("JobSet", "research", "train")
    with pytest.raises(ApiError) as refused:
        cluster.all("JobSet", "serving")
    assert refused.value.code == 403
    text = str(refused.value)
    assert text.startswith("permission: alice@example.com may not list jobsets in namespace serving in cluster")
    assert "to the team in fleet.yaml" in text


def test_an_account_that_may_not_connect_hears_which_role_lets_it(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    act_as("mallory@example.com", monkeypatch)
    with pytest.raises(Failed, match=r"may not read cluster tpu-cluster(.|\n)*--role=roles/container.clusterViewer"):
        connect(ground.environment)
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", TOKEN)
    cluster = connect(ground.environment)
    cluster.session.credentials.token = token_of("mallory@example.com")  # type: ignore[attr-defined]
    with pytest.raises(ApiError, match=r"connect to cluster tpu-cluster: .*roles/container.clusterViewer has"):
        cluster.all("JobSet", TEAM)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"metadata": {"name": "train", "namespace": "nowhere"}}, "no such namespace.*tpuenv deploy`, which creates"),
        ({"kind": "Deployment"}, "creates no jobset.x-k8s.io/v1alpha2 Deployment, only ConfigMap, Job, JobSet"),
        ({"metadata": {"name": "Train", "namespace": TEAM}}, 'refuses to create JobSet tpu-training/Train: .*"Train"'),
    ],
)
def test_what_cannot_be_created_says_why(cluster: Cluster, change: dict[str, object], words: str) -> None:
    with pytest.raises(Failed, match=words):
        cluster.create({**job_set(), **change})


def test_a_name_that_exists_is_refused_and_says_so(cluster: Cluster) -> None:
    cluster.create(job_set())
    with pytest.raises(ApiError, match=r"cannot create JobSet \S+: it exists already.*--name") as refused:
        cluster.create(job_set())
    assert refused.value.code == 409


def test_each_field_that_is_wrong_is_named(ground: Ground, cluster: Cluster) -> None:
    causes = [{"field": "spec.replicas", "message": "Invalid value: -1"}, {"field": "spec.x", "message": "Required"}]
    status = {"kind": "Status", "code": 422, "reason": "Invalid", "message": "m", "details": {"causes": causes}}
    ground.before.append(lambda request: json_response(status, status=422) if request.method == "POST" else None)
    with pytest.raises(ApiError) as refused:
        cluster.create(job_set())
    assert str(refused.value).splitlines() == [
        "Kubernetes refuses to create JobSet tpu-training/train:",
        "  spec.replicas: Invalid value: -1",
        "  spec.x: Required",
    ]


@pytest.mark.nested_too_deeply
@pytest.mark.parametrize("body", [b"<html>\x1b[2J", b'{"error": []}', b"[" * 100_000, b'{"details": 3}', b"\xff"])
def test_an_answer_in_no_form_that_is_known_is_printed_safely(ground: Ground, cluster: Cluster, body: bytes) -> None:
    ground.before.append(lambda _: Response(status=418, body=body))
    with pytest.raises(ApiError, match="HTTP status 418") as refused:
        cluster.all("JobSet", TEAM)
    assert "\x1b" not in str(refused.value)
    assert len(str(refused.value)) < 1000


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"kind": "Status", "status": "Failure"},
        {"metadata": None},
        {"metadata": {"name": 5}},
        {"metadata": {"name": "a", "labels": "b"}},
        {"metadata": {"name": "a"}, "status": "Failure"},
    ],
)
def test_an_answer_that_is_no_object_is_an_error_and_no_traceback(
    ground: Ground, cluster: Cluster, answer: dict[str, object]
) -> None:
    ground.before.append(
        lambda request: json_response(answer if request.path.endswith("/train") else {"items": [answer]})
    )
    for ask in (lambda: cluster.find("JobSet", TEAM, "train"), lambda: cluster.all("JobSet", TEAM)):
        with pytest.raises(Failed, match="is no Kubernetes object; check HTTPS_PROXY"):
            ask()


@pytest.mark.parametrize("answer", [{"items": 5}, {"items": [None]}, {"metadata": 5}])
def test_an_answer_that_is_no_list_is_an_error_and_no_traceback(
    ground: Ground, cluster: Cluster, answer: dict[str, object]
) -> None:
    ground.before.append(lambda _: json_response(answer))
    with pytest.raises(Failed, match="the answer to the request to list jobsets in namespace tpu-training is no"):
        cluster.all("JobSet", TEAM)


def test_credentials_that_are_not_accepted_say_how_to_log_in(ground: Ground, cluster: Cluster) -> None:
    ground.before.append(lambda _: json_response({"message": "Unauthorized"}, status=401))
    with pytest.raises(Failed, match="gcloud auth application-default login"):
        cluster.all("JobSet", TEAM)


def test_a_server_that_is_busy_is_asked_again_and_at_last_named(
    ground: Ground, cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = [json_response({"message": "wait"}, status=503)] * 2

    def busy(_: Request) -> Response | None:
        return answers.pop() if answers else None

    ground.before.append(busy)
    assert cluster.all("JobSet", TEAM) == []
    ground.before[:] = [lambda _: json_response({"message": "wait"}, status=503)]
    with pytest.raises(Unreachable, match=r"to list jobsets in namespace tpu-training: HTTP status 503: wait; check"):
        cluster.all("JobSet", TEAM)


def test_a_job_whose_answer_is_lost_is_not_created_again(ground: Ground, cluster: Cluster) -> None:
    def lose(request: Request) -> Response | None:
        if request.method != "POST":
            return None
        ground.api.create(json.loads(request.body))
        raise ConnectionError("lost")

    ground.before.append(lose)
    with pytest.raises(Unreachable, match="not known whether that was done; `tpuenv jobs` shows"):
        cluster.create({**job_set(), "metadata": {"generateName": "train-", "namespace": TEAM}})
    assert len(cluster.all("JobSet", TEAM)) == 1


def test_a_log_is_read_line_by_line_with_times_and_from_a_time_on(ground: Ground, cluster: Cluster) -> None:
    cluster.create(job_set())
    name = ground.pods()[0]["metadata"]["name"]
    (line,) = cluster.log(TEAM, name)
    job = ground.pods()[0]["metadata"]["labels"]["jobset.sigs.k8s.io/jobset-name"]
    assert line.endswith(
        f"the fake cluster runs no programs, so this is all that {name} logs. "
        f"The job runs until `tpuenv cancel {job}`.".encode()
    )
    ground.log(name, *(f"step {number}" for number in range(5)))
    time, _, text = list(cluster.log(TEAM, name))[3].partition(b" ")
    assert text == b"step 3"
    again = cluster.log(TEAM, name, since=time.decode(), follow=True)
    assert [line.split(b" ", 1)[1] for line in again] == [b"step 3", b"step 4"]
    assert [line.split(b" ", 1)[1] for line in cluster.log(TEAM, name, tail=1)] == [b"step 4"]
