"""A project of the fake Google, met over HTTP, in which a test changes single answers."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from environment import Environment
from environment.services import SERVICES
from rehearsal import http_server
from rehearsal.cloud import Cloud
from rehearsal.google.cloud_storage_api import BUCKET
from rehearsal.google.project import create_project
from rehearsal.serve import answers
from rehearsal.world import Project, World
from tests.fleets import with_fleet
from tests.loading import loaded
from tpuenv.google.clients import Patience, connect
from tpuenv.preflight.asking import ask_all
from tpuenv.preflight.question import Check
from tpuenv.preflight.report import Section, report
from tpuenv.preflight.row import Row

PROJECT, NUMBER = "some-project", "123456789012"


@dataclass(kw_only=True)
class FakeProject:
    """`replies` answer requests whose path matches in place of the fake Google, with a status and a JSON body."""

    cloud: Cloud
    folder: Path
    replies: dict[str, tuple[int, Any]] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)

    def answer(self, request: http_server.Request) -> http_server.Response:
        self.requests.append(f"{request.method} {request.path}")
        for pattern, (status, body) in self.replies.items():
            if re.search(pattern, request.path):
                raw = body if isinstance(body, bytes) else json.dumps(body).encode()
                return http_server.Response(status=status, body=raw, headers={"Content-Type": "application/json"})
        return answers(self.cloud)(request)

    def reply(self, path: str, body: Any, *, status: int = 200) -> None:
        """From now on. The body may be bytes, for what is no JSON."""
        self.replies[path] = status, body

    def report(self, **settings: str) -> dict[str, Row]:
        """What preflight reports for an environment, by what each row is about."""
        described = environment("", **settings)
        return {row.what: row for section in sections_of(described) for row in section.rows}

    def rows(self, check: Check, fleet: str = "", **settings: str) -> dict[str, Row]:
        """The rows of one check for an environment."""
        described = environment(fleet, **settings)
        answers = ask_all(quick_clients(), check.questions(described), progress=lambda _done, _all: None)
        return {row.what: row for row in check.rows(described, answers)}


def sections_of(described: Environment) -> list[Section]:
    return report(described, quick_clients(), progress=lambda _done, _all: None)


def environment(fleet: str, **settings: str) -> Environment:
    settings = {"PROJECT_ID": PROJECT, **settings}
    return with_fleet(fleet, None, **settings) if fleet else loaded(**settings)


def quick_clients() -> Any:
    patience = Patience(answer=5, again=0.2, poll=0.05)
    return dataclasses.replace(connect(PROJECT), patience=patience, say=lambda _: None)


@contextmanager
def google_project(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeProject]:
    """A project as `tpuenv bootstrap` leaves it, and the variables that make the clients meet it."""
    cloud = Cloud(folder / "cloud.db")
    create_project(cloud, PROJECT, number=NUMBER, services=list(SERVICES))
    state = f"{PROJECT}-tpu-tf-state"
    cloud.put(BUCKET, state, {"name": state, "project": PROJECT})
    fake = FakeProject(cloud=cloud, folder=folder)
    server, address = http_server.start(fake.answer)
    # The endpoints that a rehearsal's tools have.
    fake_project = Project(id_=PROJECT, number=NUMBER, region="us-east5", state_bucket=state, services=[])
    announced = {"address": address, "reattach": "{}"}
    world = World(folder=folder, project=fake_project, cache=folder, _announced=announced)
    for variable, value in world.environment().items():
        if variable.startswith("GOOGLE_"):
            monkeypatch.setenv(variable, value)
    (folder / "vars.env").write_text(f"PROJECT_ID={PROJECT}\n")
    monkeypatch.setenv("TPUENV_FOLDER", str(folder))
    yield fake
    server.shutdown()
    server.server_close()
    cloud.close()
