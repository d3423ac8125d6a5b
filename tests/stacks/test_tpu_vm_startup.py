"""The start-up script of TPU VMs, with a metadata server and in place of systemd a program that notes what it is to
start.
"""

from __future__ import annotations

import hashlib
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tpu_vm_host import Host
from tests.tpu_vm_host import host as a_host


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    """The second of two hosts."""
    with a_host(tmp_path, 1, ["10.0.0.2", "10.0.0.3"]) as result:
        yield result


def commands(host: Host) -> list[str]:
    """What systemd was to run, without its own options."""
    return [line[line.index("ray start") :] for line in host.started]


def test_the_first_host_is_the_head_and_its_dashboard_is_its_own(host: Host) -> None:
    host.attributes["agent-worker-number"] = "0"
    assert host.boot().returncode == 0
    assert commands(host) == [
        "ray start --block --disable-usage-stats --node-ip-address=10.0.0.2 --head --port=6379 "
        "--dashboard-host=127.0.0.1"
    ]


def test_every_other_host_joins_the_first(host: Host) -> None:
    assert host.boot().returncode == 0
    assert commands(host) == [
        "ray start --block --disable-usage-stats --node-ip-address=10.0.0.3 --address=10.0.0.2:6379"
    ]


def test_ray_does_not_run_as_root_and_starts_again_when_it_ends(host: Host) -> None:
    host.boot()
    assert (host.folder / "users").read_text() == "--system --create-home ray\n"
    (line,) = host.started
    assert {"--uid=ray", "--property=Restart=always", "--property=LimitMEMLOCK=infinity"} <= set(line.split())


@pytest.mark.parametrize("names", [["accel0", "accel1"], ["vfio/0", "vfio/vfio"], []])
def test_the_user_of_ray_may_open_the_chips_of_the_host(host: Host, names: list[str]) -> None:
    devices = [host.folder / "dev" / name for name in names]
    for device in [*devices, host.folder / "dev" / "vfio" / "devices" / "vfio0", host.folder / "dev" / "null"]:
        device.parent.mkdir(parents=True, exist_ok=True)
        device.touch()
    assert host.boot().returncode == 0
    changed = host.folder / "devices"
    paths = " ".join(map(str, devices))
    expected = [f"chgrp ray {paths}", f"chmod g+rw {paths}"] if devices else []
    assert (changed.read_text().splitlines() if changed.exists() else []) == expected
    assert len(host.started) == 1


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
        path = wheel(host.folder, version)
        host.attributes["python-packages"] = f"{path} --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"
        for installs in (True, False):
            ended = host.boot()
            assert ended.returncode == 0, ended.stdout + ended.stderr
            assert ("pip install" in ended.stdout) == installs
        assert (
            subprocess.run([host.programs / "ray"], capture_output=True, text=True, check=True).stdout == f"{version}\n"
        )
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
