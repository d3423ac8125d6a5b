"""A fake project whose state bucket holds what a test puts there, met with Google's clients, and no Terraform."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import environment
from environment.names import Names
from rehearsal import http_server
from rehearsal.cloud import Blob, Cloud
from rehearsal.google.cloud_storage_api import BUCKET
from rehearsal.google.permissions import TOKEN
from rehearsal.google.project import create_project
from rehearsal.serve import answers
from tpuenv.google.clients import Clients, connect
from tpuenv.recovery.lost_states import repair_state
from tpuenv.state import versions
from tpuenv.terminal.dialog import Dialog
from tpuenv.terraform.stacks import Stack

STATES = "some-project-tpu-tf-state"


def state(serial: int, *names: str, lineage: str = "a") -> bytes:
    types = {"guard": "terraform_data"}
    resources = [
        {"mode": "managed", "type": types.get(name, "t"), "name": name, "instances": [{"attributes": {}}]}
        for name in names
    ] + [{"mode": "data", "type": "t", "name": "read", "instances": [{}]}]
    return json.dumps({"version": 4, "serial": serial, "lineage": lineage, "resources": resources}).encode()


@dataclass(frozen=True, kw_only=True)
class Ground:
    """A fake project with its state bucket, a checkout's folder, and what was said."""

    cloud: Cloud
    clients: Clients
    names: Names
    folder: Path
    asked: list[str] = field(default_factory=list)

    def write(self, name: str, content: bytes) -> Blob:
        return self.cloud.put_blob(STATES, f"tpu/{name}", content, {}, keep_old=True)

    def states(self, *contents: bytes) -> list[int]:
        """Of stack `queues`, oldest first; their generations."""
        return [self.write("queues/default.tfstate", content).generation for content in contents]

    def lock(self, who: str = "ada@far-away", stack: str = "queues") -> Blob:
        fields = {"ID": "1", "Who": who, "Operation": "OperationTypeApply", "Created": "2020-01-01T00:00:00.123456789Z"}
        return self.write(f"{stack}/default.tflock", json.dumps(fields).encode())

    @property
    def live(self) -> versions.State:
        (blob,) = self.cloud.blobs(STATES, name="tpu/queues/default.tfstate")
        return versions.parse(blob.content)

    @property
    def kept(self) -> int:
        return len(self.cloud.blobs(STATES, name="tpu/queues/default.tfstate", generations=True))

    @property
    def locked(self) -> bool:
        return bool(self.cloud.blobs(STATES, name="tpu/queues/default.tflock"))

    def mend(self, *, yes: bool = True) -> bool:
        def answer(question: str) -> bool:
            self.asked.append(question)
            return yes

        stack = Stack(name="queues", folder=self.folder)
        return repair_state(self.clients, self.names, stack, Dialog(answer=answer, unattended=True), locked=False)


@contextmanager
def ground_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ground]:
    """With the variables that make the clients meet it."""
    cloud = Cloud(folder / "cloud.db")
    create_project(cloud, "some-project", number="123456789012", services=[])
    cloud.put(BUCKET, STATES, {"name": STATES, "project": "some-project", "versioning": [{"enabled": True}]})
    server, address = http_server.start(answers(cloud))
    monkeypatch.setenv("GOOGLE_BACKEND_STORAGE_CUSTOM_ENDPOINT", f"{address}/storage/v1/")
    monkeypatch.setenv("GOOGLE_VERTEX_AI_CUSTOM_ENDPOINT", f"{address}/v1/")
    monkeypatch.setenv("GOOGLE_CLOUD_BUILD_CUSTOM_ENDPOINT", f"{address}/v1/")
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", TOKEN)
    monkeypatch.setenv("TPUENV_FOLDER", str(folder))
    (folder / "vars.env").write_text("PROJECT_ID=some-project\n")
    names = environment.load(folder / "vars.env", {}).names
    yield Ground(cloud=cloud, clients=connect("some-project"), names=names, folder=folder)
    server.shutdown()
    server.server_close()
    cloud.close()
