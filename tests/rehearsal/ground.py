"""A fake cloud on which things go wrong, met by the real Terraform and the commands, and compared with another."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from environment import Environment
from rehearsal.google.cloud_storage_api import BUCKET
from rehearsal.world import ROOT, World
from tests.rehearsal import failures
from tests.rehearsal.deployed import world_of
from tests.synthesis import STACKS
from vocabulary.resource_types import all_types, facts_of

STATES = "my-project-tpu-tf-state"

# What counts how often, and by whom, something was made or touched: in Kubernetes objects and releases.
_COUNTS = (
    "uid",
    "creationTimestamp",
    "resource_version",
    "resourceVersion",
    "generation",
    "observedGeneration",
    "etag",
    "revision",
    "managedFields",
)

Things = dict[tuple[str, str], Any]


@dataclass(frozen=True, kw_only=True)
class Ground:
    """A fake cloud, and the commands in it."""

    world: World

    def start(self, command: list[str], cwd: Path = ROOT, *, account: str = "") -> subprocess.Popen[str]:
        """In a process group of its own, so that all of it can be killed at once; as a person, or as an account."""
        rights = self.world.as_account(account) if account else {}
        return subprocess.Popen(
            command,
            cwd=cwd,
            env=self.world.environment(TERRAFORM_BINARY_NAME=str(self.world.folder / "terraform-recorded"), **rights),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, command: list[str], cwd: Path = ROOT, *, code: int | None = 0, account: str = "") -> str:
        with self.start(command, cwd, account=account) as running:
            said = running.communicate(timeout=300)[0]
        assert code is None or running.returncode == code, said
        return said

    def tpuenv(self, *arguments: str, code: int = 0, account: str = "") -> str:
        return self.run([sys.executable, "-m", "tpuenv", *arguments], code=code, account=account)

    def recover(self, *arguments: str, code: int = 0) -> str:
        return self.tpuenv("recover", *arguments, "--output", str(self.world.output), code=code)

    def terraform(self, stack: str, *arguments: str, code: int | None = 0) -> str:
        command = [str(self.world.folder / "terraform-recorded"), *arguments, "-no-color"]
        return self.run(command, self.world.output / "stacks" / stack, code=code)

    @property
    def stacks(self) -> list[str]:
        """Those of the environment, in the order of their deployment."""
        return [stack for stack in STACKS if (self.world.output / "stacks" / stack).exists()]

    def deploy(self, stacks: Sequence[str] = ()) -> None:
        """As cdktf does it, without the time that it takes: these stacks, or all."""
        for stack in stacks or self.stacks:
            self.apply(stack)

    def apply(self, stack: str, *, code: int = 0) -> str:
        self.terraform(stack, "init", "-reconfigure")
        return self.terraform(stack, "apply", "-auto-approve", code=code)

    def start_apply(self, stack: str) -> subprocess.Popen[str]:
        """Of a plan that was printed before: nobody reads what this one prints, and a pipe holds 64 KiB."""
        self.terraform(stack, "init", "-reconfigure")
        self.terraform(stack, "plan", "-out", "tfplan")
        command = [str(self.world.folder / "terraform-recorded"), "apply", "-no-color", "tfplan"]
        return self.start(command, self.world.output / "stacks" / stack)

    def killed(self, stack: str, *, after: int) -> None:
        """An apply that is killed when changes were made whose answers it does not have."""
        failures.turn_on(self.world.cloud, failures.SILENT, after=after)
        running = self.start_apply(stack)
        self.wait(running)
        os.killpg(running.pid, signal.SIGKILL)
        running.communicate()
        failures.turn_off(self.world.cloud)

    def wait(self, running: subprocess.Popen[str]) -> None:
        """Until the first change fails."""
        limit = time.monotonic() + 120
        while not failures.failing(self.world.cloud):
            if running.poll() is not None or time.monotonic() > limit:
                running.kill()
                raise AssertionError(running.communicate()[0])
            time.sleep(0.01)

    def unchanged(self, stacks: Sequence[str] = ()) -> None:
        for stack in stacks or self.stacks:
            self.terraform(stack, "plan", "-detailed-exitcode")

    @property
    def things(self) -> Things:
        """All that exists but the states, without what only counts changes or the order of what is made at once."""
        items = self.world.cloud.find()
        text = json.dumps([[item.kind, item.name, _steady(item.attributes)] for item in items])
        for item in items:
            if listing := item.kind in all_types() and facts_of(item.kind).listing:
                # The server numbers them: the name that a person chose takes the number's place, also in links.
                collection, _, number = item.name.rpartition("/")
                chosen = re.sub("[^a-z]", "-", str(listing.chosen(item.attributes)).lower())
                text = re.sub(rf"({collection.rpartition('/')[2]}(?:/builder)?)/{number}\b", rf"\1/{chosen}", text)
        return {(kind, name): attributes for kind, name, attributes in json.loads(text)}

    @property
    def locks(self) -> list[str]:
        return [blob.name for blob in self.world.cloud.blobs(STATES) if blob.name.endswith("lock")]

    def empty(self) -> None:
        """As it was at first."""
        cloud = self.world.cloud
        with cloud.transaction():
            for item in cloud.find():
                cloud.delete(item.kind, item.name)
            for blob in cloud.blobs(generations=True):
                cloud.delete_blob(blob.bucket, blob.name, keep_old=False, generation=blob.generation)
            cloud._connection.execute("DELETE FROM counters")
            self.world._bootstrap()
        for left in self.world.output.glob("stacks/*/errored.tfstate*"):
            left.unlink()

    def forget(self, *stacks: str, bucket: bool = False) -> None:
        """The states are gone with all their versions, and the bucket itself as well."""
        for blob in self.world.cloud.blobs(STATES, generations=True):
            if bucket or any(f"/{stack}/" in blob.name for stack in stacks):
                self.world.cloud.delete_blob(STATES, blob.name, keep_old=False, generation=blob.generation)
        if bucket:
            self.world.cloud.delete(BUCKET, STATES)


def _steady(value: Any) -> Any:
    """Without counts, and without what is empty: after an import and a change it is there, else it is left out."""
    if isinstance(value, dict):
        kept = {key: _steady(inner) for key, inner in value.items() if key not in _COUNTS}
        return {key: inner for key, inner in kept.items() if inner not in (None, "", [], {})}
    return [_steady(item) for item in value] if isinstance(value, list) else value


def same(left: Things, right: Things) -> None:
    """Both clouds are alike. Raises AssertionError with what differs."""
    keys = [key for key in {*left, *right} if left.get(key) != right.get(key)]
    lines = [f"{' '.join(key)}:\n  is  {left.get(key)}\n  not {right.get(key)}" for key in sorted(keys)]
    if lines:
        raise AssertionError("\n".join(lines))


def synthesize(world: World, **settings: str) -> None:
    """The stacks of its settings, or of others over them, into its own folder."""
    environment = world.environment(CDKTF_OUTDIR=str(world.output), **settings)
    subprocess.run([sys.executable, "main.py"], cwd=ROOT, env=environment, check=True, capture_output=True)


@contextmanager
def ground_of(configured: Environment, text: str, folder: Path) -> Iterator[Ground]:
    """Ground in `folder`, with the stacks of a vars.env of this text."""
    (folder / "vars.env").write_text(text, encoding="utf-8")
    with world_of(configured, folder / "world", TPUENV_FOLDER=str(folder)) as world:
        synthesize(world)
        yield Ground(world=world)
