"""Decides which series are kept, and makes the rows that are written.  No I/O and no clock.

Theory of operation

* Samples arrive by groups (``sluice_actors.metric_history.group``).  Each :data:`RANK_SECONDS` the room is divided
  among groups, and each group keeps its busiest paths.  :attr:`Collector.changes` then has the changes to make in the
  directory.
* A row of a resolution is due when its step has ended and all windows of it have been closed.  Only steps that this
  host has received from their beginning are written: two halves from two hosts do not make a correct point.
* A new owner continues the series in the directory.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from sluice_actors.metric_history.group import SeriesGroup, divide_room
from sluice_actors.metric_history.sample_buffer import SampleBuffer, finest_step
from sluice_actors.metric_history.samples import GroupKey, WindowSample, silent
from sluice_actors.metrics.windows import CLOSE_DELAY, ClosedWindow
from sluice_core.messages.policies import CLUSTER
from sluice_metric_history.records import FAMILIES, OWNED, SeriesKey, SeriesRecord
from sluice_metric_history.resolutions import RESOLUTIONS, Resolution

RANK_SECONDS: Final = 10
#: Seconds behind the close delay of windows after which all windows of a second have arrived.
MARGIN: Final = 0.35
#: Additional seconds for which a minute waits: windows of a minute close later than short ones.
_SLOW: Final = 1
#: After a longer suspension of the process the collector starts anew.
_LONGEST_SLEEP: Final = 25
#: Seconds after which two hosts agree which of them keeps history.
_TAKEOVER: Final = 120
#: A group that was silent for this many seconds is removed: none of its series is kept any more.
_FORGOTTEN: Final = RESOLUTIONS[-1].seconds


class HistoryRow(NamedTuple):
    """The points of the step of ``resolution`` that begins at ``at``, by the id of their series."""

    resolution: Resolution
    at: int
    points: dict[str, bytes]


@dataclass(slots=True)
class Changes:
    """Series to put into the directory, and series to remove from it together with their points."""

    put: dict[SeriesKey, SeriesRecord] = field(default_factory=dict)
    forget: list[SeriesRecord] = field(default_factory=list)


class Collector:
    """:param room: the maximum number of series
    :param now: Unix time from which it receives all samples
    :param known: the series in the directory
    """

    def __init__(self, room: int, now: float, known: Collection[SeriesRecord] = ()) -> None:
        self.changes = Changes()
        self.room = room
        self._buffer = SampleBuffer(room)
        self._free = list(range(room - 1, -1, -1))
        self._columns: dict[SeriesKey, int] = {}
        self._records: dict[SeriesKey, SeriesRecord] = {}
        self._groups: dict[GroupKey, SeriesGroup] = {}
        self._since = int(now) + 1
        self._finished = int(now)
        for one in known:
            self._adopt(one, now)
        for key in [key for key in self._records if not key.rest and key.path not in self._group(key).paths]:
            self._forget(key)

    @property
    def records(self) -> Mapping[SeriesKey, SeriesRecord]:
        """The series that are kept."""
        return self._records

    # -- input

    def add(self, sample: WindowSample) -> None:
        """Add a window of one group."""
        group = self._groups.get(sample.group)
        if group is None:
            group = self._groups[sample.group] = SeriesGroup(sample.group, finest_step(sample.period), sample.window)
        group.put(sample, self._buffer)

    def add_silence(self, closed: ClosedWindow) -> None:
        """Count the missing paths of metrics that add up as 0 in a closed window."""
        for key, group in self._groups.items():
            if key.metrics == (closed.metric,) and group.adds and key.level not in closed.values:
                group.put(silent(key, closed, group.adds), self._buffer)

    # -- output

    def rows(self, now: float) -> Iterator[HistoryRow]:
        """The rows that are due, in the order of time; each is returned once."""
        newest = int(now - CLOSE_DELAY - MARGIN) - 1
        if newest - self._finished > _LONGEST_SLEEP:
            self._buffer.clear()
            self._since = int(now) + 1
            self._finished = newest
        while self._finished < newest:
            second = self._finished = self._finished + 1
            self._buffer.finish_second(second)
            for resolution in RESOLUTIONS:
                at = second + 1 - resolution.step - (_SLOW if resolution is RESOLUTIONS[-1] else 0)
                if at % resolution.step == 0 and at >= self._since:
                    yield self._row(resolution, at)
            if second % RANK_SECONDS == 0:
                self._rank(second)

    def reconcile(self, directory: Mapping[SeriesKey, SeriesRecord], now: float) -> None:
        """Follow the directory: stop keeping series that other hosts removed, forget series that others added.

        A new series may come from a host that takes over now, or that was the owner a moment ago.
        """
        for key, record in list(self._records.items()):
            there = directory.get(key)
            if there is None and key not in self.changes.put:
                self._drop(key)
            elif there is not None and there.id != record.id:
                self.changes.forget.append(there)
                self._put(record)
        self.changes.forget += [
            one for key, one in directory.items() if key not in self._records and now - one.since > _TAKEOVER
        ]

    def _drop(self, key: SeriesKey) -> None:
        """Stop keeping a path whose series another host has removed from the directory."""
        if key not in self._records:
            return  # removed already, with another metric of its path
        self._forget(key)  # the points written since then
        group = self._group(key)
        if key.rest:
            del group.rests[key.metric]
        elif group.paths.pop(key.path, None) is not None:
            group.ranking.forget(key.path)
            for metric in group.key.metrics:
                self._forget(SeriesKey(metric, key.level, key.path))

    def _group(self, key: SeriesKey) -> SeriesGroup:
        return self._groups[_group_of(key)]

    def _row(self, resolution: Resolution, at: int) -> HistoryRow:
        points = self._buffer.points(resolution, at)
        kept = {one.id: points[self._columns[key]] for key, one in self._records.items() if one.step <= resolution.step}
        return HistoryRow(resolution, at, kept)

    # -- which series

    def _rank(self, now: int) -> None:
        for key, group in list(self._groups.items()):
            if now - group.heard > _FORGOTTEN:
                self._keep(group, (), now)
                del self._groups[key]
        rests = sum(len(group.adds) for group in self._groups.values() if group.key.level in OWNED)
        room = divide_room(
            max(self.room - rests, 0),
            {str(key): group.wanted for key, group in self._groups.items()},
            {str(key): len(key.metrics) for key in self._groups},
        )
        chosen = {key: group.ranking.choose(group.paths, room[str(key)]) for key, group in self._groups.items()}
        for key, group in self._groups.items():  # removals first, to make room for additions
            self._keep(group, group.paths.keys() & set(chosen[key]), now)
        for key, group in self._groups.items():
            self._keep(group, chosen[key], now)
            self._keep_rest(group, now)

    def _keep(self, group: SeriesGroup, paths: Collection[str], now: int) -> None:
        """Keep series of exactly ``paths``."""
        wanted = set(paths)
        for path in [path for path in group.paths if path not in wanted]:
            del group.paths[path]
            for metric in group.key.metrics:
                self._forget(SeriesKey(metric, group.key.level, path))
        for path in paths:
            if path not in group.paths and len(self._free) >= len(group.key.metrics):
                keys = [SeriesKey(metric, group.key.level, path) for metric in group.key.metrics]
                group.paths[path] = tuple(self._begin(key, group.step, now) for key in keys)

    def _keep_rest(self, group: SeriesGroup, now: int) -> None:
        level = group.key.level
        crowded = group.wanted > len(group.paths)
        for metric in group.adds if level in OWNED and crowded else ():
            key = SeriesKey(metric, level, "", rest=True)
            if metric not in group.rests and self._free:
                group.rests[metric] = self._begin(key, group.step, now)
            record = self._records.get(key)
            if record is not None and record.of != group.of:
                self._put(replace(record, of=group.of))

    def _begin(self, key: SeriesKey, step: int, now: int) -> int:
        known = self._records.get(key)
        if known is None:
            known = SeriesRecord(secrets.token_hex(6), *key[:3], step=step, since=now, rest=key.rest)
            self._columns[key] = self._free.pop()
            self._put(known)
        return self._columns[key]

    def _put(self, record: SeriesRecord) -> None:
        self._records[record.key] = self.changes.put[record.key] = record

    def _forget(self, key: SeriesKey) -> None:
        record = self._records.get(key)
        if record is not None:
            self._release(key)
            self.changes.put.pop(key, None)
            self.changes.forget.append(record)

    def _release(self, key: SeriesKey) -> None:
        self._records.pop(key, None)
        column = self._columns.pop(key, None)
        if column is not None:
            self._buffer.clear_column(column)
            self._free.append(column)

    def _adopt(self, record: SeriesRecord, now: float) -> None:
        """Continue a series of a former owner; one for which there is no room is forgotten."""
        if not self._free:
            self.changes.forget.append(record)
            return
        key, group_key = record.key, _group_of(record.key)
        group = self._groups.setdefault(group_key, SeriesGroup(group_key, record.step, now))
        self._records[key] = record
        self._columns[key] = column = self._free.pop()
        if key.rest:
            group.rests[key.metric], group.of = column, record.of
            return
        complete = [SeriesKey(metric, key.level, key.path) for metric in group_key.metrics]
        if all(one in self._columns for one in complete):
            group.paths[key.path] = tuple(self._columns[one] for one in complete)


def _group_of(key: SeriesKey) -> GroupKey:
    alone = (key.metric,)
    return GroupKey(alone if key.level == CLUSTER else FAMILIES.get(key.metric, alone), key.level)
