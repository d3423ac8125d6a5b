"""One rehearsal's world: an empty played cloud, its server process, and the environment in which tools meet it and nothing else."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from rehearsal import processes
from rehearsal.cloud import Cloud
from rehearsal.gcs import BUCKET
from rehearsal.rules.project import TOKEN, make_project

ROOT = Path(__file__).resolve().parent.parent

# What passes from the process environment. Credentials, addresses and settings of Google Cloud, Kubernetes and Terraform do not.
_PASSED = (
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
    "TERM",
    "COLUMNS",
    "JSII_NODE",
    "JSII_RUNTIME_PACKAGE_CACHE_ROOT",
)

# Without a method of installation, Terraform can't get a provider from anywhere.
_TERRAFORM_RC = "provider_installation {\n}\n"


@dataclass(frozen=True, kw_only=True)
class Project:
    """The Google Cloud project as `tpuenv bootstrap` leaves it."""

    id_: str
    number: str
    region: str
    state_bucket: str
    services: Sequence[str]


@dataclass(kw_only=True)
class World:
    """Use it in a `with`. `folder` belongs to it: whatever an earlier rehearsal left there is ended and removed.

    `settings` are variables that the tools get as well (those of vars.env that the process environment overrides).
    """

    folder: Path
    project: Project
    cache: Path
    settings: Mapping[str, str] = field(default_factory=dict)
    _server: subprocess.Popen[str] | None = None
    _announced: Mapping[str, str] = field(default_factory=dict)

    @property
    def output(self) -> Path:
        """What the stacks are synthesized into, and where Terraform works."""
        return self.folder / "cdktf.out"

    @property
    def cloud(self) -> Cloud:
        return Cloud(self.folder / "cloud.db")

    @property
    def address(self) -> str:
        """Of the HTTP server: Cloud Storage, and the clusters' API servers."""
        return self._announced["address"]

    @property
    def processes(self) -> Path:
        return self.folder / "processes"

    def __enter__(self) -> World:
        self._prepare()
        self._bootstrap()
        self._start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        processes.end(self.processes)
        if self._server is not None:
            self._server.communicate()

    def environment(self, **more: str) -> dict[str, str]:
        """The whole environment of every tool: nothing outside of this list reaches them."""
        passed = {name: os.environ[name] for name in _PASSED if name in os.environ}
        home = self.folder / "home"
        binaries = [str(Path(sys.executable).parent), *os.environ.get("PATH", os.defpath).split(os.pathsep)]
        return {
            **passed,
            **self.settings,
            "PATH": os.pathsep.join(dict.fromkeys(binaries)),
            "HOME": str(home),
            "XDG_CACHE_HOME": str(home / "cache"),
            "XDG_CONFIG_HOME": str(home / "config"),
            "CDKTF_HOME": str(home / "cdktf"),
            "TF_CLI_CONFIG_FILE": str(self.folder / "terraform.rc"),
            "TF_REATTACH_PROVIDERS": self._announced["reattach"],
            "TF_IN_AUTOMATION": "1",
            "TF_INPUT": "0",
            "GOOGLE_BACKEND_STORAGE_CUSTOM_ENDPOINT": f"{self.address}/storage/v1/",
            "GOOGLE_OAUTH_ACCESS_TOKEN": TOKEN,
            "KUBECONFIG": str(home / "no-kubeconfig"),
            "CHECKPOINT_DISABLE": "1",
            "CDKTF_DISABLE_PLUGIN_CACHE_ENV": "1",
            "CI": "1",
            "FORCE_COLOR": "0",
            **more,
        }

    def _prepare(self) -> None:
        processes.end(self.processes)
        shutil.rmtree(self.folder, ignore_errors=True)
        for folder in (self.folder / "home", self.output):
            folder.mkdir(parents=True)
        (self.folder / "terraform.rc").write_text(_TERRAFORM_RC)

    def _bootstrap(self) -> None:
        cloud, project = self.cloud, self.project
        make_project(cloud, project.id_, number=project.number, services=list(project.services))
        bucket = {
            "name": project.state_bucket,
            "project": project.id_,
            "location": project.region,
            "uniform_bucket_level_access": True,
            "public_access_prevention": "enforced",
            "versioning": [{"enabled": True}],
        }
        cloud.put(BUCKET, project.state_bucket, bucket)

    def _start(self) -> None:
        arguments = [str(self.folder / "cloud.db"), str(self.output), str(self.cache)]
        self._server = subprocess.Popen(
            [sys.executable, "-m", "rehearsal.serve", *arguments],
            cwd=ROOT,
            env={"PATH": os.defpath, "LANG": "C.UTF-8"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        processes.record(self.processes, self._server.pid)
        assert self._server.stdout is not None
        line = self._server.stdout.readline()
        if not line:
            raise RuntimeError("the rehearsal's server did not start")
        self._announced = json.loads(line)
