"""Reads objects ahead: the next ones by name, once a client reads a container's objects in order.

Theory of operation.  Each worker notes which objects of a container are read.  Three reads in a row whose names grow
may be the beginning of a sequence; then the container is asked for the names that follow.  A read of one of these is a
sure sign; without it the next guess takes twice as many reads, so that a client who skips names costs little.  What
follows is read by requests of our own, below this filter and through ``caching``, which keeps it as if a client had
asked often enough.  A client's request never waits for them, and their failures are nobody's.

One sequence of a container is followed at a time, and few in a worker.  The segments of a large object are read in the
order of their names, so they are such a sequence in their own container.
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

#: Reads of growing names that may be the beginning of a sequence, and the most that are asked for after wrong guesses.
_SUSPECT: Final = 3
_MOST_DOUBTED: Final = 24
#: Containers that a worker watches, and sequences that it follows at a time.
_MOST_CONTAINERS: Final = 1000
_MOST_AT_ONCE: Final = 4


@dataclass(slots=True)
class _Sequence:
    """What was read of one container: the last name, how many grew, and the names that should come next.

    ``needed`` is how many must grow before the next guess.
    """

    last: str = ""
    grown: int = 0
    needed: int = _SUSPECT
    expected: list[str] = field(default_factory=list)
    busy: bool = False


class Prefetcher:
    """The sequences of one worker.

    :param is_kept: whether the cache keeps the object of a key
    """

    def __init__(self, is_kept: Callable[[bytes], bool], logger: Logger) -> None:
        #: Keys of the objects that are being read ahead: the cache keeps them, however rarely they were asked for.
        self.wanted: set[bytes] = set()
        self._is_kept = is_kept
        self._logger = logger
        self._sequences: OrderedDict[tuple[str, str], _Sequence] = OrderedDict()
        self._running = 0

    def visit(self, call: Call, params: Mapping[str, Any]) -> Visit | None:
        """The visit that accompanies ``call``; ``params`` are those of the filter ``prefetch``."""
        return PrefetchVisit(self, call, params) if call.method == "GET" else None

    def note_read(self, call: Call, params: Mapping[str, Any]) -> None:
        """A client reads the object of ``call``: read on from there if it is one of a sequence."""
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
    """Name and size of the objects behind that of ``call``, below the same prefix, out of the container's listing."""
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
    """The name up to its last slash: what follows it is a sequence of its own."""
    return name[: name.rfind("/") + 1]
