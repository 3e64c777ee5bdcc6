"""The outcomes of tests, stored and compared."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

from sluice_aio.errors import LaunchError

FAILED: Final = "failed"


@dataclass(slots=True)
class Outcomes:
    """One run: test id → outcome; ``why`` of those that did not pass; those that passed only at a second try."""

    tests: dict[str, str] = field(default_factory=dict)
    why: dict[str, str] = field(default_factory=dict)
    flaky: list[str] = field(default_factory=list)
    about: dict[str, str] = field(default_factory=dict)

    @property
    def failed(self) -> list[str]:
        """The tests that failed."""
        return [name for name, outcome in self.tests.items() if outcome == FAILED]

    def summary(self) -> str:
        """``1061 passed, 18 skipped``."""
        counts = Counter(self.tests.values())
        words = [f"{counts[outcome]} {outcome}" for outcome in ("passed", FAILED, "skipped") if counts[outcome]]
        if self.flaky:
            words.append(f"{len(self.flaky)} of the passed at a second try")
        return ", ".join(words) or "nothing was run"

    def add(self, test: str, outcome: str, why: str) -> None:
        """Add the outcome of one test."""
        self.tests[test] = outcome
        self.why.pop(test, None)
        if outcome != "passed":
            self.why[test] = why

    def retried(self, again: Outcomes) -> None:
        """Take over the results of a second try of the failed tests."""
        for test, outcome in again.tests.items():
            if outcome != FAILED and self.tests[test] == FAILED:
                self.flaky.append(test)
            self.add(test, outcome, again.why.get(test, ""))

    def save(self, path: Path) -> None:
        """Write it as JSON, in an order that makes small differences of small changes."""
        reasons = {test: self.why[test] for test in sorted(self.why)}
        data = {"about": self.about, "tests": dict(sorted(self.tests.items())), "flaky": sorted(self.flaky)}
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({**data, "why": reasons}, indent=0) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read the file that :meth:`save` wrote.

        :raises LaunchError: when it is missing
        """
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise LaunchError(f"no outcomes in `{path}`, run the baseline first and record it") from None
        return cls(data["tests"], data["why"], data["flaky"], data["about"])


def differences(ours: Outcomes, plain: Outcomes, chosen: Mapping[str, str] | None = None) -> list[str]:
    """One line for each test that ended differently; ``chosen`` limits the tests that must have been run."""
    expected = plain.tests if chosen is None else {test: plain.tests.get(test, "missing") for test in chosen}
    lines = []
    for test in sorted(expected.keys() | ours.tests.keys()):
        before, after = expected.get(test, "missing"), ours.tests.get(test, "missing")
        if before != after:
            lines.append(f"{test}: {after}, plain Swift: {before}")
    return lines
