"""Events start the builds that their triggers say, which wait for whom they must and run as whom they are to."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from rehearsal.build_service import CloudBuild
from rehearsal.cloud import Cloud
from rehearsal.cloudbuild import builds, triggers
from rehearsal.cloudbuild.images import Images
from rehearsal.google.permissions import PROJECT_MEMBER, token_of
from rehearsal.leaks import kept_tokens
from rehearsal.work_folder import CannotStart
from rehearsal.world import World
from tests.rehearsal.test_world import world_in

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not on the PATH")
starts_a_world = pytest.mark.slow

PLACE = "projects/my-project/locations/us-east5"
BUILDER = "registry.example/builder@sha256:" + "a" * 64
ACCOUNT = "tpu-plan@my-project.iam.gserviceaccount.com"
FILE = """\
steps:
- {id: say, name: '${_BUILDER}', entrypoint: python, args: [say.py, '$COMMIT_SHA', '$TRIGGER_NAME', '${_WORD}']}
options: {logging: CLOUD_LOGGING_ONLY}
substitutions: {_BUILDER: "", _WORD: default}
"""
SAY = "import os, sys; print(*sys.argv[1:], os.environ['GOOGLE_OAUTH_ACCESS_TOKEN'], 'TPU_TYPE' in os.environ)\n"


def put_trigger(
    cloud: Cloud, name: str, number: int, *, approval: bool = False, comment_control: str = "", **event: str
) -> None:
    cloud.put(triggers.TRIGGER, f"{PLACE}/triggers/{number}", {
        "name": name, "location": "us-east5", "filename": "build.yaml",
        "service_account": f"projects/my-project/serviceAccounts/{ACCOUNT}",
        "substitutions": {"_BUILDER": BUILDER},
        "approval_config": [{"approval_required": approval}],
        "repository_event_config": [
            {key: [{"branch": branch, "comment_control": comment_control}] for key, branch in event.items()}
        ] if event else [],
    })  # fmt: skip


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    with_triggers = Cloud(tmp_path / "cloud.db")
    put_trigger(with_triggers, "test", 4, pull_request="^main$")
    put_trigger(with_triggers, "plan", 1, pull_request="^main$", comment_control="COMMENTS_ENABLED")
    put_trigger(with_triggers, "deploy", 2, push="^main$", approval=True)
    put_trigger(with_triggers, "drift", 3)
    yield with_triggers
    with_triggers.close()


@pytest.mark.parametrize(
    ("event", "branch", "names"),
    [
        ("pull_request", "main", ["test"]),
        ("comment", "main", ["test", "plan"]),
        ("comment", "feature", []),
        ("push", "main", ["deploy"]),
        ("push", "mainline", []),
        ("push", "feature", []),
        ("pull_request", "feature", []),
    ],
)
def test_an_event_starts_the_triggers_of_its_branch(cloud: Cloud, event: str, branch: str, names: list[str]) -> None:
    assert [trigger.name for trigger in triggers.started_by(cloud, event, branch)] == names


def test_a_trigger_can_be_read_by_its_name_and_by_its_number(cloud: Cloud) -> None:
    assert triggers.trigger(cloud, "deploy") == triggers.trigger(cloud, f"{PLACE}/triggers/2")
    with pytest.raises(KeyError):
        triggers.trigger(cloud, "nothing")


def test_a_build_waits_for_an_approval_where_its_trigger_wants_one(cloud: Cloud) -> None:
    free = builds.ask(cloud, triggers.trigger(cloud, "plan"), commit="c" * 40)
    waits = builds.ask(cloud, triggers.trigger(cloud, "deploy"), commit="c" * 40)
    assert (free.status, waits.status) == ("QUEUED", "PENDING")
    assert builds.builds(cloud, status="PENDING") == [waits]
    assert builds.approve(cloud, waits).status == "QUEUED"
    with pytest.raises(ValueError, match="does not wait for an approval: it is QUEUED"):
        builds.approve(cloud, waits)


def test_what_is_given_for_one_build_wins_over_its_trigger(cloud: Cloud) -> None:
    asked = builds.ask(cloud, triggers.trigger(cloud, "drift"), commit="c" * 40, substitutions={"_WORD": "x"})
    assert asked.substitutions == {"_BUILDER": BUILDER, "_WORD": "x"}


@dataclass
class Running:
    world: World
    service: CloudBuild
    checkout: Path

    def run(self, **substitutions: str) -> builds.Build:
        commit = self.service.commit(self.checkout, changed={})
        ran = self.service.run(self.service.start("plan", commit=commit, branch="main", **substitutions))
        self.log, self.why = ran.log, ran.why
        return ran.build


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    (checkout / "build.yaml").write_text(FILE)
    (checkout / "say.py").write_text(SAY)
    (checkout / ".gitignore").write_text("secret\n")
    (checkout / "secret").write_text("x")
    subprocess.run(["git", "init", "--quiet", checkout], check=True)
    with world_in(tmp_path / "w", TPU_TYPE="v6e-16") as world:
        put_trigger(world.cloud, "plan", 1, pull_request="^main$")
        role = {"project": "my-project", "role": "roles/logging.logWriter", "member": f"serviceAccount:{ACCOUNT}"}
        world.cloud.put(PROJECT_MEMBER, f"{role['role']} {role['member']}", role)
        yield Running(world, CloudBuild(world=world, images=Images(builder=BUILDER)), checkout)


@needs_git
@starts_a_world
def test_a_build_runs_the_file_of_its_commit_as_the_account_of_its_trigger(running: Running) -> None:
    build = running.run()
    assert build.status == "SUCCESS", running.why
    said = f"Step #0 - 'say': {build.commit} plan default {token_of(ACCOUNT)} False"
    assert said in running.log.splitlines(), "nor do settings of the shell reach a build"
    assert (running.world.folder / "logs" / f"{build.id_}.txt").read_text() == running.log
    assert str(running.world.folder / "logs" / f"{build.id_}.txt") in kept_tokens(running.world)


@needs_git
@starts_a_world
def test_a_step_can_call_the_programs_of_the_builder_image_and_no_others_of_this_machine(running: Running) -> None:
    names = "python terraform sh sed false make git curl"
    say = f"import shutil; print(*(name for name in {names.split()} if shutil.which(name)))\n"
    (running.checkout / "say.py").write_text(say)
    running.run()
    terraform = " terraform" if shutil.which("terraform") else ""
    assert f"Step #0 - 'say': python{terraform} sh sed false" in running.log.splitlines()


@needs_git
@starts_a_world
def test_a_workspace_holds_what_git_would_have_and_is_new_for_every_build(running: Running) -> None:
    (running.checkout / "say.py").write_text("import os; print(sorted(os.listdir())); open('left', 'w')\n")
    for _ in range(2):
        running.run()
        assert "Step #0 - 'say': ['.gitignore', 'build.yaml', 'say.py']" in running.log.splitlines()


@needs_git
@starts_a_world
def test_a_build_may_replace_its_files_and_fails_when_it_writes_into_one_that_others_share(running: Running) -> None:
    (running.checkout / "data").write_text("of the commit")
    replace = "from pathlib import Path; Path('new').write_text('x'); print(Path('data').read_text())\n"
    (running.checkout / "say.py").write_text(f"{replace}Path('new').rename('data')\n")
    for _ in range(2):
        assert running.run().status == "SUCCESS", running.why
        assert "Step #0 - 'say': of the commit" in running.log.splitlines()
    (running.checkout / "say.py").write_text("open('data', 'a').write('more')\n")
    assert running.run().status == "FAILURE"
    assert running.why.startswith("a step wrote into a file of the commit")


@needs_git
@starts_a_world
def test_the_same_files_are_the_same_commit(running: Running) -> None:
    first = running.service.commit(running.checkout, changed={})
    assert running.service.commit(running.checkout, changed={}) == first
    assert running.service.commit(running.checkout, changed={"build.yaml": FILE + "\n"}) != first


@needs_git
@starts_a_world
def test_a_build_whose_account_may_not_write_its_log_does_not_start(running: Running) -> None:
    for item in running.world.cloud.find(PROJECT_MEMBER):
        running.world.cloud.delete(item.kind, item.name)
    assert running.run().status == "FAILURE"
    assert f"{ACCOUNT} cannot write the log: Permission 'logging.logEntries.create' denied" in running.why
    assert running.log == ""


@needs_git
@starts_a_world
@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("build.yaml", FILE.replace("_WORD}", "_WORDS}"), "_WORDS is used and not declared"),
        (
            "build.yaml",
            FILE.replace("CLOUD_LOGGING_ONLY", "GCS_ONLY"),
            "needs CLOUD_LOGGING_ONLY",
        ),
        ("build.yaml", FILE.replace("${_BUILDER}", "python:${_BUILDER}"), "is not the builder image"),
        (".gitignore", "build.yaml", "build.yaml: is not in commit"),
    ],
)
def test_a_file_that_is_no_good_fails_the_build(running: Running, name: str, text: str, why: str) -> None:
    (running.checkout / name).write_text(text)
    assert running.run().status == "FAILURE"
    assert why in running.why


@needs_git
@starts_a_world
def test_a_folder_that_is_no_checkout_is_reported(running: Running, tmp_path: Path) -> None:
    with pytest.raises(CannotStart, match="is no git checkout"):
        running.service.commit(tmp_path, changed={})
