"""Writes the pictures of the dashboards in docs/: python -m tests.generate.dashboard_pictures

`make snapshots` and `make test-dashboards` run this; tests/dashboards fails while a picture differs.
"""

from __future__ import annotations

from environment.project import ROOT
from tests.dashboards import results
from tests.dashboards.picture import picture


def pictures() -> dict[str, str]:
    """By their path: a picture for each dashboard of the stack. Raises ValueError for a query without a result."""
    series = results.read().series
    return {
        f"docs/{id_}.svg": picture(dashboard, series, hours=results.HOURS)
        for id_, dashboard in results.drawn().items()
    }


if __name__ == "__main__":
    for path, text in pictures().items():
        (ROOT / path).write_text(text, encoding="utf-8")
