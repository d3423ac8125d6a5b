"""`tpuenv verify`, as it is typed, against the fake cluster: what it measures, and what it refuses."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from environment.project import ROOT
from manifests.images import reference
from manifests.recipes import FOLDER
from rehearsal.google.artifact_registry_api import push
from rehearsal.http_server import Request
from tests.fleets import with_fleet
from tests.tpuenv.jobs.conftest import Ground, act_as
from tests.tpuenv.jobs.hello_program import ON_TPU, HelloProgram, report
from tests.tpuenv.jobs.verify_command import TEAM, Capture, created, jobsets, only, tried, verified
from tpuenv.kubernetes.connection import ADDRESS
from tpuenv.main import main
from tpuenv.verification import plan
from tpuenv.verification.rows import rows_of_report

pytestmark = pytest.mark.usefixtures("at_once", "signal_handlers")

KUEUE = "kueue-webhook-service.kueue-system.svc.cluster.local:443"


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
        "ok tpu-training tpu other Services 1 refused 1 refused",
        "ok tpu-training - forbidden objects 5 refused 5 refused",
        "ok tpu-training - other namespaces 1 refused 1 refused",
        "",
        "Verified: all 9 rows are ok.",
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
    assert pod["serviceAccountName"] == "tpu-training", "buckets are tried as the team"
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
        "other Services": "ok",
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
    assert printed.count("no program runs on simulated nodes") == 5
    assert printed.endswith("Nothing failed, and not all is verified: 2 ok, 2 simulated, 5 not verified.\n")
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
        pytest.param(
            {"other_services": {KUEUE: "reached"}},
            "other Services",
            f"{KUEUE}: reached",
            "puts the NetworkPolicies back",
            id="other-service",
        ),
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
        '{"hosts": 4, "other_services": {"a": 1}}',
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


def test_the_services_of_other_teams_are_tried_where_they_can_be_listed(
    three_teams: Ground, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = HelloProgram(ground=three_teams)
    of_one = ("--team", "serving", "--group", "dev", "--auto-approve")
    for team, name, ports in (("research", "head", [8265, 6379]), ("research", "none", []), ("serving", "own", [80])):
        spec = {"ports": [{"port": port} for port in ports]}
        metadata = {"name": name, "namespace": team}
        three_teams.api.create({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec})
    program.change["other_services"] = {KUEUE: "refused", "head.research.svc.cluster.local:8265": "no such name"}
    row = only(verified(capsys, *of_one)[1], "other Services")
    assert (row["expected"], row["measured"], row["verdict"]) == ("2 refused", "1 refused", "not verified")
    act_as("bob@example.com", monkeypatch)
    row = only(verified(capsys, *of_one)[1], "other Services")
    assert (row["expected"], row["verdict"]) == ("1 refused", "ok"), "a member sees no Services of others"


def test_a_cluster_without_the_policies_takes_what_it_must_not(built: Ground, capsys: Capture) -> None:
    HelloProgram(ground=built)
    bindings = built.api.resource("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding")
    for item in built.api.all(bindings):
        built.api.delete(bindings, "", item["metadata"]["name"])
    code, rows = tried(capsys)
    row = only(rows, "forbidden objects")
    assert (code, row["verdict"], row["expected"]) == (1, "failed", "5 refused")
    assert row["measured"] == (
        "takes a privileged pod; a pod with a priority of Google's; a pod with chips past the queue; and 2 more"
    )
    assert "`tpuenv deploy` puts the policies back" in row["fix"]


def test_a_member_is_refused_a_job_with_a_forged_owner_too(
    three_teams: Ground, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    HelloProgram(ground=three_teams)
    act_as("bob@example.com", monkeypatch)
    rows = tried(capsys, "--team", "serving", "--auto-approve")[1]
    assert only(rows, "forbidden objects")["measured"] == "6 refused"
    policies = three_teams.api.resource("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding")
    three_teams.api.delete(policies, "", "jobs-of-members")
    rows = tried(capsys, "--team", "serving", "--auto-approve")[1]
    assert only(rows, "forbidden objects")["measured"] == "takes a job with a forged owner"


@pytest.mark.parametrize("kind", ["secrets", "jobs"])
def test_a_team_whose_programs_read_another_namespace_failed(three_teams: Ground, capsys: Capture, kind: str) -> None:
    HelloProgram(ground=three_teams)
    account = three_teams.environment.names.team_account
    head = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "leak", "namespace": "serving"}}
    rule = {"apiGroups": ["", "batch"], "resources": [kind], "verbs": ["list"]}
    subject = {"kind": "ServiceAccount", "name": account, "namespace": "research"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "leak"}
    three_teams.api.create({**head, "kind": "Role", "rules": [rule]})
    three_teams.api.create({**head, "kind": "RoleBinding", "roleRef": role, "subjects": [subject]})
    code, rows = tried(capsys, "--team", "research", "--auto-approve")
    row = only(rows, "other namespaces")
    assert (code, row["verdict"], row["measured"]) == (1, "failed", "can read serving")
    assert only(tried(capsys, "--team", "serving", "--auto-approve")[1], "other namespaces")["verdict"] == "ok"


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
