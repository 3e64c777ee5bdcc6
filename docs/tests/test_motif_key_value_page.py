"""The page about motifs in a key-value store: its program runs, and it has the numbers and names of the code."""

import re
from collections import deque
from itertools import pairwise
from pathlib import Path

import pytest
from docs.examples.graph_database import BLOCK, GraphDatabase, ShortestPaths

from sluice_motifs.replacement.registry import BUILT_IN
from sluice_motifs.space.keeper import FILLED
from sluice_motifs_kv.database import Database

PAGE = (Path(__file__).parents[1] / "admin" / "motif-key-value.md").read_text(encoding="utf-8")


def test_its_program_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    program = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)[1]
    exec(compile(program, "page", "exec"), {})  # noqa: S102 - ours
    assert capsys.readouterr().out.splitlines() == [repr(b"apple\npear\n"), repr(b"fig\npear\n")]


def test_its_numbers_and_names_are_those_of_the_code():
    assert f"up to {100 * FILLED:g} % of the limit" in PAGE
    assert f"`policy=`: {', '.join(f'`{one.keyword}`' for one in BUILT_IN)}" in PAGE
    methods = set(re.findall(r"`(\w+)\(", PAGE))
    assert len(methods) > 5
    assert {method for method in methods if not hasattr(Database, method)} == set()


@pytest.mark.parametrize("limit", [0, None])
def test_the_graph_database_finds_shortest_paths_before_and_after_a_new_edge(tmp_path, limit):
    vertices = BLOCK + 10
    edges = [(vertex, vertex + 1) for vertex in range(40)] + [(40, BLOCK + 1), (3, 33)]
    with Database(tmp_path / "graph", [ShortestPaths], limit=limit) as database:
        graph = GraphDatabase(database, vertices)
        graph.fill(edges)
        check(graph, edges, 2)
        for edge in ((2, BLOCK + 1), (0, 20)):
            graph.add_edge(*edge)
            edges.append(edge)
            check(graph, edges, 2)


def check(graph, edges, start):
    """Compare all paths from a vertex with their lengths by a search of the edges."""
    far = {start: 0}
    waiting = deque([start])
    while waiting:
        vertex = waiting.popleft()
        for edge in edges:
            if vertex in edge:
                other = edge[1 - edge.index(vertex)]
                if other not in far:
                    far[other] = far[vertex] + 1
                    waiting.append(other)
    linked = {frozenset(edge) for edge in edges}
    for end in (0, 1, 2, 20, 33, 40, BLOCK + 1):
        path = graph.shortest_path(start, end)
        assert (path[0], path[-1], len(path) - 1) == (start, end, far[end])
        assert all(frozenset(pair) in linked for pair in pairwise(path))
    assert graph.shortest_path(start, BLOCK + 5) is None
