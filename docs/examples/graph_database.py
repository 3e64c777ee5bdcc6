"""A graph database with memoised shortest paths: all paths from one vertex are a value with a motif."""

from array import array
from collections.abc import Iterable

import msgpack

from sluice_core.describe import MOTIF, ActionInfo, Parameter
from sluice_motifs.api import Source, Template
from sluice_motifs.storage.records import Motif

#: Vertices whose neighbours are one value: how coarsely a motif notices that the graph has changed.
BLOCK = 2048
NOWHERE = 0xFFFFFFFF


def block_name(block):
    return f"neighbours/{block}"


class ShortestPaths(Template):
    """For each vertex the one before it on a shortest path from ``start``, by breadth-first search."""

    info = ActionInfo(
        "shortest_paths",
        MOTIF,
        "shortest paths from one vertex to all",
        (Parameter("start", "int", "the vertex"), Parameter("blocks", "int", "values that hold the graph")),
    )

    def sources(self, item):
        return [Source(block_name(block)) for block in range(self.params["blocks"])]

    def expand(self, call):
        neighbours = []
        for source in self.sources(call.item):
            neighbours += msgpack.unpackb(b"".join(call.read(source.name)))
        before = array("I", [NOWHERE]) * len(neighbours)
        reached = [self.params["start"]]
        before[reached[0]] = reached[0]
        while reached:
            further = []
            for vertex in reached:
                for other in neighbours[vertex]:
                    if before[other] == NOWHERE:
                        before[other] = vertex
                        further.append(other)
            reached = further
        yield before.tobytes()


class GraphDatabase:
    """An undirected graph in a database that knows the template :class:`ShortestPaths`; vertices are numbers.

    :param vertices: how many
    """

    def __init__(self, database, vertices):
        self.database = database
        self.vertices = vertices
        self.blocks = (vertices + BLOCK - 1) // BLOCK

    def fill(self, edges: Iterable[tuple[int, int]]):
        """Replace the graph."""
        neighbours = [[] for _ in range(self.vertices)]
        for one, other in edges:
            neighbours[one].append(other)
            neighbours[other].append(one)
        with self.database.write_batch() as batch:
            for block in range(self.blocks):
                part = neighbours[block * BLOCK : (block + 1) * BLOCK]
                batch.put(block_name(block).encode(), msgpack.packb(part))

    def add_edge(self, one, other):
        """Memoised paths are made again when they are asked for."""
        with self.database.write_batch() as batch:
            changed = {block: self.block(block) for block in (one // BLOCK, other // BLOCK)}
            for vertex, neighbour in ((one, other), (other, one)):
                changed[vertex // BLOCK][vertex % BLOCK].append(neighbour)
            for block, part in changed.items():
                batch.put(block_name(block).encode(), msgpack.packb(part))

    def block(self, block):
        return msgpack.unpackb(self.database.get(block_name(block).encode()))

    def shortest_path(self, start, end):
        """The vertices of a shortest path; None when there is none."""
        motif = Motif("shortest_paths", {"start": start, "blocks": self.blocks})
        before = memoryview(self.database.get_or_make(b"paths/%d" % start, motif)).cast("I")
        if before[end] == NOWHERE:
            return None
        path = [end]
        while path[-1] != start:
            path.append(before[path[-1]])
        return path[::-1]
