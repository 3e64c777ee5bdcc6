"""A pytest plugin inside the suite's process: runs the chosen tests, and reports each outcome at once.

``SLUICE_SUITE_CHOICE`` names a file with the test ids to run, one a line (all when it is not set).
``SLUICE_SUITE_REPORT`` names the file that gets a JSON line for each event: ``{"collected": [ids]}``,
``{"begins": id}`` and ``{"test": id, "outcome": "passed|failed|skipped", "why": text}``; the worst
outcome of a test's phases and subtests is its own.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Final

import pytest

CHOICE: Final = "SLUICE_SUITE_CHOICE"
REPORT: Final = "SLUICE_SUITE_REPORT"
_WORSE: Final = ("passed", "skipped", "failed")
_LONGEST: Final = 4000


class Reporter:
    """Writes the events of one run."""

    def __init__(self, report: Path, choice: frozenset[str] | None) -> None:
        self._report = report
        self._choice = choice
        self._outcome = ("passed", "")

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Leave the chosen tests, in their order."""
        if self._choice is not None:
            config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in self._choice])
            items[:] = [item for item in items if item.nodeid in self._choice]
        self._say(collected=[item.nodeid for item in items])

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Report that a test starts."""
        self._outcome = ("passed", "")
        self._say(begins=nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Report a phase of a test, or one of its subtests."""
        if _WORSE.index(report.outcome) > _WORSE.index(self._outcome[0]):
            self._outcome = (report.outcome, _reason(report))

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Report the end of the test."""
        outcome, why = self._outcome
        self._say(test=nodeid, outcome=outcome, why=why)

    def _say(self, **event: Any) -> None:
        with open(self._report, "a", encoding="utf-8") as file:
            file.write(json.dumps(event) + "\n")


def _reason(report: pytest.TestReport) -> str:
    if report.outcome == "skipped" and isinstance(report.longrepr, tuple):
        return str(report.longrepr[2])
    return str(report.longrepr)[-_LONGEST:]


def pytest_configure(config: pytest.Config) -> None:
    """Start to report."""
    choice = os.environ.get(CHOICE)
    ids = None if choice is None else frozenset(Path(choice).read_text(encoding="utf-8").splitlines())
    config.pluginmanager.register(Reporter(Path(os.environ[REPORT]), ids), "sluice-suite")
