"""`tpuenv preflight` as it is typed, against the fake Google."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections import Counter

import pytest

from environment import load
from environment.services import SERVICES
from rehearsal.google.permissions import token_of
from rehearsal.google.project import create_project
from tests.google_project import FakeProject, sections_of
from tests.synthesis import HERE, ROOT
from tpuenv.main import main

BILLING = {"name": "projects/some-project/billingInfo", "projectId": "some-project", "billingEnabled": False}


def test_a_project_that_can_hold_the_environment_is_all_ok(
    google: FakeProject, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["preflight"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[-1].startswith("All ") and shown[-1].endswith(" checks are ok.")
    rows = [line for line in shown[1:-2] if line.startswith("  ")]
    assert len(rows) > 30
    assert all(line.startswith("  ok ") for line in rows)


@pytest.mark.parametrize("case", ["autopilot", "pipeline", "three-teams-four-groups", "tpu-vms", "tpu7x", "v4-32"])
def test_every_kind_of_environment_is_compared(google: FakeProject, case: str) -> None:
    path = HERE / "cases" / f"{case}.env"
    described = load(path, {}, path.with_suffix(".fleet.yaml"))
    number = described.settings.project_number or "123456789012"
    create_project(google.cloud, described.settings.project_id, number=number, services=list(SERVICES))
    rows = [row for section in sections_of(described) for row in section.rows]
    others = [row.what for row in rows if row.verdict.value != "ok"]
    # The fake project has no reservations, and quotas of TPU VMs are unknown.
    assert all(what.startswith(("reservation ", "TPU VMs ")) for what in others), others


@pytest.mark.slow
def test_an_interrupt_does_not_wait_for_google(google: FakeProject) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/compute/v1/"
        with subprocess.Popen(
            [sys.executable, "-m", "tpuenv", "preflight"], cwd=ROOT, text=True,
            env=os.environ | {"GOOGLE_COMPUTE_CUSTOM_ENDPOINT": address}, stderr=subprocess.PIPE,
        ) as running:  # fmt: skip
            connection, _ = silent.accept()
            running.send_signal(signal.SIGINT)
            _, err = running.communicate()
            connection.close()
    assert running.returncode == 130
    assert err.rstrip().endswith("interrupted")


def test_it_only_reads_and_asks_each_question_once(
    google: FakeProject, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = google.cloud.snapshot()
    assert main(["preflight"]) == 0
    assert google.cloud.snapshot() == before
    posts = {request for request in google.requests if not request.startswith("GET ")}
    assert posts == {"POST /v3/projects/some-project:testIamPermissions"}
    # The APIs come in two pages.
    paged = "GET /v1/projects/some-project/services"
    assert {request for request, times in Counter(google.requests).items() if times > 1} == {*posts, paged}


def test_what_is_missing_is_shown_with_its_command_and_is_exit_code_1(
    google: FakeProject, capsys: pytest.CaptureFixture[str]
) -> None:
    google.reply("billingInfo", BILLING)
    assert main(["preflight"]) == 1
    lines = capsys.readouterr().out.splitlines()
    (row,) = (number for number, line in enumerate(lines) if line.startswith("  missing"))
    assert lines[row].split() == ["missing", "billing", "account", "one", "that", "is", "open", "none"]
    assert lines[row + 1].strip().startswith("gcloud billing projects link some-project --billing-account=ACCOUNT")
    assert lines[-1].startswith("1 missing, 0 unknown, ")


def test_what_is_unknown_alone_is_exit_code_0(google: FakeProject, capsys: pytest.CaptureFixture[str]) -> None:
    google.reply("serverConfig", {"error": {"code": 403, "message": "no"}}, status=403)
    assert main(["preflight"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("Nothing is missing, 1 unknown, ")


def test_as_json_it_has_the_same_rows(google: FakeProject, capsys: pytest.CaptureFixture[str]) -> None:
    google.reply("billingInfo", BILLING)
    assert main(["preflight", "--json"]) == 1
    shown = json.loads(capsys.readouterr().out)
    assert shown["project"] == "some-project"
    assert shown["counts"]["missing"] == 1
    assert sum(shown["counts"].values()) == len(shown["checks"])
    (row,) = (row for row in shown["checks"] if row["verdict"] == "missing")
    assert (row["section"], row["what"], row["have"]) == ("project", "billing account", "none")


def test_without_a_login_nothing_else_is_asked(
    google: FakeProject, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", "expired")
    assert main(["preflight"]) == 1
    shown = capsys.readouterr().out
    assert "missing    login" in shown
    assert "    gcloud auth application-default login\n" in shown
    assert "not asked  everything else" in shown
    assert google.requests == ["GET /v3/projects/some-project"]


def test_on_a_machine_without_credentials_it_says_how_to_log_in(
    google: FakeProject, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("GOOGLE_OAUTH_ACCESS_TOKEN")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(google.folder / "none.json"))
    assert main(["preflight"]) == 1
    assert "gcloud auth application-default login" in capsys.readouterr().err


def test_wrong_settings_are_exit_code_2(
    google: FakeProject, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TPU_TYPE", "v6e-17")
    assert main(["preflight"]) == 2
    assert capsys.readouterr().err.startswith("TPU_TYPE: ")
    assert google.requests == []


def test_who_may_do_nothing_gets_every_row_with_the_role_that_it_takes(
    google: FakeProject, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    viewer = {"project": "some-project", "role": "roles/viewer", "member": "user:ada@example.com"}
    google.cloud.put("google_project_iam_member", "some-project/viewer", viewer)
    for role in ("roles/serviceusage.serviceUsageConsumer", "roles/container.clusterViewer"):
        google.cloud.put("google_project_iam_member", f"some-project/{role}", {**viewer, "role": role})
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", token_of("ada@example.com"))
    rows = google.report()
    assert rows["login"].verdict.value == "ok"
    assert rows["compute.admin"].verdict.value == "missing"
    assert rows["compute.admin"].have.startswith("without compute.")
    assert rows["compute.admin"].fix.endswith("--role=roles/compute.admin")
    assert rows["N2_CPUS"].have == "takes compute.regions.get"
    assert rows["ct6e chips"].fix.endswith("--role=roles/cloudquotas.viewer")
