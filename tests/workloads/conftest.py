"""The summary of `make run-workloads`: for each recipe what ran, and what did not and why."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import NoReturn

import pytest

from install.workloads import FOLDER
from manifests.recipes import all_recipes
from tests.workloads.hosts import PYTHON

# Recipes that no test here runs.
_ELSEWHERE = {
    "copy-data": "run by make test (tests/manifests/test_copy_data.py)",
    "ray-cluster": "no program of its own: it has the image of ray-jax, and such nodes",
    "ray-pytorch": "run by make run-workloads-pytorch, for which 7 GB more are installed",
    "saxml": "its client is run by make test (tests/manifests/test_saxml.py); of its servers there is no package",
    "vllm": "nothing: its image needs a TPU; how it is started is tested (tests/manifests/test_serving.py)",
}

_ENDING = (signal.SIGTERM, signal.SIGHUP)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Summary())


@dataclass
class Tests:
    """What has become of the tests of a recipe: their names, in words, and of those that did not run the reason."""

    passed: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    not_run: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def verdict(self) -> str:
        return "FAILED" if self.failed else "ok" if self.passed else "not run"


class Summary:
    """A plugin of pytest. A test of the marker `workloads(recipe)` counts for that recipe."""

    def __init__(self) -> None:
        self._recipe_of: dict[str, str] = {}
        self._tests: dict[str, Tests] = {}
        self._selected: list[str] = []
        self._begun: set[str] = set()
        self._ended: set[str] = set()

    def pytest_collection_modifyitems(self, items: Sequence[pytest.Item]) -> None:
        for item in items:
            if marker := item.get_closest_marker("workloads"):
                self._recipe_of[item.nodeid] = marker.args[0]
                if not PYTHON.exists():
                    item.add_marker(pytest.mark.skip(reason=f"there is no {FOLDER}; run make setup-workloads"))

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        for item in items:
            if marker := item.get_closest_marker("workloads"):
                is_long = item.get_closest_marker("long")
                reason = "long; make run-workloads runs it" if is_long else "not selected"
                self._of(marker.args[0]).not_run[_in_words(item.nodeid)] = reason

    def pytest_sessionstart(self) -> None:
        """Lets SIGTERM and SIGHUP end the test that runs, so that it ends its processes, as an interrupt does."""
        for number in _ENDING:
            signal.signal(number, _exit)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._selected = [item.nodeid for item in session.items if item.nodeid in self._recipe_of]

    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> None:
        """Ends the run after SIGTERM and SIGHUP: pytest counts a SystemExit as a failure of one test."""
        error = call.excinfo.value if call.excinfo else None
        if isinstance(error, SystemExit) and error.code in [128 + number for number in _ENDING]:
            pytest.exit("ended by a signal")  # with a returncode of its own there would be no summary

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        recipe = self._recipe_of.get(report.nodeid)
        if recipe is None:
            return
        self._begun.add(report.nodeid)
        if report.when == "teardown":
            self._ended.add(report.nodeid)
        tests, name = self._of(recipe), _in_words(report.nodeid)
        tests.seconds += report.duration
        if report.skipped:
            tests.not_run[name] = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
        elif report.failed and name not in tests.failed:
            tests.failed.append(name)
        elif report.passed and report.when == "call":
            tests.passed.append(name)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not any(tests.passed or tests.failed or tests.seconds for tests in self._tests.values()):
            return
        for nodeid in self._selected:
            if nodeid not in self._ended:
                when = "during" if nodeid in self._begun else "before"
                self._of(self._recipe_of[nodeid]).not_run[_in_words(nodeid)] = f"the run ended {when} it"
        terminalreporter.section("what ran of each recipe")
        for recipe in sorted({recipe.name for recipe in all_recipes()} | self._tests.keys()):
            tests = self._tests.get(recipe, Tests())
            elsewhere = _ELSEWHERE.get(recipe, "nothing: no test runs it here")
            what = _joined(tests.passed) or ("nothing" if tests.not_run else elsewhere)
            terminalreporter.write_line(f"{recipe:12} {tests.verdict:8} {tests.seconds:5.0f} s  {what}")
            for name in tests.failed:
                terminalreporter.write_line(f"{'':31}FAILED: {name}")
            for name, reason in tests.not_run.items():
                terminalreporter.write_line(f"{'':31}not run: {name} ({reason.removeprefix('Skipped: ')})")

    def _of(self, recipe: str) -> Tests:
        return self._tests.setdefault(recipe, Tests())


def _exit(number: int, _: FrameType | None) -> NoReturn:
    sys.exit(128 + number)


def _in_words(nodeid: str) -> str:
    """The name of a test, and in brackets its case."""
    name, bracket, case = nodeid.rpartition("::")[2].removeprefix("test_").partition("[")
    return name.replace("_", " ") + (f" ({case[:-1]})" if bracket else "")


def _joined(names: Sequence[str]) -> str:
    """All names; the cases of a test are behind its name together."""
    cases: dict[str, list[str]] = {}
    for name, _, case in (name.partition(" (") for name in names):
        cases.setdefault(name, []).extend([case[:-1]] if case else [])
    return "; ".join(f"{name} ({', '.join(each)})" if each else name for name, each in cases.items())
