"""The file of results: figures with their time and machine.

A run replaces the rows of the parts that it measured and keeps the others, each with the run that it is from.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Self

from benchmarks.harness.figures import Figure

#: The fact about its machine that identifies a run.
_AT: Final = "at"


@dataclass(frozen=True, slots=True)
class Results:
    """``runs`` are the facts about the machine of each run, by the time at which it began; the last is the newest."""

    figures: Sequence[Figure] = ()
    runs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of_run(cls, facts: Mapping[str, Any], figures: Iterable[Figure], failed: Mapping[str, str]) -> Self:
        """The facts of one run."""
        at = str(facts[_AT])
        return cls([replace(one, run=at) for one in figures], {at: facts}, failed)

    @classmethod
    def load(cls, file: Path) -> Self:
        """The content of a file; empty if there is none."""
        if not file.exists():
            return cls()
        data = json.loads(file.read_text(encoding="utf-8"))
        runs = data.get("runs") or {data["machine"][_AT]: data["machine"]}
        first = next(iter(runs))  # of rows from a version with only one run
        figures = [Figure.from_data({"run": first, **one}) for one in data["figures"]]
        return cls(figures, runs, data["failed"])

    def save(self, file: Path) -> None:
        """Write it."""
        document = {
            "runs": self.runs,
            "figures": [one.to_data() for one in self.figures],
            "failed": self.failed,
        }
        file.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")

    def merged(self, new: Self, parts: Collection[str]) -> Self:
        """These merged with the results of a run of ``parts``; a row that it could not measure stays."""
        whole = {part for part in parts if part not in new.failed}
        part_of = {one.name: one.part for one in new.figures}
        figures: list[Figure] = []
        rest = list(new.figures)
        for old in self.figures:
            part = old.part or part_of.get(old.name, "")
            if part not in whole and part_of.get(old.name) != part:
                figures.append(old)
                continue
            # new rows take the place of the first row that they replace
            figures += [one for one in rest if one.part == part]
            rest = [one for one in rest if one.part != part]
        figures += rest
        every = {**self.runs, **new.runs}
        used = {one.run for one in figures} | set(new.runs)
        failed = {part: why for part, why in self.failed.items() if part not in parts} | dict(new.failed)
        return replace(self, figures=figures, runs={at: every[at] for at in every if at in used}, failed=failed)
