"""Runs the program of a run's TPU pods on this machine: a process a host, with CPU devices for its chips.

Command, arguments and variables are those of the rendered manifest, with which Kubernetes would start the pods. To them
come the variables that GKE adds, and those that make JAX count CPU devices as chips. `.venv-workloads` has the packages
of the image.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from install.steps import ROOT, Layout
from install.workloads import FOLDER
from manifests.mesh import devices_per_chip
from manifests.render import Run, rendered
from vocabulary.keys import TPU

PYTHON = Layout(root=ROOT, folder=FOLDER).python

# The value of PYTHONPATH with which a process stands for a slice.
SLICES_OF_PROCESSES = str(Path(__file__).with_name("slices_of_processes"))

LAST_CHARACTERS = 3000  # of a host's output, in a message


@dataclass(frozen=True, kw_only=True)
class Pods:
    """What the TPU pods of a run start: `command` with its arguments, in so many slices of so many hosts.

    `devices` are those of one host. `environment` is what the manifest sets; GKE's variables come for each host.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str]
    slices: int
    hosts: int
    devices: int
    tpu_type: str
    topology: str

    def with_environment(self, **variables: str) -> Pods:
        return dataclasses.replace(self, environment={**self.environment, **variables})


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How the process of a host ended: its exit code, negative for a signal, and what it wrote."""

    slice: int
    host: int
    code: int
    stdout: str
    stderr: str

    @property
    def lines(self) -> list[Any]:
        """The lines of standard output that are JSON objects."""
        return [json.loads(line) for line in self.stdout.splitlines() if line.startswith("{")]


class HostsFailed(AssertionError):
    """The hosts did not end as they must. The text has the end of what each wrote."""


def pods_of(run: Run) -> Pods:
    """The pods that ask for TPUs in the rendered manifest of a run of a recipe; there is one kind of them."""
    assert run.group is not None
    job_set, job = next(iter(_tpu_jobs(run)))
    spec = job["template"]["spec"]
    (container,) = (each for each in spec["template"]["spec"]["containers"] if TPU in limits_of(each))
    environment: dict[str, str] = {}
    for variable in container.get("env", []):
        if "value" in variable:
            environment[variable["name"]] = _expanded(variable["value"], environment)
        else:
            field = variable["valueFrom"]["fieldRef"]["fieldPath"]
            assert field == "metadata.labels['jobset.sigs.k8s.io/jobset-name']", field
            environment[variable["name"]] = job_set["metadata"]["name"]
    words = [*(container.get("command") or _entrypoint(run.recipe.folder)), *container.get("args", [])]
    return Pods(
        command=tuple(of_this_machine(_expanded(word, environment), run.recipe.folder) for word in words),
        environment=environment,
        slices=int(job["replicas"]),
        hosts=int(spec["parallelism"]),
        devices=int(limits_of(container)[TPU]) * devices_per_chip(run.group.slice),
        tpu_type=run.group.slice.tpu_type,
        topology=run.group.slice.topology,
    )


def _tpu_jobs(run: Run) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Each JobSet, and the replicated job in it whose pods ask for TPUs."""
    for text in rendered(run).values():
        for document in yaml.safe_load_all(text):
            for job in document["spec"].get("replicatedJobs", []) if document["kind"] == "JobSet" else ():
                if any(TPU in limits_of(each) for each in job["template"]["spec"]["template"]["spec"]["containers"]):
                    yield document, job


def limits_of(container: Mapping[str, Any]) -> dict[str, Any]:
    return dict(container.get("resources", {}).get("limits", {}))


def _entrypoint(recipe: Path) -> list[str]:
    (words,) = re.findall(r"^ENTRYPOINT (\[.*\])$", (recipe / "Dockerfile").read_text(encoding="utf-8"), re.MULTILINE)
    return [str(word) for word in json.loads(words)]


def _expanded(text: str, environment: Mapping[str, str]) -> str:
    """With the value of each $(NAME) that is set; $$(NAME) is the text $(NAME). As in Kubernetes."""

    def value(match: re.Match[str]) -> str:
        return match[0][1:] if match[0].startswith("$$") else environment.get(match[1], match[0])

    return re.sub(r"\$?\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)", value, text)


def of_this_machine(word: str, recipe: Path, python: Path = PYTHON) -> str:
    """The Python and the files of the image are here those of .venv-workloads and of the recipe."""
    if word == "python":
        return str(python)
    file = recipe / Path(word).name
    return str(file) if word in (f"/{file.name}", f"/app/{file.name}", file.name) and file.is_file() else word


def pod_environment(pods: Pods, *, host: int, folder: Path) -> dict[str, str]:
    """The variables of a pod on a host: the manifest's, those of GKE's device plugin (TPU_ACCELERATOR_TYPE,
    TPU_TOPOLOGY, TPU_SKIP_MDS_QUERY) and of its admission webhooks, and those that make its CPU the TPU.
    """
    return {
        **{name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ},
        "HOME": str(folder),
        **pods.environment,
        "TPU_ACCELERATOR_TYPE": pods.tpu_type,
        "TPU_TOPOLOGY": pods.topology,
        "TPU_SKIP_MDS_QUERY": "true",
        "TPU_WORKER_ID": str(host),
        "TPU_WORKER_HOSTNAMES": ",".join(["localhost"] * pods.hosts),
        "JAX_PLATFORMS": "cpu",
        "JAX_NUM_CPU_DEVICES": str(pods.devices),
        "JAX_CPU_COLLECTIVES_IMPLEMENTATION": "gloo",
    }


def host_environment(pods: Pods, *, slice_: int, host: int, port: int, folder: Path) -> dict[str, str]:
    """The variables of one host of a JobSet.

    GKE's webhook sets MEGASCALE_* for more slices than one. Of one slice they are empty here, because JAX asks the
    metadata server for what is not set (https://github.com/jax-ml/jax/issues/40854).
    """
    several = pods.slices > 1
    return {
        **pod_environment(pods, host=host, folder=folder),
        "MEGASCALE_NUM_SLICES": str(pods.slices) if several else "",
        "MEGASCALE_SLICE_ID": str(slice_) if several else "",
        "MEGASCALE_COORDINATOR_ADDRESS": "localhost" if several else "",
        "JAX_FORCE_TPU_INIT": "1",
        "JAX_COORDINATOR_PORT": str(port),
    }


class Hosts:
    """The started processes. What each writes is in `folder`, in {slice}-{host}.stdout and .stderr."""

    def __init__(self, pods: Pods, folder: Path) -> None:
        self._folder = folder
        self._processes: dict[tuple[int, int], subprocess.Popen[bytes]] = {}
        folder.mkdir(parents=True, exist_ok=True)
        port = free_port()
        for slice_ in range(pods.slices):
            for host in range(pods.hosts):
                environment = host_environment(pods, slice_=slice_, host=host, port=port, folder=folder)
                stdout, stderr = (self.file(slice_, host, stream) for stream in ("stdout", "stderr"))
                with stdout.open("wb") as out, stderr.open("wb") as err:
                    self._processes[slice_, host] = subprocess.Popen(
                        pods.command, env=environment, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=err
                    )

    def file(self, slice_: int, host: int, stream: str) -> Path:
        return self._folder / f"{slice_}-{host}.{stream}"

    def wait_for(self, text: str, *, slice_: int = 0, host: int = 0, stream: str = "stdout", seconds: float) -> None:
        """Until the host has written `text`. Raises HostsFailed if it ends without, or the time is over."""
        limit = time.monotonic() + seconds
        while text not in self.file(slice_, host, stream).read_text(encoding="utf-8", errors="replace"):
            if self._processes[slice_, host].poll() is not None:
                raise HostsFailed(f"host {slice_}-{host} ended without '{text}'\n{self._outputs()}")
            if time.monotonic() > limit:
                raise HostsFailed(f"host {slice_}-{host} did not write '{text}' in {seconds:g} s\n{self._outputs()}")
            time.sleep(0.2)

    def signal(self, number: signal.Signals, *, slice_: int = 0, host: int = 0) -> None:
        self._processes[slice_, host].send_signal(number)

    def wait(self, *, seconds: float, until_each_ends: bool = False) -> list[Ended]:
        """Until all have ended; by slice and host.

        When one fails, the others are killed, as the JobSet does with its pods; unless `until_each_ends`, which waits
        for each to end by itself. Raises HostsFailed when the time is over.
        """
        limit = time.monotonic() + seconds
        while None in (codes := [process.poll() for process in self._processes.values()]):
            if not until_each_ends and any(codes):
                # What belongs to the failure is still written by the others.
                time.sleep(2)
                self.end()
                break
            if time.monotonic() > limit:
                running = [f"{slice_}-{host}" for (slice_, host), it in self._processes.items() if it.poll() is None]
                raise HostsFailed(f"after {seconds:g} s hosts {', '.join(running)} still run\n{self._outputs()}")
            time.sleep(0.1)
        return [
            Ended(
                slice=slice_,
                host=host,
                code=process.wait(),
                stdout=self.file(slice_, host, "stdout").read_text(encoding="utf-8", errors="replace"),
                stderr=self.file(slice_, host, "stderr").read_text(encoding="utf-8", errors="replace"),
            )
            for (slice_, host), process in self._processes.items()
        ]

    def end(self) -> None:
        """Kill those that still run."""
        for process in self._processes.values():
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        for process in self._processes.values():
            process.wait()

    def _outputs(self) -> str:
        texts = []
        for slice_, host in self._processes:
            for stream in ("stdout", "stderr"):
                text = self.file(slice_, host, stream).read_text(encoding="utf-8", errors="replace")
                texts.append(f"--- host {slice_}-{host}, {stream}:\n{text[-LAST_CHARACTERS:]}")
        return "\n".join(texts)


@contextlib.contextmanager
def started(pods: Pods, folder: Path) -> Iterator[Hosts]:
    """All hosts, started; none of them outlives the block."""
    hosts = Hosts(pods, folder)
    try:
        yield hosts
    finally:
        hosts.end()


def ran(pods: Pods, folder: Path, *, seconds: float, until_each_ends: bool = False) -> list[Ended]:
    """How every host ended, by slice and host, as `wait` has it. Raises HostsFailed when the time is over."""
    with started(pods, folder) as hosts:
        return hosts.wait(seconds=seconds, until_each_ends=until_each_ends)


def free_port() -> int:
    with socket.socket() as any_port:
        any_port.bind(("", 0))
        return int(any_port.getsockname()[1])
