"""Paints the plots of stored results again, each from the details of its rows; measures nothing.

    python -m benchmarks --paint [--json FILE]

A run paints the parts that it has measured.  Courses of bandwidth are painted from the data beside their pictures.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.bandwidth import plots as bandwidth
from benchmarks.control_plane.reaction import LIMIT as REACTION_S
from benchmarks.control_plane.rollout import P90_MS
from benchmarks.harness.distributions import Limit, paint_boxes, paint_shares
from benchmarks.harness.figures import Figure
from benchmarks.harness.pairs import PLAIN, SLUICE, TWIN
from benchmarks.harness.scale import say
from benchmarks.motifs import plots as motifs
from benchmarks.requests.overhead import ASSIGNMENTS
from benchmarks.requests.overhead import LIMIT as OVERHEAD
from benchmarks.requests.whole_nodes import FEW

#: The input of a painter: the rows of all parts.
Figures = Sequence[Figure]
#: The output file of a painter.
Painter = Callable[[Path, Figures], bool]


def _details(figures: Figures, name: str, key: str) -> list[Mapping[str, Any]]:
    """The details of the rows called ``name`` that have ``key``."""
    return [one.details for one in figures if one.name == name and key in one.details]


def _ratios(cycles: Sequence[Mapping[str, float]]) -> dict[str, list[float]]:
    """The ratios of :func:`benchmarks.harness.pairs.compare`: Sluice to both plain instances, and between these."""
    return {
        "Sluice ÷ plain": [cycle[SLUICE] / cycle[other] for cycle in cycles for other in (PLAIN, TWIN)],
        "plain ÷ plain": [cycle[TWIN] / cycle[PLAIN] for cycle in cycles],
    }


def overhead(file: Path, figures: Figures) -> bool:
    """CPU of requests without a policy, cycle by cycle."""
    found: dict[str, list[float]] = {}
    for operation in ("GET", "PUT"):
        for details in _details(figures, f"overhead {operation}", "cycles_ms"):
            found |= {f"{operation}, {name}": values for name, values in _ratios(details["cycles_ms"]).items()}
    if found:
        title = f"10 KB requests that no policy matches, {ASSIGNMENTS:,} assignments: CPU of proxy and object servers"
        what = "CPU per request, × plain (each point a pair of blocks of 250 requests)"
        paint_boxes(file, title, what, found, Limit(OVERHEAD, f"target of the median ≤ {OVERHEAD}"))
    return bool(found)


def whole_nodes(file: Path, figures: Figures) -> bool:
    """The same on whole nodes, with the most assignments that were measured."""
    found: dict[str, list[float]] = {}
    for one in figures:
        if one.name.startswith("idle ") and "cycles_ms" in one.details:
            _, operation, *size, group, population = one.name.split()
            if population != str(FEW):
                ratios = _ratios(one.details["cycles_ms"])
                found[f"{' '.join(size)} {operation}, {group}"] = ratios["Sluice ÷ plain"]
    if found:
        title = f"Whole nodes, no policy matches, {ASSIGNMENTS:,} assignments: CPU of a group of servers"
        paint_boxes(
            file, title, "CPU per request, × plain", found, Limit(OVERHEAD, f"target of the median ≤ {OVERHEAD}")
        )
    return bool(found)


def reaction(file: Path, figures: Figures) -> bool:
    """From the crossing of a threshold to the policy in force."""
    for details in _details(figures, "reaction", "times"):
        samples = {"from the PUT that crosses": details["times"], "from the end of its window": details["after"]}
        title = "A threshold is crossed: until the proxy enforces the policy, windows of 1 s"
        paint_shares(file, title, "time, s", samples, Limit(REACTION_S, f"target of the p99 ≤ {REACTION_S} s"))
        return True
    return False


def rollout(file: Path, figures: Figures) -> bool:
    """From a new policy to the last of 120 agents."""
    rows = {
        "rollout p90": "from the 201",
        "rollout from commit": "from the commit",
        "rollout from POST": "from the POST",
    }
    samples = {
        label: details["times_ms"] for name, label in rows.items() for details in _details(figures, name, "times_ms")
    }
    if samples:
        title = "A policy is created: until 120 agents have applied and acknowledged it"
        paint_shares(file, title, "time, ms", samples, Limit(P90_MS, f"target of the p90 from the 201 ≤ {P90_MS:g} ms"))
    return bool(samples)


def motif_misses(file: Path, figures: Figures) -> bool:
    """Byte misses of the replacement policies, by locality."""
    rows = _details(figures, "motif byte misses", "byte_misses")
    if rows:
        named = {f"{100 * one['locality']['repeats']:g} % of opens repeat a recent one": one for one in rows}
        curves = {name: one["byte_misses"] for name, one in named.items()}
        motifs.paint_misses(file, curves, rows[0]["percents"])
    return bool(rows)


def motif_graph(file: Path, figures: Figures) -> bool:
    """Queries per second under one byte limit after the other."""
    for details in _details(figures, "motif graph", "phases"):
        phases = {f"{one['limit'] / 1e6:g} MB": one["rates"] for one in details["phases"]}
        queries = sum(len(rates) for rates in phases.values())
        title = f"Shortest paths, memoised, in a graph of {details['vertices']:,} vertices: queries per second"
        motifs.paint_rates(file, title, phases, details.get("window", details["queries"] // queries))
        return True
    return False


def motif_trace(file: Path, figures: Figures) -> bool:
    """A container whose target size changes."""
    return _replay(file, figures, "motif trace", "Reads through Swift of a container whose target size changes")


def motif_mount_trace(file: Path, figures: Figures) -> bool:
    """A mount whose target size changes."""
    return _replay(file, figures, "motif mount trace", "Reads of a mount whose target size changes")


def _replay(file: Path, figures: Figures, name: str, title: str) -> bool:
    for details in _details(figures, name, "samples")[:1]:
        parts = details["parts"]
        if "reads" not in parts[0]:  # rows of a version without them
            return False
        reads = [(at, taken / 1000) for part in parts for at, taken in part["reads"]]
        held = [(one["at"], one["used"], one["hits"], one["misses"]) for one in details["samples"]]
        marks = {part["began"]: f"target {part['name']}" for part in parts}
        targets = [(part["began"], part["ended"], part["target"]) for part in parts]
        motifs.paint_replay(file, title, reads, held, marks, targets)
        return True
    return False


#: Plot → its painter.
PAINTERS: Final[Mapping[str, Painter]] = {
    "overhead": overhead,
    "whole-nodes": whole_nodes,
    "reaction": reaction,
    "rollout": rollout,
    "motif-byte-misses": motif_misses,
    "motif-graph": motif_graph,
    "motif-trace": motif_trace,
    "motif-mount-trace": motif_mount_trace,
}


def paint_figures(folder: Path, figures: Figures) -> list[str]:
    """Paint the plots for which ``figures`` have details; return their names."""
    if importlib.util.find_spec("matplotlib") is None:
        say("no pictures: matplotlib is missing")
        return []
    return [name for name, painter in PAINTERS.items() if painter(folder / f"{name}.png", figures)]


def paint_courses(folder: Path) -> list[str]:
    """Paint the courses of bandwidth in ``folder``; return the names of the plots."""
    painted = []
    for file in sorted(folder.glob("*.json")):
        course = bandwidth.Course.from_data(json.loads(file.read_text(encoding="utf-8")))
        bandwidth.paint(file.with_suffix(".png"), course)
        painted.append(file.stem)
    return painted
