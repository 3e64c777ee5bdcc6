"""Storlets in their container, without Swift: the cost of one entry and of each further filter, and a cold start.

As for the fast environments: a cycle has one stream through no, one, two and three filters, one right after the
other; figures are medians of the difference between a stream and the one without filters in its cycle.  A cold start is
a first request whose container has to be created; beside it stands the engine's time for a container that does nothing.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.filters.isolated import DEPTHS, TENANT, stream
from benchmarks.harness.figures import Figure, at_most
from benchmarks.harness.scale import Scale, say
from tests.support.sandbox.docker import Bench

from sluice_filters.api import Filter
from sluice_sandbox.docker.client import docker_client
from sluice_sandbox.storlets.team import StorletTeam

NOOP: Final = Path(__file__).parents[2] / "filters" / "storlets" / "identity_storlet.py"
#: Bytes, their name, milliseconds for the first and for each further filter, cycles of a full and a quick run.
SIZES: Final = ((10_240, "10 KB", 7.0, 5.0, 300, 20), (1_000_000, "1 MB", 9.0, 5.0, 150, 10))
COLD: Final = 600.0


def measure(scale: Scale) -> list[Figure]:
    """Warm at both sizes, and cold."""
    say("isolated: storlets")
    with Bench.open() as bench:
        team = bench.team()
        upload = bench.upload("noop_storlet", NOOP.read_bytes(), "identity_storlet.Identity")
        noop = bench.filters(team, [upload])["noop_storlet"]
        figures = [_cold(team, noop, scale.pick(20, 3))]
        for size, named, first, further, full, quick in SIZES:
            cycles = _cycles(noop, bytes(size), scale.pick(full, quick))
            figures += _figures(f"isolated noop, storlet, {named}", cycles, first, further)
    return figures


def _cycles(noop: type[Filter], data: bytes, count: int) -> list[list[float]]:
    """Milliseconds by number of filters, of each cycle."""
    for depth in DEPTHS:
        stream(noop, depth, data)
    return [[_timed(noop, depth, data) for depth in DEPTHS] for _ in range(count)]


def _timed(noop: type[Filter], depth: int, data: bytes) -> float:
    begun = time.perf_counter()
    stream(noop, depth, data)
    return (time.perf_counter() - begun) * 1e3


def _figures(what: str, cycles: Sequence[Sequence[float]], first: float, further: float) -> list[Figure]:
    added = statistics.median(cycle[1] - cycle[0] for cycle in cycles)
    more = statistics.median((cycle[3] - cycle[1]) / 2 for cycle in cycles)
    fastest = [min(cycle[depth] for cycle in cycles) for depth in DEPTHS]
    note = f"fastest {fastest[1] - fastest[0]:.1f} ms"
    note_more = f"fastest {(fastest[3] - fastest[1]) / 2:.1f} ms"
    return [
        at_most("isolated", f"{what}: added", added, first, "ms", note, digits=1),
        at_most("isolated", f"{what}: each further filter", more, further, "ms", note_more, digits=1),
    ]


def _cold(team: StorletTeam, noop: type[Filter], count: int) -> Figure:
    """Milliseconds from a request without a container to its last byte."""
    container, took, idle = team.container(TENANT), [], []
    for _ in range(count):
        container.replace()
        took.append(_timed(noop, 1, bytes(SIZES[0][0])))
        idle.append(_nothing(team))
    note = f"fastest {min(took):.0f} ms; a container that does nothing {statistics.median(idle):.0f} ms"
    return at_most("isolated", "storlet: cold start", statistics.median(took), COLD, "ms", note)


def _nothing(team: StorletTeam) -> float:
    """The engine's milliseconds to start a container and see its end."""
    with docker_client(team.place.engine) as client:
        begun = time.perf_counter()
        client.containers.run(team.place.image, ["true"], network_mode="none", remove=True)
        return (time.perf_counter() - begun) * 1e3
