"""docs/operate.md, run from its first line to its last: its edits, its commands, what they show, and what becomes of
jobs.

The environment of the page is deployed once. Terraform and cdktf are the real ones; jobs are hello-tpu of each team.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import environment
from rehearsal import jobs
from rehearsal.cloud import Object
from rehearsal.google.compute_api import RESERVATION
from rehearsal.google.gke import POOL
from rehearsal.google.network import CLUSTER
from rehearsal.kubernetes.api import Api
from rehearsal.kubernetes.placement import is_finished
from rehearsal.kubernetes.resources import POD
from rehearsal.world import ROOT, World
from tests import published
from tests.operate_page import BLOCKS, NOT_RUN, TABLE, sections, variables, words
from tests.rehearsal.deployed import of_any_name, workloads, world_of
from tests.rehearsal.ground import Ground, synthesize
from tests.reused_synthesis.copy_synthesis import PATCHES

# So that the version of this code is an upgrade; what a Python that finds it as sitecustomize.py does first.
OLDER_KUEUE = {
    "version": "0.19.1",
    "digest": "sha256:b8d0ba07db35275bc3c4702a7152db544748c83647e5d7949a2b20c2cc8f7642",
}
OLDER_PLATFORM = f"""\
import sys
sys.path.insert(0, {str(ROOT)!r})
from dataclasses import replace
from vocabulary.sources import CHARTS
CHARTS["kueue"] = replace(CHARTS["kueue"], **{OLDER_KUEUE!r})
"""

# Of the machines that the slices of the page are made of; not one is in use.
RESERVED = {
    "specificReservation": {
        "count": "12",
        "inUseCount": "0",
        "instanceProperties": {"machineType": "ct6e-standard-4t"},
    },
    "specificReservationRequired": True,
    "status": "READY",
}


@dataclass
class Duty:
    """The environment of the page, and whoever follows it."""

    world: World
    folder: Path  # of vars.env and fleet.yaml
    settings: dict[str, str]  # variables of this moment
    running_before: Mapping[str, Any] = field(default_factory=dict)  # when the section began
    pools_before: Mapping[str, Object] = field(default_factory=dict)

    def run(self, command: str, *, shows: str = "") -> None:
        """As typed; JOB is the oldest one. It must succeed, and show every part of `shows` between lines of `...`."""
        program, verb, *rest = words(command)
        assert program == "tpuenv", command
        output = ["--output", str(self.world.output)]
        further = {
            "plan": output,
            "recover": output,
            "deploy": ["--auto-approve", "--", "--skip-provider-lock", *output],
        }.get(verb, [])
        if "JOB" in rest:
            rest = [self.jobs[0]["metadata"]["name"]]
        done = subprocess.run(
            [sys.executable, "-m", "tpuenv", verb, *rest, *further],
            cwd=ROOT,
            env=self.world.environment(**self.settings, **variables(command)),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        shown, at = f"\n{done.stdout}", 0
        for part in re.split(r"^\s*\.\.\.\n", shows, flags=re.MULTILINE):
            at = shown.find(f"\n{part}" if part else "", at)
            assert at >= 0, f"{command} does not show:\n{part}\nbut:\n{done.stdout}"

    def edit(self, diff: str) -> None:
        """Applies a diff of one place."""
        name, *lines = diff.splitlines()
        path = self.folder / name.removeprefix("--- ")
        text = path.read_text(encoding="utf-8")
        old, new = ("".join(f"{line[1:]}\n" for line in lines if line[0] in kept) for kept in (" -", " +"))
        assert f"\n{text}".count(f"\n{old}") == 1, f"{path.name} is not as the page says:\n{diff}\n{text}"
        path.write_text(f"\n{text}".replace(f"\n{old}", f"\n{new}")[1:], encoding="utf-8")

    @property
    def api(self) -> Api:
        (cluster,) = self.world.cloud.find(CLUSTER)
        return Api(self.world.cloud, cluster.name)

    @property
    def pools(self) -> dict[str, Object]:
        return {item.name.rpartition("/")[2]: item for item in self.world.cloud.find(POOL)}

    @property
    def running(self) -> dict[str, Any]:
        """The admitted Workloads, by team and name."""
        return {
            f"{item['metadata']['namespace']}/{item['metadata']['name']}": item
            for item in workloads(self.api)
            if item.get("status", {}).get("admission") and not is_finished(item)
        }

    def submit(self, team: str, group: str) -> None:
        self.api.create(of_any_name(self.world.output / "manifests" / team / group / "hello-tpu" / "jobset.yaml"))

    def end_all(self) -> None:
        """The programs of all jobs that run end well."""
        running = {item["metadata"]["ownerReferences"][0]["uid"] for item in self.running.values()}
        (cluster,) = self.world.cloud.find(CLUSTER)
        jobs.end(self.world, cluster.name, [item for item in self.jobs if item["metadata"]["uid"] in running])

    @property
    def jobs(self) -> list[dict[str, Any]]:
        return self.api.of_kind("JobSet")

    @property
    def pods(self) -> list[dict[str, Any]]:
        return [pod for pod in self.api.all(POD) if pod["status"]["phase"] in ("Pending", "Running")]

    def members(self, team: str) -> list[str]:
        (binding,) = (item for item in self.api.of_kind("RoleBinding") if item["metadata"]["namespace"] == team)
        return [subject["name"] for subject in binding["subjects"]]


def after_adding(duty: Duty) -> None:
    assert duty.running == duty.running_before
    assert duty.pools_before.items() <= duty.pools.items()
    assert duty.pools.keys() - duty.pools_before.keys() == {"train-2", "dev-0"}
    assert duty.members("research") == ["alice@example.com", "bob@example.com"]
    assert duty.members("students") == ["carol@example.com"]
    duty.submit("students", "train")
    duty.submit("research", "dev")
    assert len(duty.running) == 4


def after_removing(duty: Duty) -> None:
    assert duty.pools.items() <= duty.pools_before.items()
    assert duty.pools_before.keys() - duty.pools.keys() == {"train-2", "dev-0"}
    assert duty.members("research") == ["alice@example.com"]
    assert not [item for item in duty.world.cloud.find() if "students" in item.name]
    of_students = [name for name in duty.running_before if name.startswith("students/")]
    assert duty.running == {name: job for name, job in duty.running_before.items() if name not in of_students}
    without_node = [pod for pod in duty.pods if "nodeName" not in pod["spec"]]
    assert [pod["spec"]["nodeSelector"]["tpuenv/pool-group"] for pod in without_node] == ["dev"]
    name = without_node[0]["metadata"]["labels"]["jobset.sigs.k8s.io/jobset-name"]
    why = "  also: slice: selects tpuenv/pool-group: dev, which no slice of its queue has; use train"
    duty.run(f"tpuenv why {name}", shows=f"{why}, and submit it again\n")
    duty.run(f"tpuenv cancel {name}")


def after_holding(duty: Duty) -> None:
    assert duty.running == duty.running_before
    duty.submit("research", "train")
    duty.end_all()
    assert duty.running == {}, "a slice is free, a job waits, and nothing starts"


def after_moving(duty: Duty) -> None:
    changed = {name for name, pool in duty.pools.items() if pool != duty.pools_before[name]}
    assert changed == {"train-0", "train-1"}
    assert [name.split("/")[0] for name in duty.running] == ["research"], "what waited has started"


def nothing_stopped(duty: Duty) -> None:
    assert duty.running == duty.running_before
    assert duty.pools == duty.pools_before


# What the page says of jobs and slices is so after these sections.
CHECKS: dict[str, Callable[[Duty], None]] = {
    "All of it": after_adding,
    "Remove each again": after_removing,
    "Hold the queues": after_holding,
    "Move to another reservation": after_moving,
    "Upgrade GKE while slices train": nothing_stopped,
    "Upgrade Kueue and JobSet": nothing_stopped,
}


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("terraform") is None, reason="terraform is not on the PATH")
def test_every_edit_and_command_of_the_page_does_what_the_page_says(tmp_path: Path) -> None:
    folder, older = tmp_path / "settings", tmp_path / "older"
    folder.mkdir()
    older.mkdir()
    (older / "sitecustomize.py").write_text(OLDER_PLATFORM, encoding="utf-8")
    text = published.vars_env().replace("PROJECT_ID=my-project", "PROJECT_ID=my-training")
    text = text.replace("OBSERVABILITY=true", "OBSERVABILITY=false")  # a stack that nothing of the page is about
    text = re.sub("^(TPU_TYPE|NUM_TPU_POOLS|NAMESPACE)=.*$", r"\1=", text, flags=re.MULTILINE)
    (folder / "vars.env").write_text(text, encoding="utf-8")
    (example,) = (block.text for block in BLOCKS if block.kind == "yaml")
    (folder / "fleet.yaml").write_text(example, encoding="utf-8")
    configured = environment.load(folder / "vars.env", process_env={}, fleet=folder / "fleet.yaml")
    with world_of(configured, tmp_path / "world", TPUENV_FOLDER=str(folder)) as world:
        for name in ("first", "second"):
            place = f"projects/{world.project.id_}/zones/us-east5-b/reservations/{name}"
            world.cloud.put(RESERVATION, place, RESERVED)
        duty = Duty(world=world, folder=folder, settings={PATCHES: str(older)})
        synthesize(world, **duty.settings)
        Ground(world=world).deploy()
        for team in ("research", "serving"):
            duty.submit(team, "train")
        typed = {command for block in BLOCKS if block.heading != TABLE for command in block.commands}
        for heading, of_heading in sections():
            duty.running_before, duty.pools_before = duty.running, duty.pools
            for block in of_heading:
                if block.kind == "diff":
                    duty.edit(block.text)
                for command in block.commands:
                    if words(command) == ["git", "pull"]:
                        del duty.settings[PATCHES]  # from now on the charts are those of this code
                    if words(command)[0] not in NOT_RUN and not (heading == TABLE and command in typed):
                        duty.run(command, shows=block.text.partition("\n")[2] if block.kind == "text" else "")
            if heading in CHECKS:
                CHECKS[heading](duty)


def test_after_every_deploy_of_the_page_jobs_and_slices_are_compared() -> None:
    deploys = {block.heading for block in BLOCKS if any("deploy" in words(command) for command in block.commands)}
    assert deploys == CHECKS.keys()
