"""The real Prometheus: its programs, built by Go from pinned sources, and a server that holds the samples of a file."""

from __future__ import annotations

import json
import math
import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from environment.project import ROOT
from tests.dashboards.series_notation import values_of

VERSION = "v0.316.0"  # of the Go module: Prometheus 3.16
_PROGRAMS = ROOT / ".venv" / f"prometheus-{VERSION}"
# Without the clients of clouds that a server finds its targets with: the tests have no targets.
_TAGS = "remove_all_sd"
_INTERVAL = 60  # seconds between two samples


class CannotBuild(Exception):
    """The text says what is missing."""


def program(name: str) -> Path:
    """Of `prometheus` and `promtool`, built the first time it is asked for. Raises CannotBuild."""
    path = _PROGRAMS / name
    if not path.exists():
        if shutil.which("go") is None:
            raise CannotBuild("go: not on the PATH; `make test-dashboards` builds Prometheus with it (https://go.dev)")
        module = f"github.com/prometheus/prometheus/cmd/{name}@{VERSION}"
        print(f"Building {name} {VERSION}, once (about two minutes) ...", flush=True)
        done = subprocess.run(
            ["go", "install", "-tags", _TAGS, module],
            env={**os.environ, "GOBIN": str(_PROGRAMS)},
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise CannotBuild(f"go install {module}: {done.stderr.strip()}")
    return path


@contextmanager
def served(series: Mapping[str, str], folder: Path) -> Iterator[str]:
    """The address of a server with these series, the first sample of each at time 0, for as long as it runs.

    https://prometheus.io/docs/prometheus/latest/storage/#backfilling-from-openmetrics-format
    """
    samples, data = folder / "samples.txt", folder / "data"
    samples.write_text("\n".join([*_open_metrics(series), "# EOF\n"]), encoding="utf-8")
    subprocess.run(
        [program("promtool"), "tsdb", "create-blocks-from", "openmetrics", "-q", samples, data],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    configuration = folder / "prometheus.yml"
    configuration.touch()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [
        program("prometheus"),
        f"--config.file={configuration}",
        f"--storage.tsdb.path={data}",
        "--storage.tsdb.retention.time=100y",
        f"--web.listen-address={address}",
        "--log.level=error",
    ]
    with subprocess.Popen(command) as server:
        try:
            _wait_until_ready(server, f"http://{address}/-/ready")
            yield f"http://{address}"
        finally:
            server.terminate()


def range_query(address: str, query: str, *, end: int, step: int) -> list[tuple[dict[str, str], list[float | None]]]:
    """Labels and values of every series, from time 0 to `end`, one value a step; all in seconds. Raises ValueError.

    https://prometheus.io/docs/prometheus/latest/querying/api/#range-queries
    """
    form = urllib.parse.urlencode({"query": query, "start": 0, "end": end, "step": step}).encode()
    try:
        with urllib.request.urlopen(f"{address}/api/v1/query_range", form, timeout=60) as reply:
            result: list[dict[str, Any]] = json.load(reply)["data"]["result"]
    except urllib.error.HTTPError as error:
        raise ValueError(f"{query}: {json.load(error)['error']}") from None
    series = []
    for item in sorted(result, key=lambda item: sorted(item["metric"].items())):
        at = {int(time_): float(value) for time_, value in item["values"]}
        numbers = [at.get(time_) for time_ in range(0, end + 1, step)]
        series.append((item["metric"], [None if n is None or not math.isfinite(n) else n for n in numbers]))
    return series


def _open_metrics(series: Mapping[str, str]) -> Iterator[str]:
    """The samples of each name together, without a type: with one, `_total` and `_bucket` would have to fit to it."""
    for name in sorted(series, key=lambda name: (name.partition("{")[0], name)):
        for index, value in enumerate(values_of(series[name])):
            if value is not None:
                yield f"{name} {value!r} {index * _INTERVAL}"


def _wait_until_ready(server: subprocess.Popen[bytes], address: str) -> None:
    while server.poll() is None:
        try:
            with urllib.request.urlopen(address, timeout=10):
                return
        except OSError:
            time.sleep(0.1)
    raise ChildProcessError(f"prometheus ended with exit code {server.returncode} before it was ready")
