"""`tpuenv verify`, as it is typed, against the fake cluster."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from environment.project import ROOT
from manifests.images import reference
from manifests.recipes import FOLDER
from rehearsal.google.artifact_registry_api import push
from rehearsal.http_server import Request, Response, json_response
from rehearsal.serve import answers
from tests.fleets import with_fleet
from tests.rehearsal.job_sets import job_set
from tests.tpuenv.jobs.conftest import Ground, act_as
from tests.tpuenv.jobs.hello_program import ON_TPU, HelloProgram, make_nodes_real, report
from tpuenv.jobs.submission import create
from tpuenv.kubernetes.connection import ADDRESS
from tpuenv.main import main
from tpuenv.verification import plan
from tpuenv.verification.rows import rows_of_report

TEAM = "tpu-training"
CASES = Path(__file__).parents[2] / "cases"
Capture = pytest.CaptureFixture[str]
Row = dict[str, Any]

pytestmark = pytest.mark.usefixtures("at_once", "_handlers")


@pytest.fixture
def _handlers() -> Iterator[None]:
    """The command sets them."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def built(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> Ground:
    """One team with two slices of real nodes, and the image."""
    monkeypatch.setenv("TPU_TYPE", "v6e-16")
    push(ground.fake.cloud, reference(ground.environment, FOLDER / "hello-tpu"))
    make_nodes_real(ground)
    return ground


@pytest.fixture
def three_teams(fleet: Ground, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Ground:
    for name, target in (("env", "vars.env"), ("fleet.yaml", "fleet.yaml")):
        text = (CASES / f"three-teams-four-groups.{name}").read_text(encoding="utf-8")
        (tmp_path / target).write_text(text, encoding="utf-8")
    monkeypatch.setenv("TPUENV_FOLDER", str(tmp_path))
    push(fleet.fake.cloud, reference(fleet.environment, FOLDER / "hello-tpu"))
    make_nodes_real(fleet)
    return fleet


def verified(capsys: Capture, *words: str) -> tuple[int, list[Row]]:
    """The exit code and the rows."""
    code = main(["verify", "--json", *words])
    return code, json.loads(capsys.readouterr().out)["rows"]


def only(rows: list[Row], what: str) -> Row:
    (row,) = (item for item in rows if item["what"] == what)
    return row


def jobsets(ground: Ground) -> list[Row]:
    return ground.api.all(ground.api.resource("jobset.x-k8s.io/v1alpha2", "JobSet"))


def at_first_read(ground: Ground, step: Callable[[], object]) -> None:
    """Calls it once, before the first read of the job."""
    steps = [step]

    def call(request: Request) -> None:
        if request.method == "GET" and "/jobsets/verify-" in request.path and steps:
            steps.pop()()

    ground.before.append(call)


def created(ground: Ground) -> int:
    return sum(request.startswith("POST") for request in ground.requests)


def test_every_row_of_a_slice_that_works_is_ok_and_nothing_stays(built: Ground, capsys: Capture) -> None:
    program = HelloProgram(ground=built)
    assert main(["verify"]) == 0
    printed = capsys.readouterr()
    lines = [" ".join(line.split()) for line in printed.out.splitlines()]
    assert lines == [
        "VERDICT TEAM GROUP WHAT EXPECTED MEASURED",
        "ok tpu-training tpu hosts 4 4",
        "ok tpu-training tpu chips 16 16",
        "ok tpu-training tpu sums and products exact exact",
        "ok tpu-training tpu bandwidth measured 120.5 GB/s a chip, 30% of its links",
        "ok tpu-training tpu own bucket write, read, delete write, read, delete",
        "ok tpu-training tpu other buckets 1 refused 1 refused",
        "",
        "Verified: all 6 rows are ok.",
    ]
    assert "Runs hello-tpu once" in printed.err
    assert "15m at most" in printed.err
    assert len(program.jobs) == 1
    assert jobsets(built) == []


def test_the_job_is_that_of_submit_but_goes_behind_all_others_and_ends_in_time(built: Ground, capsys: Capture) -> None:
    program = HelloProgram(ground=built)
    verified(capsys, "--timeout", "10m")
    (job,) = program.jobs
    assert "kueue.x-k8s.io/priority-class" not in job["metadata"]["labels"]
    assert job["metadata"]["labels"]["tpuenv/recipe"] == "hello-tpu"
    assert job["spec"]["failurePolicy"]["maxRestarts"] == 0
    (replicated,) = job["spec"]["replicatedJobs"]
    assert (replicated["replicas"], replicated["template"]["spec"]["activeDeadlineSeconds"]) == (1, 600)
    pod = replicated["template"]["spec"]["template"]["spec"]
    assert pod["serviceAccountName"] == "training", "buckets are tried as the team"
    names = built.environment.names
    assert f"bucket={names.bucket(TEAM)}" in pod["containers"][0]["args"]
    assert f"other_buckets={names.state_bucket}" in pod["containers"][0]["args"]
    assert "@sha256:" in pod["containers"][0]["image"]


def test_cpu_devices_are_called_simulated(built: Ground, capsys: Capture) -> None:
    HelloProgram(ground=built, change={})
    code, rows = verified(capsys)
    assert code == 3
    assert {row["what"]: row["verdict"] for row in rows} == {
        "hosts": "ok",
        "chips": "simulated",
        "sums and products": "ok",
        "bandwidth": "simulated",
        "own bucket": "ok",
        "other buckets": "ok",
    }
    assert only(rows, "bandwidth")["measured"] == "0.1233 GB/s a chip between processes"


def test_the_page_shows_what_is_printed(built: Ground, capsys: Capture) -> None:
    page = (ROOT / "docs" / "verify.md").read_text(encoding="utf-8")
    HelloProgram(ground=built, change={})
    main(["verify"])
    assert f"```text\n$ tpuenv verify\n{capsys.readouterr().out}```\n" in page
    (shown,) = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    example = json.loads(shown)
    built.before.clear()
    HelloProgram(ground=built, change={**ON_TPU, "chips": 15})
    assert main(["verify", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert (document.keys(), document["counts"].keys()) == (example.keys(), example["counts"].keys())
    assert example["verdict"] == document["verdict"]
    assert example["rows"] == [row for row in document["rows"] if row["verdict"] == "failed"]


def test_simulated_nodes_verify_the_queues_alone_and_it_says_so(ground: Ground, capsys: Capture) -> None:
    push(ground.fake.cloud, reference(ground.environment, FOLDER / "hello-tpu"))
    assert main(["verify"]) == 3
    printed = capsys.readouterr().out
    assert re.search(r"^simulated +tpu-training +tpu +chips +16 +16$", printed, re.MULTILINE)
    assert printed.count("no program runs on simulated nodes") == 4
    assert printed.endswith("Nothing failed, and not all is verified: 2 simulated, 4 not verified.\n")
    assert jobsets(ground) == []


@pytest.mark.parametrize(
    ("change", "what", "measured", "fix"),
    [
        pytest.param({"hosts": 3}, "hosts", "3", "`tpuenv status`", id="hosts"),
        pytest.param({"chips": 15}, "chips", "15", "`tpuenv status`", id="chips"),
        pytest.param(
            {"problems": ["multiplication: wrong by up to 3"]},
            "sums and products",
            "multiplication: wrong by up to 3",
            "a chip or a link computes wrong",
            id="wrong-product",
        ),
        pytest.param(
            {"own_bucket": {"write": "ok", "read": "ok", "delete": "refused"}},
            "own bucket",
            "write, read, delete: refused",
            "`tpuenv deploy` grants it",
            id="own-bucket",
        ),
        pytest.param(
            {"own_bucket": {}, "problems": ["bucket my-project-tpu-tpu-training: no access token"]},
            "own bucket",
            "bucket my-project-tpu-tpu-training: no access token",
            "`tpuenv deploy` grants it",
            id="no-identity",
        ),
        pytest.param(
            {"other_buckets": {"my-project-tpu-tf-state": "its objects can be listed"}},
            "other buckets",
            "my-project-tpu-tf-state: its objects can be listed",
            "get-iam-policy gs://my-project-tpu-tf-state",
            id="other-bucket",
        ),
        pytest.param({"other_buckets": {}}, "other buckets", "1 bucket not tried", "the row above", id="not-tried"),
    ],
)
def test_what_the_program_finds_wrong_is_a_row_that_failed(
    built: Ground, capsys: Capture, change: dict[str, Any], what: str, measured: str, fix: str
) -> None:
    program = HelloProgram(ground=built, end="Failed")
    program.change |= change
    code, rows = verified(capsys)
    assert code == 1
    (failed,) = (row for row in rows if row["verdict"] == "failed")
    assert (failed["what"], failed["measured"]) == (what, measured)
    assert fix in failed["fix"]
    assert jobsets(built) == []


@pytest.mark.parametrize(
    "line",
    [
        '{"hosts": 4, "problems": 1}',
        '{"hosts": 4, "own_bucket": {"write": 1}}',
        '{"hosts": 4, "other_buckets": "a"}',
        '{"hosts": 4, "all_gather": 3}',
        pytest.param('{"hosts":' * 3000, id="too-deep"),
    ],
)
def test_what_has_not_the_form_of_a_report_is_none(
    built: Ground, monkeypatch: pytest.MonkeyPatch, capsys: Capture, line: str
) -> None:
    """A team's pod can print anything, and must not end the rows of the others."""
    HelloProgram(ground=built, logs=False)
    at_end = built.end

    def end(name: str, condition: str = "Completed", *, namespace: str = TEAM, **more: Any) -> None:
        for pod in built.pods(namespace):
            built.log(pod["metadata"]["name"], line, namespace=namespace)
        at_end(name, condition, namespace=namespace, **more)

    monkeypatch.setattr(built, "end", end)
    code, rows = verified(capsys)
    assert (code, len(rows)) == (1, 1)
    assert rows[0]["measured"] == "it succeeded, and its first host has printed no report"
    assert jobsets(built) == []


def test_a_problem_that_no_row_explains_is_one_of_its_own(built: Ground, capsys: Capture) -> None:
    HelloProgram(ground=built, change={**ON_TPU, "problems": ["out of luck"]})
    code, rows = verified(capsys)
    assert code == 1
    assert only(rows, "every host")["measured"] == "out of luck"


@pytest.mark.parametrize(
    ("change", "what", "measured", "verdict"),
    [
        ({"hosts": True}, "hosts", "True", "failed"),
        ({"hosts": "x" * 9000}, "hosts", "'xxxxxxxxxxxx...xxxxxxxxxxxxx'", "failed"),
        ({"hosts": 10**400}, "hosts", f"1{'0' * 17}...{'0' * 19}", "failed"),
        ({"device": ["TPU"]}, "chips", "1, and they are no device devices", "simulated"),
        ({"all_reduce": None}, "sums and products", "not measured", "not verified"),
        *(
            ({"all_gather": [{"within": "slice", "gbytes_per_second_per_chip": odd}]}, *not_measured)
            for odd in (None, "fast", 10**400, float("nan"), float("inf"))
            for not_measured in [("bandwidth", "not measured", "not verified")]
        ),
        (
            {"problems": ["product: " + "x" * 9000]},
            "sums and products",
            f"product: {'x' * 188}...",
            "failed",
        ),
    ],
    ids=lambda value: str(value)[:40],
)
def test_odd_values_are_not_ok(change: dict[str, Any], what: str, measured: str, verdict: str) -> None:
    (run,) = plan.planned(
        with_fleet("tpu_pools:\n  one: {type: v6e-1, slices: 1}\nteams:\n  research: {}\n"), team=None, group=None
    )
    others = plan.other_buckets(run.environment, run.team.name)
    said = report(run.environment, run.team.name, "one", **{**ON_TPU, **change})
    (row,) = (item for item in rows_of_report(run, said, others) if item.what == what)
    assert (row.measured, row.verdict.value) == (measured, verdict)


def test_a_problem_of_another_host_is_shown(built: Ground, capsys: Capture) -> None:
    problem = "product sharded by data within slice: wrong by up to 2"
    HelloProgram(ground=built, others={2: {"problems": [problem]}}, end="Failed")
    code, rows = verified(capsys)
    assert code == 1
    assert only(rows, "every host")["measured"] == f"host 2: {problem}"


def test_a_job_that_fails_without_a_report_is_explained_as_why_does(built: Ground, capsys: Capture) -> None:
    HelloProgram(ground=built, logs=False, end="Failed")
    code, rows = verified(capsys)
    assert code == 1
    (row,) = rows
    assert row["measured"].startswith("failed: ")
    assert "exit code 1" in row["measured"]
    assert row["fix"]
    assert jobsets(built) == []


def test_a_job_that_succeeds_without_a_report_verifies_nothing(built: Ground, capsys: Capture) -> None:
    HelloProgram(ground=built, logs=False)
    code, rows = verified(capsys)
    assert code == 1
    assert rows[0]["measured"] == "it succeeded, and its first host has printed no report"


def test_a_job_that_does_not_end_in_time_failed(built: Ground, capsys: Capture) -> None:
    code, rows = verified(capsys, "--timeout", "1s")
    assert code == 1
    assert rows[0]["measured"] == "running on 4 hosts: it has not ended"
    assert jobsets(built) == []


def test_a_job_whose_pods_do_not_start_is_explained_as_why_does(built: Ground, capsys: Capture) -> None:
    def no_image(request: Request) -> None:
        for pod in built.pods():
            waiting = {"waiting": {"reason": "ErrImagePull", "message": "x: not found"}}
            status = {"phase": "Pending", "containerStatuses": [{"name": "hello-tpu", "state": waiting}]}
            built.patch("Pod", pod["metadata"]["name"], {"status": status})

    built.before.append(no_image)
    code, rows = verified(capsys, "--timeout", "1s")
    assert code == 1
    assert rows[0]["verdict"] == "failed"
    assert rows[0]["measured"].startswith("starting (0 of 4 hosts run): ")
    assert "image" in rows[0]["measured"]
    assert rows[0]["fix"]
    assert jobsets(built) == []


def test_machines_that_google_does_not_have_are_waited_for_and_no_failure(three_teams: Ground, capsys: Capture) -> None:
    """Of a group whose slices are created for a job; where they exist always, it is one."""

    def no_machines(request: Request) -> None:
        pods = three_teams.pods("research")
        for pod in pods:
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
    assert "ClusterQueue tpu-training is stopped (Hold)" in row["measured"]
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


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_deletes_the_job(built: Ground, capsys: Capture, number: int) -> None:
    at_first_read(built, lambda: os.kill(os.getpid(), number))
    assert main(["verify"]) == 130
    assert jobsets(built) == []
    assert "interrupted" in capsys.readouterr().err


def refuse(ground: Ground, method: str) -> None:
    def answer(request: Request) -> Response | None:
        if request.method != method:
            return None
        body = {"kind": "Status", "code": 403, "reason": "Forbidden", "message": 'User "ada" cannot do that'}
        return json_response(body, status=403)

    ground.before.append(answer)


def test_a_job_that_cannot_be_deleted_is_named(built: Ground, capsys: Capture) -> None:
    program = HelloProgram(ground=built)
    refuse(built, "DELETE")
    code, rows = verified(capsys)
    assert code == 1
    row = only(rows, "cleaned up")
    assert row["measured"].startswith("permission: ada may not delete JobSet tpu-training/verify-")
    assert row["fix"] == f"`tpuenv cancel {program.jobs[0]['metadata']['name']} --team {TEAM}`"


def test_an_interrupt_that_cannot_delete_the_job_names_it(built: Ground, capsys: Capture) -> None:
    refuse(built, "DELETE")
    at_first_read(built, lambda: os.kill(os.getpid(), signal.SIGINT))
    assert main(["verify"]) == 130
    (job,) = jobsets(built)
    assert f"tpuenv cancel {job['metadata']['name']} --team {TEAM}" in capsys.readouterr().err


def test_an_interrupt_just_after_the_job_is_created_deletes_it(
    built: Ground, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def interrupted(*arguments: Any, **options: Any) -> None:
        create(*arguments, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr("tpuenv.verification.attempt.create", interrupted)
    assert main(["verify"]) == 130
    assert jobsets(built) == []


def test_an_interrupt_while_a_job_is_created_ends_all_and_names_what_may_remain(
    three_teams: Ground, capsys: Capture
) -> None:
    refuse(three_teams, "DELETE")
    serve = answers(three_teams.fake.cloud)
    has_left = threading.Event()

    def interrupt(request: Request) -> Response | None:
        if request.method == "GET" and "/jobsets/verify-" in request.path:
            has_left.set()
        if request.method != "POST":
            return None
        response = serve(request)
        os.kill(os.getpid(), signal.SIGINT)
        has_left.wait(30)
        return response

    three_teams.before.append(interrupt)
    assert main(["verify", "--auto-approve"]) == 130
    (job,) = jobsets(three_teams)
    place = job["metadata"]
    assert f"tpuenv cancel {place['name']} --team {place['namespace']}" in capsys.readouterr().err
    assert created(three_teams) == 1


def test_what_may_remain_of_a_job_whose_creation_failed_is_in_its_row(built: Ground, capsys: Capture) -> None:
    refuse(built, "DELETE")
    serve = answers(built.fake.cloud)

    def lose(request: Request) -> None:
        if request.method == "POST":
            serve(request)
            raise ConnectionError("lost")

    built.before.append(lose)
    code, (row,) = verified(capsys)
    (job,) = jobsets(built)
    assert code == 1
    assert f"tpuenv cancel {job['metadata']['name']} --team {TEAM}" in row["measured"]


def test_a_job_that_cannot_be_created_fails_its_row_alone(three_teams: Ground, capsys: Capture) -> None:
    HelloProgram(ground=three_teams)

    def refuse_one(request: Request) -> Response | None:
        if request.method != "POST" or "/namespaces/serving/" not in request.path:
            return None
        return json_response({"kind": "Status", "message": "webhook: no"}, status=500)

    three_teams.before.append(refuse_one)
    code, rows = verified(capsys, "--group", "serve")
    assert code == 1
    assert {row["team"] for row in rows if row["verdict"] == "failed"} == {"serving"}
    assert {row["verdict"] for row in rows if row["team"] == "research"} == {"ok"}


def test_a_job_that_somebody_deletes_failed(built: Ground, capsys: Capture) -> None:
    def delete() -> None:
        (job,) = jobsets(built)
        resource = built.api.resource("jobset.x-k8s.io/v1alpha2", "JobSet")
        built.api.delete(resource, TEAM, job["metadata"]["name"])

    at_first_read(built, delete)
    code, rows = verified(capsys)
    assert (code, len(rows)) == (1, 1)
    assert rows[0]["measured"].endswith("was deleted")


def test_a_cluster_that_does_not_answer_for_a_while_is_asked_again(built: Ground, capsys: Capture) -> None:
    HelloProgram(ground=built)
    left = [json_response({}, status=503)] * 20

    def busy(request: Request) -> Response | None:
        return left.pop() if left and "/jobsets/verify-" in request.path else None

    built.before.append(busy)
    assert verified(capsys)[0] == 0
    assert left == []


def test_a_cluster_that_does_not_answer_any_more_fails_and_names_the_job(built: Ground, capsys: Capture) -> None:
    def busy(request: Request) -> Response | None:
        return json_response({}, status=503) if "/jobsets/verify-" in request.path else None

    built.before.append(busy)
    code, rows = verified(capsys, "--timeout", "1s")
    assert code == 1
    assert only(rows, "start")["measured"].startswith("network: no good answer from cluster tpu-cluster")
    assert only(rows, "cleaned up")["fix"].startswith("`tpuenv cancel verify-")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--team", "studnets"], "--team: there is no team 'studnets'; did you mean 'students'?"),
        (["--group", "dve"], "--group: there is no pool group 'dve'; did you mean 'dev'?"),
        (["--team", "students", "--group", "serve"], "--group: team students may not use pool group 'serve'"),
        (["--timeout", "soon"], "'soon' is not a time; write 90s, 10m or 1h"),
        (["--timeout", "0h"], "'0h' leaves no time; write 90s, 10m or 1h"),
        (["--timeout", "9" * 400 + "h"], "is too long; write 720h or less"),
        (["--timeout", "721h"], "'721h' is too long; write 720h or less"),
        (["--team", "serving", "--team=students"], "Option '--team' is given twice; give it once."),
    ],
)
def test_bad_input_is_refused_before_anything_is_asked(
    three_teams: Ground, capsys: Capture, words: list[str], said: str
) -> None:
    assert main(["verify", *words]) == 2
    assert said in capsys.readouterr().err
    assert three_teams.requests == []


def test_a_member_verifies_the_own_team(three_teams: Ground, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a view of nodes, and of other teams' jobs."""
    HelloProgram(ground=three_teams)
    act_as("bob@example.com", monkeypatch)
    assert verified(capsys, "--team", "serving", "--auto-approve")[0] == 0
    code, rows = verified(capsys, "--group", "serve")
    assert code == 1
    (failed,) = (row for row in rows if row["verdict"] == "failed")
    assert failed["team"] == "research"
    assert failed["measured"].startswith("permission: bob@example.com may not ")


def test_without_the_image_nothing_is_created(built: Ground, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("manifests.images.content_tag", lambda _: "0123456789ab")
    assert main(["verify"]) == 1
    assert "`tpuenv images --build hello-tpu`" in capsys.readouterr().err
    assert created(built) == 0


def test_any_cluster_can_be_verified_through_a_proxy_without_a_login(
    built: Ground, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    HelloProgram(ground=built)
    monkeypatch.setenv(ADDRESS, f"{built.address}/clusters/{built.api.cluster}")
    monkeypatch.delenv("GOOGLE_OAUTH_ACCESS_TOKEN")
    monkeypatch.setenv("CLOUDSDK_CONFIG", "/nonexistent")
    assert main(["verify"]) == 0
    assert "the image is named by its tag" in capsys.readouterr().err
