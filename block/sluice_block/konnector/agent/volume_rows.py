"""What the pages of volumes have counted, as the rows that an agent expects of its workers.

A row is a running total since its ``born`` (:mod:`sluice_core.metrics.totals`).  A page counts on when the konnector is
started again, and an agent would take the totals of a new worker's rows for one second's growth.  So a row begins at
zero when the konnector sees the page first, and again when the page does: after a new attach.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from sluice_block.stack.page import BUCKETS, Counters, bucket_seconds
from sluice_core.metrics.sketch import Sketch, find_bucket, merge, pack
from sluice_core.metrics.totals import WORKER_FORGETS, birth
from sluice_volumes.metrics import (
    LATENCY_QUANTILES,
    VOLUME_LATENCY,
    VOLUME_QUEUE,
    VOLUME_READ_BW,
    VOLUME_READ_IOPS,
    VOLUME_WRITE_BW,
    VOLUME_WRITE_IOPS,
)

#: The columns of a row.
METRICS: Final = (VOLUME_READ_BW, VOLUME_WRITE_BW, VOLUME_READ_IOPS, VOLUME_WRITE_IOPS, VOLUME_QUEUE)
GAUGES: Final = (VOLUME_QUEUE,)
#: Metric → name of its sketch, and the quantile.
QUANTILES: Final[Mapping[str, tuple[str, float]]] = {
    metric: (VOLUME_LATENCY, quantile) for metric, quantile in LATENCY_QUANTILES.items()
}
#: Bucket of a page's histogram → bucket of a sketch.
_BUCKETS: Final = tuple(find_bucket(bucket_seconds(number)) for number in range(BUCKETS))

Row = tuple[str, int, tuple[float, ...]]


@dataclass(slots=True)
class _Counted:
    """``base`` is what the page had counted when the row began, ``sent`` what the agent knows; None: nothing."""

    base: Counters | None
    last: Counters
    born: int = field(default_factory=birth)
    sent: Counters | None = None
    sent_at: float = 0.0


class VolumeRows:
    """The rows of all volumes of a konnector."""

    def __init__(self) -> None:
        self._volumes: dict[str, _Counted] = {}

    def update(self, counters: Mapping[str, Counters]) -> None:
        """Note what pages say now.

        :param counters: path of each volume that is attached → what its page has counted
        """
        for path in self._volumes.keys() - counters.keys():
            del self._volumes[path]
        for path, now in counters.items():
            known = self._volumes.get(path)
            if known is None:
                self._volumes[path] = _Counted(now, now)
            elif _has_restarted(known.last, now):
                self._volumes[path] = _Counted(None, now)
            else:
                known.last = now

    def forget_sent(self) -> None:
        """Another agent listens, which knows nothing yet."""
        for one in self._volumes.values():
            one.sent = None

    def changed(self, now: float) -> dict[str, Row]:
        """Path → row of the volumes whose rows have changed since they were sent, or that an agent would forget.

        :param now: monotonic seconds
        """
        return {
            path: (path, one.born, _values(one))
            for path, one in self._volumes.items()
            if one.sent != one.last or now - one.sent_at > WORKER_FORGETS
        }

    def sketches(self, paths: Iterable[str]) -> dict[str, list[list[float]]]:
        """The sketches of some volumes, for ``Counters.sketches``: the buckets that changed since they were sent."""
        return {VOLUME_LATENCY: [pack(_changed_sketch(self._volumes[path])) for path in paths]}

    def note_sent(self, paths: Iterable[str], now: float) -> None:
        """The agent has got these rows.

        :param now: monotonic seconds
        """
        for path in paths:
            self._volumes[path].sent, self._volumes[path].sent_at = self._volumes[path].last, now


def _has_restarted(before: Counters, after: Counters) -> bool:
    return after.reads < before.reads or after.writes < before.writes or after.busy < before.busy


def _totals(counters: Counters) -> tuple[int, int, int, int]:
    return counters.read_bytes, counters.written_bytes, counters.reads, counters.writes


def _values(one: _Counted) -> tuple[float, ...]:
    base = _totals(one.base) if one.base is not None else (0, 0, 0, 0)
    grown = (float(new - old) for new, old in zip(_totals(one.last), base, strict=True))
    return (*grown, float(one.last.under_way))


def _sketch(counters: Counters, base: Counters | None) -> Sketch:
    """Both histograms as one sketch, less what was in ``base``."""
    found: Sketch = {}
    for name in ("read_latency", "write_latency"):
        histogram = getattr(counters, name)
        if base is not None:
            histogram -= getattr(base, name)
        merge(found, ((_BUCKETS[number], count) for number, count in enumerate(histogram.buckets) if count))
    return found


def _changed_sketch(one: _Counted) -> Sketch:
    now = _sketch(one.last, one.base)
    before = _sketch(one.sent, one.base) if one.sent is not None else {}
    return {bucket: count for bucket, count in now.items() if count != before.get(bucket)}
