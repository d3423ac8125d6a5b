"""Writes the pictures of the dashboards in docs/: python -m tests.generate.dashboard_pictures

`make snapshots` and `make test-dashboards` run this; tests/dashboards fails while a picture differs.
"""

from __future__ import annotations

from environment.project import ROOT
from tests.dashboards import results
from tests.dashboards.picture import picture

# Titles of dashboards by the path of their picture.
PICTURES = {"docs/dashboard-tpus.svg": "shared: TPUs", "docs/dashboard-queues.svg": "shared: queues and jobs"}


def pictures() -> dict[str, str]:
    """By their paths. Raises KeyError for a query without a result: `make test-dashboards` makes one."""
    series, dashboards = results.read().series, results.drawn()
    return {path: picture(dashboards[title], series, hours=results.HOURS) for path, title in PICTURES.items()}


if __name__ == "__main__":
    for path, text in pictures().items():
        (ROOT / path).write_text(text, encoding="utf-8")
