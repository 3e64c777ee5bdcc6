"""The konnector as a worker of the agent of its machine: says what it can do, and tells just after each second of the
wall clock what it counted.

Sending never blocks, and without an agent volumes go on.  The link tries to connect again each second.  It also does
so when what it says first has changed: an uploaded filter came or was refused, a volume broke, or it is known whether
the attachment of one that was taken over still holds.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from sluice_block.konnector.agent.volume_rows import GAUGES, METRICS, QUANTILES, Row, VolumeRows
from sluice_block.konnector.konnector import Konnector
from sluice_block.stack.filters import enforceable_actions
from sluice_block.stack.page import Counters
from sluice_core.connections.agent_connection import AgentConnection, worker_name
from sluice_core.describe import KONNECTOR
from sluice_core.errors import CallerError, PeerError
from sluice_core.messages.nodes import Counters as WorkerCounters
from sluice_core.messages.nodes import Hello
from sluice_volumes.messages import volume_path

log = logging.getLogger(__name__)

#: Seconds after each second of the wall clock at which it is told: the agent closes its window some hundredths later,
#: so that what is told in the middle of a second would be known a second later.
_AFTER_SECOND: Final = 0.002
#: Rows of one message; with full sketches these are less than the 64 KiB that a message may have.
_ROWS: Final = 16
#: Volumes with a fault and refused filters that are told of, and characters of each reason: less than a message has.
_FAULTS: Final = 100
_REFUSED: Final = 50
_REASON: Final = 300
#: Volumes whose attachments are asked about at a time, and seconds after which one that still waits is a fault.
_ASKED: Final = 100
_WAITED: Final = 30.0


class AgentLink(AgentConnection):
    """A thread that speaks to the agent at ``path``.

    :param url: where the controller calls this konnector; empty when it cannot
    :param snapshot_id: the snapshot that policies are read from, which the agent waits for when it made another one
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
        """Begin to connect and to tell."""
        self._thread.start()

    def stop(self) -> None:
        """Leave the agent."""
        self._stopping.set()
        self._thread.join()
        self.disconnect()

    def tick(self) -> None:
        """Tell what has changed."""
        self._rows.update(self._read_counters())
        self._renew_hello()
        if self._socket is None:
            if self.connect(self._hello.encode()) is None:
                return
            self._rows.forget_sent()
        now = time.monotonic()
        rows = list(self._rows.changed(now).values())
        for first in range(0, max(len(rows), 1), _ROWS):  # one without rows says that all is quiet
            if not self._send_rows(rows[first : first + _ROWS], now):
                return

    def _run(self) -> None:
        while not self._stopping.wait(1.0 + _AFTER_SECOND - time.time() % 1.0):
            self.tick()

    def _renew_hello(self) -> None:
        """What is true now goes out with the next connection: an agent takes one hello of each."""
        try:
            uploaded, refused = self._konnector.filters.versions(), self._konnector.filters.refused()
            self._complaint = ""
        except PeerError as error:  # which of them are refused is not known
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
        found = {}
        for volume in self._konnector.volumes():
            attachment = volume.attachment
            if attachment.account:  # else its tenant is not known
                try:
                    found[volume_path(attachment.account, attachment.volume)] = volume.counters()
                except CallerError as error:  # it is being attached or detached
                    log.debug("%s", error)
        return found

    def _send_rows(self, rows: Sequence[Row], now: float) -> bool:
        """Whether the socket took them; the rest waits for the next second."""
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
