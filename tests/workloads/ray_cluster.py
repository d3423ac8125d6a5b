"""Runs the program of a RayJob on this machine: a Ray node for every pod, with CPU devices for the chips of its host.

What KubeRay would start: `ray start` with the cores and chips of the rendered manifest, and on the head, when all nodes
are there, its entrypoint. To the variables of the pods come those of GKE's device plugin and of the add-on's webhook.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import secrets
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from manifests.mesh import devices_per_chip
from manifests.render import Run, rendered
from rehearsal.started_processes import family, started
from tests.workloads.hosts import (
    LAST_CHARACTERS,
    PYTHON,
    Ended,
    HostsFailed,
    Pods,
    free_port,
    limits_of,
    of_this_machine,
    pod_environment,
)
from vocabulary.keys import TPU

STARTED = "Ray runtime started"
START_SECONDS = 600  # within which all nodes start also on a busy machine

# Ray's limit for an answer of a node is for machines that do nothing else, it takes a machine's memory for its own, and
# it leaves out lines of one host that are like those of another.
_ENVIRONMENT = {
    "RAY_DEDUP_LOGS": "0",
    "RAY_health_check_timeout_ms": "60000",
    "RAY_memory_monitor_refresh_ms": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
}

# Several nodes share this machine: no fixed ports, and little memory for objects, of which there are none.
_SHARING = (
    "--node-ip-address=127.0.0.1",
    "--min-worker-port=0",
    "--max-worker-port=0",
    "--dashboard-agent-listen-port=0",
    "--object-store-memory=80000000",
)


@functools.cache
def ray_python(python: Path = PYTHON) -> Path:
    """The Python by a path without spaces, which the command lines that Ray writes for its own processes need."""
    folder = Path(tempfile.mkdtemp(prefix="ray-python-", dir="/tmp"))
    atexit.register(shutil.rmtree, folder)
    (folder / "venv").symlink_to(python.parents[1])
    return folder / "venv" / "bin" / python.name


def ray_command(python: Path = PYTHON) -> tuple[str, ...]:
    """The program `ray`."""
    return str(ray_python(python)), "-m", "ray.scripts.scripts"


@dataclass(frozen=True, kw_only=True)
class RayJob:
    """The entrypoint of a RayJob, and the pods of its cluster: the head, and those with TPUs."""

    name: str
    entrypoint: str
    head: Pods
    hosts: Pods


def ray_job_of(run: Run, python: Path = PYTHON) -> RayJob:
    """The RayJob in the rendered manifest of a run of a recipe: one group of workers, a replica for each slice."""
    assert run.group is not None
    tpus = run.group.slice
    (job,) = (document for text in rendered(run).values() for document in yaml.safe_load_all(text))
    cluster = job["spec"]["rayClusterSpec"]
    (group,) = cluster["workerGroupSpecs"]
    words = (
        of_this_machine(word, run.recipe.folder, ray_python(python)) for word in shlex.split(job["spec"]["entrypoint"])
    )

    # KubeRay gives it to every container, from a Secret.
    token = {"RAY_AUTH_MODE": cluster["authOptions"]["mode"], "RAY_AUTH_TOKEN": secrets.token_hex(16)}

    def pods(described: Mapping[str, Any], slices: int, hosts: int) -> Pods:
        (container,) = described["template"]["spec"]["containers"]
        chips = int(limits_of(container).get(TPU, 0))
        # https://github.com/ray-project/kuberay/blob/v1.7.0/ray-operator/controllers/ray/common/pod.go
        cores = container["resources"]["requests"]["cpu"]
        flags = [f"--{key}={value}" for key, value in described["rayStartParams"].items()]
        flags += [f"--num-cpus={cores}", *([f'--resources={{"TPU": {chips}}}'] if chips else [])]
        return Pods(
            command=(*ray_command(python), "start", "--block", *flags),
            environment={variable["name"]: variable["value"] for variable in container.get("env", [])} | token,
            slices=slices,
            hosts=hosts,
            devices=chips * devices_per_chip(tpus),
            tpu_type=tpus.tpu_type,
            topology=tpus.topology,
        )

    return RayJob(
        name=job["metadata"]["name"],
        entrypoint=shlex.join(words),
        head=pods(cluster["headGroupSpec"], 1, 1),
        hosts=pods(group, group["replicas"], group["numOfHosts"]),
    )


class RayCluster:
    """The started nodes. What each writes is in `folder`, in head.log and {slice}-{host}.log."""

    def __init__(self, job: RayJob, folder: Path, **environment: str) -> None:
        self._job, self._folder = job, folder
        # Ray prints what is in this folder, and without it the logs of the compiler in every run on this machine.
        logs = folder / "tpu_logs"
        logs.mkdir(parents=True)
        self._environment = {**_ENVIRONMENT, "TPU_LOG_DIR": str(logs), **environment}
        # In a path that is longer than 107 bytes no socket can be.
        self._sockets = Path(tempfile.mkdtemp(prefix="ray-", dir="/tmp"))
        self._nodes: dict[str, subprocess.Popen[bytes]] = {}
        self._address = f"127.0.0.1:{free_port()}"

    def start(self) -> None:
        """All nodes. Raises HostsFailed when one has not started in time."""
        port = self._address.rpartition(":")[2]
        head = [*self._job.head.command, "--head", f"--port={port}", "--include-dashboard=false"]
        self._start_node("head", head, self._head_environment())
        for slice_ in range(self._job.hosts.slices):
            for host in range(self._job.hosts.hosts):
                self.start_host(slice_, host)

    def start_host(self, slice_: int, host: int) -> None:
        """The node of a host, for the first time or again. Raises HostsFailed when it has not started in time."""
        environment = {
            **pod_environment(self._job.hosts, host=host, folder=self._folder),
            # The webhook of the add-on: https://github.com/ai-on-gke/kuberay-tpu-webhook
            "TPU_NAME": f"slice-{slice_}",
        }
        self._start_node(f"{slice_}-{host}", [*self._job.hosts.command, f"--address={self._address}"], environment)

    def kill(self, slice_: int, host: int) -> None:
        """All processes of a host at once, as if its machine were gone."""
        kill_all(self._nodes.pop(f"{slice_}-{host}"))

    @contextlib.contextmanager
    def submitted(self) -> Iterator[subprocess.Popen[bytes]]:
        """The entrypoint on the head, which does not outlive the block. It writes to job.stdout and job.stderr."""
        environment = {
            **self._head_environment(),
            "RAY_ADDRESS": self._address,
            "RAY_CLUSTER_NAME": f"{self._job.name}-x7k2p",
        }
        with self.file("stdout").open("wb") as out, self.file("stderr").open("wb") as err:
            process = subprocess.Popen(
                ["bash", "-c", f"exec {self._job.entrypoint}"],
                env=environment,
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
            )
        try:
            yield process
        finally:
            kill_all(process)

    def file(self, stream: str) -> Path:
        return self._folder / f"job.{stream}"

    def wait_for(self, text: str, process: subprocess.Popen[bytes], *, seconds: float) -> None:
        """Until the program, or a host, has written `text`. Raises HostsFailed if it ends without, or too late."""
        limit = time.monotonic() + seconds
        while not any(text in self.file(stream).read_text(errors="replace") for stream in ("stdout", "stderr")):
            if process.poll() is not None:
                raise HostsFailed(f"the program ended without '{text}'\n{self._logs()}")
            if time.monotonic() > limit:
                raise HostsFailed(f"the program did not write '{text}' in {seconds:g} s\n{self._logs()}")
            time.sleep(0.2)

    def wait(self, process: subprocess.Popen[bytes], *, seconds: float) -> Ended:
        """How the program ended. Raises HostsFailed when the time is over."""
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise HostsFailed(f"after {seconds:g} s the program still runs\n{self._logs()}") from None
        stdout, stderr = (self.file(stream).read_text(errors="replace") for stream in ("stdout", "stderr"))
        return Ended(slice=0, host=0, code=code, stdout=stdout, stderr=stderr)

    def end(self) -> None:
        for process in self._nodes.values():
            kill_all(process)
        shutil.rmtree(self._sockets, ignore_errors=True)

    def _head_environment(self) -> dict[str, str]:
        taken = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        return {**taken, "HOME": str(self._folder), **self._job.head.environment, **self._environment}

    def _start_node(self, name: str, command: list[str], environment: Mapping[str, str]) -> None:
        """Until it is in the cluster. One that ends before is started again, as its pod would be: Ray gives a node 30
        seconds, whatever the machine, and for this reason they start one after the other.
        """
        limit = time.monotonic() + START_SECONDS
        log = self._folder / f"{name}.log"
        while name not in self._nodes or STARTED not in log.read_text(errors="replace"):
            if ended := [node for node, process in self._nodes.items() if node != name and process.poll() is not None]:
                raise HostsFailed(f"{' and '.join(ended)} ended before {name} had started\n{self._logs()}")
            if time.monotonic() > limit:
                raise HostsFailed(f"after {START_SECONDS} s {name} has not started\n{self._logs()}")
            if name in self._nodes and self._nodes[name].poll() is None:
                time.sleep(0.1)
                continue
            with log.open("wb") as out:
                self._nodes[name] = subprocess.Popen(
                    # A host has its own file system, and so its own sockets.
                    [*command, *_SHARING, f"--temp-dir={self._sockets / name}"],
                    env={**environment, **self._environment},
                    cwd=self._folder,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=out,
                )

    def _logs(self) -> str:
        files = [file for file in sorted(self._folder.iterdir()) if file.suffix in (".log", ".stdout", ".stderr")]
        return "\n".join(f"--- {file.name}:\n{file.read_text(errors='replace')[-LAST_CHARACTERS:]}" for file in files)


@contextlib.contextmanager
def started_cluster(job: RayJob, folder: Path, **environment: str) -> Iterator[RayCluster]:
    """The cluster of a RayJob, with all its nodes; none of them outlives the block."""
    cluster = RayCluster(job, folder, **environment)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.end()


def ran(job: RayJob, folder: Path, *, seconds: float, **environment: str) -> Ended:
    """How the program of a RayJob ended in a cluster of its own. Raises HostsFailed when the time is over."""
    with started_cluster(job, folder, **environment) as cluster, cluster.submitted() as process:
        return cluster.wait(process, seconds=seconds)


def kill_all(process: subprocess.Popen[bytes]) -> None:
    """A process and all that it has started, until none of them is there."""
    members = [(pid, started(pid)) for pid in family(process.pid)] if process.poll() is None else []
    for pid, _ in members:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait()
    while any(since and started(pid) == since for pid, since in members):
        time.sleep(0.05)
