"""The konnector as a worker of its machine's agent: it announces its capabilities, and sends its counts just after each
second of the wall clock.

Sending does not block, and without an agent volumes keep working.  The link tries to connect again each second.  It
also does so after a change of its hello: an uploaded filter was added or refused, a volume broke, or the attachment of
a volume that was taken over was confirmed or ended.

The counts of volumes' pages become the rows that an agent expects from its workers.  A row is a running total since its
``born`` (:mod:`sluice_core.metrics.totals`).  A page keeps counting when the konnector is restarted, and an agent would
take the totals of a new worker's rows for one second's growth.  So a row begins at zero when the konnector first reads
the page, and again when the page restarts: after a new attach.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from sluice_block.konnector.konnector import Konnector
from sluice_block.stack.filters import enforceable_actions
from sluice_block.stack.page import BUCKETS, Counters, bucket_seconds
from sluice_core.connections.agent_connection import AgentConnection, worker_name
from sluice_core.describe import KONNECTOR
from sluice_core.errors import CallerError, PeerError
from sluice_core.messages.nodes import Counters as WorkerCounters
from sluice_core.messages.nodes import Hello
from sluice_core.metrics.sketch import Sketch, find_bucket, merge, pack
from sluice_core.metrics.totals import WORKER_FORGETS, birth
from sluice_volumes.messages import volume_path
from sluice_volumes.metrics import (
    LATENCY_QUANTILES,
    VOLUME_LATENCY,
    VOLUME_QUEUE,
    VOLUME_READ_BW,
    VOLUME_READ_IOPS,
    VOLUME_WRITE_BW,
    VOLUME_WRITE_IOPS,
)

log = logging.getLogger(__name__)

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
    """``base`` is the page's count when the row began, ``sent`` the count that the agent has; None: nothing."""

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
        """Record the present counts of pages.

        :param counters: path of each attached volume → the counts of its page
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
        """Mark all rows as unsent: another agent listens, which has no rows yet."""
        for one in self._volumes.values():
            one.sent = None

    def changed(self, now: float) -> dict[str, Row]:
        """Return path → row, of the volumes whose rows have changed since they were sent, or that an agent would drop.

        :param now: monotonic seconds
        """
        return {
            path: (path, one.born, _values(one))
            for path, one in self._volumes.items()
            if one.sent != one.last or now - one.sent_at > WORKER_FORGETS
        }

    def sketches(self, paths: Iterable[str]) -> dict[str, list[list[float]]]:
        """Return the sketches of some volumes, for ``Counters.sketches``: the buckets that changed since they were
        sent.
        """
        return {VOLUME_LATENCY: [pack(_changed_sketch(self._volumes[path])) for path in paths]}

    def note_sent(self, paths: Iterable[str], now: float) -> None:
        """Record that the agent has received these rows.

        :param now: monotonic seconds
        """
        for path in paths:
            self._volumes[path].sent, self._volumes[path].sent_at = self._volumes[path].last, now


def _has_restarted(before: Counters, after: Counters) -> bool:
    return after.reads < before.reads or after.writes < before.writes or after.busy < before.busy


def _totals(counters: Counters) -> tuple[int, int, int, int]:
    return counters.read_bytes, counters.written_bytes, counters.reads, counters.writes


def _values(counted: _Counted) -> tuple[float, ...]:
    base = _totals(counted.base) if counted.base is not None else (0, 0, 0, 0)
    grown = (float(new - old) for new, old in zip(_totals(counted.last), base, strict=True))
    return (*grown, float(counted.last.under_way))


def _sketch(counters: Counters, base: Counters | None) -> Sketch:
    """Return both histograms as one sketch, minus the counts in ``base``."""
    sketch: Sketch = {}
    for name in ("read_latency", "write_latency"):
        histogram = getattr(counters, name)
        if base is not None:
            histogram -= getattr(base, name)
        merge(sketch, ((_BUCKETS[number], count) for number, count in enumerate(histogram.buckets) if count))
    return sketch


def _changed_sketch(one: _Counted) -> Sketch:
    now = _sketch(one.last, one.base)
    before = _sketch(one.sent, one.base) if one.sent is not None else {}
    return {bucket: count for bucket, count in now.items() if count != before.get(bucket)}


#: Seconds after each second of the wall clock at which the link sends: the agent closes its window some hundredths
#: later, so that a message in the middle of a second would count a second later.
_AFTER_SECOND: Final = 0.002
#: Rows in one message; with full sketches these are less than the limit of 64 KiB.
_ROWS: Final = 16
#: Broken volumes and refused filters in a message, and characters of each reason: less than a message's limit.
_FAULTS: Final = 100
_REFUSED: Final = 50
_REASON: Final = 300
#: Number of volumes whose attachments are checked at a time, and seconds after which an unconfirmed one is a fault.
_ASKED: Final = 100
_WAITED: Final = 30.0


class AgentLink(AgentConnection):
    """A thread that communicates with the agent at ``path``.

    :param url: the URL at which the controller calls this konnector; empty when it cannot
    :param snapshot_id: the snapshot from which policies are read, for which the agent waits after it made another one
    """

    away_text = "no agent at `%s`: %s"
    back_text = "agent at `%s` is back"
    lost_text = "lost the agent at `%s`: %s"

    def __init__(self, path: str, konnector: Konnector, url: str, snapshot_id: Callable[[], str]) -> None:
        super().__init__(path, log)
        self._konnector = konnector
        self._snapshot_id = snapshot_id
        self._rows = VolumeRows()
        self._hello = Hello(
            worker=worker_name(),
            role=KONNECTOR,
            pid=os.getpid(),
            actions=enforceable_actions(),
            metrics=METRICS,
            gauges=GAUGES,
            quantiles=QUANTILES,
            url=url,
        )
        self._complaint = ""
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="agent link", daemon=True)

    def start(self) -> None:
        """Begin to connect and to send."""
        self._thread.start()

    def stop(self) -> None:
        """Leave the agent."""
        self._stopping.set()
        self._thread.join()
        self.disconnect()

    def tick(self) -> None:
        """Send the changes."""
        self._rows.update(self._read_counters())
        self._renew_hello()
        if self._socket is None:
            if self.connect(self._hello.encode()) is None:
                return
            self._rows.forget_sent()
        now = time.monotonic()
        rows = list(self._rows.changed(now).values())
        for first in range(0, max(len(rows), 1), _ROWS):  # a message without rows means no activity
            if not self._send_rows(rows[first : first + _ROWS], now):
                return

    def _run(self) -> None:
        while not self._stopping.wait(1.0 + _AFTER_SECOND - time.time() % 1.0):
            self.tick()

    def _renew_hello(self) -> None:
        """Send the present hello with the next connection, since an agent accepts one hello of each."""
        try:
            uploaded, refused = self._konnector.filters.versions(), self._konnector.filters.refused()
            self._complaint = ""
        except PeerError as error:  # the refused filters are not known
            if str(error) != self._complaint:
                log.error("no uploaded filter is announced: %s", error)
            uploaded, refused, self._complaint = {}, {}, str(error)
        volumes, now = self._konnector.volumes(), time.monotonic()
        faulty = [one for one in volumes if one.fault and (one.waiting_since or -_WAITED) + _WAITED <= now]
        faults = {one.attachment.volume: one.fault[:_REASON] for one in faulty[:_FAULTS]}
        asked = [one.attachment for one in volumes if one.is_unconfirmed()]
        hello = replace(
            self._hello,
            actions={**enforceable_actions(), **uploaded},
            volume_faults=faults,
            unconfirmed_volumes={one.volume: one.attachment for one in asked[:_ASKED]},
            refused_code={sha256: refused[sha256][:_REASON] for sha256 in sorted(refused)[:_REFUSED]},
        )
        if hello != self._hello:
            self._hello = hello
            self.disconnect()

    def _read_counters(self) -> dict[str, Counters]:
        counters = {}
        for volume in self._konnector.volumes():
            attachment = volume.attachment
            if attachment.account:  # else its tenant is not known
                try:
                    counters[volume_path(attachment.account, attachment.volume)] = volume.counters()
                except CallerError as error:  # it is being attached or detached
                    log.debug("%s", error)
        return counters

    def _send_rows(self, rows: Sequence[Row], now: float) -> bool:
        """Return whether the socket accepted them; the others wait for the next second."""
        paths = [path for path, _, _ in rows]
        message = WorkerCounters(
            worker=self._hello.worker,
            at=time.time(),
            rows=tuple(rows),
            snapshot=self._snapshot_id(),
            sketches=self._rows.sketches(paths),
        )
        if not self.send(message.encode()):
            return False
        self._rows.note_sent(paths, now)
        return True
