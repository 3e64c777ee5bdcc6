"""The table of the last whole runs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.support.swift_suite.outcomes import Outcomes, differences
from tests.support.swift_suite.trials import TRIALS


def write_table(results: Path) -> None:
    """Write ``RESULTS.md`` beside the recorded outcomes, from all of them."""
    lines = [
        "# Swift's functional suite, last whole runs",
        "",
        "Written by `python -m tests.support.swift_suite --record`; the outcomes of each test are in the JSON files.",
        "",
        "| set-up | | passed | failed | skipped | at 2nd try | other than plain | minutes | day | swift |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, trial in TRIALS.items():
        path = results / f"{name}.json"
        if not path.exists():
            lines.append(f"| {name} | {trial.title} | not run |")
            continue
        run = Outcomes.load(path)
        counts = Counter(run.tests.values())
        other = "–"
        if trial.baseline and (results / f"{trial.baseline}.json").exists():
            other = str(len(differences(run, Outcomes.load(results / f"{trial.baseline}.json"))))
        cells = [name, trial.title, *(str(counts[one]) for one in ("passed", "failed", "skipped"))]
        cells += [str(len(run.flaky)), other, run.about["minutes"], run.about["day"], run.about["swift"]]
        lines.append(f"| {' | '.join(cells)} |")
    results.mkdir(parents=True, exist_ok=True)
    (results / "RESULTS.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
