"""What is said of a job while it is followed: how far it is, why it is stuck, its log, and how it ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rehearsal.cloud import Attributes
from rehearsal.http_server import Request, Response, json_response
from rehearsal.kubernetes.objects import KIND
from tests.rehearsal.job_sets import job_set
from tests.tpuenv.jobs.conftest import Ground
from tpuenv.failure import Failed

TEAM = "tpu-training"
Follow = Callable[..., int]
Capture = pytest.CaptureFixture[str]


def first_pod(ground: Ground) -> str:
    return str(ground.pods()[0]["metadata"]["name"])


def set_workload(ground: Ground, name: str, status: dict[str, Any], **spec: Any) -> None:
    """As Kueue would write it; the fake Kueue writes its own words at the next change in the cluster."""
    key = next(item.name for item in ground.fake.cloud.find(KIND) if item.name.endswith(f"|jobset-{name}"))

    def edit(workload: Attributes) -> None:
        workload["status"] = status
        workload["spec"] |= spec

    ground.fake.cloud.change(KIND, key, edit)


def waiting(reason: str, message: str = "") -> dict[str, Any]:
    """The status of a pod with one container that waits."""
    state = {"waiting": {"reason": reason, "message": message}}
    return {"status": {"phase": "Pending", "containerStatuses": [{"name": "main", "image": "reg/x:1", "state": state}]}}


def test_the_log_of_the_first_host_is_printed_until_the_job_succeeds(
    ground: Ground, follower: Follow, capsys: Capture
) -> None:
    ground.api.create(job_set())
    ground.log(first_pod(ground), "step 0")
    ground.at_reads(
        "train",
        lambda: None,
        lambda: ground.log(first_pod(ground), "step 1", "step 2"),
        lambda: ground.log(first_pod(ground), "done"),
        lambda: ground.end("train"),
    )
    assert follower() == 0
    printed = capsys.readouterr()
    assert printed.out.splitlines() == ["step 0", "step 1", "step 2", "done"]
    assert "running on 4 hosts; log of slice 0, host 0 (pod train-slice-0-0-" in printed.err
    assert "JobSet tpu-training/train succeeded" in printed.err


def test_the_log_of_another_host_is_printed(ground: Ground, follower: Follow, capsys: Capture) -> None:
    two = job_set()
    two["spec"]["replicatedJobs"][0]["replicas"] = 2
    ground.api.create(two)
    ground.log(ground.pods()[6]["metadata"]["name"], "I am the third of the second slice")
    ground.at_reads("train", lambda: None, lambda: ground.end("train"))
    assert follower(slice=1, host=2) == 0
    assert capsys.readouterr().out == "I am the third of the second slice\n"


def test_a_job_that_waits_says_its_place_who_uses_the_slices_and_starts_when_one_is_free(
    ground: Ground, follower: Follow, capsys: Capture
) -> None:
    for name in ("one", "two", "before", "train"):
        ground.api.create(job_set(name))

    def delete(name: str) -> None:
        ground.api.delete(ground.api.resource("jobset.x-k8s.io/v1alpha2", "JobSet"), TEAM, name)

    ground.at_reads("train", lambda: None, lambda: delete("one"), lambda: delete("before"), lambda: ground.end("train"))
    assert follower() == 0
    lines = capsys.readouterr().err.splitlines()
    assert any("  waiting: it waits for its quota, in use by one (1 slice), two (1 slice)" in line for line in lines)
    assert "    team tpu-training uses 32 chips of tpu" in lines
    assert lines[-1].endswith("succeeded")


EVICTED = [{"type": "Evicted", "status": "True", "reason": "PodsReadyTimeout", "message": "Exceeded the timeout"}]
RESERVED = [{"type": "QuotaReserved", "status": "True"}]
CHECK = {"name": "flex-start-dev", "state": "Pending", "message": "Waiting for the ProvisioningRequest."}


@pytest.mark.parametrize(
    ("status", "spec", "words"),
    [
        ({"conditions": EVICTED}, {}, "not all of its hosts were ready in time (waitForPodsReady)"),
        (
            {"conditions": [{**EVICTED[0], "reason": "Preempted", "message": "m"}]},
            {},
            "Kueue stopped it for another job, which has a higher priority or owns the slices; wait: it is queued",
        ),
        (
            {"conditions": RESERVED, "admissionChecks": [CHECK]},
            {},
            "it has its quota, and waits for the admission check flex-start-dev: Google looks for machines",
        ),
        (
            {"conditions": [{**EVICTED[0], "reason": "DeactivatedDueToRequeuingLimitExceeded"}]},
            {"active": False},
            "mend that, then `tpuenv cancel train`, and submit it again: Kueue does not start it by itself",
        ),
    ],
)
def test_a_job_that_kueue_does_not_start_says_why(
    status: dict[str, Any], spec: dict[str, Any], words: str, ground: Ground, follower: Follow, capsys: Capture
) -> None:
    ground.api.create(job_set())
    set_workload(ground, "train", status, **spec)
    ground.at_reads("train", lambda: None, lambda: ground.end("train"))
    assert follower() == 0
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            waiting("ImagePullBackOff", 'Back-off pulling image "reg/x:1"'),
            "image reg/x:1 cannot be pulled on slice 0, host 0 (ImagePullBackOff: Back-off pulling image "
            '"reg/x:1"); run the build',
        ),
        (
            waiting("ErrImagePull", "not found"),
            "cannot be pulled on slice 0, host 0: the registry has no such image; run the build",
        ),
        (
            waiting("CreateContainerConfigError", "secret x"),
            "main cannot start on slice 0, host 0: CreateContainerConfigError: secret x",
        ),
        (
            {
                "status": {
                    "phase": "Pending",
                    "conditions": [
                        {
                            "type": "PodScheduled",
                            "status": "False",
                            "reason": "Unschedulable",
                            "message": "0/9 nodes are available: 9 node(s) didn't match.",
                        }
                    ],
                    "containerStatuses": [],
                }
            },
            "no node for slice 0, host 0: 0/9 nodes are available: 9 node(s) didn't match; wait",
        ),
    ],
)
def test_a_pod_that_does_not_start_says_why_once(
    change: dict[str, Any], words: str, ground: Ground, follower: Follow, capsys: Capture
) -> None:
    ground.api.create(job_set())
    ground.patch("Pod", first_pod(ground), change)
    ground.at_reads("train", *[lambda: None] * 3, lambda: ground.end("train"))
    assert follower(build="run the build") == 0
    printed = capsys.readouterr()
    assert printed.err.count(words) == 1
    assert "admitted: 1 slice of pool group tpu" in printed.err


def test_warnings_in_the_events_of_its_pods_are_said(ground: Ground, follower: Follow, capsys: Capture) -> None:
    ground.api.create(job_set())
    pod = first_pod(ground)
    ground.patch("Pod", pod, waiting("ContainerCreating"))
    for number, (about, type_) in enumerate([(pod, "Warning"), ("other-slice-0", "Warning"), (pod, "Normal")]):
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"event-{number}", "namespace": TEAM},
            "involvedObject": {"kind": "Pod", "name": about},
            "type": type_,
            "reason": "FailedMount",
            "message": f"MountVolume.SetUp failed\x1b[2J {number}",
        }
        ground.api.create(event)
    ground.at_reads("train", *[lambda: None] * 2, lambda: ground.end("train"))
    assert follower() == 0
    printed = capsys.readouterr().err
    assert printed.count("cannot be mounted") == 1
    assert "a volume cannot be mounted on slice 0, host 0: MountVolume.SetUp failed\\x1b[2J 0" in printed


def test_a_restart_is_said_and_the_log_goes_on_with_the_new_pod(
    ground: Ground, follower: Follow, capsys: Capture
) -> None:
    manifest = job_set()
    manifest["spec"]["failurePolicy"] = {"maxRestarts": 3}
    ground.api.create(manifest)
    ground.log(first_pod(ground), "first start")

    def restart() -> None:
        ground.patch("JobSet", "train", {"status": {"restarts": 1, "restartsCountTowardsMax": 0}})
        ground.log(first_pod(ground), "second start")

    ground.at_reads("train", lambda: None, restart, lambda: None, lambda: ground.end("train"))
    assert follower() == 0
    printed = capsys.readouterr()
    assert printed.out.splitlines() == ["first start", "second start"]
    assert "restart 1; 0 of at most 3 are used up" in printed.err


def test_a_job_that_failed_shows_the_last_lines_of_the_host_that_failed_first(
    ground: Ground, follower: Follow, capsys: Capture
) -> None:
    ground.api.create(job_set())
    names = [pod["metadata"]["name"] for pod in ground.pods()]

    def fail() -> None:
        for name, time, code in ((names[1], "2026-01-01T00:00:09Z", 1), (names[2], "2026-01-01T00:00:02Z", 137)):
            ended = {"exitCode": code, "reason": "OOMKilled" if code == 137 else "Error", "finishedAt": time}
            status = {"name": "main", "state": {"terminated": ended}}
            ground.patch("Pod", name, {"status": {"phase": "Failed", "containerStatuses": [status]}})
        ground.log(names[2], *(f"line {number}" for number in range(30)))
        ground.patch("JobSet", "train", {"status": {"restarts": 0}})
        message = "jobset failed due to reaching max number of restarts"
        ground.end("train", "Failed", message=message)

    ground.at_reads("train", lambda: None, fail)
    assert follower() == 1
    lines = capsys.readouterr().err.splitlines()
    at = next(number for number, line in enumerate(lines) if "exit code" in line and "last lines" in line)
    assert lines[at - 1] == ("JobSet tpu-training/train failed: jobset failed due to reaching max number of restarts")
    assert "slice 0, host 2 ended with exit code 137 (OOMKilled); " in lines[at]
    assert lines[at + 1 :] == [f"    line {number}" for number in range(10, 30)]


def test_a_job_that_is_deleted_while_it_is_followed_ends_it(ground: Ground, follower: Follow, capsys: Capture) -> None:
    ground.api.create(job_set())
    delete = ground.api.delete
    ground.at_reads(
        "train",
        lambda: None,
        lambda: delete(ground.api.resource("jobset.x-k8s.io/v1alpha2", "JobSet"), TEAM, "train"),
    )
    assert follower() == 1
    assert "was deleted" in capsys.readouterr().err


def test_a_lost_connection_is_made_again_and_no_line_is_lost_or_repeated(
    ground: Ground, follower: Follow, capsys: Capture
) -> None:
    ground.api.create(job_set())
    pod = first_pod(ground)
    ground.log(pod, *(f"step {number}" for number in range(3)))
    losses = iter([True, False] * 10)

    def lose(request: Request) -> Response | None:
        if request.path.endswith("/log") and next(losses):
            raise ConnectionError("lost")
        return None

    ground.before.append(lose)
    more = [lambda: ground.log(pod, "step 3"), lambda: None, lambda: ground.log(pod, "step 4"), lambda: None]
    ground.at_reads("train", lambda: None, *more, lambda: ground.end("train"))
    assert follower() == 0
    assert capsys.readouterr().out.splitlines() == [f"step {number}" for number in range(5)]


@pytest.mark.slow
def test_a_cluster_that_does_not_answer_for_long_ends_it_and_says_how_to_go_on(
    ground: Ground, follower: Follow
) -> None:
    ground.api.create(job_set())
    ground.before.append(lambda _: json_response({}, status=503))
    with pytest.raises(Failed, match=r"goes on; follow it again with `tpuenv logs train --team tpu-training --follow`"):
        follower()


def test_credentials_that_expire_while_it_is_followed_say_how_to_go_on(ground: Ground, follower: Follow) -> None:
    ground.api.create(job_set())
    expired = json_response({"message": "Unauthorized"}, status=401)
    ground.at_reads("train", lambda: None, lambda: ground.before.append(lambda _: expired))
    with pytest.raises(
        Failed, match=r"application-default login(.|\n)*goes on; follow it again with `tpuenv logs train"
    ):
        follower()


def test_ctrl_c_leaves_the_job_running_and_says_how_to_go_on(
    ground: Ground, follower: Follow, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    ground.api.create(job_set())

    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tpuenv.jobs.follow.time.sleep", interrupt)
    assert follower() == 130
    printed = capsys.readouterr().err
    assert "JobSet tpu-training/train goes on" in printed
    assert "tpuenv logs train --team tpu-training --follow" in printed
    assert "tpuenv cancel train --team tpu-training" in printed
    assert len(ground.pods()) == 4


def test_a_quota_that_is_taken_away_while_it_runs_is_said(ground: Ground, follower: Follow, capsys: Capture) -> None:
    for name in ("train", "other"):
        manifest = job_set(name)
        manifest["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = "low"
        ground.api.create(manifest)
    urgent = job_set("urgent")
    urgent["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = "high"
    urgent["spec"]["replicatedJobs"][0]["replicas"] = 2
    ground.at_reads("train", lambda: None, lambda: ground.api.create(urgent), lambda: None, lambda: ground.end("train"))
    assert follower() == 0
    printed = capsys.readouterr().err
    assert "waiting: " in printed
    assert "team tpu-training uses 32 chips of tpu" in printed
