"""Tables of the benchmarks' results, from ``benchmarks/results.json``, and their machines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.harness.figures import Figure
from benchmarks.harness.results import Results
from docs.generated.markdown import escaped, table

_RESULTS: Final = Path(__file__).resolve().parents[2] / "benchmarks" / "results.json"
#: Mark of a table → prefix of the names of its rows; the longest match counts.
_TABLES: Final[Mapping[str, Sequence[str]]] = {
    "results-overhead": ("lookup", "overhead", "noop"),
    "results-latency": ("latency", "rate", "plain"),
    "results-idle": ("idle",),
    "results-compression": ("compression", "pipeline", "incompressible", "encryption"),
    "results-caching": ("caching",),
    "results-isolated": ("isolated",),
    "results-csv": ("csv_select",),
    "results-rewrites": ("rewrite",),
    "results-actors": ("actors",),
    "results-reaction": ("rollout", "reaction"),
    "results-api": ("api",),
    "results-history": ("history",),
    "results-hosts": ("failover", "two hosts"),
    "results-soak": ("soak",),
    "results-division": ("division", "whole", "idle floors"),
    "results-bandwidth": ("floors", "mixed", "unused", "noisy", "proxy", "storm"),
    "results-io-streams": ("ioprio", "threads"),
    "results-volume-limits": ("throttle", "volume floors", "volume change", "volume reaction"),
    "results-volume-faults": ("volume",),
    "results-volume-filters": ("volume nop", "volume always", "volume further", "volume cpu"),
    "results-volume-path": ("volume device", "volume nbd device", "volume socket"),
    "results-motif-replacement": ("motif hit rate", "motif byte misses"),
    "results-motif-runtime": ("motif runtime",),
    "results-motif-graph": ("motif graph",),
    "results-motif-reads": ("motif first byte", "motif whole", "motif derived"),
    "results-motif-trace": ("motif trace", "motif mount trace"),
    "results-motif-costs": ("motif costs", "file system"),
}
_TITLES: Final = ("row", "what", "measured", "target", "reached", "details")
#: Facts about a machine that differ between runs.
_OF_A_RUN: Final = ("at", "seconds", "load_before", "file_system", "processor")


def parts() -> dict[str, str]:
    """All tables, and the facts that all runs share.

    :raises ValueError: for a row that belongs to no table
    """
    results = Results.load(_RESULTS)
    rows: dict[str, list[Figure]] = {mark: [] for mark in _TABLES}
    for figure in results.figures:
        rows[table_of(figure.name)].append(figure)
    tables = {mark: _table(found, results.runs) for mark, found in rows.items()}
    return {**tables, "results-machine": _machine(results.runs.values())}


def table_of(name: str) -> str:
    """The mark of the table of a row.

    :raises ValueError: if there is none
    """
    fitting = [(len(begin), mark) for mark, those in _TABLES.items() for begin in those if name.startswith(begin)]
    if not fitting:
        raise ValueError(f"row `{name}`: expected a table of `docs/generated/results.py` that it belongs to")
    return max(fitting)[1]


def _table(figures: Sequence[Figure], runs: Mapping[str, Mapping[str, Any]]) -> str:
    lines = [table(_TITLES, [[escaped(cell) for cell in one.cells()] for one in figures])]
    for at in dict.fromkeys(one.run for one in figures):
        names = dict.fromkeys(f"`{one.name}`" for one in figures if one.run == at)
        facts = runs[at]
        lines.append(
            f"{', '.join(names)}: measured {at} on {facts['processor']}, {facts['file_system']}; "
            f"load of the machine before: {facts['load_before']}."
        )
    return "\n\n".join(lines)


def _machine(runs: Iterable[Mapping[str, Any]]) -> str:
    """A table of the facts about all machines; facts with one value only, and facts with several as a list."""
    seen: dict[str, list[str]] = {}
    for facts in runs:
        for name, fact in facts.items():
            if name not in _OF_A_RUN:
                values = seen.setdefault(name, [])
                if str(fact) not in values:
                    values.append(str(fact))
    return table(("what", "value"), [(f"`{name}`", escaped(", ".join(values))) for name, values in seen.items()])
