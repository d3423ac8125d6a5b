"""`tpuenv verify` takes no slice from a job: it waits, or says what is busy, and asks before one is paid for."""

from __future__ import annotations

import io
import json
import re
import sys

import pytest

from rehearsal.http_server import Request
from tests.fleets import with_fleet
from tests.rehearsal.job_sets import job_set
from tests.tpuenv.jobs.conftest import Ground
from tests.tpuenv.jobs.hello_program import HelloProgram
from tests.tpuenv.jobs.verify_command import TEAM, Capture, at_first_read, created, jobsets, verified
from tpuenv.main import main
from tpuenv.verification import plan

pytestmark = pytest.mark.usefixtures("at_once", "signal_handlers")


@pytest.mark.slow
def test_machines_that_google_does_not_have_are_waited_for_and_no_failure(three_teams: Ground, capsys: Capture) -> None:
    """Of a group whose slices are created for a job; where they exist always, it is one."""

    def no_machines(request: Request) -> None:
        pods = three_teams.pods("research")
        for pod in (pod for pod in pods if pod["status"]["phase"] != "Pending"):
            unschedulable = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no node"}
            status = {"phase": "Pending", "conditions": [unschedulable], "containerStatuses": []}
            three_teams.patch("Pod", pod["metadata"]["name"], {"status": status}, namespace="research")
            event = {
                "apiVersion": "v1",
                "kind": "Event",
                "metadata": {"name": f"{pod['metadata']['name']}.1", "namespace": "research"},
                "involvedObject": {"kind": "Pod", "name": pod["metadata"]["name"], "namespace": "research"},
                "type": "Warning",
                "reason": "FailedScaleUp",
                "message": "Node scale up in zones us-east5-a associated with this pod failed: GCE out of resources.",
            }
            three_teams.api.store(event)

    three_teams.before.append(no_machines)
    words = ("--team", "research", "--auto-approve", "--timeout", "1s")
    code, (row,) = verified(capsys, *words, "--group", "burst")
    assert (code, row["verdict"]) == (3, "waiting")
    assert "Google has none of this type now in us-east5-a (stock-out)" in row["measured"]
    code, (row,) = verified(capsys, *words, "--group", "serve")
    assert (code, row["verdict"]) == (1, "failed")
    assert jobsets(three_teams) == []


def test_a_request_for_machines_is_waited_for_and_no_failure(built: Ground, capsys: Capture) -> None:
    """Of a queued group: the job has its quota, and Google has no machines."""

    def queue() -> None:
        api = built.api
        (workload,) = api.all(api.resource("kueue.x-k8s.io/v1beta2", "Workload"))
        message = "Waiting for resources. Currently there are not enough resources available."
        workload["status"] = {
            "conditions": [{"type": "QuotaReserved", "status": "True", "reason": "QuotaReserved"}],
            "admissionChecks": [{"name": "provision-tpu", "state": "Pending", "message": message}],
        }
        api.store(workload)
        (job,) = jobsets(built)
        api.store({**job, "spec": {**job["spec"], "suspend": True}})

    at_first_read(built, queue)
    code, (row,) = verified(capsys, "--timeout", "1s")
    assert (code, row["verdict"]) == (3, "waiting")
    assert row["measured"].startswith("waiting: it has its quota, and waits in the queue of the Dynamic Workload Sched")
    assert jobsets(built) == []


def test_a_queue_on_hold_is_waited_for(built: Ground, capsys: Capture) -> None:
    queue = built.api.resource("kueue.x-k8s.io/v1beta2", "ClusterQueue")
    built.api.patch(queue, "", TEAM, {"spec": {"stopPolicy": "Hold"}})
    code, (row,) = verified(capsys)
    assert (code, row["verdict"]) == (3, "waiting")
    assert "ClusterQueue tpu-training is on hold" in row["measured"]
    assert row["fix"] == "a deploy resumes it, unless HOLD_QUEUES=true"
    assert created(built) == 0


def test_a_queue_that_is_not_there_failed(built: Ground, capsys: Capture) -> None:
    queue = built.api.resource("kueue.x-k8s.io/v1beta2", "LocalQueue")
    built.api.delete(queue, TEAM, "default")
    code, (row,) = verified(capsys)
    assert (code, row["verdict"]) == (1, "failed")
    assert "default" in row["measured"]
    assert created(built) == 0


def test_a_slice_that_a_job_uses_is_busy_and_the_job_goes_on(built: Ground, capsys: Capture) -> None:
    """Also one without a priority, which everything else may stop."""
    for name in ("one", "two"):
        built.api.create(job_set(name))
    code, rows = verified(capsys)
    assert code == 3
    (row,) = rows
    assert (row["what"], row["verdict"]) == ("start", "busy")
    assert "in use" in row["measured"]
    assert created(built) == 0
    assert {job["metadata"]["name"]: job["spec"]["suspend"] for job in jobsets(built)} == {"one": False, "two": False}


def test_a_slice_that_another_team_has_borrowed_is_busy(three_teams: Ground, capsys: Capture) -> None:
    """Kueue would take it back, and stop that team's job."""
    taken = job_set("taken", hosts=4)
    taken["metadata"]["namespace"] = "research"
    pod = taken["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    pod["nodeSelector"] = {"tpuenv/pool-group": "dev"}
    for number in range(4):
        taken["metadata"]["name"] = f"taken-{number}"
        three_teams.api.create(taken)
    running = [job["metadata"]["name"] for job in jobsets(three_teams) if not job["spec"]["suspend"]]
    code, rows = verified(capsys, "--team", "students", "--group", "dev", "--auto-approve")
    assert code == 3, rows
    assert rows[0]["verdict"] == "busy"
    assert rows[0]["measured"] == "its slices are borrowed by jobs of research, and this command stops no job"
    assert [job["metadata"]["name"] for job in jobsets(three_teams) if not job["spec"]["suspend"]] == running


def test_teams_take_turns_on_a_group_and_groups_go_at_the_same_time(three_teams: Ground, capsys: Capture) -> None:
    program = HelloProgram(ground=three_teams)
    most: list[int] = []

    def count(request: Request) -> None:
        groups = [job["metadata"]["namespace"] for job in jobsets(three_teams)]
        most.append(len(groups))

    three_teams.before.append(count)
    code, rows = verified(capsys, "--auto-approve")
    assert code == 0, [row for row in rows if row["verdict"] != "ok"]
    runs = {(row["team"], row["group"]) for row in rows}
    assert runs == {
        *((team, "dev") for team in ("research", "serving", "students")),
        *((team, "serve") for team in ("research", "serving")),
        *((team, "burst") for team in ("research", "students")),
        ("research", "pretrain"),
    }
    assert len(program.jobs) == len(runs)
    assert max(most) <= 4, "one slice of each of the four groups"
    assert jobsets(three_teams) == []


def test_slices_that_are_created_and_paid_for_the_run_are_left_out_unless_approved(
    three_teams: Ground, capsys: Capture
) -> None:
    HelloProgram(ground=three_teams)
    assert main(["verify", "--team", "students", "--json"]) == 3
    printed = capsys.readouterr()
    rows = json.loads(printed.out)["rows"]
    assert {row["group"]: row["verdict"] for row in rows} == {"dev": "not verified", "burst": "not verified"}
    assert "--auto-approve" in rows[0]["fix"]
    assert "  dev (v6e-16): students; a slice is created for each run, at 19.44 USD an hour (list price)" in printed.err
    assert (
        "  burst (v5litepod-16): students; a slice is created for each run, and its price is not known" in printed.err
    )
    assert three_teams.requests == []


@pytest.mark.parametrize(("answer", "verdict"), [("y", "ok"), ("n", "not verified")])
def test_at_a_terminal_it_asks_before_slices_are_created(
    three_teams: Ground, capsys: Capture, monkeypatch: pytest.MonkeyPatch, answer: str, verdict: str
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    HelloProgram(ground=three_teams)
    monkeypatch.setattr(sys, "stdin", Terminal(f"{answer}\n"))
    main(["verify", "--team", "research", "--group", "burst"])
    printed = capsys.readouterr().out
    assert "Create 1 slice, and pay for what is created? [y/N]" in printed
    assert re.search(rf"^{verdict} +research +burst ", printed, re.MULTILINE)


def test_a_team_that_can_have_no_slice_of_a_group_is_a_row_and_no_run() -> None:
    """It owns none by its share, and nobody lends one."""
    fleet = "tpu_pools:\n  dev: {type: v6e-16, slices: 1}\n  big: {type: v6e-64, slices: 20}\n"
    teams = "teams:\n  research: {share: 9, lending: false}\n  others: {share: 1, borrowing: 0}\n"
    runs = plan.planned(with_fleet(fleet + teams), team="others", group=None)
    can, rows = plan.possible(runs)
    assert [run.group.name for run in can if run.group] == ["big"]
    assert [(row.group, row.verdict.value) for row in rows] == [("dev", "not verified")]
    assert rows[0].measured == "it owns no slice of the group and can borrow none"
