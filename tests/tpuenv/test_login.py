"""Without a login, every command that needs one says so once, before it begins anything."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tpuenv.google import login
from tpuenv.main import main

COMMANDS = [
    ["bootstrap"],
    ["plan"],
    ["apply", "--reviewed", "gs://records"],
    ["deploy", "--auto-approve"],
    ["destroy", "--auto-approve"],
    ["destroy", "--confirm", "tpu"],
    ["recover", "--yes"],
    ["recover", "--dry-run"],
    ["state", "versions", "queues"],
    ["verify"],
]


@pytest.fixture
def nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without a login, not at Google; the home folder."""
    monkeypatch.setenv("PROJECT_ID", "some-project")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    monkeypatch.delenv("CLOUDSDK_CONFIG", raising=False)
    for name in list(os.environ):
        if name.startswith(("GOOGLE_", "GCLOUD_")):
            monkeypatch.delenv(name)
    return tmp_path


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_it_is_said_once_and_nothing_is_begun(
    arguments: list[str], nobody: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TERRAFORM_BINARY_NAME", "no-terraform-is-started")
    assert main(arguments) == 1
    printed = capfd.readouterr()
    assert printed.out == ""
    (line,) = printed.err.splitlines()
    assert line.startswith("credentials: none that can be used on this machine")
    assert line.count("gcloud auth application-default login") == 1


@pytest.mark.slow
def test_a_login_that_google_does_not_accept_any_more_is_said_of_one_stack(
    nobody: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    terraform = nobody / "terraform"
    terraform.write_text(
        '#!/bin/sh\necho \'Error: oauth2: "invalid_grant" "Token has been expired or revoked."\'\nexit 1\n'
    )
    terraform.chmod(0o755)
    monkeypatch.setenv("TERRAFORM_BINARY_NAME", str(terraform))
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", "expired")
    assert main(["plan", "--output", str(nobody / "cdktf.out")]) == 1
    printed = capfd.readouterr()
    assert (printed.out + printed.err).count("gcloud auth application-default login") == 1
    assert (printed.out + printed.err).count("invalid_grant") == 1


@pytest.mark.parametrize(
    "name", ["GOOGLE_OAUTH_ACCESS_TOKEN", "GOOGLE_CREDENTIALS", "GOOGLE_BACKEND_CREDENTIALS", "GCLOUD_KEYFILE_JSON"]
)
def test_everything_that_terraform_accepts_as_a_login_is_one(
    name: str, nobody: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "{}")
    login.require("some-project")


@pytest.mark.parametrize("configuration", ["", "elsewhere"])
def test_what_gcloud_keeps_is_one(configuration: str, nobody: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = nobody / configuration if configuration else nobody / ".config" / "gcloud"
    if configuration:
        monkeypatch.setenv("CLOUDSDK_CONFIG", str(folder))
    folder.mkdir(parents=True)
    (folder / "application_default_credentials.json").write_text("{}")
    login.require("some-project")
