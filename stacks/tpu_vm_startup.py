#!/usr/bin/env python3
"""Joins the hosts of a slice of TPU VMs to one Ray cluster. Google runs it on each host as root, at every boot.

Python 3.8 or later, and its standard library alone. It can run any number of times: what is installed stays, and Ray is
restarted. Ray runs as a service of systemd, which starts it again when it ends: a host that was restarted joins
again, and after a restart of the first host, which is the head, all others do.
https://cloud.google.com/compute/docs/instances/startup-scripts/linux
"""

from __future__ import annotations

import glob
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request

# As Google's own libraries have it.
METADATA = "http://{}/computeMetadata/v1/instance/attributes/".format(
    os.environ.get("GCE_METADATA_HOST", "metadata.google.internal")
)
FOLDER = os.environ.get("RAY_FOLDER", "/opt/ray")  # the virtual environment
DEVICES = os.environ.get("RAY_DEVICES", "/dev")
USER = "ray"
PORT = os.environ.get("RAY_PORT", "6379")

_TRIES = 30
_SECONDS = 10


def attribute(name: str) -> str:
    """Of the VM's metadata. Raises urllib.error.HTTPError for one that does not exist."""
    request = urllib.request.Request(METADATA + name, headers={"Metadata-Flavor": "Google"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return str(answer.read().decode()).strip()


def hosts() -> list[str]:
    """The addresses of the slice's hosts in their order.

    As JAX reads them: `unknown:unknown:10.0.0.2,unknown:unknown:10.0.0.3` (jax/_src/clusters/cloud_tpu_cluster.py).
    """
    return [endpoint.split(":")[2] for endpoint in attribute("worker-network-endpoints").split(",")]


def install(packages: str) -> None:
    """The packages in a virtual environment, each with a hash of its file. One list of packages is installed once."""
    done, listed = os.path.join(FOLDER, "installed"), FOLDER + ".txt"
    if os.path.exists(done):
        with open(done, encoding="utf-8") as file:
            if file.read() == packages:
                return
        os.remove(done)
    with open(listed, "w", encoding="utf-8") as file:
        file.write(packages)
    try:
        run(sys.executable, "-m", "venv", "--clear", FOLDER)
    except subprocess.CalledProcessError:  # Ubuntu has venv in a package of its own
        retried("apt-get", "update")
        retried("apt-get", "install", "--yes", "python3-venv")
        run(sys.executable, "-m", "venv", "--clear", FOLDER)
    checked = ("--no-deps", "--require-hashes", "--only-binary=:all:")
    retried(os.path.join(FOLDER, "bin", "pip"), "install", "--no-cache-dir", *checked, "-r", listed)
    with open(done, "w", encoding="utf-8") as file:
        file.write(packages)


def open_chips() -> None:
    """Lets Ray's user open the chips of this host, which the kernel may have given to root alone, until it restarts."""
    names = sorted(name for kind in ("accel*", "vfio/*") for name in glob.glob(os.path.join(DEVICES, kind)))
    devices = [name for name in names if not os.path.isdir(name)]
    if devices:
        run("chgrp", USER, *devices)
        run("chmod", "g+rw", *devices)


def start(host: int, addresses: list[str]) -> None:
    """Ray on this host, as a service that systemd starts again whenever it ends. Its dashboard is for this host only.

    Ray counts the chips, and reads the type and the name of the slice from the metadata.
    """
    head = ["--head", f"--port={PORT}", "--dashboard-host=127.0.0.1"]
    others = [f"--address={addresses[0]}:{PORT}"]
    subprocess.run(["systemctl", "stop", "ray.service"], check=False)
    run(
        *("systemd-run", "--unit=ray", "--collect", f"--uid={USER}", f"--working-directory=/home/{USER}"),
        *("--property=Restart=always", "--property=RestartSec=10"),
        # A TPU is mapped into memory that must not be swapped out; Ray has a file open for each connection.
        *("--property=LimitMEMLOCK=infinity", "--property=LimitNOFILE=65536"),
        f"--setenv=PATH={FOLDER}/bin:/usr/local/bin:/usr/bin:/bin",
        *(os.path.join(FOLDER, "bin", "ray"), "start", "--block", "--disable-usage-stats"),
        f"--node-ip-address={addresses[host]}",
        *(others if host else head),
    )


def run(*command: str) -> None:
    """Raises subprocess.CalledProcessError."""
    print("+", *command, flush=True)
    subprocess.run(command, check=True)


def retried(*command: str) -> None:
    """`run`, again and again while it fails: the network of a new VM may not be ready. Raises as `run` in the end."""
    for left in reversed(range(_TRIES)):
        try:
            return run(*command)
        except subprocess.CalledProcessError:
            if not left:
                raise
            time.sleep(_SECONDS)


def main() -> int:
    """0, or 1 with the reason on stderr, which is in the log of the VM: journalctl -u google-startup-scripts."""
    try:
        host, addresses = int(attribute("agent-worker-number")), hosts()
        packages = attribute("python-packages")
        if subprocess.run(["id", USER], check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode:
            run("useradd", "--system", "--create-home", USER)
        open_chips()
        install(packages)
        start(host, addresses)
    except (subprocess.CalledProcessError, urllib.error.URLError, OSError, ValueError, IndexError) as error:
        print(f"Ray was not started: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
