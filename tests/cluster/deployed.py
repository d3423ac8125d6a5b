"""An environment that is applied to the cluster: what a test does with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import yaml

from stacks.charts import CHARTS
from tests.cluster.api import ApiServer, Object, until
from tests.cluster.lab import Terraform
from tests.cluster.outcome import ADMITTED, outcome_of

# One member of every team of the fleet in conftest.py.
MEMBERS = {"research": "alice@example.com", "serving": "carol@example.com", "older": "dave@example.com"}


@dataclass(frozen=True, kw_only=True)
class Deployed:
    api: ApiServer
    output: Path
    stacks: dict[str, Terraform]
    teams: tuple[str, ...]
    runs_pods: bool

    def submit(self) -> list[Object]:
        """One slice's job of every team."""
        jobs = []
        for team in self.teams:
            path = sorted((self.output / "manifests" / team).rglob("hello-tpu/jobset.yaml"))[0]
            job_set = yaml.safe_load(path.read_text(encoding="utf-8"))
            job_set["metadata"]["generateName"] = f"{job_set['metadata'].pop('name')}-"
            jobs.append(self.api.create(job_set))
        return jobs

    def admitted(self, job: Object) -> bool:
        outcome = until("Kueue to decide", lambda: outcome_of(self.api, job))
        return outcome.kind == ADMITTED

    def drain(self, team: str) -> subprocess.CompletedProcess[str]:
        """The program that Helm runs as a Job before a queue goes."""
        values = json.dumps({"clusterQueue": team, "limitSeconds": 280})
        return subprocess.run(
            [sys.executable, str(CHARTS / "drain" / "files" / "drain.py")],
            env={**os.environ, "KUBERNETES_API": self.api.address, "VALUES": values},
            capture_output=True,
            text=True,
        )
