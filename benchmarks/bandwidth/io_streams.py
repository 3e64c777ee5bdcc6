"""Threads of streams and their I/O priorities, compared with Swift's own disk files: one object server with one worker,
and clients that each read one large object repeatedly.

Servers of the same devices take turns, window by window: plain Swift, ours with a thread for every stream, and, where
all of them may take what the disk gives, plain Swift once more, which says how much a difference of totals means.
On the *slow* disk (100 MB/s, ``tests.support.cluster.slow_disk``; as root) nothing is in the page cache when it is
asked for; the benchmark's readers see to that, for what Swift forgets behind a reader leaves some of each MiB
there.  For the page cache everything is.

What the hand-over costs is measured where it costs most, out of the page cache, by servers that hand over every step.

    python -m benchmarks --only io_streams [--quick]
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.harness.cpu import cpu_seconds
from benchmarks.harness.figures import Figure, at_most
from benchmarks.harness.pairs import PLAIN as FIRST
from benchmarks.harness.pairs import SLUICE, TWIN, compare, rotated
from benchmarks.harness.scale import Scale, say
from tests.support.cluster import slow_disk

from sluice_aio.base.ports import free_port
from sluice_core.errors import PeerError
from sluice_core.messages.credit import IDLE

#: Streams at once.
STREAMS: Final = (2, 3, 4, 8)
LOW, ABOVE = "AUTH_low", "AUTH_above"
LEVELS: Final = {LOW: 0, ABOVE: IDLE}
RATIO_LIMIT: Final = 2.5
TOTAL_LIMIT: Final = 0.95
FAIR_LIMIT: Final = 1.1
CACHED_LIMIT: Final = 0.9
PLAIN, OURS = "swift", "sluice"
#: Configurations of Sluice's server (``io_server``), in words of the report.
MODES: Final = {
    "resting": "`objective`, none in force",
    "objective": "`objective`, one in force",
    "always": "`always`",
    "forced": "every step handed over",
}
_SIZE: Final = 96 << 20
_PIECE: Final = 1 << 16
_SETTLE: Final = 1.0
#: The kernel's own default, in KiB; a loop device may still have the value of an earlier file.
_READ_AHEAD: Final = "128"


@dataclass(frozen=True, slots=True)
class Stored:
    """An object, and its file."""

    path: str
    file: Path

    def forget(self) -> None:
        """Drop its pages from the page cache."""
        descriptor = os.open(self.file, os.O_RDONLY)
        try:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


@dataclass(frozen=True, slots=True)
class Window:
    """Bytes per second of each stream, and processor seconds that the server used per second."""

    rates: Sequence[float]
    load: float = 0.0

    @property
    def total(self) -> float:
        """The sum of all streams."""
        return sum(self.rates)

    @property
    def work(self) -> float:
        """Microseconds of a processor per MiB."""
        return self.load * 1e6 / max(self.total / (1 << 20), 1e-9)

    @property
    def spread(self) -> float:
        """The fastest as a multiple of the slowest."""
        return max(self.rates) / max(min(self.rates), 1.0)


class Reader(threading.Thread):
    """Reads one object repeatedly, from the disk unless ``cached``; ``moved`` counts its bytes."""

    def __init__(self, port: int, stored: Stored, cached: bool) -> None:
        super().__init__(daemon=True)
        self._port = port
        self._stored = stored
        self._cached = cached
        self._room = memoryview(bytearray(_PIECE))
        self.moved = 0
        self.enough = False
        self.failure = ""

    def run(self) -> None:
        """Read until stopped."""
        try:
            while not self.enough:
                self._read()
        except (OSError, http.client.HTTPException) as error:
            self.failure = repr(error)

    def _read(self) -> None:
        if not self._cached:
            self._stored.forget()
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        with contextlib.closing(connection):
            connection.request("GET", self._stored.path, headers={"X-Backend-Storage-Policy-Index": "0"})
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
    """One object server over the devices in a folder; ``cached`` if read bytes stay in the page cache."""

    port: int
    pid: int
    cached: bool = False

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

    def window(self, chosen: Sequence[Stored], seconds: float) -> Window:
        """Rates of the ``chosen`` streams, read at once."""
        readers = [Reader(self.port, one, self.cached) for one in chosen]
        for reader in readers:
            reader.start()
        time.sleep(_SETTLE)
        begin, before = time.monotonic(), [reader.moved for reader in readers]
        worked = cpu_seconds([self.pid])
        time.sleep(seconds)
        worked = cpu_seconds([self.pid]) - worked
        took, after = time.monotonic() - begin, [reader.moved for reader in readers]
        for reader in readers:
            reader.enough = True
        for reader in readers:
            reader.join()
            if reader.failure:
                raise PeerError(f"a read failed: {reader.failure}")
        return Window([(new - old) / took for old, new in zip(before, after, strict=True)], worked / took)


@contextlib.contextmanager
def server(folder: Path, module: str, mode: str = "always", keep: bool = False) -> Iterator[Server]:
    """An object server with one worker, as a process."""
    port = free_port()
    words = [str(folder), str(port), module, mode, "keep" if keep else "drop", json.dumps(LEVELS)]
    process = subprocess.Popen([sys.executable, "-m", "benchmarks.bandwidth.io_server", *words])
    try:
        _await_port(process, port)
        yield Server(port, process.pid, keep)
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
    """Priorities on the slow disk, threads there and with the page cache."""
    reason = slow_disk.missing()
    if reason:
        raise PeerError(reason)
    folder = scale.folder / "io_streams"
    folder.mkdir()
    with slow_disk.disk(folder, speed=slow_disk.Speed()) as disk:
        disk.queue("read_ahead_kb", _READ_AHEAD)
        say(f"io_streams: a slow disk with BFQ, {disk.device}")
        devices = disk.folder / "node"
        objects = fill(devices, max(STREAMS))
        with server(devices, PLAIN) as plain, server(devices, OURS) as ours, server(devices, PLAIN) as twin:
            figures = priorities(plain, ours, objects, scale)
            figures += slow_threads({FIRST: plain, SLUICE: ours, TWIN: twin}, objects, scale)
        with server(devices, PLAIN, keep=True) as plain, server(devices, OURS, keep=True) as ours:
            figures += cached_threads(plain, ours, objects, scale)
        figures += hand_over(devices, objects, scale)
    return figures


def fill(devices: Path, most: int) -> Mapping[str, list[Stored]]:
    """Objects of both tenants, ``most`` each."""
    (devices / "sda").mkdir(parents=True)
    objects: dict[str, list[Stored]] = {account: [] for account in LEVELS}
    files: set[Path] = set()
    data = bytes(range(256)) * (_SIZE // 256)
    with server(devices, PLAIN) as store:
        for account, number in ((account, number) for account in LEVELS for number in range(most)):
            path = f"/sda/0/{account}/c/o{number}"
            store.put(path, data)
            (new,) = set(devices.rglob("*.data")) - files
            files.add(new)
            objects[account].append(Stored(path, new))
    return objects


def priorities(plain: Server, ours: Server, objects: Mapping[str, list[Stored]], scale: Scale) -> list[Figure]:
    """Two streams of a tenant below its floor against two of a tenant above its floor."""
    both = [*objects[LOW][:2], *objects[ABOVE][:2]]
    ratios, totals, rates = [], [], []
    for _ in range(scale.pick(5, 1)):
        before = plain.window(both, scale.pick(8, 3))
        found = ours.window(both, scale.pick(8, 3))
        ratios.append(sum(found.rates[:2]) / max(sum(found.rates[2:]), 1.0))
        totals.append(found.total / before.total)
        rates.append(f"{sum(found.rates[:2]) / 1e6:.0f}+{sum(found.rates[2:]) / 1e6:.0f}")
        say(f"io_streams: below and above {rates[-1]} MB/s, plain {before.total / 1e6:.0f}")
    beside = f"levels given by hand, nothing is divided; MB/s of both, window by window: {', '.join(rates)}"
    what = "2 streams below their floor against 2 of class idle, slow disk: "
    return [
        _at_least("ioprio", f"{what}bytes", statistics.median(ratios), RATIO_LIMIT, beside),
        _at_least("ioprio", f"{what}total × plain", statistics.median(totals), TOTAL_LIMIT),
    ]


def slow_threads(servers: Mapping[str, Server], objects: Mapping[str, list[Stored]], scale: Scale) -> list[Figure]:
    """Streams of one tenant on the slow disk; ``servers`` by their names in ``pairs``."""
    figures = []
    for number in STREAMS:
        cycles: list[dict[str, Window]] = []
        for cycle in range(scale.pick(4, 1)):
            order = rotated(cycle)
            cycles.append({name: servers[name].window(objects[LOW][:number], scale.pick(15, 2)) for name in order})
            words = (f"{one.total / 1e6:.2f} {name} ({one.spread:.3f})" for name, one in cycles[-1].items())
            say(f"io_streams: {number} streams, MB/s and fastest / slowest: {', '.join(words)}")
        totals = compare([{name: one.total for name, one in cycle.items()} for cycle in cycles])
        spread = statistics.median(cycle[SLUICE].spread for cycle in cycles)
        rates = " / ".join(f"{totals.medians[name] / 1e6:.2f}" for name in (SLUICE, FIRST, TWIN))
        what = f"{number} streams, a thread each, slow disk: "
        figures.append(at_most("threads", f"{what}fastest / slowest", spread, FAIR_LIMIT, "×"))
        figures.append(
            Figure(
                "threads",
                f"{what}total × plain",
                totals.ratio,
                f"{totals.ratio:.4f} ×",
                totals.band_text(more_is_better=True),
                totals.in_band(more_is_better=True),
                f"{totals.beside()}; {rates} MB/s (sluice/plain/plain)",
            )
        )
    return figures


def cached_threads(plain: Server, ours: Server, objects: Mapping[str, list[Stored]], scale: Scale) -> list[Figure]:
    """The same with all bytes in the page cache."""
    figures = []
    seconds = scale.pick(15, 2)
    for number in STREAMS:
        chosen = objects[LOW][:number]
        _fetch(chosen)
        pairs = [(plain.window(chosen, seconds), ours.window(chosen, seconds)) for _ in range(scale.pick(3, 1))]
        ratios = [found.total / before.total for before, found in pairs]
        middle = [statistics.median(one.total for one in column) / 1e6 for column in zip(*pairs, strict=True)]
        what = f"{number} streams, a thread each, page cache: total × plain"
        beside = f"{_between(ratios)}; medians plain {middle[0]:.0f}, ours {middle[1]:.0f} MB/s"
        say(f"io_streams: {number} streams, page cache: {beside}")
        figures.append(_at_least("threads", what, statistics.median(ratios), CACHED_LIMIT, beside))
    return figures


def hand_over(devices: Path, objects: Mapping[str, list[Stored]], scale: Scale) -> list[Figure]:
    """The cost of threads without waiting for a disk: two streams from the page cache."""
    chosen = objects[LOW][:2]
    found: dict[str, list[Window]] = {mode: [] for mode in (PLAIN, *MODES)}
    with contextlib.ExitStack() as stack:
        servers = {PLAIN: stack.enter_context(server(devices, PLAIN, keep=True))}
        for mode in MODES:
            servers[mode] = stack.enter_context(server(devices, OURS, mode, keep=True))
        _fetch(chosen)
        for _ in range(scale.pick(5, 1)):
            for mode, windows in found.items():
                windows.append(servers[mode].window(chosen, scale.pick(6, 2)))
    totals = {mode: statistics.median(one.total for one in windows) for mode, windows in found.items()}
    works = {mode: statistics.median(one.work for one in windows) for mode, windows in found.items()}
    figures = []
    for mode, words in MODES.items():
        ratios = [ours.total / plain.total for ours, plain in zip(found[mode], found[PLAIN], strict=True)]
        ratio = statistics.median(ratios)
        say(f"io_streams: {mode} {totals[mode] / 1e6:.0f} MB/s, plain {totals[PLAIN] / 1e6:.0f}")
        beside = f"{_between(ratios)}; {works[mode]:.0f} µs of a processor for each MiB, plain {works[PLAIN]:.0f}"
        figures.append(_reported(f"2 streams, page cache, {words}: total × plain", ratio, f"{ratio:.3f} ×", beside))
    more = works["forced"] - works[PLAIN]
    longer = (1 / totals["forced"] - 1 / totals[PLAIN]) * (1 << 20) * 1e6
    beside = f"the two streams together take {longer:.0f} µs longer for each MiB"
    figures.append(_reported("hand-over of a step of 1 MiB: time of a processor", more, f"{more:.0f} µs", beside))
    return figures


def _between(ratios: Sequence[float]) -> str:
    """The lowest and the highest of the pairs whose median is the figure."""
    return f"median of {len(ratios)} pairs, {min(ratios):.3f}..{max(ratios):.3f}"


def _fetch(chosen: Sequence[Stored]) -> None:
    """Read all of them into the page cache."""
    for one in chosen:
        one.file.read_bytes()


def _reported(what: str, value: float, measured: str, beside: str) -> Figure:
    return Figure("threads", what, value, measured, beside=beside)


def _at_least(name: str, what: str, value: float, limit: float, beside: str = "") -> Figure:
    return Figure(name, what, value, f"{value:.3f} ×", f"≥ {limit:g} ×", value >= limit, beside)
