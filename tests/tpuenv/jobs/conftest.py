"""The default environment, deployed in a fake cloud that is served over HTTP, and what leads the commands to it."""

from __future__ import annotations

import contextlib
import dataclasses
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from environment import Environment
from manifests.images import reference
from manifests.recipes import FOLDER
from rehearsal import http_server
from rehearsal.google.artifact_registry_api import push
from rehearsal.google.permissions import TOKEN, token_of
from rehearsal.http_server import Request, Response
from rehearsal.kubernetes.api import Api
from rehearsal.kubernetes.pods import write_log
from rehearsal.serve import answers
from tests.rehearsal.deployed import api_of
from tests.rehearsal.fake import FakeCloud
from tests.synthesis import HERE, Synthesis
from tests.tpuenv.jobs.hello_program import make_nodes_real
from tpuenv.google.clients import Patience
from tpuenv.jobs.follow import following
from tpuenv.jobs.job import Job
from tpuenv.kubernetes import connection
from tpuenv.kubernetes.client import Cluster
from tpuenv.kubernetes.connection import ADDRESS, connect
from tpuenv.terminal.progress import Progress

Object = dict[str, Any]

QUICK = Patience(answer=5, again=0.2, poll=0.01, change=1, line=0.05, quiet=0.2)


@dataclass
class Ground:
    """A fake cloud with an environment in it, and its HTTP server.

    Functions in `before` see each request first: they may change the cloud, and answer the request in its place.
    """

    fake: FakeCloud
    environment: Environment
    address: str = ""
    before: list[Callable[[Request], Response | None]] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)  # "GET /apis/..." below the cluster

    @property
    def api(self) -> Api:
        return api_of(self.fake)

    def serve(self) -> ThreadingHTTPServer:
        google = answers(self.fake.cloud)

        def answer(request: Request) -> Response:
            self.requests.append(f"{request.method} {request.path.rpartition('.goog')[2]}")
            for answer_first in list(self.before):
                response = answer_first(request)
                if response is not None:
                    return response
            return google(request)

        server, self.address = http_server.start(answer)
        return server

    def at_reads(self, job: str, *steps: Callable[[], object]) -> None:
        """Calls each step before one read of the job, in their order."""
        remaining = list(steps)

        def step(request: Request) -> None:
            of_job = request.path.endswith(
                tuple(f"/{plural}/{job}" for plural in ("jobsets", "rayjobs", "rayclusters"))
            )
            if request.method == "GET" and of_job and remaining:
                remaining.pop(0)()

        self.before.append(step)

    def patch(self, kind: str, name: str, change: Object, *, namespace: str = "tpu-training") -> None:
        version = {"Pod": "v1", "JobSet": "jobset.x-k8s.io/v1alpha2", "Job": "batch/v1", "RayJob": "ray.io/v1"}[kind]
        self.api.patch(self.api.resource(version, kind), namespace, name, change)

    def pods(self, namespace: str = "tpu-training") -> list[Object]:
        return self.api.all(self.api.resource("v1", "Pod"), namespace)

    def log(self, pod: str, *lines: str, namespace: str = "tpu-training") -> None:
        write_log(self.api, namespace, pod, list(lines))

    def end(self, job: str, condition: str = "Completed", *, namespace: str = "tpu-training", **more: Any) -> None:
        ended = {"type": condition, "status": "True", **more}
        self.patch("JobSet", job, {"status": {"conditions": [ended]}}, namespace=namespace)


@contextlib.contextmanager
def served(fake: FakeCloud, environment: Environment, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ground]:
    ground = Ground(fake=fake, environment=environment)
    server = ground.serve()
    monkeypatch.setenv("GOOGLE_CONTAINER_CUSTOM_ENDPOINT", f"{ground.address}/v1/")
    monkeypatch.setenv("GOOGLE_ARTIFACT_REGISTRY_CUSTOM_ENDPOINT", f"{ground.address}/v1/")
    monkeypatch.setenv("GOOGLE_BACKEND_STORAGE_CUSTOM_ENDPOINT", f"{ground.address}/storage/v1/")
    monkeypatch.setenv(ADDRESS, f"{ground.address}/clusters/{{endpoint}}")
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", TOKEN)
    yield ground
    server.shutdown()
    server.server_close()


@pytest.fixture
def ground(
    deployed_once: FakeCloud, synthesis: Synthesis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Ground]:
    """One team, two slices."""
    fake = deployed_once.copy(tmp_path / "deployed")
    with served(fake, synthesis.environment("default"), monkeypatch) as ground:
        yield ground
    fake.close()


@pytest.fixture
def fleet(
    fleet_once: FakeCloud, synthesis: Synthesis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Ground]:
    """Three teams, with members, on four pool groups."""
    fake = fleet_once.copy(tmp_path / "fleet")
    with served(fake, synthesis.environment("three-teams-four-groups"), monkeypatch) as ground:
        yield ground
    fake.close()


@pytest.fixture
def cluster(ground: Ground) -> Cluster:
    """The client, of the project's administrator, that waits for nothing long."""
    return quick(connect(ground.environment))


@pytest.fixture
def follower(cluster: Cluster) -> Callable[..., int]:
    """Follows a JobSet of the default environment; what is said of it goes to standard error."""

    def follow(name: str = "train", **more: Any) -> int:
        with Progress(out=sys.stderr, every=60) as progress:
            job = Job(kind="JobSet", team="tpu-training", name=name, body={}, workload={})
            return following(cluster, job, progress=progress, **more)

    return follow


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands wait for nothing long."""
    monkeypatch.setattr(connection, "connect", lambda environment: quick(connect(environment)))


def quick(cluster: Cluster) -> Cluster:
    return dataclasses.replace(cluster, patience=QUICK)


def act_as(account: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on the commands have the token of that account."""
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", token_of(account))


@pytest.fixture
def one_slice_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """The settings of the default environment, which the fake cloud holds."""
    monkeypatch.setenv("TPU_TYPE", "v6e-16")


@pytest.fixture
def image(ground: Ground) -> str:
    """The image of hello-tpu, which somebody has built."""
    name = reference(ground.environment, FOLDER / "hello-tpu")
    push(ground.fake.cloud, name)
    return name


def jobsets(ground: Ground, namespace: str = "tpu-training") -> list[dict[str, object]]:
    return ground.api.all(ground.api.resource("jobset.x-k8s.io/v1alpha2", "JobSet"), namespace)


@pytest.fixture
def fleet_settings(one_slice_settings: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    cases = Path(__file__).parents[2] / "cases"
    text = (cases / "three-teams-four-groups.env").read_text(encoding="utf-8")
    (tmp_path / "vars.env").write_text(text, encoding="utf-8")
    fleet = (cases / "three-teams-four-groups.fleet.yaml").read_text(encoding="utf-8")
    (tmp_path / "fleet.yaml").write_text(fleet, encoding="utf-8")
    monkeypatch.setenv("TPUENV_FOLDER", str(tmp_path))
    monkeypatch.delenv("TPU_TYPE")


@pytest.fixture
def signal_handlers() -> Iterator[None]:
    """As they were: `tpuenv verify` sets them."""
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
        text = (HERE / "cases" / f"three-teams-four-groups.{name}").read_text(encoding="utf-8")
        (tmp_path / target).write_text(text, encoding="utf-8")
    monkeypatch.setenv("TPUENV_FOLDER", str(tmp_path))
    push(fleet.fake.cloud, reference(fleet.environment, FOLDER / "hello-tpu"))
    make_nodes_real(fleet)
    return fleet
