"""Threads of streams and their I/O priorities, beside Swift's own disk files: one object server with one worker, and
clients that read large objects from it, each its own one over and over.

Two servers serve the same devices: plain Swift, and ours with a thread for every stream.  Windows of both take turns.
On the *slow* disk (100 MB/s, ``sluice_aio.slow_disk``; as root) nothing stays in the page cache; for the page cache
everything does.

    python -m benchmarks --only io_streams [--quick]
"""

from __future__ import annotations

import contextlib
import http.client
import json
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.figures import Figure, at_most
from benchmarks.scale import Scale, say

from sluice_aio import slow_disk
from sluice_aio.services import free_port
from sluice_core.credit_wire import IDLE
from sluice_core.errors import PeerError

#: Streams at once.
STREAMS: Final = (2, 3, 4, 8)
LOW, ABOVE = "AUTH_low", "AUTH_above"
LEVELS: Final = {LOW: 0, ABOVE: IDLE}
RATIO_LIMIT: Final = 2.5
TOTAL_LIMIT: Final = 0.95
FAIR_LIMIT: Final = 1.1
CACHED_LIMIT: Final = 0.9
PLAIN, OURS = "swift", "sluice"
_SIZE: Final = 96 << 20
_PIECE: Final = 1 << 16
_SETTLE: Final = 1.0


@dataclass(frozen=True, slots=True)
class Window:
    """Bytes per second of each stream."""

    rates: Sequence[float]

    @property
    def total(self) -> float:
        """Of all."""
        return sum(self.rates)

    @property
    def spread(self) -> float:
        """The fastest in units of the slowest."""
        return max(self.rates) / max(min(self.rates), 1.0)


class Reader(threading.Thread):
    """Reads one object again and again; ``moved`` counts its bytes."""

    def __init__(self, port: int, path: str) -> None:
        super().__init__(daemon=True)
        self._port = port
        self._path = path
        self._room = memoryview(bytearray(_PIECE))
        self.moved = 0
        self.enough = False
        self.failure = ""

    def run(self) -> None:
        """Until it is enough."""
        try:
            while not self.enough:
                self._read()
        except (OSError, http.client.HTTPException) as error:
            self.failure = repr(error)

    def _read(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        with contextlib.closing(connection):
            connection.request("GET", self._path, headers={"X-Backend-Storage-Policy-Index": "0"})
            answer = connection.getresponse()
            if answer.status != 200:
                raise http.client.HTTPException(f"status {answer.status}")
            while not self.enough:
                size = answer.readinto(self._room)
                if not size:
                    return
                self.moved += size


@dataclass(frozen=True, slots=True)
class Server:
    """One object server over the devices in a folder."""

    port: int

    def put(self, path: str, data: bytes) -> None:
        """Store an object."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
        with contextlib.closing(connection):
            headers = {
                "X-Timestamp": f"{time.time():.5f}",
                "X-Backend-Storage-Policy-Index": "0",
                "Content-Type": "application/octet-stream",
            }
            connection.request("PUT", path, data, headers)
            answer = connection.getresponse()
            if answer.status != 201:
                raise PeerError(f"PUT of `{path}`: status {answer.status}")

    def window(self, paths: Sequence[str], seconds: float) -> Window:
        """How fast streams of ``paths`` are, all at once."""
        readers = [Reader(self.port, path) for path in paths]
        for reader in readers:
            reader.start()
        time.sleep(_SETTLE)
        begin, before = time.monotonic(), [reader.moved for reader in readers]
        time.sleep(seconds)
        took, after = time.monotonic() - begin, [reader.moved for reader in readers]
        for reader in readers:
            reader.enough = True
        for reader in readers:
            reader.join()
            if reader.failure:
                raise PeerError(f"a read failed: {reader.failure}")
        return Window([(new - old) / took for old, new in zip(before, after, strict=True)])


@contextlib.contextmanager
def server(folder: Path, module: str, mode: str = "always", keep: bool = False) -> Iterator[Server]:
    """An object server with one worker, as a process."""
    port = free_port()
    words = [str(folder), str(port), module, mode, "keep" if keep else "drop", json.dumps(LEVELS)]
    process = subprocess.Popen([sys.executable, "-m", "benchmarks.io_server", *words])
    try:
        _await_port(process, port)
        yield Server(port)
    finally:
        process.terminate()
        process.wait()


def _await_port(process: subprocess.Popen[bytes], port: int) -> None:
    until = time.monotonic() + 20
    while True:
        try:
            http.client.HTTPConnection("127.0.0.1", port, timeout=5).connect()
            return
        except OSError as error:
            if process.poll() is not None or time.monotonic() > until:
                raise PeerError(f"no object server on port {port}: {error}") from error
            time.sleep(0.05)


def measure(scale: Scale) -> list[Figure]:
    """Priorities on the slow disk, threads there and in the page cache."""
    reason = slow_disk.missing()
    if reason:
        raise PeerError(reason)
    folder = scale.folder / "io_streams"
    folder.mkdir()
    with slow_disk.disk(folder, speed=slow_disk.Speed()) as disk:
        say(f"io_streams: a slow disk with BFQ, {disk.device}")
        devices = disk.folder / "node"
        paths = fill(devices, max(STREAMS))
        with server(devices, PLAIN) as plain, server(devices, OURS) as ours:
            figures = [*priorities(plain, ours, paths, scale), *slow_threads(plain, ours, paths, scale)]
        with server(devices, PLAIN, keep=True) as plain, server(devices, OURS, keep=True) as ours:
            figures += cached_threads(plain, ours, paths, scale)
    return figures


def fill(devices: Path, most: int) -> Mapping[str, list[str]]:
    """Objects of both tenants, ``most`` each."""
    (devices / "sda").mkdir(parents=True)
    paths = {account: [f"/sda/0/{account}/c/o{number}" for number in range(most)] for account in LEVELS}
    data = bytes(range(256)) * (_SIZE // 256)
    with server(devices, PLAIN) as store:
        for path in (one for found in paths.values() for one in found):
            store.put(path, data)
    return paths


def priorities(plain: Server, ours: Server, paths: Mapping[str, list[str]], scale: Scale) -> list[Figure]:
    """Two streams of a tenant below its floor against two of one that is above."""
    both = [*paths[LOW][:2], *paths[ABOVE][:2]]
    ratios, totals, rates = [], [], []
    for _ in range(scale.pick(5, 1)):
        before = plain.window(both, scale.pick(8, 3))
        found = ours.window(both, scale.pick(8, 3))
        ratios.append(sum(found.rates[:2]) / max(sum(found.rates[2:]), 1.0))
        totals.append(found.total / before.total)
        rates.append(f"{sum(found.rates[:2]) / 1e6:.0f}+{sum(found.rates[2:]) / 1e6:.0f}")
        say(f"io_streams: below and above {rates[-1]} MB/s, plain {before.total / 1e6:.0f}")
    beside = f"MB/s of both, window by window: {', '.join(rates)}"
    what = "2 streams below their floor against 2 of class idle, slow disk: "
    return [
        _at_least("ioprio", f"{what}bytes", statistics.median(ratios), RATIO_LIMIT, beside),
        _at_least("ioprio", f"{what}total × plain", statistics.median(totals), TOTAL_LIMIT),
    ]


def slow_threads(plain: Server, ours: Server, paths: Mapping[str, list[str]], scale: Scale) -> list[Figure]:
    """Streams of one tenant on the slow disk."""
    figures = []
    for number in STREAMS:
        totals, spreads, beside = _compared(plain, ours, paths[LOW][:number], scale)
        what = f"{number} streams, a thread each, slow disk: "
        figures.append(at_most("threads", f"{what}fastest / slowest", statistics.median(spreads), FAIR_LIMIT, "×"))
        figures.append(_at_least("threads", f"{what}total × plain", statistics.median(totals), 1.0, beside))
    return figures


def cached_threads(plain: Server, ours: Server, paths: Mapping[str, list[str]], scale: Scale) -> list[Figure]:
    """The same when everything is in the page cache."""
    figures = []
    for number in STREAMS:
        chosen = paths[LOW][:number]
        plain.window(chosen, 1)  # bring it there
        totals, _, beside = _compared(plain, ours, chosen, scale)
        what = f"{number} streams, a thread each, page cache: total × plain"
        figures.append(_at_least("threads", what, statistics.median(totals), CACHED_LIMIT, beside))
    return figures


def _at_least(name: str, what: str, value: float, limit: float, beside: str = "") -> Figure:
    return Figure(name, what, value, f"{value:.3f} ×", f"≥ {limit:g} ×", value >= limit, beside)


def _compared(plain: Server, ours: Server, paths: Sequence[str], scale: Scale) -> tuple[list[float], list[float], str]:
    """Totals in units of plain, spreads of ours, and MB/s in words."""
    pairs = [
        (plain.window(paths, scale.pick(15, 2)), ours.window(paths, scale.pick(15, 2))) for _ in range(scale.pick(3, 1))
    ]
    for before, found in pairs:
        say(
            f"io_streams: {len(paths)} streams {found.total / 1e6:.0f} MB/s, plain {before.total / 1e6:.0f}, "
            f"fastest / slowest {found.spread:.3f}, plain {before.spread:.3f}"
        )
    middle = [statistics.median(one.total for one in column) / 1e6 for column in zip(*pairs, strict=True)]
    return (
        [found.total / before.total for before, found in pairs],
        [found.spread for _, found in pairs],
        f"plain {middle[0]:.0f}, ours {middle[1]:.0f} MB/s",
    )
