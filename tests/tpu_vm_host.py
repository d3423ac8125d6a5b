"""A host of TPU VMs on this machine, for its start-up script: a metadata server, and programs for the system's."""

from __future__ import annotations

import http.server
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from stacks.tpu_vms import STARTUP_SCRIPT

INSTALLED = "ray==1 --hash=sha256:0"


@dataclass(kw_only=True)
class Host:
    """A host: its metadata, which a server answers, and what its script has started."""

    folder: Path
    attributes: dict[str, str] = field(default_factory=dict)
    address: str = ""

    @property
    def started(self) -> list[str]:
        """The commands that systemd was to run, oldest first, with its own options."""
        path = self.folder / "started"
        return path.read_text().splitlines() if path.exists() else []

    @property
    def programs(self) -> Path:
        """Where the programs of the virtual environment are."""
        return self.folder / "ray" / "bin"

    def boot(self, **environment: str) -> subprocess.CompletedProcess[str]:
        """What Google runs when the host starts."""
        return subprocess.run(
            [sys.executable, STARTUP_SCRIPT],
            env={
                "PATH": f"{self.folder / 'system'}:{os.environ['PATH']}",
                "GCE_METADATA_HOST": self.address,
                "RAY_FOLDER": str(self.folder / "ray"),
                "RAY_DEVICES": str(self.folder / "dev"),
                **environment,
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )


@contextmanager
def host(folder: Path, number: int, addresses: list[str]) -> Iterator[Host]:
    """The host of that number in a slice of hosts with these addresses. The packages INSTALLED are on it."""
    result = Host(
        folder=folder,
        attributes={
            "agent-worker-number": str(number),
            "worker-network-endpoints": ",".join(f"unknown:unknown:{address}" for address in addresses),
            "python-packages": INSTALLED,
        },
    )

    class Metadata(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            value = result.attributes.get(self.path.removeprefix("/computeMetadata/v1/instance/attributes/"))
            known = value is not None and self.headers["Metadata-Flavor"] == "Google"
            self.send_response(200 if known else 404)
            self.end_headers()
            self.wfile.write((value or "").encode())

        def log_message(self, *_: object) -> None:
            pass

    for name, text in {
        "id": "exit 1",
        "chgrp": f'echo chgrp "$@" >> {folder}/devices',
        "chmod": f'echo chmod "$@" >> {folder}/devices',
        "useradd": f'echo "$@" > {folder}/users',
        "systemctl": "exit 0",
        "systemd-run": f'echo "$@" >> {folder}/started',
    }.items():
        program = folder / "system" / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)
    result.programs.mkdir(parents=True)
    (folder / "ray" / "installed").write_text(INSTALLED)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Metadata)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    result.address = f"127.0.0.1:{server.server_port}"
    try:
        yield result
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
