"""Cloud Build in one world: a repository with commits, events that start builds, and builds that run to their end."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from rehearsal.cloudbuild import builds, steps, triggers, workspace
from rehearsal.cloudbuild.builds import Build
from rehearsal.cloudbuild.config import LOGGED, Config, NotABuild, read
from rehearsal.cloudbuild.images import Images, NoSuchImage
from rehearsal.cloudbuild.steps import Done
from rehearsal.cloudbuild.triggers import Trigger
from rehearsal.google.permissions import denied
from rehearsal.world import World

_WRITTEN_INTO = (
    "a step wrote into a file of the commit, which other builds share in a rehearsal; write a new file and rename it"
)

# What a step finds: of a machine of Cloud Build and our image, and where this world stands in for Google.
_ON_THE_MACHINE = (
    "PATH",
    "HOME",
    "LANG",
    "TMPDIR",
    "CHECKPOINT_DISABLE",
    "TERRAFORM_BINARY_NAME",
    "TF_CLI_CONFIG_FILE",
    "TF_REATTACH_PROVIDERS",
    "GOOGLE_",
)


@dataclass(frozen=True, kw_only=True)
class Ran:
    """A build that is over: how its steps ended, why it failed, and all of its log."""

    build: Build
    steps: tuple[Done, ...]
    why: str
    log: str

    @property
    def status(self) -> str:
        return self.build.status


@dataclass(kw_only=True)
class CloudBuild:
    """Use it within its world, whose folder `logs` has the logs. `log_line` gets every line of a log as it comes."""

    world: World
    images: Images
    log_line: Callable[[str], None] = lambda _: None
    grace: float = steps.GRACE_SECONDS
    _lines: list[str] = field(default_factory=list)

    @property
    def _repository(self) -> Path:
        return self.world.folder / "repository"

    @property
    def _terraform(self) -> str:
        """Without what the rehearsal of cdktf puts in between: signals must reach Terraform itself."""
        return str(self.world.folder / "terraform-recorded")

    @cached_property
    def _path(self) -> str:
        return self.images.path(self.world.folder / "bin", terraform=self._terraform)

    def commit(self, checkout: Path, *, changed: Mapping[str, str]) -> str:
        """What the checkout holds now, with some files changed, as a commit; its id."""
        folder = self._repository / "new"
        shutil.rmtree(folder, ignore_errors=True)
        id_ = workspace.copy(checkout, folder, changed=changed)
        shutil.rmtree(self._repository / id_, ignore_errors=True)
        folder.rename(self._repository / id_)
        return id_

    def pull_request(self, commit: str, *, branch: str, base: str) -> list[Build]:
        """A collaborator asks for `commit`, on a branch of its own, to be merged into `base`."""
        return self._event("pull_request", base, commit, branch)

    def comment(self, commit: str, *, branch: str, base: str) -> list[Build]:
        """A collaborator comments /gcbrun on that pull request."""
        return self._event("comment", base, commit, branch)

    def push(self, commit: str, *, branch: str) -> list[Build]:
        """Somebody pushes, or merges, to a branch."""
        return self._event("push", branch, commit, branch)

    def start(self, trigger: str, *, commit: str, branch: str, **substitutions: str) -> Build:
        """Somebody, or Cloud Scheduler, runs a trigger by hand."""
        described = triggers.trigger(self.world.cloud, trigger)
        return builds.ask(self.world.cloud, described, commit=commit, branch=branch, substitutions=substitutions)

    def waiting(self) -> list[Build]:
        """The builds that nobody has approved yet."""
        return builds.builds(self.world.cloud, status=builds.PENDING)

    def approve(self, build: Build) -> Build:
        """A person says yes."""
        return builds.approve(self.world.cloud, build)

    def run(self, build: Build, *, cancelled: threading.Event | None = None) -> Ran:
        """Runs a queued build to its end, whichever that is. Raises ValueError for one that is not queued."""
        if build.status != builds.QUEUED:
            raise ValueError(f"build {build.id_} is {build.status}; only a queued one can be run")
        self._lines = []
        build = builds.moved(self.world.cloud, build, builds.WORKING)
        trigger = triggers.trigger(self.world.cloud, build.trigger)
        folder = self.world.folder / "builds" / build.id_
        try:
            config = self._config(build, trigger, folder)
            self._check_log(trigger)
            outcome = steps.run(
                config, self._machine(trigger, folder), log_line=self._line, cancelled=cancelled or threading.Event()
            )
            status, done, why = outcome.status, outcome.steps, outcome.why
            if workspace.id_of(self._repository / build.commit) != build.commit:
                status, why = steps.FAILURE, _WRITTEN_INTO
        except (NotABuild, NoSuchImage, _NoLog) as error:
            status, done, why = steps.FAILURE, (), str(error)
        shutil.rmtree(folder, ignore_errors=True)
        log = "".join(f"{line}\n" for line in self._lines)
        kept = self.world.folder / "logs" / f"{build.id_}.txt"
        kept.parent.mkdir(exist_ok=True)
        kept.write_text(log, encoding="utf-8")
        return Ran(build=builds.moved(self.world.cloud, build, status), steps=done, why=why, log=log)

    def _event(self, event: str, base: str, commit: str, branch: str) -> list[Build]:
        started = triggers.started_by(self.world.cloud, event, base)
        return [builds.ask(self.world.cloud, trigger, commit=commit, branch=branch) for trigger in started]

    def _config(self, build: Build, trigger: Trigger, folder: Path) -> Config:
        """The file of the commit, in a fresh workspace. As Cloud Build does, it refuses one without a place for logs.

        https://cloud.google.com/build/docs/securing-builds/configure-user-specified-service-accounts
        """
        workspace.link(self._repository / build.commit, folder / "workspace")
        (folder / "home").mkdir()
        file = folder / "workspace" / trigger.file
        if not file.is_file():
            raise NotABuild([f"{trigger.file}: is not in commit {build.commit[:7]}"])
        config = read(file)
        given = {**trigger.substitutions, **build.substitutions}
        config = config.filled(given, builds.built_in(self.world.cloud, build, trigger))
        if config.logging != LOGGED:
            raise NotABuild(
                [f"{config.file}: options.logging: a build with a service account of its own needs {LOGGED}"]
            )
        return config

    def _machine(self, trigger: Trigger, folder: Path) -> steps.Machine:
        """A machine of Cloud Build: it has the credentials of the build's account, and no settings but the commit's."""
        environment = self.world.environment(
            **self.world.as_account(trigger.account),
            PATH=self._path,
            HOME=str(folder / "home"),
            TERRAFORM_BINARY_NAME=self._terraform,
        )
        return steps.Machine(
            images=self.images,
            workspace=folder / "workspace",
            environment={name: environment[name] for name in environment if name.startswith(_ON_THE_MACHINE)},
            notes=self.world.processes,
            grace=self.grace,
        )

    def _line(self, line: str) -> None:
        self._lines.append(line)
        self.log_line(line)

    def _check_log(self, trigger: Trigger) -> None:
        """Stricter than Cloud Build, which runs a build whose account may not write its log, and nobody can read it."""
        project = trigger.path.split("/")[1]
        resource = f"projects/{project}"
        if why := denied(self.world.cloud, trigger.account, "logging.logEntries.create", resource, project=project):
            raise _NoLog(f"{trigger.account} cannot write the log: {why}")


class _NoLog(Exception):
    """The build's account may not write its log."""
