"""`tpuenv cost`: what the environment costs an hour and a month, by pool group, capacity mode and team."""

from __future__ import annotations

import json
from pathlib import Path

from environment import project
from tpuenv.commands import options
from tpuenv.commands.command import command
from tpuenv.cost import report, report_text
from tpuenv.cost.prices import load


@command(
    summary="what it costs an hour and a month, by pool group and team",
    examples=(
        "tpuenv cost",
        "NUM_TPU_POOLS=4 tpuenv cost",
        "tpuenv cost --prices prices.yaml   your own over the list prices",
        "tpuenv cost --json",
    ),
    notes="""\
`tpuenv plan` shows what a change costs. The form of a price file, and where the list prices are from: docs/cost.md.

Exit codes: 0 printed, also where prices are not known; 2 wrong settings, arguments or price file.
""",
)
@options.prices
@options.flag("--json", "print JSON")
def cost(*, prices: Path | None, json: bool) -> None:
    """Prints what the environment that the settings describe costs when all of it is deployed: an hour and a month,
    while no job runs and while jobs use every slice and CPU node. It needs no login and no network: prices are list
    prices of a file with their dates and sources. What has no known price there counts as unknown, and a total without
    it ends with a plus sign.
    """
    environment = project.load_and_warn()
    _print(report.report(environment, load(prices, environment.settings.region)), as_json=json)


def _print(estimated: report.Report, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(report.as_json(estimated), indent=2))
        return
    print("\n".join(report_text.lines(estimated)))
