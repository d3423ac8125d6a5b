"""One rehearsal's world: an empty fake cloud, its server process, and the environment in which tools meet it and
nothing else.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote
from types import TracebackType
from typing import IO

from rehearsal import started_processes
from rehearsal.cloud import Cloud
from rehearsal.cloudbuild.resources import connect
from rehearsal.google.cloud_storage_api import BUCKET
from rehearsal.google.locations import offer
from rehearsal.google.permissions import TOKEN, token_of
from rehearsal.google.project import create_project
from rehearsal.kubernetes import server
from rehearsal.terraform_program import find_terraform, write_scripts
from rehearsal.work_folder import CannotStart, check_temporary_folder, empty, lock, usable
from vocabulary.resource_types import check_files

ROOT = Path(__file__).resolve().parent.parent

# What passes from the process environment. Credentials, addresses and settings of Google Cloud, Kubernetes and
# Terraform do not.
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

ENVIRONMENT = "environment"

# Left behind by a rehearsal that was killed, it says so: Terraform would call a server that is gone for ten minutes.
_IF_IT_RUNS = """\
if ! kill -0 {server} 2>/dev/null; then
  echo 'That rehearsal has ended; start another: tpuenv rehearse --keep' >&2
  return 1
fi
"""


class Lost(Exception):
    """The fake cloud went away in the middle of the rehearsal."""


@dataclass(frozen=True, kw_only=True)
class Project:
    """The Google Cloud project as `tpuenv bootstrap` leaves it, with the repository that a person has connected."""

    id_: str
    number: str
    region: str
    state_bucket: str
    services: Sequence[str]
    repository: str = ""
    offered: Sequence[str] = ()  # regions, zones and GKE versions that Google has besides those it publishes


@dataclass(kw_only=True)
class World:
    """Use it in a `with`. `folder` belongs to it: what an earlier rehearsal left there is ended and removed.

    `settings` are variables that the tools get as well (those of vars.env that the process environment overrides).
    A `folder` with something in it must bear a rehearsal's mark, unless it is known to be `ours`.
    """

    folder: Path
    project: Project
    cache: Path
    settings: Mapping[str, str] = field(default_factory=dict)
    ours: bool = False
    _server: subprocess.Popen[str] | None = None
    _held: IO[str] | None = None
    _cloud: Cloud | None = None
    _announced: Mapping[str, str] = field(default_factory=dict)

    @property
    def output(self) -> Path:
        """What the stacks are synthesized into, and where Terraform works."""
        return self.folder / "cdktf.out"

    @property
    def cloud(self) -> Cloud:
        """The fake cloud; it can be read also when the rehearsal is over."""
        if self._cloud is None:
            self._cloud = Cloud(self.folder / "cloud.db")
        return self._cloud

    @property
    def address(self) -> str:
        """Of the HTTP server: Cloud Storage, and the clusters' API servers."""
        return self._announced["address"]

    @property
    def processes(self) -> Path:
        """Where processes are written down."""
        return self.folder / started_processes.FOLDER

    @property
    def terraform(self) -> Path:
        """Terraform (or OpenTofu) as the tools call it."""
        return self.folder / "terraform"

    @property
    def logs(self) -> Path:
        """What Terraform said when it last applied or destroyed: `<stack>`, and its exit code in `<stack>.code`."""
        return self.folder / "logs"

    def __enter__(self) -> World:
        check_temporary_folder()
        check_files()  # here, for the server would report one with a traceback
        terraform = find_terraform()
        self.folder = usable(self.folder, ours=self.ours)
        self._held = lock(self.folder)
        try:
            self._prepare(terraform)
            self._bootstrap()
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End every process of this world; its folder stays."""
        started_processes.end(self.processes)
        if self._server is not None:
            self._server.communicate()
            (self.folder / ENVIRONMENT).unlink(missing_ok=True)
        if self._held is not None:
            self._held.close()
        if self._cloud is not None:
            self._cloud.close()
            self._cloud = None

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
            "TERRAFORM_BINARY_NAME": str(self.terraform),
            "TF_CLI_CONFIG_FILE": str(self.folder / "terraform.rc"),
            "TF_REATTACH_PROVIDERS": self._announced["reattach"],
            # Runs are short: a third of their CPU time would be garbage collection. Memory is limited instead.
            "GOGC": "off",
            "GOMEMLIMIT": "512MiB",
            "TF_IN_AUTOMATION": "1",
            "TF_INPUT": "0",
            "GOOGLE_ARTIFACT_REGISTRY_CUSTOM_ENDPOINT": f"{self.address}/v1/",
            "GOOGLE_BACKEND_STORAGE_CUSTOM_ENDPOINT": f"{self.address}/storage/v1/",
            "GOOGLE_CLOUD_BUILD_CUSTOM_ENDPOINT": f"{self.address}/v1/",
            "GOOGLE_CLOUD_BILLING_CUSTOM_ENDPOINT": f"{self.address}/v1/",
            "GOOGLE_CLOUD_QUOTAS_CUSTOM_ENDPOINT": f"{self.address}/v1/",
            "GOOGLE_COMPUTE_CUSTOM_ENDPOINT": f"{self.address}/compute/v1/",
            "GOOGLE_CONTAINER_CUSTOM_ENDPOINT": f"{self.address}/v1/",
            "GOOGLE_MONITORING_CUSTOM_ENDPOINT": f"{self.address}/v3/",
            "GOOGLE_ORG_POLICY_CUSTOM_ENDPOINT": f"{self.address}/v2/",
            "GOOGLE_RESOURCE_MANAGER_V3_CUSTOM_ENDPOINT": f"{self.address}/v3/",
            "GOOGLE_SERVICE_USAGE_CUSTOM_ENDPOINT": f"{self.address}/v1/",
            "TPUENV_CLUSTER_ENDPOINT": f"{self.address}{server.PREFIX}{{endpoint}}",
            "GOOGLE_VERTEX_AI_CUSTOM_ENDPOINT": f"{self.address}/v1/",
            "GOOGLE_OAUTH_ACCESS_TOKEN": TOKEN,
            "KUBECONFIG": str(home / "no-kubeconfig"),
            "CHECKPOINT_DISABLE": "1",
            "DISABLE_VERSION_CHECK": "1",
            "CDKTF_DISABLE_PLUGIN_CACHE_ENV": "1",
            "CI": "1",
            "FORCE_COLOR": "0",
            **more,
        }

    def as_account(self, email: str) -> dict[str, str]:
        """What differs in the environment of tools that act as a service account of the fake cloud."""
        with urllib.request.urlopen(f"{self.address}/providers?account={urllib.parse.quote(email)}") as answer:
            reattach = json.load(answer)["reattach"]
        return {"GOOGLE_OAUTH_ACCESS_TOKEN": token_of(email), "TF_REATTACH_PROVIDERS": reattach}

    def check(self) -> None:
        """Raises Lost when the server is gone: everything that asks it would wait."""
        if self._server is not None and self._server.poll() is not None:
            last = (self.folder / "server.log").read_text(errors="replace").strip()[-2000:]
            raise Lost(f"the fake cloud's server ended with exit code {self._server.returncode}; {last or 'no word'}")

    def write_environment(self) -> Path:
        """A file to source in a shell whose tools are to meet this world; they work as long as it does."""
        assert self._server is not None
        path = self.folder / ENVIRONMENT
        # The options --output and --skip-provider-lock of cdktf; of this cloud's providers there is nothing to lock.
        environment = self.environment(CDKTF_OUTPUT=str(self.output), CDKTF_SKIP_PROVIDER_LOCK="true")
        exports = "".join(f"export {name}={quote(value)}\n" for name, value in environment.items())
        path.write_text(_IF_IT_RUNS.format(server=self._server.pid) + exports)
        return path

    def _prepare(self, terraform: Path) -> None:
        empty(self.folder, ours=self.ours, end=lambda: started_processes.end(self.processes))
        for folder in (self.folder / "home", self.output, self.processes, self.logs):
            folder.mkdir(parents=True)
        write_scripts(self.folder, terraform, logs=self.logs, notes=self.processes)

    def _bootstrap(self) -> None:
        cloud, project = self.cloud, self.project
        create_project(cloud, project.id_, number=project.number, services=list(project.services))
        bucket = {
            "name": project.state_bucket,
            "project": project.id_,
            "location": project.region,
            "uniform_bucket_level_access": True,
            "public_access_prevention": "enforced",
            "versioning": [{"enabled": True}],
        }
        cloud.put(BUCKET, project.state_bucket, bucket)
        for name in project.offered:
            offer(cloud, name)
        if project.repository:
            connect(cloud, project.repository)

    def _start(self) -> None:
        log = self.folder / "server.log"
        with log.open("w") as errors:
            self._server = subprocess.Popen(
                [sys.executable, "-m", "rehearsal.serve", str(self.folder), str(self.cache)],
                cwd=ROOT,
                env={"PATH": os.defpath, "LANG": "C.UTF-8"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        started_processes.record(self.processes, self._server.pid)
        assert self._server.stdout is not None
        line = self._server.stdout.readline()
        if not line:
            raise CannotStart(f"the rehearsal's server did not start: {log.read_text()}")
        self._announced = json.loads(line)
