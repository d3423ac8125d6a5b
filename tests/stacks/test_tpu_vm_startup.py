"""The start-up script of TPU VMs, with a metadata server and in place of systemd a program that notes what it is to
start.
"""

from __future__ import annotations

import http.server
import os
import stat
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from stacks.tpu_vms import STARTUP_SCRIPT

ENDPOINTS = "unknown:unknown:10.0.0.2,unknown:unknown:10.0.0.3"


@dataclass(kw_only=True)
class Host:
    """A host: its metadata, which a server answers, and what its script has started."""

    folder: Path
    attributes: dict[str, str] = field(default_factory=dict)
    address: str = ""

    @property
    def started(self) -> list[str]:
        """The commands that systemd was to run, oldest first, without its own options."""
        lines = (self.folder / "started").read_text().splitlines() if (self.folder / "started").exists() else []
        return [line[line.index("ray start") :] for line in lines]

    def boot(self) -> subprocess.CompletedProcess[str]:
        environment = {
            "PATH": f"{self.folder / 'programs'}:{os.environ['PATH']}",
            "GCE_METADATA_HOST": self.address,
            "RAY_FOLDER": str(self.folder / "ray"),
        }
        return subprocess.run(
            [sys.executable, STARTUP_SCRIPT], env=environment, capture_output=True, text=True, check=False, timeout=120
        )


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    """The second of two hosts, on which the packages are installed."""
    host = Host(folder=tmp_path)
    host.attributes = {
        "agent-worker-number": "1",
        "worker-network-endpoints": ENDPOINTS,
        "python-packages": "ray==1",
    }

    class Metadata(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            value = host.attributes.get(self.path.removeprefix("/computeMetadata/v1/instance/attributes/"))
            known = value is not None and self.headers["Metadata-Flavor"] == "Google"
            self.send_response(200 if known else 404)
            self.end_headers()
            self.wfile.write((value or "").encode())

        def log_message(self, *_: object) -> None:
            pass

    for name, text in {
        "id": "exit 1",
        "useradd": f'echo "$@" > {tmp_path}/users',
        "systemctl": "exit 0",
        "systemd-run": f'echo "$@" >> {tmp_path}/started',
    }.items():
        program = tmp_path / "programs" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    (tmp_path / "ray").mkdir()
    (tmp_path / "ray" / "installed").write_text("ray==1")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Metadata)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    host.address = f"127.0.0.1:{server.server_port}"
    yield host
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_first_host_is_the_head_and_its_dashboard_is_its_own(host: Host) -> None:
    host.attributes["agent-worker-number"] = "0"
    assert host.boot().returncode == 0
    assert host.started == [
        "ray start --block --disable-usage-stats --node-ip-address=10.0.0.2 --head --port=6379 "
        "--dashboard-host=127.0.0.1"
    ]


def test_every_other_host_joins_the_first(host: Host) -> None:
    assert host.boot().returncode == 0
    assert host.started == [
        "ray start --block --disable-usage-stats --node-ip-address=10.0.0.3 --address=10.0.0.2:6379"
    ]


def test_ray_does_not_run_as_root_and_starts_again_when_it_ends(host: Host) -> None:
    host.boot()
    assert (host.folder / "users").read_text() == "--system --create-home ray\n"
    (line,) = (host.folder / "started").read_text().splitlines()
    assert {"--uid=ray", "--property=Restart=always", "--property=LimitMEMLOCK=infinity"} <= set(line.split())


@pytest.mark.parametrize(
    ("attribute", "value"),
    [("agent-worker-number", None), ("agent-worker-number", "9"), ("worker-network-endpoints", "10.0.0.2")],
)
def test_metadata_that_cannot_be_used_is_said_in_one_line(host: Host, attribute: str, value: str | None) -> None:
    host.attributes.pop(attribute)
    if value is not None:
        host.attributes[attribute] = value
    ended = host.boot()
    assert ended.returncode == 1
    assert ended.stderr.startswith("Ray was not started: ") and ended.stderr.count("\n") == 1
    assert host.started == []


@pytest.mark.slow
def test_packages_are_installed_once_and_again_when_others_are_named(host: Host) -> None:
    for version in ("1.0", "2.0"):
        host.attributes["python-packages"] = str(wheel(host.folder, version))
        for installs in (True, False):
            ended = host.boot()
            assert ended.returncode == 0, ended.stdout + ended.stderr
            assert ("pip install" in ended.stdout) == installs
        ray = host.folder / "ray" / "bin" / "ray"
        assert subprocess.run([ray], capture_output=True, text=True, check=True).stdout == f"{version}\n"
    assert len(host.started) == 4


def wheel(folder: Path, version: str) -> Path:
    """A package `ray` whose program prints its version."""
    path = folder / f"ray-{version}-py3-none-any.whl"
    described = {
        "ray.py": f"def main() -> None:\n    print({version!r})\n",
        f"ray-{version}.dist-info/METADATA": f"Metadata-Version: 2.1\nName: ray\nVersion: {version}\n",
        f"ray-{version}.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"ray-{version}.dist-info/entry_points.txt": "[console_scripts]\nray = ray:main\n",
        f"ray-{version}.dist-info/RECORD": "",
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in described.items():
            archive.writestr(name, text)
    return path
