"""A graph database with memoised shortest paths whose byte limit changes: queries per second, as figure 9 of the paper.

    python -m benchmarks --only motif_graph

The graph has 21,000 vertices and 43,000 edges: each new vertex is linked to two others, drawn by their degree, and the
rest of the edges are drawn at random.  100,000 queries ask for a path from a vertex, drawn with strong locality
(:mod:`benchmarks.motifs.traces`), to one that is drawn at random.  The limit is 0 at first, 1 GB from 15 % of the
queries on, and 10 MB from 65 % on.  All paths from one vertex take 84 KB, so 10 MB hold those from 119 vertices.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Final

from benchmarks.harness.figures import Figure, at_least, reported
from benchmarks.harness.scale import Scale, say
from benchmarks.motifs.traces import Locality, make_trace
from docs.examples.graph_database import GraphDatabase, ShortestPaths

from sluice_motifs_kv.database import Database

VERTICES: Final = 21_000
EDGES: Final = 43_000
QUERIES: Final = 100_000
LOCALITY: Final = Locality("strong", repeats=0.95, items=VERTICES)
#: The part of the queries from which on a limit applies, and its bytes.
LIMITS: Final = ((0.0, 0), (0.15, 10**9), (0.65, 10**7))
#: Queries whose rate is one point.
WINDOW: Final = 250
TARGET: Final = 10.0
_SEED: Final = 1


@dataclass(frozen=True, slots=True)
class Phase:
    """The time of the queries under one limit; ``rates`` are queries per second of each window."""

    limit: int
    rates: Sequence[float]
    hits: int
    expansions: int

    @property
    def median(self) -> float:
        return statistics.median(self.rates)

    def described(self) -> str:
        """A readable text."""
        opened = self.hits + self.expansions
        return f"{self.limit / 1e6:g} MB: {self.median:.0f}/s, {100 * self.hits / max(opened, 1):.1f} % hits"


def measure(scale: Scale) -> list[Figure]:
    """The rate at 1 GB against that at 0; a quick run has a twentieth of the graph and of the queries."""
    vertices, edges, queries = (number // scale.pick(1, 20) for number in (VERTICES, EDGES, QUERIES))
    window = scale.pick(WINDOW, WINDOW // 5)
    say(f"motif_graph: {vertices} vertices, {edges} edges, {queries} queries")
    starts = [start % vertices for start in make_trace(LOCALITY, queries, _SEED).opens]
    ends = random.Random(_SEED)
    with Database(scale.folder / "graph", [ShortestPaths], limit=0) as database:
        graph = GraphDatabase(database, vertices)
        graph.fill(random_edges(vertices, edges))
        bounds = [int(part * queries) for part, _ in LIMITS] + [queries]
        phases = []
        for number, (_, limit) in enumerate(LIMITS):
            database.set_limit(limit)
            asked = [(start, ends.randrange(vertices)) for start in starts[bounds[number] : bounds[number + 1]]]
            phases.append(_phase(database, graph.shortest_path, asked, limit, window))
            say(f"motif_graph: {phases[-1].described()}")
    return _figures(phases, vertices, edges, queries, window)


def random_edges(vertices: int, edges: int) -> list[tuple[int, int]]:
    """A connected graph with the distribution of degrees of the Internet (preferential attachment)."""
    drawn = random.Random(_SEED)
    found = {(0, 1)}
    ends = [0, 1]
    for vertex in range(2, vertices):
        for other in {drawn.choice(ends), drawn.choice(ends)}:
            found.add((other, vertex))
            ends += [other, vertex]
    while len(found) < edges:
        one, other = sorted(drawn.sample(range(vertices), 2))
        found.add((one, other))
    return sorted(found)


def _phase(
    database: Database,
    query: Callable[[int, int], Sequence[int] | None],
    asked: Sequence[tuple[int, int]],
    limit: int,
    window: int,
) -> Phase:
    before = database.statistics()
    rates = []
    for begin in range(0, len(asked), window):
        part = asked[begin : begin + window]
        began = time.perf_counter()
        for start, end in part:
            query(start, end)
        rates.append(len(part) / (time.perf_counter() - began))
    after = database.statistics()
    return Phase(limit, rates, after.hits - before.hits, after.expansions - before.expansions)


def _figures(phases: Sequence[Phase], vertices: int, edges: int, queries: int, window: int) -> list[Figure]:
    none, large, small = phases
    details = {
        "vertices": vertices,
        "edges": edges,
        "queries": queries,
        "window": window,
        "seed": _SEED,
        "locality": asdict(LOCALITY),
        "phases": [asdict(one) for one in phases],
    }
    graph = f"{vertices:,} vertices, {edges:,} edges, {queries:,} queries for shortest paths"
    beside = "; ".join(one.described() for one in phases)
    return [
        at_least(
            "motif graph",
            f"{graph}; limit 1 GB × limit 0, medians",
            large.median / none.median,
            TARGET,
            "×",
            beside,
            digits=1,
            **details,
        ),
        reported("motif graph", f"{graph}; limit 10 MB × limit 0, medians", small.median / none.median, "×", digits=1),
    ]
