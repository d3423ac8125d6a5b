"""Fixtures that more than one test file uses; an environment, signals and a time limit that hold for every test."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from environment.project import FOLDER
from environment.settings.model import KEYS
from rehearsal import started_processes
from tests import published
from tests.examples import examples
from tests.passed_tests import passed_tests
from tests.reused_synthesis.copy_synthesis import FOLDER as REUSED

if TYPE_CHECKING:
    from tests.rehearsal.fake import FakeCloud
    from tests.synthesis import Synthesis

# What leads to a cloud, real or fake, or steers Terraform.
_LEADING = ("GOOGLE_", "CLOUDSDK_", "KUBE", "TF_REATTACH", "TF_VAR_", "TF_CLI_ARGS", "TF_DATA_DIR", "TF_WORKSPACE")

SLOW_TEST_SECONDS = 1800

# How long an example takes says how busy the machine is.
settings.register_profile("any machine", deadline=None, max_examples=examples(100))
settings.load_profile("any machine")

# A shell starts what it puts into the background with SIGINT ignored, and no shell script can trap a signal that was
# ignored when it started: the tests' own scripts would never end.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# The files that take longest, in seconds of CPU time: with --dist loadfile --no-loadscope-reorder they start first, so
# that no core waits for one at the end.
_LONGEST = {
    "test_changes.py": 105,
    "test_tests_build.py": 85,
    "test_apply_world.py": 80,
    "test_show.py": 60,
    "test_operate.py": 60,
    "test_failures.py": 55,
    "test_failures_pipeline.py": 45,
    "test_interrupted.py": 30,
    "test_pipeline_killed.py": 30,
    "test_removals.py": 20,
    "test_bindings.py": 20,
    "test_fleets.py": 15,
    "test_queue_changes.py": 15,
}


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[object]:
    """What is imported and collected stays to the end: searching it for garbage takes a quarter of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """More than there are cores: a test that waits leaves its core idle, but slow ones wait for programs at work."""
    return (os.cpu_count() or 1) + (2 if config.option.dist == "worksteal" else 1)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    passed = set(passed_tests().read_text(encoding="utf-8").splitlines())
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in passed])
    items[:] = [item for item in items if item.nodeid not in passed]
    items.sort(key=lambda item: -_LONGEST.get(item.path.name, 0))
    for item in items:
        if item.get_closest_marker("slow") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(SLOW_TEST_SECONDS))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" and report.passed and "PYTEST_XDIST_WORKER" not in os.environ:
        with passed_tests().open("a", encoding="utf-8") as file:
            file.write(f"{report.nodeid}\n")


# Processes that were there before a test began, or that belong to a fixture which more than one test uses.
_shared_processes: set[int] = set()


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[object]) -> Iterator[object]:
    result = yield
    # Not before every test: reading all processes of a machine takes longer than most tests do.
    if fixturedef.scope != "function":
        _shared_processes.update(started_processes.family(os.getpid()))
    return result


@pytest.hookimpl(wrapper=True)
def pytest_timeout_set_timer(item: pytest.Item) -> Iterator[None]:
    """When its time is over, the processes that a test has started end first: it may wait for one of them."""
    result = yield
    fail = signal.getsignal(signal.SIGALRM)

    def end_processes_and_fail(number: int, frame: FrameType | None) -> None:
        for pid in started_processes.family(os.getpid()):
            if pid not in _shared_processes and not _is_jsii(pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        assert callable(fail)
        fail(number, frame)

    signal.signal(signal.SIGALRM, end_processes_and_fail)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """A finalizer that runs while a test parses too many nested brackets would exceed the recursion limit as well."""
    if not item.get_closest_marker("nested_too_deeply"):
        return (yield)
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def _is_jsii(pid: int) -> bool:
    """Whether it is the kernel of the bindings: one for the whole run, started by the test that needs it first."""
    return b"jsii" in _command(pid)


def _command(pid: int) -> bytes:
    """The command line of a process; b"" where the system does not say."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


@pytest.fixture(scope="session", autouse=True)
def nothing_left() -> Iterator[None]:
    """No test leaves a process at work."""
    before = started_processes.family(os.getpid())
    yield
    left = [pid for pid in started_processes.family(os.getpid()) if pid not in before and not _is_jsii(pid)]
    commands = [_command(pid).replace(b"\0", b" ") for pid in left if started_processes.started(pid)]
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    assert commands == []


@pytest.fixture(scope="session", autouse=True)
def as_published(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The tests are about the project and not about the settings that its owner has made, in vars.env or elsewhere;
    and they reach no cloud, also where a build or a shell has credentials.
    """
    before = dict(os.environ)
    for name in before:
        if name in KEYS or name.startswith(_LEADING):
            del os.environ[name]
    os.environ[FOLDER] = str(published.folder(tmp_path_factory.mktemp("published")))
    os.environ[REUSED] = str(_of_the_run(tmp_path_factory, "reused-synthesis"))
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(scope="session")
def synthesis(tmp_path_factory: pytest.TempPathFactory) -> Synthesis:
    # It starts Node: not in the process that hands out the tests, nor for tests that need none.
    from tests.synthesis import Synthesis

    return Synthesis(_of_the_run(tmp_path_factory, "synthesis"))


@pytest.fixture(scope="session")
def deployed_once(synthesis: Synthesis, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeCloud]:
    """The default environment, deployed in a fake cloud. A test changes a copy of it."""
    yield from _deployed(synthesis, "default", tmp_path_factory)


@pytest.fixture(scope="session")
def fleet_once(synthesis: Synthesis, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeCloud]:
    """Three teams on four pool groups, deployed in a fake cloud. A test changes a copy of it."""
    yield from _deployed(synthesis, "three-teams-four-groups", tmp_path_factory)


def _deployed(synthesis: Synthesis, case: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeCloud]:
    from tests.rehearsal.deployed import deploy

    fake = deploy(synthesis.folder(case), tmp_path_factory.mktemp(case) / "world")
    yield fake
    fake.close()


def _of_the_run(tmp_path_factory: pytest.TempPathFactory, name: str) -> Path:
    """A folder that all processes of this run share: pytest-xdist gives each a folder in that of the run."""
    of_process = tmp_path_factory.getbasetemp()
    folder = (of_process.parent if "PYTEST_XDIST_WORKER" in os.environ else of_process) / name
    folder.mkdir(exist_ok=True)
    return folder
