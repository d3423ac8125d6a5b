"""Writes the tables of README.md and docs/ from what they describe: python -m tests.generate.docs_tables

A table is between `<!-- NAME:begin -->` and `<!-- NAME:end -->` in the page that PAGES gives for it. `make snapshots`
runs this; tests/test_docs.py fails while a page differs.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.table import put_between_markers
from environment import load
from environment.names import PIPELINE, TPU_VMS
from environment.tpu import slice_for, tpu_types
from environment.tpu_catalogue import MACHINE_TYPES, ZONES_OF_GENERATION
from stacks.alerts import alerts
from stacks.app import STACKS
from stacks.pipeline import Pipeline
from stacks.queries import metrics
from stacks.tpu_vms import TpuVms
from tests import published
from tests.generate.identities_table import identities_table
from tests.generate.preflight_screen import preflight_screen
from tpuenv.cost.prices import load as load_prices
from tpuenv.cost.report import report
from tpuenv.cost.report_text import difference, lines

ROOT = Path(__file__).resolve().parent.parent.parent
SNAPSHOTS = ROOT / "tests" / "stacks" / "__snapshots__" / "test_snapshots"

REHEARSAL = """\
```text
Deploy: cdktf deploy '*'
{added}
...
Submit every recipe for every team
...
  hello-tpu on 1 slice of pool group tpu
    tpu-training: admitted: slice, 4 pods, on node pool tpu-0 in us-east5-b
      (hosts 0 to 3, 4 chips each)
```"""

# The settings that README.md shows, with the first sentence of what vars.env says of them.
MAIN_SETTINGS = (
    "PROJECT_ID",
    "RESOURCE_PREFIX",
    "REGION",
    "ZONE",
    "TPU_TYPE",
    "NUM_TPU_POOLS",
    "NAMESPACE",
    "MEMBERS",
    "DELETION_PROTECTION",
    "BUILD_REPOSITORY",
)

# Of each generation: one host, then the sizes that people train on, up to the largest two-dimensional slice.
SHOWN = {
    "v4": ["v4-8", "v4-16", "v4-32", "v4-64", "v4-128", "v4-256", "v4-512", "v4-1024", "v4-2048", "v4-4096"],
    "v5e": [
        "v5litepod-4",
        "v5litepod-8",
        "v5litepod-16",
        "v5litepod-32",
        "v5litepod-64",
        "v5litepod-128",
        "v5litepod-256",
    ],
    "v5p": ["v5p-8", "v5p-16", "v5p-32", "v5p-64", "v5p-128", "v5p-256", "v5p-512", "v5p-1024", "v5p-2048"],
    "v6e": ["v6e-4", "v6e-8", "v6e-16", "v6e-32", "v6e-64", "v6e-128", "v6e-256"],
    "tpu7x": ["tpu7x-8", "tpu7x-16", "tpu7x-32", "tpu7x-64", "tpu7x-128", "tpu7x-256", "tpu7x-512", "tpu7x-1024"],
}


def settings_table() -> str:
    """A row for each block of vars.env: keys, defaults, and its comment."""
    rows = ["| key | in `vars.env` | |", "|---|---|---|"]
    for keys, comment in _settings():
        names = "<br>".join(f"`{key}`" for key, _ in keys)
        values = "<br>".join(f"`{value}`" if value else "" for _, value in keys)
        rows.append(f"| {names} | {values} | {comment} |")
    return "\n".join(rows)


def main_settings_table() -> str:
    """A row for each of MAIN_SETTINGS: key, default, and the first sentence of its comment."""
    rows = {
        key: f"| `{key}` | {f'`{value}`' if value else ''} | {comment.partition('. ')[0].rstrip('.')} |"
        for keys, comment in _settings()
        for key, value in keys
    }
    return "\n".join(["| key | in `vars.env` | |", "|---|---|---|", *(rows[key] for key in MAIN_SETTINGS)])


def _settings() -> Iterator[tuple[list[tuple[str, str]], str]]:
    """Every block of vars.env: its keys with their values, and the comment above them."""
    for block in published.vars_env().split("\n\n"):
        lines = block.splitlines()
        keys = [(key, value) for key, _, value in (line.partition("=") for line in lines if not line.startswith("#"))]
        comment = " ".join(line.lstrip("# ") for line in lines if line.startswith("#"))
        if keys:
            yield keys, re.sub(r"\|", r"\\|", comment)


def slices_table() -> str:
    """A row for each TPU type of SHOWN: what it consists of."""
    rows = ["| `TPU_TYPE` | machine type | topology | hosts | chips |", "|---|---|---|---|---|"]
    for types in SHOWN.values():
        for tpu_type in types:
            slice_ = slice_for(tpu_type)
            rows.append(
                f"| `{tpu_type}` | {slice_.machine_type.name} | {slice_.topology} | {slice_.hosts} | {slice_.chips} |"
            )
    return "\n".join(rows)


def families_table() -> str:
    """A row for each generation: its smallest and largest slice of several hosts."""
    rows = ["| generation | `TPU_TYPE`, several hosts | chips | also as one host |", "|---|---|---|---|"]
    for generation in ZONES_OF_GENERATION:
        slices = [slice_for(tpu_type) for tpu_type in tpu_types(generation)]
        several = [slice_ for slice_ in slices if slice_.multi_host]
        first, last = several[0], several[-1]
        alone = ", ".join(f"`{slice_.tpu_type}`" for slice_ in slices if not slice_.multi_host)
        rows.append(
            f"| {generation} | `{first.tpu_type}` to `{last.tpu_type}` | {first.chips} to {last.chips:,} | {alone} |"
        )
    return "\n".join(rows)


def machines_table() -> str:
    """A row for each machine type that a slice can consist of."""
    rows = [
        "| generation | machine type | chips | vCPU | memory | hosts in a slice | DWS |",
        "|---|---|---|---|---|---|---|",
    ]
    for machine in MACHINE_TYPES:
        hosts = "one or more" if machine.multi_host else "one"
        dws = "yes" if machine.flex_start else "no"
        rows.append(
            f"| {machine.generation} | {machine.name} | {machine.chips_per_host} | {machine.vcpu} "
            f"| {machine.memory_gb} GB | {hosts} | {dws} |"
        )
    return "\n".join(rows)


def zones_table() -> str:
    rows = ["| generation | zones |", "|---|---|"]
    return "\n".join(
        [*rows, *(f"| {generation} | {', '.join(zones)} |" for generation, zones in ZONES_OF_GENERATION.items())]
    )


def stacks_table() -> str:
    """A row for each stack in the order of deployment: the first line of its file."""
    line = list(STACKS.items())
    rows = ["| stack | |", "|---|---|"]
    optional = {Pipeline: "`BUILD_REPOSITORY`", TpuVms: "`tpu_vms` in `fleet.yaml`"}
    for name, stack in [line[0], (PIPELINE, Pipeline), *line[1:], (TPU_VMS, TpuVms)]:
        described = (sys.modules[stack.__module__].__doc__ or "").partition("\n")[0].rstrip(".")
        rows.append(f"| `{name}`{f' (with {optional[stack]})' if stack in optional else ''} | {described} |")
    return "\n".join(rows)


def rehearsal_output() -> str:
    """The first and the last lines that a rehearsal of the default environment prints of its deployment."""
    lines = []
    for name in STACKS:
        (snapshot,) = SNAPSHOTS.glob(f"*[[]default-{name}].json")
        by_type = json.loads(snapshot.read_text(encoding="utf-8"))["resource"]
        lines.append(f"  {name:16} {sum(map(len, by_type.values()))} added")
    return REHEARSAL.format(added="\n".join(lines))


def cost_screen() -> str:
    """What `tpuenv cost` prints of an environment with four capacity modes and three teams."""
    case = ROOT / "tests" / "cases" / "three-teams-four-groups.env"
    environment = load(case, {}, case.with_suffix(".fleet.yaml"))
    shown = lines(report(environment, load_prices(None, environment.settings.region)))
    return "\n".join(["```text", "$ tpuenv cost", *shown, "```"])


def cost_of_a_slice() -> str:
    """How `tpuenv plan` ends for one more slice of the default environment."""
    environments = [load(ROOT / "tests" / "cases" / "default.env", {"NUM_TPU_POOLS": count}) for count in ("2", "3")]
    prices = load_prices(None, environments[0].settings.region)
    before, after = (report(environment, prices).total for environment in environments)
    return "\n".join(["```text", *difference(before, after, prices.used), "```"])


def alerts_table() -> str:
    """A row for each alert: what it is, after how long, and what to do."""
    rows = ["| an alert says that | after | what to do |", "|---|---|---|"]
    environment = load(ROOT / "tests" / "cases" / "default.env", {})
    rows += [f"| {alert.title} | {alert.minutes} min | {alert.help} |" for alert in alerts(environment)]
    return "\n".join(rows)


def metrics_table() -> str:
    """A row for each metric: its name in Cloud Monitoring, what it is, and the page that documents it."""
    rows = ["| metric | what it is | |", "|---|---|---|"]
    for row in metrics().values():
        what = "; ".join(filter(None, [row["what"], row.get("note", "")]))
        rows.append(f"| `{row['cloud_monitoring']}` | {what} | [source]({row['source']}) |")
    return "\n".join(rows)


PAGES: dict[str, dict[str, Callable[[], str]]] = {
    "README.md": {
        "rehearsal": rehearsal_output,
        "main-settings": main_settings_table,
        "families": families_table,
        "stacks": stacks_table,
    },
    "docs/settings.md": {"settings": settings_table},
    "docs/tpu-types.md": {"slices": slices_table, "machines": machines_table, "zones": zones_table},
    "docs/identities.md": {"identities": identities_table},
    "docs/preflight.md": {"preflight": preflight_screen},
    "docs/observability.md": {"alerts": alerts_table, "metrics": metrics_table},
    "docs/cost.md": {"cost": cost_screen, "change": cost_of_a_slice},
}


def with_tables(page: str) -> str:
    """The page's text with the tables of now. Raises ValueError where a marker is missing."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for name, table in PAGES[page].items():
        text = put_between_markers(text, name, table())
    return text


if __name__ == "__main__":
    for page in PAGES:
        (ROOT / page).write_text(with_tables(page), encoding="utf-8")
