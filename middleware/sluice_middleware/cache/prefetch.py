"""Reads objects ahead: once a client reads a container's objects in order of their names, the next ones by name.

Theory of operation.  Each worker records which objects of a container are read.  Three reads in a row with growing
names may start a sequence; then the worker lists the names that follow.  A read of one of these confirms the sequence;
without it the next guess needs twice as many reads, so that a client that skips names costs little.  The worker reads
the following objects by requests of its own, below this filter and through ``caching``, which stores them as if
clients had requested them often enough.  A client's request never waits for them, and their failures reach no client.

A worker follows one sequence of a container at a time, and few in all.  The segments of a large object are read in the
order of their names, so they form such a sequence in their own container.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

from sluice_core.cache.write_marks import object_digest
from sluice_core.errors import SluiceError
from sluice_filters.visits import Call, Reply, Visit
from sluice_middleware.log import Logger
from sluice_middleware.swift import green
from sluice_middleware.swift.proxy_api import close_if_possible, drain_and_close

#: Reads with growing names that may start a sequence, and the most that are needed after wrong guesses.
_SUSPECT: Final = 3
_MOST_DOUBTED: Final = 24
#: Containers that a worker records, and sequences that it follows at a time.
_MOST_CONTAINERS: Final = 1000
_MOST_AT_ONCE: Final = 4


@dataclass(slots=True)
class _Sequence:
    """The reads of one container: the last name, the number of growing names, and the names expected next.

    ``needed`` is the number of growing names before the next guess.
    """

    last: str = ""
    grown: int = 0
    needed: int = _SUSPECT
    expected: list[str] = field(default_factory=list)
    busy: bool = False


class Prefetcher:
    """The sequences of one worker.

    :param is_kept: whether the cache stores the object of a key
    """

    def __init__(self, is_kept: Callable[[bytes], bool], logger: Logger) -> None:
        #: Keys of the objects that are being read ahead: the cache stores them, however rarely clients requested them.
        self.wanted: set[bytes] = set()
        self._is_kept = is_kept
        self._logger = logger
        self._sequences: OrderedDict[tuple[str, str], _Sequence] = OrderedDict()
        self._running = 0

    def visit(self, call: Call, params: Mapping[str, Any]) -> Visit | None:
        """The visit of the filter for ``call``; ``params`` are those of the filter ``prefetch``."""
        return PrefetchVisit(self, call, params) if call.method == "GET" else None

    def note_read(self, call: Call, params: Mapping[str, Any]) -> None:
        """Record a client's read of the object of ``call``, and read ahead if it belongs to a sequence."""
        sequence = self._sequence(call)
        name, ahead = call.object, int(params["ahead"])
        expected = name in sequence.expected
        if expected:
            del sequence.expected[: sequence.expected.index(name) + 1]
            sequence.needed = _SUSPECT
            due = len(sequence.expected) <= ahead // 2
        else:
            sequence.grown = sequence.grown + 1 if name > sequence.last else 1
            due = sequence.grown >= sequence.needed
        sequence.last = name
        if due and not sequence.busy and self._running < _MOST_AT_ONCE:
            if not expected:
                sequence.grown, sequence.needed = 0, min(2 * sequence.needed, _MOST_DOUBTED)
            sequence.busy = True
            self._running += 1
            green.start_green(self._read_on, sequence, call, params)

    def _sequence(self, call: Call) -> _Sequence:
        place = (call.account, call.container)
        sequence = self._sequences.setdefault(place, _Sequence())
        self._sequences.move_to_end(place)
        if len(self._sequences) > _MOST_CONTAINERS:
            self._sequences.popitem(last=False)
        return sequence

    def _read_on(self, sequence: _Sequence, call: Call, params: Mapping[str, Any]) -> None:
        try:
            rows = next_rows(call, int(params["ahead"]))
            sequence.expected = [name for name, _ in rows]
            for name, size in rows:
                if size <= params["max_size"]:
                    self._read(call, name)
        except (SluiceError, OSError, ValueError, KeyError) as error:
            self._logger.debug("sluice: prefetch in %s/%s: %s", call.account, call.container, error)
        finally:
            sequence.busy = False
            self._running -= 1

    def _read(self, call: Call, name: str) -> None:
        path = (call.account, call.container, name)
        key = object_digest("/".join(path).encode("utf-8", "surrogateescape"))
        if key in self.wanted or self._is_kept(key):
            return
        self.wanted.add(key)
        try:
            drain_and_close(call.send("GET", path).body)
        finally:
            self.wanted.discard(key)


class PrefetchVisit(Visit):
    """A GET that may be one of a sequence."""

    def __init__(self, prefetcher: Prefetcher, call: Call, params: Mapping[str, Any]) -> None:
        self._prefetcher = prefetcher
        self._call = call
        self._params = params

    def response(self, reply: Reply) -> Reply:
        if reply.code in (200, 206):
            self._prefetcher.note_read(self._call, self._params)
        return reply


def next_rows(call: Call, count: int) -> list[tuple[str, int]]:
    """Name and size of the objects after that of ``call`` in the container's listing, with the same prefix."""
    name = call.object
    marker, prefix = (quote(text.encode("utf-8", "surrogateescape")) for text in (name, _prefix(name)))
    query = f"format=json&limit={count}&marker={marker}&prefix={prefix}"
    reply = call.send("GET", (call.account, call.container), query=query)
    if reply.code != 200:
        close_if_possible(reply.body)
        return []
    try:
        rows = json.loads(b"".join(reply.body))
    finally:
        with suppress(Exception):
            close_if_possible(reply.body)
    return [(row["name"], int(row["bytes"])) for row in rows if "name" in row]


def _prefix(name: str) -> str:
    """The name up to its last slash: the names that follow it form a sequence of their own."""
    return name[: name.rfind("/") + 1]
