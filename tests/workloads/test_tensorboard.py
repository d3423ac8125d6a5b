"""The uploader as its pod would start it: real event files, growing, to a fake of Vertex AI with TLS."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from install.steps import ROOT, Layout
from install.workloads import TENSORBOARD_FOLDER
from stacks.foundation import TENSORBOARD_WRITER_PERMISSIONS

pytestmark = pytest.mark.workloads("tensorboard")

PYTHON = Layout(root=ROOT, folder=TENSORBOARD_FOLDER).python
RECIPE = ROOT / "manifests" / "tensorboard"

SECONDS = 300  # within which something happens also on a busy machine

# https://docs.cloud.google.com/vertex-ai/docs/general/iam-permissions
PERMISSIONS = {
    "MetadataService.AddContextArtifactsAndExecutions": "contexts.addContextArtifactsAndExecutions",
    "MetadataService.AddContextChildren": "contexts.addContextChildren",
    "MetadataService.CreateArtifact": "artifacts.create",
    "MetadataService.CreateContext": "contexts.create",
    "MetadataService.CreateMetadataStore": "metadataStores.create",
    "MetadataService.GetArtifact": "artifacts.get",
    "MetadataService.GetContext": "contexts.get",
    "MetadataService.GetExecution": "executions.get",
    "MetadataService.GetMetadataStore": "metadataStores.get",
    "MetadataService.ListArtifacts": "artifacts.list",
    "MetadataService.ListContexts": "contexts.list",
    "MetadataService.UpdateContext": "contexts.update",
    "TensorboardService.CreateTensorboardExperiment": "tensorboardExperiments.create",
    "TensorboardService.CreateTensorboardRun": "tensorboardRuns.create",
    "TensorboardService.CreateTensorboardTimeSeries": "tensorboardTimeSeries.create",
    "TensorboardService.GetTensorboard": "tensorboards.get",
    "TensorboardService.GetTensorboardExperiment": "tensorboardExperiments.get",
    "TensorboardService.GetTensorboardRun": "tensorboardRuns.get",
    "TensorboardService.ListTensorboardTimeSeries": "tensorboardTimeSeries.list",
    "TensorboardService.ListTensorboards": "tensorboards.list",
    "TensorboardService.WriteTensorboardExperimentData": "tensorboardExperiments.write",
    # Of the operation that creates a metadata store.
    "google.longrunning.Operations.GetOperation": "locations.get",
}

# Writes the loss of steps A to B, as MaxText does: with tensorboardX, into a new file.
WRITE_EVENTS = """
import sys
from tensorboardX import SummaryWriter
folder, first, last = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
with SummaryWriter(folder) as writer:
    for step in range(first, last + 1):
        writer.add_scalar("learning/loss", 10 / (step + 1), step)
    writer.add_text("config", "a key of MaxText")
"""


@dataclass(frozen=True)
class Vertex:
    """The fake that runs, and what it was asked."""

    folder: Path

    @property
    def calls(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / "calls.jsonl").read_text(encoding="utf-8").splitlines()]

    @property
    def methods(self) -> set[str]:
        return {call["method"] for call in self.calls}

    @property
    def points(self) -> list[list[Any]]:
        """[series, step] of every point that was written."""
        return [point for call in self.calls for point in call.get("points", [])]

    def arguments(self, folder: Path, *more: str) -> list[str | Path]:
        """The command of an upload of a run's folder."""
        return [
            *(PYTHON, "-u", RECIPE / "upload.py", "--project=my-project", "--region=us-central1"),
            *("--tensorboard=tpu-tensorboard", "--experiment=maxtext-a1b2c3", f"--folder={folder}"),
            *("--endpoint", f"localhost:{(self.folder / 'port').read_text()}", "--seconds=1", *more),
        ]

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": str(self.folder / "certificate.pem"),
            "GOOGLE_APPLICATION_CREDENTIALS": str(self.folder / "credentials.json"),
            "TF_CPP_MIN_LOG_LEVEL": "3",
        }


def wait_until(condition: Callable[[], bool], *, process: subprocess.Popen[bytes]) -> None:
    limit = time.monotonic() + SECONDS
    while not condition():
        assert process.poll() is None, f"{process.args!r} ended with {process.returncode}"
        assert time.monotonic() < limit, f"not within {SECONDS} s"
        time.sleep(0.2)


@pytest.fixture(scope="module", autouse=True)
def _installed() -> None:
    if not PYTHON.exists():
        pytest.skip(f"there is no {TENSORBOARD_FOLDER}; run make setup-workloads")


@pytest.fixture(scope="module")
def vertex(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Vertex]:
    folder = tmp_path_factory.mktemp("vertex")
    program = Path(__file__).with_name("vertex_tensorboard.py")
    with subprocess.Popen([PYTHON, program, folder]) as process:
        try:
            wait_until((folder / "port").exists, process=process)
            yield Vertex(folder)
        finally:
            process.terminate()


def write_events(folder: Path, first: int, last: int) -> None:
    python = Layout(root=ROOT, folder=".venv-workloads").python
    subprocess.run([python, "-c", WRITE_EVENTS, folder / "maxtext-a1b2c3", str(first), str(last)], check=True)


def test_series_arrive_while_they_grow_and_after_sigterm_what_is_left(vertex: Vertex, tmp_path: Path) -> None:
    with subprocess.Popen(vertex.arguments(tmp_path), env=vertex.environment) as process:
        try:
            wait_until(lambda: "MetadataService.CreateContext" in vertex.methods, process=process)
            write_events(tmp_path, 0, 2)
            wait_until(lambda: len(vertex.points) == 3, process=process)
            process.send_signal(signal.SIGSTOP)
            write_events(tmp_path, 3, 5)
            process.terminate()
            process.send_signal(signal.SIGCONT)
            assert process.wait(SECONDS) == 0
        finally:
            process.kill()
    assert vertex.points == [["learning/loss", step] for step in range(6)], "numbers, each once, and no texts"


def test_a_second_start_goes_on_in_the_same_experiment(vertex: Vertex, tmp_path: Path) -> None:
    before = len(vertex.calls)
    write_events(tmp_path, 6, 7)
    subprocess.run(vertex.arguments(tmp_path, "--once"), env=vertex.environment, check=True, timeout=SECONDS)
    calls = vertex.calls[before:]
    created = [call for call in calls if ".Create" in call["method"] and "refused" not in call]
    assert created == []
    assert [point for call in calls for point in call.get("points", [])] == [["learning/loss", 6], ["learning/loss", 7]]


def test_a_folder_that_does_not_exist_is_an_error(vertex: Vertex, tmp_path: Path) -> None:
    ended = subprocess.run(
        vertex.arguments(tmp_path / "nope", "--once"),
        env=vertex.environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1] == f"{tmp_path}/nope does not exist; name a run that has written metrics"


def test_the_role_of_the_teams_grants_what_was_called_and_no_more(vertex: Vertex) -> None:
    """In a region that had no metadata store yet, for a first and for a second start."""
    assert vertex.methods <= PERMISSIONS.keys()
    used = {f"aiplatform.{PERMISSIONS[method]}" for method in vertex.methods}
    assert used == {*TENSORBOARD_WRITER_PERMISSIONS}
