"""A deploy build that is ended at any moment, well or badly, is made good by the next: the same cloud in the end."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml

import environment
from environment import project
from rehearsal import started_processes
from rehearsal.build_service import CloudBuild, Ran
from rehearsal.cloudbuild.builds import BUILD
from rehearsal.cloudbuild.images import Images
from rehearsal.cloudbuild.resources import connect
from rehearsal.world import World
from tests.rehearsal.deployed import reusing_syntheses
from tests.rehearsal.ground import Ground, synthesize
from tpuenv.rehearsals.commit import with_pipeline
from tpuenv.rehearsals.world import open_world

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("terraform") is None, reason="terraform is not on the PATH"),
]

SEED = 5
MOMENTS = 10


def moments(slow: int | None = None) -> list[object]:
    """All moments. A deploy takes half a minute: `slow` is a slow test like others, the rest are a run of their own."""
    return [pytest.param(number, marks=() if number == slow else pytest.mark.killed) for number in range(MOMENTS)]


# Counts what is written into the cloud, by whomever.
COUNTING = """
CREATE TABLE writes (number INTEGER);
INSERT INTO writes VALUES (0);
"""
COUNTED = "CREATE TRIGGER {table}_{event} AFTER {event} ON {table} BEGIN UPDATE writes SET number = number + 1; END;"


@dataclass
class Deployments:
    """A world in which everything is ready for the deploy build, and the cloud at the start of each of its builds."""

    world: World
    builds: CloudBuild
    trigger: str
    commit: str = ""
    saved: list[Path] = field(default_factory=list)
    writes: list[int] = field(default_factory=list)
    final: dict[tuple[str, str], object] = field(default_factory=dict)

    @property
    def database(self) -> Path:
        return self.world.folder / "cloud.db"

    def prepare(self, configured: environment.Environment, changed: dict[str, str]) -> None:
        """A person's part, a planned pull request, and a whole undisturbed deployment."""
        connect(self.world.cloud, configured.settings.build_repository)
        synthesize(self.world)
        Ground(world=self.world).deploy(("foundation", "pipeline"))
        self.commit = self.builds.commit(project.ROOT, changed=changed)
        plan = self.builds.start(configured.names.trigger("plan"), commit=self.commit, branch="change")
        assert self.builds.run(plan).status == "SUCCESS"
        with contextlib.closing(sqlite3.connect(self.database)) as cloud:
            cloud.executescript(COUNTING)
            for table in ("objects", "blobs"):
                for event in ("INSERT", "UPDATE", "DELETE"):
                    cloud.execute(COUNTED.format(table=table, event=event))
        self.builds.push(self.commit, branch="main")
        while self.builds.waiting():
            self.saved.append(self.save())
            self.count(reset=True)
            self.builds.log_line = self._note
            assert self.next_build().status == "SUCCESS"
        self.builds.log_line = lambda _: None
        self.final = self.cloud()

    def _note(self, line: str) -> None:
        """The count when the build's step is over, without its last: they take away its mark and its lock."""
        if line.startswith("Finished Step #0"):
            self.writes.append(self.count() - 5)

    def person(self, *arguments: str) -> str:
        """What the person who administers the project does with tpuenv; it has to succeed."""
        done = subprocess.run(
            [sys.executable, "-m", "tpuenv", *arguments, "--output", str(self.world.output)],
            cwd=project.ROOT, env=self.world.environment(), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout
        return done.stdout

    def next_build(self, cancelled: threading.Event | None = None) -> Ran:
        (build,) = self.builds.waiting()
        return self.builds.run(self.builds.approve(build), cancelled=cancelled)

    def deploy(self) -> None:
        """Somebody runs the deploy trigger again, and approves what it asks for."""
        self.builds.start(self.trigger, commit=self.commit, branch="main")
        while self.builds.waiting():
            ran = self.next_build()
            assert ran.status == "SUCCESS", ran.log

    def save(self) -> Path:
        path = self.world.folder.parent / f"before-{len(self.saved)}.db"
        with (
            contextlib.closing(sqlite3.connect(self.database)) as live,
            contextlib.closing(sqlite3.connect(path)) as to,
        ):
            live.backup(to)
        return path

    def restore(self, number: int) -> None:
        with (
            contextlib.closing(sqlite3.connect(self.saved[number])) as saved,
            contextlib.closing(sqlite3.connect(self.database)) as live,
        ):
            saved.backup(live)
        self.count(reset=True)

    def count(self, *, reset: bool = False) -> int:
        with contextlib.closing(sqlite3.connect(self.database, timeout=30)) as cloud:
            if reset:
                cloud.execute("UPDATE writes SET number = 0")
                cloud.commit()
            return int(cloud.execute("SELECT number FROM writes").fetchone()[0])

    def settle(self) -> None:
        """Google finishes what was asked of it, also when the client has ended."""
        before, since = self.count(), time.monotonic()
        while time.monotonic() - since < 0.5:
            time.sleep(0.05)
            if (now := self.count()) != before:
                before, since = now, time.monotonic()

    def cloud(self) -> dict[tuple[str, str], object]:
        """What exists, without what Google makes up, and the states without what Terraform counts in them."""
        content: dict[tuple[str, str], object] = {}
        for item in self.world.cloud.find():
            if item.kind != BUILD:
                content[item.kind, item.name] = known(item.attributes)
        for blob in self.world.cloud.blobs(self.world.project.state_bucket):
            state = json.loads(blob.content)
            content["state", blob.name] = sorted(
                f"{resource['mode']} {resource['type']}.{resource['name']} {len(resource['instances'])} "
                + " ".join(str(instance.get("status", "")) for instance in resource["instances"])
                for resource in state.get("resources", [])
                if resource["mode"] == "managed"
            )
        return content


# What Google and Kubernetes make up, another each time, or count: an import makes Helm count one upgrade more.
MADE_UP = re.compile(
    r"(?:.*_|creation)?(?:time|timestamp|fingerprint|etag|uid|generation|resource_?version|managed_?fields|revision)",
    re.IGNORECASE,
)


def known(value: object) -> object:
    if isinstance(value, dict):
        return {key: known(inner) for key, inner in value.items() if not MADE_UP.fullmatch(key)}
    if isinstance(value, list):
        return [known(item) for item in value]
    return re.sub(r"\d{16}", "N", value) if isinstance(value, str) else value


def with_reused_synthesis(file: str) -> str:
    """A build whose steps synthesize once for all builds of the same settings: tests/reused_synthesis."""
    build = yaml.safe_load(file)
    # The folder in the workspace, because it knows main.py by its path.
    reusing = {**reusing_syntheses(), "PYTHONPATH": "tests/reused_synthesis"}
    build["options"]["env"] = [f"{name}={value}" for name, value in reusing.items()]
    return yaml.safe_dump(build, sort_keys=False)


@pytest.fixture(scope="module")
def deployments(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployments]:
    folder = tmp_path_factory.mktemp("killed")
    text = (project.ROOT / "tests" / "cases" / "smallest.env").read_text(encoding="utf-8")
    (folder / "vars.env").write_text(text, encoding="utf-8")
    settings = with_pipeline(environment.load(folder / "vars.env", {}), {})
    (folder / "vars.env").write_text(
        text + "".join(f"{key}={value}\n" for key, value in settings.items()), encoding="utf-8"
    )
    configured = environment.load(folder / "vars.env", {})
    # That each build runs main.py itself is proved elsewhere.
    changed = {
        path: with_reused_synthesis((project.ROOT / path).read_text(encoding="utf-8"))
        for path in ("cloudbuild/plan.yaml", "cloudbuild/deploy.yaml")
    }
    changed["vars.env"] = (folder / "vars.env").read_text(encoding="utf-8")
    with open_world(configured, folder / "world", {project.FOLDER: str(folder), **reusing_syntheses()}) as world:
        prepared = Deployments(
            world=world, trigger=configured.names.trigger("deploy"),
            builds=CloudBuild(world=world, images=Images(builder=configured.settings.builder_image), grace=60),
        )  # fmt: skip
        prepared.prepare(configured, changed)
        yield prepared


def moment(deployments: Deployments, number: int) -> tuple[int, int]:
    """A build of the deployment, and a number of writes in it: one of ten moments that are spread over all of it."""
    total = sum(deployments.writes)
    at = int(total * (number + random.Random(f"{SEED} {number}").random()) / MOMENTS)
    for build, writes in enumerate(deployments.writes):
        if at < writes:
            return build, max(at, 1)
        at -= writes
    raise AssertionError("beyond the end")


def end_at(deployments: Deployments, number: int, how: signal.Signals) -> Ran:
    """Runs the build until it has written so much, and ends it; it has to have been in the middle of it."""
    build, writes = moment(deployments, number)
    deployments.restore(build)
    cancelled, over = threading.Event(), threading.Event()

    def watch() -> None:
        while deployments.count() < writes and not over.is_set():
            time.sleep(0.002)
        if how == signal.SIGTERM:
            cancelled.set()
            return
        # The first writes are Cloud Build's own, before there is a step to kill.
        while not kill_all(deployments.world) and not over.is_set():
            time.sleep(0.002)

    watching = threading.Thread(target=watch)
    watching.start()
    ran = deployments.next_build(cancelled)
    over.set()
    watching.join()
    assert ran.status == ("CANCELLED" if how == signal.SIGTERM else "FAILURE"), ran.log
    deployments.settle()
    return ran


def kill_all(world: World) -> int:
    """All processes of the build's steps at once. Steps and Terraform lead sessions of their own, unlike the server."""
    leaders = [pid for pid in started_processes.recorded(world.processes) if os.getpgid(pid) == pid]
    family = {process for leader in leaders for process in started_processes.family(leader)}
    for pid in family:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return len(family)


def differences(actual: dict[tuple[str, str], object], expected: dict[tuple[str, str], object]) -> str:
    """A line for each value that differs, and where it is."""
    keys = sorted(actual.keys() | expected.keys())
    pairs = [(" ".join(key), actual.get(key), expected.get(key)) for key in keys]
    return "\n".join(line for pair in pairs for line in _unlike(*pair))


def _unlike(path: str, actual: object, expected: object) -> Iterator[str]:
    if isinstance(actual, dict) and isinstance(expected, dict):
        for key in sorted(actual.keys() | expected.keys()):
            yield from _unlike(f"{path}.{key}", actual.get(key), expected.get(key))
    elif actual != expected:
        yield f"{path}: {json.dumps(actual)} instead of {json.dumps(expected)}"


@pytest.mark.parametrize("number", moments())
def test_after_sigterm_the_next_deploy_converges_by_itself(deployments: Deployments, number: int) -> None:
    end_at(deployments, number, signal.SIGTERM)
    deployments.deploy()
    assert not (unlike := differences(deployments.cloud(), deployments.final)), unlike


@pytest.mark.parametrize("number", moments(slow=2))
def test_after_sigkill_recover_and_the_next_deploy_converge(deployments: Deployments, number: int) -> None:
    end_at(deployments, number, signal.SIGKILL)
    deployments.person("recover", "--yes")
    deployments.deploy()
    assert not (unlike := differences(deployments.cloud(), deployments.final)), unlike
