"""Bytes and times by flow and device, which a worker reports each second: totals since its last hello."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from sluice_core.messages.bandwidth import Flow, MovedObject, ObjectKey, fastest_objects
from sluice_core.messages.credit import MESSAGE_LIMIT, TrafficReport, TrafficSample, pack

#: Objects that ended within the second, at most, of which the fastest are reported too.
_ENDED: Final = 1000
#: Bodies that passed at once and are not added up yet, at most.
BATCH: Final = 1000


@dataclass(slots=True, eq=False)
class FlowCounter:
    """Totals of one flow on one device: bytes moved, transfers open and waiting, and the seconds of both.

    ``at`` is the second until which these are added up.
    """

    flow: Flow
    device: str
    at: float
    moved: int = 0
    open: int = 0
    waiting: int = 0
    _busy: float = 0.0
    _held: float = 0.0
    _since: int = 0

    def update(self, now: float, opened: int = 0, waiting: int = 0) -> None:
        """Change the numbers of open and of waiting transfers from ``now`` on."""
        passed = max(0.0, now - self.at)
        self._busy += passed * self.open
        self._held += passed * self.waiting
        self.at = now
        self.open += opened
        self.waiting += waiting

    def reset(self, now: float) -> None:
        """Count from ``now`` on."""
        self.update(now)
        self._busy = self._held = 0.0
        self._since = self.moved

    def row(self, now: float) -> TrafficSample:
        """The row of a report."""
        self.update(now)
        account, method, policy, container = self.flow
        moved = self.moved - self._since
        return TrafficSample(
            account, container, method, policy, self.device, moved, self._busy, self._held, self.open, self.waiting
        )


@dataclass(slots=True, eq=False)
class ObjectTransfer:
    """One object under transfer; ``moved`` is counted by its transfer, ``range`` as in ``0-end``."""

    flow: Flow
    device: str
    oid: str
    range: str
    moved: int = 0
    reported: int = 0


class ChangedCounters(NamedTuple):
    """What one report contains."""

    counters: list[FlowCounter]
    #: Their totals as of now.
    rows: tuple[TrafficSample, ...]
    objects: tuple[MovedObject, ...]


class FlowCounters:
    """All counters of one worker; ``clock`` is monotonic."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._all: dict[tuple[Flow, str], FlowCounter] = {}
        self._active: set[FlowCounter] = set()
        self._objects: set[ObjectTransfer] = set()
        self._ended: deque[ObjectTransfer] = deque(maxlen=_ENDED)
        #: Bytes of objects that passed at once, since the last report.
        self._passed: dict[ObjectKey, int] = {}
        #: Bodies that passed at once: flow, device, bytes, object (empty: none) and span.  The caller that adds one
        #: here calls :meth:`add_up` from :data:`BATCH` bodies on: batches keep the cost of each request low.
        self.fresh: list[tuple[Flow, str, int, str, str]] = []
        self._told = clock()

    def __len__(self) -> int:
        return len(self._all)

    def counter(self, flow: Flow, device: str) -> FlowCounter:
        """The counter of ``flow`` on ``device``, which is reported from now on."""
        flow_counter = self._all.get((flow, device))
        if flow_counter is None:
            flow_counter = self._all[flow, device] = FlowCounter(flow, device, self._clock())
        self._active.add(flow_counter)
        return flow_counter

    def add_object(self, item: ObjectTransfer) -> None:
        """Report the object while its transfer is open."""
        self._objects.add(item)

    def remove_object(self, item: ObjectTransfer) -> None:
        """Handle the end of the object's transfer; it is reported once more."""
        self._objects.discard(item)
        if item.moved > item.reported:
            self._ended.append(item)

    def reset(self) -> None:
        """Count from zero after a hello, and remove flows without a transfer."""
        self.add_up()
        now = self._clock()
        self._all = {key: one for key, one in self._all.items() if one.open}
        self._active = set(self._all.values())
        for one in self._active:
            one.reset(now)

    def changed(self) -> ChangedCounters:
        """The counters that may have changed, and the fastest objects since the last call."""
        self.add_up()
        now = self._clock()
        passed = max(now - self._told, 0.001)
        self._told = now
        moved: Counter[ObjectKey] = Counter(self._passed)
        self._passed = {}
        for counter in (*self._objects, *self._ended):  # the transfers of one object are summed
            if counter.moved > counter.reported:
                flow = counter.flow
                moved[counter.device, flow.policy, flow.account, counter.oid, flow.method, counter.range] += (
                    counter.moved - counter.reported
                )
        self._ended.clear()
        objects = fastest_objects({key: size / passed for key, size in moved.items()})
        for counter in self._objects:
            counter.reported = counter.moved
        counters = list(self._active)
        return ChangedCounters(counters, tuple(one.row(now) for one in counters), objects)

    def add_up(self) -> None:
        """Add the fresh bodies to the counters."""
        passed, fresh = self._passed, self.fresh
        self.fresh = []
        for flow, device, size, oid, span in fresh:
            self.counter(flow, device).moved += size
            if oid:
                key = (device, flow.policy, flow.account, oid, flow.method, span)
                if key not in passed and len(passed) >= _ENDED:
                    del passed[next(iter(passed))]
                passed[key] = passed.get(key, 0) + size

    def delivered(self, counters: list[FlowCounter]) -> None:
        """Handle the delivery of a report: counters without a transfer need no report until they change again."""
        self._active.difference_update([one for one in counters if not one.open])


def split_report(at: float, rows: tuple[TrafficSample, ...], objects: tuple[MovedObject, ...]) -> list[bytes]:
    """:class:`~sluice_core.messages.credit.TrafficReport` messages with all of it, none longer than the limit."""
    raw = pack(TrafficReport(at, rows, objects))
    if len(raw) <= MESSAGE_LIMIT or len(rows) + len(objects) < 2:
        return [raw]
    if rows and objects:
        return [*split_report(at, rows, ()), *split_report(at, (), objects)]
    half = max(len(rows), len(objects)) // 2
    return [*split_report(at, rows[:half], objects[:half]), *split_report(at, rows[half:], objects[half:])]
