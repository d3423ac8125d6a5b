"""Steps run in Cloud Build's order, and a build ends as Cloud Build ends it."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from rehearsal import started_processes
from rehearsal.cloudbuild.config import read
from rehearsal.cloudbuild.images import DOCKER, Images, NoSuchImage
from rehearsal.cloudbuild.steps import Machine, Outcome, run

BUILDER = "registry.example/builder@sha256:" + "a" * 64

# Each writes down when it begins and ends; `until` waits for a file, so that no test depends on how fast a machine is.
WORK = """\
import pathlib, sys, time
name, until, code = sys.argv[1:4]
events = pathlib.Path('events')
with events.open('a') as out: out.write(f'{name} begins\\n')
while until and not pathlib.Path(until).exists(): time.sleep(0.01)
pathlib.Path(name).touch()
with events.open('a') as out: out.write(f'{name} ends\\n')
sys.exit(int(code))
"""


def step(id_: str, *, until: str = "", code: int = 0, more: str = "") -> str:
    return (
        f"- {{id: {id_}, name: '{BUILDER}', entrypoint: python, args: [work.py, {id_}, '{until}', '{code}']{more}}}\n"
    )


@dataclass
class Builds:
    folder: Path
    said: list[str] = field(default_factory=list)
    cancelled: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.workspace = self.folder / "workspace"
        self.workspace.mkdir()
        (self.workspace / "work.py").write_text(WORK)

    def run(self, *steps: str, head: str = "", builder: str = BUILDER, grace: float = 60) -> Outcome:
        path = self.folder / "build.yaml"
        path.write_text(f"{head}options: {{logging: GCS_ONLY}}\nsteps:\n{''.join(steps)}")
        machine = Machine(
            images=Images(builder=builder),
            workspace=self.workspace,
            environment={"PATH": os.environ["PATH"], "FROM": "the machine"},
            notes=self.folder / "notes",
            grace=grace,
        )
        return run(read(path), machine, log_line=self.said.append, cancelled=self.cancelled)

    @property
    def events(self) -> list[str]:
        found = self.workspace / "events"
        return found.read_text().splitlines() if found.exists() else []


@pytest.fixture
def builds(tmp_path: Path) -> Builds:
    return Builds(tmp_path)


def when(condition: Callable[[], bool], then: Callable[[], None]) -> threading.Thread:
    def watch() -> None:
        while not condition():
            time.sleep(0.01)
        then()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    return thread


def test_without_waitfor_one_step_follows_the_other(builds: Builds) -> None:
    assert builds.run(step("one"), step("two"), step("three")).status == "SUCCESS"
    assert builds.events == [f"{name} {what}" for name in ("one", "two", "three") for what in ("begins", "ends")]


def test_a_step_that_waits_for_the_start_runs_beside_the_others(builds: Builds) -> None:
    """Each waits for a file that the other makes: one after the other they would never end."""
    outcome = builds.run(
        step("one", until="events2"),
        f"- {{name: '{BUILDER}', entrypoint: python, args: [-c, \"open('events2', 'w')\"], waitFor: ['-']}}\n",
        head="timeout: 20s\n",
    )
    assert outcome.status == "SUCCESS"


def test_a_step_waits_for_those_that_it_names_and_for_no_other(builds: Builds) -> None:
    outcome = builds.run(
        step("slow", until="quick"),
        step("first", more=", waitFor: ['-']"),
        step("quick", more=", waitFor: [first]"),
        step("last"),
        head="timeout: 20s\n",
    )
    assert outcome.status == "SUCCESS"
    assert builds.events.index("first ends") < builds.events.index("quick begins") < builds.events.index("slow ends")
    assert builds.events[-2:] == ["last begins", "last ends"], "it waits for all before it"


def test_the_first_failing_step_ends_the_build(builds: Builds) -> None:
    outcome = builds.run(step("one"), step("two", code=3), step("three"))
    assert (outcome.status, outcome.why) == ("FAILURE", "Step #1 - 'two' failed: exit status 3")
    assert [(done.step.id_, done.status, done.code) for done in outcome.steps] == [
        ("one", "SUCCESS", 0),
        ("two", "FAILURE", 3),
    ]
    assert "three begins" not in builds.events
    assert builds.said[-2:] == ["ERROR: Step #1 - 'two' failed: exit status 3", "FAILURE"]


def test_a_step_beside_a_failing_one_is_killed(builds: Builds) -> None:
    outcome = builds.run(step("never", until="nothing"), step("bad", until="events", code=1, more=", waitFor: ['-']"))
    assert outcome.status == "FAILURE"
    assert [done.status for done in outcome.steps] == ["FAILURE", "CANCELLED"]
    assert started_processes.recorded(builds.folder / "notes") == []


def test_a_step_that_takes_too_long_fails_the_build(builds: Builds) -> None:
    outcome = builds.run(step("never", until="nothing", more=", timeout: 0.3s"), step("next"))
    assert (outcome.status, outcome.steps[0].status) == ("FAILURE", "TIMEOUT")
    assert "took longer than its 0.3 s" in outcome.why
    assert "next begins" not in builds.events


def test_a_build_that_takes_too_long_times_out(builds: Builds) -> None:
    outcome = builds.run(step("never", until="nothing"), head="timeout: 0.3s\n")
    assert (outcome.status, outcome.steps[0].status) == ("TIMEOUT", "TIMEOUT")


def python(program: str, more: str = "") -> str:
    return f"- {{id: it, name: '{BUILDER}', entrypoint: python, args: [-c, {program!r}]{more}}}\n"


def test_a_step_has_the_variables_of_the_build_and_its_own_and_its_folder(builds: Builds) -> None:
    (builds.workspace / "sub").mkdir()
    builds.run(
        python(
            "import os; print(os.environ['FROM'], os.environ['WHO'], os.path.basename(os.getcwd()), os.environ['A'])",
            ", env: ['A=x=y', 'WHO=the step'], dir: sub",
        )
    )
    assert "Step #0 - 'it': the machine the step sub x=y" in builds.said


def test_the_steps_of_a_build_share_the_workspace_and_nothing_else(builds: Builds) -> None:
    outcome = builds.run(
        python("open('left', 'w').write('here')").replace("id: it", "id: first"),
        python("import os, sys; sys.exit(open('left').read() != 'here' or 'A' in os.environ)"),
    )
    assert outcome.status == "SUCCESS"


ENDS_WELL = (
    "import signal, sys, time, pathlib; "
    "signal.signal(signal.SIGTERM, lambda *_: (pathlib.Path('ended').touch(), sys.exit(1))); "
    "pathlib.Path('ready').touch(); time.sleep(60)"
)
DEAF = (
    "import signal, time, pathlib; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    "pathlib.Path('ready').touch(); time.sleep(60)"
)


@pytest.mark.parametrize(("program", "well"), [(ENDS_WELL, True), (DEAF, False)], ids=["ends well", "deaf"])
def test_a_cancelled_build_asks_its_steps_to_end_and_then_ends_them(builds: Builds, program: str, well: bool) -> None:
    ready = (builds.workspace / "ready").exists
    watcher = when(ready, builds.cancelled.set)
    outcome = builds.run(python(program), step("next"), grace=60 if well else 0.2)
    watcher.join()
    assert (outcome.status, outcome.steps[0].code) == ("CANCELLED", 1 if well else -signal.SIGKILL)
    assert (builds.workspace / "ended").exists() is well
    assert "next begins" not in builds.events


@pytest.mark.parametrize("more", ["", "; import time; time.sleep(60)"], ids=["that ends", "that is cancelled"])
def test_what_a_step_has_started_goes_with_it(builds: Builds, more: str) -> None:
    """Also what is in a session of its own, as Terraform is, when the step itself is ended."""
    own = ", start_new_session=True" if more else ""
    said = "Step #0 - 'it': "
    if more:
        when(lambda: any(line.startswith(said) for line in builds.said), builds.cancelled.set)
    builds.run(
        python(f"import subprocess; print(subprocess.Popen(['sleep', '600']{own}).pid, flush=True){more}"), grace=0.2
    )
    child = int(next(line for line in builds.said if line.startswith(said)).rsplit(" ", 1)[1])
    while started_processes.started(child):
        time.sleep(0.01)  # the time limit of tests says when it is too long


def test_an_image_that_is_not_there_stops_the_build_before_anything_runs(builds: Builds) -> None:
    with pytest.raises(NoSuchImage):
        builds.run(step("one"), step("two").replace(BUILDER, DOCKER))
    assert builds.events == []
