"""Isolated filters of the fast environments, without Swift: the cost of one entry and of each further filter.

The streams are fed as Swift feeds them, in pieces of 64 KiB, and every byte is counted and summed as always.
A cycle has one stream through no, one, two and three filters of each environment, one right after the
other; the figures are medians of the difference between a stream and the one without filters in its cycle.
CPU is that of the host's thread and of all processes in jails together.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from benchmarks.harness.cpu import cpu_seconds
from benchmarks.harness.figures import Figure, at_most
from benchmarks.harness.scale import Scale, say
from tests.support.sandbox.process import NOOP, compiled, jailed, supervisor, uploaded

from sluice_code.code_store import CodeStore
from sluice_core.errors import PeerError
from sluice_filters.api import Filter, Hint
from sluice_filters.chain import chain_reader
from sluice_sandbox.process.session import ProcessTeam
from sluice_sandbox.wasm.session import WasmTeam

PIECE: Final = 65_536
TENANT: Final = "AUTH_benchmark"
#: Bytes, their name, milliseconds for the first and for each further filter, cycles of a full and a quick run.
SIZES: Final = ((10_240, "10 KB", 0.5, 0.3, 600, 40), (1_000_000, "1 MB", 1.5, 0.8, 200, 20))
DEPTHS: Final = (0, 1, 2, 3)

Cycle = Mapping[int, float]


def measure(scale: Scale) -> list[Figure]:
    """Both environments at both sizes."""
    say("isolated: fast environments")
    figures: list[Figure] = []
    with supervisor() as folder, tempfile.TemporaryDirectory(dir=scale.folder) as code:
        store = CodeStore(Path(code))
        noops: dict[str, type[Filter]] = {
            "process": uploaded(store, ProcessTeam(store, folder), NOOP, "noop_process", "Noop"),
            "wasm": uploaded(store, WasmTeam(store), compiled("identity"), "noop_wasm", "identity"),
        }
        for size, named, first, further, full, quick in SIZES:
            for environment, noop in noops.items():
                cycles = scale.pick(full, quick)
                latencies, cpu = _cycles(noop, size, cycles, lambda: cpu_seconds(jailed(folder)))
                figures += _figures(f"isolated noop, {environment}, {named}", latencies, cpu, first, further)
    return figures


def _figures(what: str, latencies: Sequence[Cycle], cpu: Cycle, first: float, further: float) -> list[Figure]:
    added = _median([cycle[1] - cycle[0] for cycle in latencies])
    more = _median([(cycle[3] - cycle[1]) / 2 for cycle in latencies])
    best = min(cycle[1] for cycle in latencies) - min(cycle[0] for cycle in latencies)
    note = f"fastest {best:.2f} ms, CPU {cpu[1] - cpu[0]:.2f} ms"
    return [
        at_most("isolated", f"{what}: added", added, first, "ms", note, digits=2),
        at_most("isolated", f"{what}: each further filter", more, further, "ms", _further(cpu), digits=2),
    ]


def _further(cpu: Cycle) -> str:
    return f"CPU {(cpu[3] - cpu[1]) / 2:.2f} ms"


def _median(milliseconds: Sequence[float]) -> float:
    return statistics.median(milliseconds)


def _cycles(noop: type[Filter], size: int, count: int, workers: Callable[[], float]) -> tuple[list[Cycle], Cycle]:
    """Milliseconds by number of filters: of each stream, and mean CPU over all of them."""
    data = bytes(size)
    for depth in DEPTHS:
        stream(noop, depth, data)
    latencies = []
    for _ in range(count):
        latencies.append({depth: _timed(noop, depth, data) for depth in DEPTHS})
    cpu = {}
    for depth in DEPTHS:
        begun = time.process_time() + workers()
        for _ in range(count):
            stream(noop, depth, data)
        cpu[depth] = (time.process_time() + workers() - begun) / count * 1e3
    return latencies, cpu


def _timed(noop: type[Filter], depth: int, data: bytes) -> float:
    begun = time.perf_counter()
    stream(noop, depth, data)
    return (time.perf_counter() - begun) * 1e3


def stream(noop: type[Filter], depth: int, data: bytes) -> None:
    """One answer through ``depth`` filters.

    :raises PeerError: if the output is wrong
    """
    reader = chain_reader([noop() for _ in range(depth)], Hint(size=len(data), account=TENANT))
    size = 0
    for begin in range(0, len(data), PIECE):
        size += len(reader.feed(data[begin : begin + PIECE]))
    size += len(reader.finish())
    if size != len(data):
        raise PeerError(f"{size} bytes came out of {len(data)}")
