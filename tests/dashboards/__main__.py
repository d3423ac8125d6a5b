"""Tests the alerts with the samples, and writes what the dashboards' queries make of them: make test-dashboards"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

from tests.dashboards import results
from tests.dashboards.prometheus import CannotBuild, program, range_query, served


def main() -> int:
    rules = results.watched()
    queries = dict.fromkeys(query for dashboard in results.drawn().values() for query in dashboard.queries)
    try:
        promtool = program("promtool")
        program("prometheus")
    except CannotBuild as error:
        print(f"test-dashboards: {error}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        recorded = [{"record": f"query:{index}", "expr": query} for index, query in enumerate(results.of_every_case())]
        (folder / "every-case.yaml").write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": recorded}]}))
        (folder / "rules.yaml").write_text(yaml.safe_dump({"groups": [{"name": "alerts", "rules": rules}]}))
        (folder / "tests.yaml").write_text(yaml.safe_dump(results.unit_tests()))
        for command in (["check", "rules", "every-case.yaml"], ["test", "rules", "tests.yaml"]):
            if code := subprocess.run([promtool, *command], cwd=folder).returncode:
                return code
        with served(results.samples(), folder) as address:
            series = {
                query: range_query(address, query, end=results.HOURS * 3600, step=results.STEP) for query in queries
            }
    results.write(results.Results(samples=results.checksum_of_the_samples(), rules=rules, series=series))
    print(f"{len(rules)} alerts are tested; the series of {len(queries)} queries are in {results.RESULTS.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
