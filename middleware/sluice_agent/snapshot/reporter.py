"""The node's report: the agent's acknowledgement to the store, at once after a change and otherwise periodically."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from sluice_agent.metrics.worker_server import WorkerServer
from sluice_agent.settings import Settings
from sluice_core.errors import PeerError
from sluice_core.messages.nodes import NodeReport
from sluice_core.snapshot.reader import SnapshotWriter
from sluice_core.store.store import AsyncStore

log = logging.getLogger(__name__)

OK: Final = "ok"
STALE: Final = "stale_history"
FAILED: Final = "failed"

_MAX_REFUSALS: Final = 100
#: Seconds for which a node reports that it followed a failover.
_FAILOVER_NOTICE_SECONDS: Final = 86_400.0


@dataclass(eq=False)
class NodeReporter:
    """Holds the contents of the report and the moment at which it is due."""

    settings: Settings
    store: AsyncStore
    writer: SnapshotWriter
    workers: WorkerServer | None
    #: Returns the report of the node as if it had no snapshot.
    describe_node: Callable[[], NodeReport]

    def __post_init__(self) -> None:
        self._started = time.time()
        self._state = OK
        self._detail = ""
        self._late_workers = ""
        self._failover = ""
        self._failover_until = 0.0
        self._due = 0.0

    def report_soon(self) -> None:
        """Report soon, since something in the report has changed."""
        self._due = 0.0

    def set_state(self, state: str, detail: str = "") -> None:
        """Report this state from now on, at once if it has changed."""
        if (state, detail) != (self._state, self._detail):
            log.log(logging.INFO if state == OK else logging.ERROR, "%s %s", state, detail)
            self._state, self._detail, self._due = state, detail, 0.0

    def set_late_workers(self, pids: list[int]) -> None:
        """Report the workers that do not read the replaced snapshot, until they do."""
        self._late_workers = ""
        if pids:
            self._late_workers = f"workers {', '.join(map(str, pids))} do not read the replaced snapshot yet"
            log.warning("%s", self._late_workers)

    def note_failover(self, reason: str) -> None:
        """Report for a day that the node adopted a history without an operator."""
        self._failover = f"went along with a failover: {reason}"
        self._failover_until = time.monotonic() + _FAILOVER_NOTICE_SECONDS

    def report(self) -> NodeReport:
        """The report as of now."""
        position = self.writer.position
        failover = self._failover if time.monotonic() < self._failover_until else ""
        node = self.describe_node()
        refused = [*sorted(node.refused.items()), *sorted(self.writer.refused.items())]
        return replace(
            node,
            history=position.history,
            epoch=position.epoch,
            state=self._state,
            detail=self._detail or self._late_workers or failover,
            refused=dict(refused[:_MAX_REFUSALS]),
            assignments=self.writer.count,
            started=self._started,
            at=time.time(),
        )

    def due_report(self) -> NodeReport | None:
        """Return the report if it is due, else None; it counts as sent."""
        now = time.monotonic()
        if now < self._due:
            return None
        self._due = now + self.settings.report_interval
        if self._late_workers and self.workers is not None and not self.workers.not_reading(self.writer.snapshot_id):
            self._late_workers = ""
        return self.report()

    async def send_if_due(self) -> None:
        """Send a due report.

        :raises PeerError: when the store cannot be reached
        """
        report = self.due_report()
        if report is not None:
            await self.store.report(report)

    async def try_to_send(self) -> None:
        """Send a due report; one that cannot be sent stays due."""
        try:
            await self.send_if_due()
        except PeerError as error:
            self._due = 0.0
            log.warning("cannot report: %s", error)
