"""The table of measurements as Markdown, and how a table gets into a page."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

from bench.measure import BIN, Memory, Seconds


def markdown(
    *,
    times: Mapping[str, Seconds],
    peaks: Mapping[str, Memory],
    slices: Mapping[int, Seconds],
    rehearsal: Seconds | None,
) -> str:
    """The whole table. `times` has `main.py` and `cdktf synth`, each as `ours` and `plain`: "main.py ours"."""
    rows = ["| | ours | plain bindings | |", "|---|---|---|---|"]
    for name in ("python main.py", "cdktf synth"):
        ours, plain = times[f"{name}, ours"], times[f"{name}, plain"]
        rows.append(f"| `{name}` | {ours} | {plain} | {ours.median / plain.median:.2f}x |")
    for kind in ("python", "node"):
        ours_mb, plain_mb = (getattr(peaks[way], kind) for way in ("ours", "plain"))
        rows.append(
            f"| peak memory of {kind.capitalize()} | {ours_mb:.0f} MB | {plain_mb:.0f} MB | {ours_mb / plain_mb:.2f}x |"
        )
    growth = dict(pairwise_growth(slices))
    for count, taken in slices.items():
        cost = f"{growth[count] * 1000:.1f} ms a slice more" if count in growth else ""
        rows.append(f"| `python main.py`, {count:,} slice{'s' if count > 1 else ''} | {taken} | | {cost} |")
    if rehearsal:
        rows.append(f"| `tpuenv rehearse` | {rehearsal} | | |")
    runs = len(next(iter(times.values())).runs)
    return "\n".join([*rows, "", f"Medians [lowest-highest] of {runs} interleaved runs on {machine()}."])


def pairwise_growth(slices: Mapping[int, Seconds]) -> list[tuple[int, float]]:
    """What each further slice takes, in seconds, from one measured count to the next."""
    return [
        (more, (slices[more].median - slices[fewer].median) / (more - fewer))
        for fewer, more in pairwise(sorted(slices))
    ]


def machine() -> str:
    """The machine in a few words that do not name it."""
    node = subprocess.run([BIN / "node", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    return (
        f"{os.cpu_count()} cores ({platform.system()} {platform.machine()}, "
        f"Python {platform.python_version()}, Node {node.removeprefix('v')})"
    )


def put_between_markers(text: str, name: str, table: str) -> str:
    """`text` with `table` between `<!-- NAME:begin -->` and `<!-- NAME:end -->`. Raises ValueError without both."""
    start, stop = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    before, begin, rest = text.partition(start)
    _, end, after = rest.partition(stop)
    if not begin or not end:
        raise ValueError(f"there is no place for the table: put a line {start} and a line {stop} where it belongs")
    return f"{before}{start}\n{table}\n{stop}{after}"


def write(page: Path, table: str) -> None:
    page.write_text(put_between_markers(page.read_text(encoding="utf-8"), "bench", table), encoding="utf-8")
