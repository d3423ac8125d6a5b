"""The README's tables, made from what they describe. `make snapshots` writes them; tests/test_readme.py compares them.

`python -m tests.generate.readme_tables` writes them by hand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from environment.tpu import ZONES, slice_for
from tests import published
from tests.generate.identities_table import identities_table

ROOT = Path(__file__).resolve().parent.parent.parent
README = ROOT / "README.md"

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
    """Key, default and meaning of every setting, as vars.env has them."""
    rows = ["| key | in `vars.env` | |", "|---|---|---|"]
    for keys, comment in _settings():
        names = "<br>".join(f"`{key}`" for key, _ in keys)
        values = "<br>".join(f"`{value}`" if value else "" for _, value in keys)
        rows.append(f"| {names} | {values} | {comment} |")
    return "\n".join(rows)


def _settings() -> Iterator[tuple[list[tuple[str, str]], str]]:
    """Every block of vars.env: its keys with their values, and the comment above them."""
    for block in published.vars_env().split("\n\n"):
        lines = block.splitlines()
        keys = [(key, value) for key, _, value in (line.partition("=") for line in lines if not line.startswith("#"))]
        comment = " ".join(line.lstrip("# ") for line in lines if line.startswith("#"))
        if keys:
            yield keys, re.sub(r"\|", r"\\|", comment)


def tpu_table() -> str:
    """A row a TPU type: what it is made of."""
    rows = ["| `TPU_TYPE` | machine type | topology | hosts | chips | zones |", "|---|---|---|---|---|---|"]
    for generation, types in SHOWN.items():
        zones = ", ".join(ZONES[generation])
        for tpu_type in types:
            slice_ = slice_for(tpu_type)
            cells = (tpu_type, slice_.machine_type.name, slice_.topology, slice_.hosts, slice_.chips)
            rows.append(
                f"| `{cells[0]}` | {' | '.join(map(str, cells[1:]))} | {zones if tpu_type == types[0] else ''} |"
            )
    return "\n".join(rows)


def replaced(text: str) -> str:
    """The README's text with its tables made anew."""
    for name, table in (("settings", settings_table()), ("tpus", tpu_table()), ("identities", identities_table())):
        begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
        before, _, rest = text.partition(begin)
        _, _, after = rest.partition(end)
        text = f"{before}{begin}\n{table}\n{end}{after}"
    return text


if __name__ == "__main__":
    README.write_text(replaced(README.read_text(encoding="utf-8")), encoding="utf-8")
