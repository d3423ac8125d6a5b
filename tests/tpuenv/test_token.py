"""`tpuenv token`, and that nothing of a rehearsal keeps what it prints."""

from __future__ import annotations

import json
import zipfile
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from rehearsal.google.permissions import account_of, token_of
from rehearsal.leaks import kept_tokens
from tests.loading import load_text
from tests.rehearsal.ground import ground_of
from tpuenv.google import token as tokens
from tpuenv.main import main

ACCOUNT = "tpu-plan@my-project.iam.gserviceaccount.com"


@pytest.fixture(autouse=True)
def no_login(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("GOOGLE_OAUTH_ACCESS_TOKEN", "GOOGLE_IMPERSONATE_SERVICE_ACCOUNT", *tokens._KEYS):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "none.json"))


class Login:
    token, expiry = "ya29.new", datetime(2026, 8, 1, 12)

    def refresh(self, _request: Any) -> None:
        pass


def printed(capsys: pytest.CaptureFixture[str]) -> Any:
    assert main(["token"]) == 0
    return json.loads(capsys.readouterr().out)


def test_it_prints_an_exec_credential_with_its_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: dict[str, Any] = {}
    monkeypatch.setattr("google.auth.default", lambda **options: (asked.update(options) or Login(), "p"))
    assert printed(capsys) == {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"token": "ya29.new", "expirationTimestamp": "2026-08-01T12:00:00Z"},
    }
    assert "https://www.googleapis.com/auth/userinfo.email" in asked["scopes"]  # the roles of a cluster name emails


def test_it_is_of_the_account_that_the_google_provider_acts_as(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("google.auth.load_credentials_from_dict", lambda key, **_: (Login(), key["project_id"]))
    monkeypatch.setenv("GOOGLE_CREDENTIALS", '{"project_id": "p"}')
    assert printed(capsys)["status"]["token"] == "ya29.new"
    whom: list[str] = []
    impersonated = "google.auth.impersonated_credentials.Credentials"
    monkeypatch.setattr(impersonated, lambda source, account, scopes: whom.append(account) or source)
    monkeypatch.setenv("GOOGLE_IMPERSONATE_SERVICE_ACCOUNT", ACCOUNT)
    printed(capsys)
    assert whom == [ACCOUNT]
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", "given")
    assert printed(capsys)["status"] == {"token": "given"}


@pytest.mark.parametrize(
    ("variable", "value"),
    [("GOOGLE_APPLICATION_CREDENTIALS", "none.json"), ("GOOGLE_CREDENTIALS", "{"), ("GOOGLE_CREDENTIALS", "{}")],
)
def test_without_a_login_it_says_what_to_do(
    variable: str, value: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(variable, value)
    assert main(["token"]) == 1
    said = capsys.readouterr()
    assert said.out == "" and said.err.startswith("credentials: no token from this machine's login (")
    assert "gcloud auth application-default login" in said.err


def test_in_a_rehearsal_it_is_the_token_of_the_account_and_nothing_may_keep_it(tmp_path: Path) -> None:
    text = "PROJECT_ID=my-project\n"
    with ground_of(load_text(text), text, tmp_path) as ground:
        world = ground.world
        assert account_of(json.loads(ground.tpuenv("token", account=ACCOUNT))["status"]["token"]) == ACCOUNT
        assert kept_tokens(world) == []
        secret = f'{{"token": "{token_of(ACCOUNT)}"}}'
        state = (world.project.state_bucket, "tpu/platform/default.tfstate", secret.encode())
        world.cloud.put_blob(*state, {}, keep_old=True)
        (world.logs / "platform").write_text(secret)
        with zipfile.ZipFile(world.output / "plan", "w", zipfile.ZIP_DEFLATED) as plan:
            plan.writestr("tfstate", secret * 3)
        names = [Path(name).name for name in kept_tokens(world)]
        assert names == ["plan", "platform", "default.tfstate"]
