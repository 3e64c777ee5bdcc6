"""The policy look-up of one request alone: path, facts, four reads of LMDB, conditions."""

from __future__ import annotations

import gc
import resource
import sys
import threading
import time
from typing import Any, Final

from benchmarks.harness.figures import Figure, at_most
from benchmarks.harness.pairs import quantile
from benchmarks.harness.population import CONDITION, strangers
from benchmarks.harness.scale import Scale, say

from sluice_core.describe import FILTER
from sluice_core.errors import PeerError
from sluice_core.snapshot.reader import SnapshotReader, SnapshotWriter
from sluice_core.store.records import FullState
from sluice_core.testing import assignment
from sluice_middleware.wsgi.policy_lookup import object_path, upload_facts

KEYS: Final = 100_000
LIMIT_US: Final = 6.0
CALLS: Final = 2000
#: Tenants and containers of the requests, so that they do not all read one record.
TARGETS: Final = 200


def measure(scale: Scale, keys: int = KEYS) -> list[Figure]:
    """Batches of hits on different objects; the median batch counts."""
    say(f"lookup: building a snapshot with {keys} assignments")
    ours = [
        assignment(f"hit{number}.0", f"AUTH_hit{number}/logs", keyword="compression", when=CONDITION, stage=300)
        for number in range(TARGETS)
    ]
    folder = scale.folder / "lookup"
    writer = SnapshotWriter(folder)
    writer.open()
    writer.reload(FullState("benchmark", 1, (*ours, *strangers(keys - TARGETS))))
    writer.close()
    reader = SnapshotReader(folder)
    reader.refresh()
    try:
        times, seen = _run(reader, scale.pick(200, 20))
    finally:
        reader.close()
    best, median, slow = min(times), quantile(times, 0.5), quantile(times, 0.9)
    note = f"fastest batch {best:.2f}, nine in ten below {slow:.2f} µs; in {seen} calls no socket, no file and no wait"
    what = f"policy lookup alone, hit, path and request conditions included, {keys} keys"
    return [at_most("lookup", what, median, LIMIT_US, "µs", note, digits=2)]


def _request(number: int) -> dict[str, Any]:
    """The values of a WSGI environment that the middleware reads."""
    return {
        "REQUEST_METHOD": "PUT",
        "PATH_INFO": f"/v1/AUTH_hit{number % TARGETS}/logs/2026/day-{number}.log",
        "CONTENT_LENGTH": "10000",
        "CONTENT_TYPE": "text/plain",
    }


def look_up(reader: SnapshotReader, env: dict[str, Any]) -> bool:
    """The look-up of the proxy middleware for each PUT; True if a filter applies."""
    target = object_path(env)
    if target is None:
        return False
    candidates = reader.find(*target)
    return FILTER in candidates.resolve(upload_facts(env, target[2]))


def _run(reader: SnapshotReader, batches: int) -> tuple[list[float], int]:
    """Microseconds per call of each batch, and the number of calls that were watched for sockets.

    :raises PeerError: if a look-up misses, or makes a network call
    """
    requests = [_request(number) for number in range(CALLS)]
    if not all(look_up(reader, env) for env in requests):
        raise PeerError(f"a lookup missed: `{reader.problem}`")
    times = []
    gc.collect()
    gc.disable()
    try:
        for _ in range(batches):
            begin = time.perf_counter()
            for env in requests:
                look_up(reader, env)
            times.append((time.perf_counter() - begin) / CALLS * 1e6)
    finally:
        gc.enable()
    with Watch() as watch:  # last, because a hook stays
        waits = _waits()
        for env in requests:
            look_up(reader, env)
        waits = _waits() - waits
    if waits:
        raise PeerError(f"lookups gave up the processor {waits} times, as for a lock")
    if watch.events:
        raise PeerError(f"a lookup made a call: `{watch.events[0]}`")
    return times, CALLS


def _waits() -> int:
    """How often this thread has given up the processor so far: for a lock, a disk, a network."""
    return resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw


class Watch:
    """Records the events of Python's audit hooks about sockets, processes and files in this thread.

    Hooks cannot be removed; an ended one does nothing.
    """

    _CALLS: Final = ("socket.", "subprocess.", "open", "os.")

    def __init__(self) -> None:
        self.events: list[str] = []
        self._thread = 0

    def __enter__(self) -> Watch:
        self._thread = threading.get_ident()
        sys.addaudithook(self._hear)
        return self

    def __exit__(self, *_: object) -> None:
        self._thread = 0

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self._thread == threading.get_ident() and event.startswith(self._CALLS):
            self.events.append(event)
