"""The real cdktf, stopped during the work on a stack: Terraform ends it in order, and no other stack is begun."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import struct
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from rehearsal import started_processes
from rehearsal.google.network import CLUSTER
from rehearsal.kubernetes.api import Api
from tests.loading import loaded
from tests.rehearsal import failures
from tests.rehearsal.deployed import admitted, submit
from tests.rehearsal.ground import Ground, Things, ground_of
from tests.rehearsal.saved import restore, save

pytestmark = pytest.mark.slow

LIMIT_SECONDS = 180
CDKTF = [str(Path(sys.executable).with_name("cdktf"))]
TPUENV = [sys.executable, "-m", "tpuenv"]
IN_QUEUES = ("ClusterQueue", "LocalQueue", "ResourceQuota", "ResourceFlavor", "PriorityClass", "Workload", "drain-")


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    """Without dashboards: the queues are the last stack, and the first to be destroyed."""
    folder, text = tmp_path_factory.mktemp("interrupted"), "PROJECT_ID=my-project\nOBSERVABILITY=false\n"
    with ground_of(loaded(OBSERVABILITY="false"), text, folder) as ground:
        yield ground


@pytest.fixture
def ground(once: Ground) -> Iterator[Ground]:
    """Empty again."""
    once.empty()
    for log in once.world.logs.iterdir():
        log.unlink()
    yield once
    failures.turn_off(once.world.cloud)


@pytest.fixture(scope="module")
def everything(once: Ground, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cloud with the whole environment deployed and jobs that run."""
    once.empty()
    once.deploy()
    submit(api_of(once), once.world.output)
    return save(once.world.cloud, tmp_path_factory.mktemp("everything") / "cloud.db")


def run_until(ground: Ground, command: Sequence[str], *, due: Callable[[bytes], bool], how: str) -> tuple[int, str]:
    """Stopped as soon as it is `due`, of which it hears what was said: by ^C at a terminal, or without one by a signal
    to its group.
    """
    kept = ground.world.environment(DELETION_PROTECTION="false", TERM="xterm")
    del kept["CI"]  # there, cdktf does not show that it asks
    pid, ours = pty.fork() if how == "typed" else _fork_with_a_pipe()
    if pid == 0:
        os.execvpe(command[0], list(command), kept)
    if how == "typed":
        fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 160, 0, 0))
    started_processes.record(ground.world.processes, pid)
    said = bytearray()
    threading.Thread(target=_stop, args=(pid, ours, lambda: due(bytes(said)), how), daemon=True).start()
    while chunk := _read(ours):
        said += chunk
    os.close(ours)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), said.decode(errors="replace")


def _fork_with_a_pipe() -> tuple[int, int]:
    """As `pty.fork`, but what the child writes goes to a pipe, and it reads nothing."""
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(theirs, 1)
        os.dup2(theirs, 2)
    os.close(theirs)
    return pid, ours


def _stop(pid: int, ours: int, due: Callable[[], bool], how: str) -> None:
    limit = time.monotonic() + LIMIT_SECONDS
    while not due():
        if time.monotonic() > limit:
            os.killpg(pid, signal.SIGKILL)
            return
        time.sleep(0.02)
    if how == "typed":
        os.write(ours, b"\x03")
    else:
        os.killpg(pid, signal.Signals[how])


def _read(ours: int) -> bytes:
    try:
        return os.read(ours, 65536)
    except OSError:  # Linux's way to say that the other end is closed
        return b""


def api_of(ground: Ground) -> Api:
    (cluster,) = ground.world.cloud.find(CLUSTER)
    return Api(ground.world.cloud, cluster.name)


def draining(ground: Ground) -> bool:
    api = api_of(ground)
    queues = api.all(api.resource("kueue.x-k8s.io/v1beta2", "ClusterQueue"))
    return any(queue["spec"].get("stopPolicy") == "HoldAndDrain" for queue in queues)


def outside_of_queues(things: Things) -> set[str]:
    return {f"{kind} {name}" for kind, name in things if not any(part in f"{kind} {name}" for part in IN_QUEUES)}


@pytest.mark.parametrize(
    ("program", "stacks", "how"),
    [
        pytest.param(CDKTF, "*", "typed", marks=pytest.mark.killed),
        (TPUENV, "*", "typed"),
        (CDKTF, "queues", "SIGINT"),
        pytest.param(TPUENV, "*", "SIGTERM", marks=pytest.mark.killed),
    ],
    ids=["cdktf-typed", "tpuenv-typed", "cdktf-queues-SIGINT", "tpuenv-SIGTERM"],
)
def test_a_destroy_stopped_while_a_queue_drains_takes_nothing_else_and_can_be_taken_back(
    ground: Ground, everything: Path, program: list[str], stacks: str, how: str
) -> None:
    restore(ground.world.cloud, everything)
    running, before = admitted(api_of(ground)), outside_of_queues(ground.things)
    assert running
    options = ["--auto-approve", *(["--"] if program == TPUENV else []), "--skip-provider-lock"]
    command = [*program, "destroy", stacks, *options, "--output", str(ground.world.output)]
    code, said = run_until(ground, command, due=lambda _: draining(ground), how=how)
    assert code == 130, said
    assert outside_of_queues(ground.things) == before
    assert {path.stem for path in ground.world.logs.glob("*.code")} == {"queues"}
    assert ground.locks == []
    ground.deploy()
    ground.unchanged()
    assert admitted(api_of(ground)) == running


@pytest.mark.parametrize("how", ["typed", "SIGTERM"])
def test_a_deploy_that_is_stopped_begins_no_other_stack(ground: Ground, how: str) -> None:
    failures.turn_on(ground.world.cloud, failures.REFUSE, after=10_000)
    command = [*CDKTF, "deploy", "*", "--auto-approve", "--skip-provider-lock", "--output", str(ground.world.output)]
    code, said = run_until(
        ground, command, due=lambda _: any(kind == "google_compute_network" for kind, _ in ground.things), how=how
    )
    assert code == 130, said
    assert {path.stem for path in ground.world.logs.glob("*.code")} == {"foundation"}, said
    assert not any(kind == CLUSTER for kind, _ in ground.things)
    assert ground.locks == []


def test_an_interrupt_while_cdktf_asks_ends_it_and_frees_the_lock(ground: Ground) -> None:
    """At the question the terminal is raw: no signal comes from the key."""
    command = [*CDKTF, "deploy", "foundation", "cluster", "--skip-provider-lock", "--output", str(ground.world.output)]
    before = ground.things
    code, said = run_until(ground, command, due=lambda said: b"Please review" in said, how="typed")
    assert code == 130, said
    assert "UnhandledPromiseRejection" not in said
    assert ground.things == before
    assert ground.locks == []
