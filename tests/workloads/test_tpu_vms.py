"""The start-up script of TPU VMs with the real Ray: two hosts join one cluster, also without the head at first."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import dropwhile
from pathlib import Path

import pytest

from tests.tpu_vm_host import Host, host
from tests.workloads.hosts import free_port
from tests.workloads.ray_cluster import START_SECONDS, STARTED, kill_all, ray_command, ray_python

pytestmark = pytest.mark.workloads("tpu-vms")

ADDRESSES = ["127.0.0.2", "127.0.0.3"]

PROGRAM = """
import ray, sys

@ray.remote(num_cpus=0)
def where():
    return ray.util.get_node_ip_address()

ray.init(address=sys.argv[1], logging_level="error")
nodes = [node["NodeID"] for node in ray.nodes() if node["Alive"]]
strategies = [ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node, soft=False) for node in nodes]
print(sorted(ray.get([where.options(scheduling_strategy=strategy).remote() for strategy in strategies])))
"""


class Slice:
    """Two hosts, and in place of systemd this: it starts Ray again on each of them while it ends by itself."""

    def __init__(self, hosts: list[Host], sockets: Path) -> None:
        self.hosts, self.port = hosts, str(free_port())
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        # Ray takes a minute to count the head as gone.
        patience = {"RAY_gcs_rpc_server_reconnect_timeout_s": "5", "RAY_memory_monitor_refresh_ms": "0"}
        self._environment = [
            {"PATH": os.environ["PATH"], "HOME": str(one.folder), "RAY_TMPDIR": str(sockets / str(number)), **patience}
            for number, one in enumerate(hosts)
        ]

    def boot(self, number: int) -> None:
        """Start a host, or start it again: then nothing is left of what ran on it."""
        self.kill(number)
        booted = self.hosts[number].boot(RAY_PORT=self.port)
        assert booted.returncode == 0, booted
        self._start(number)

    def _start(self, number: int) -> None:
        words = shlex.split(self.hosts[number].started[-1])
        command = list(dropwhile(lambda word: word.startswith("--"), words))  # systemd's own options
        with self.log(number).open("ab") as log:
            self._running[number] = subprocess.Popen(
                [*command, "--object-store-memory=80000000", "--num-cpus=1"],
                env=self._environment[number],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def kill(self, number: int) -> None:
        """All processes of a host at once, as if its machine were gone."""
        if process := self._running.pop(number, None):
            kill_all(process)

    def log(self, number: int) -> Path:
        return self.hosts[number].folder / "ray.log"

    def joined(self, number: int) -> int:
        """How often the host has joined."""
        return self.log(number).read_text(errors="replace").count(STARTED)

    def wait(self, number: int, times: int) -> None:
        """Until the host has joined so often."""
        limit = time.monotonic() + START_SECONDS
        while self.joined(number) < times:
            assert time.monotonic() < limit, self.log(number).read_text(errors="replace")[-3000:]
            for other in [other for other, process in self._running.items() if process.poll() is not None]:
                self._start(other)
            time.sleep(0.2)

    def nodes(self) -> str:
        """The addresses of the nodes on which a task has run."""
        head = f"{ADDRESSES[0]}:{self.port}"
        command = [str(ray_python()), "-c", PROGRAM, head]
        return subprocess.run(
            command, env=self._environment[0], capture_output=True, text=True, check=True, timeout=START_SECONDS
        ).stdout.strip()


@pytest.fixture
def slice_(tmp_path: Path) -> Iterator[Slice]:
    with ExitStack() as stack:
        # In a path that is longer than 107 bytes no socket can be.
        sockets = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp")))
        hosts = [stack.enter_context(host(tmp_path / str(number), number, ADDRESSES)) for number in (0, 1)]
        for one in hosts:
            ray = one.programs / "ray"
            ray.write_text(f'#!/bin/sh\nexec {shlex.join(ray_command())} "$@"\n')
            ray.chmod(0o755)
        result = Slice(hosts, sockets)
        for number in (0, 1):
            stack.callback(result.kill, number)
        yield result


@pytest.mark.long
def test_two_hosts_join_one_cluster_and_again_after_the_head_was_restarted(slice_: Slice) -> None:
    slice_.boot(1)  # before there is a head
    slice_.boot(0)
    slice_.wait(1, 1)
    slice_.boot(0)
    slice_.wait(1, 2)
    assert slice_.nodes() == str(ADDRESSES)
