"""The counters of a worker, and the connection on which it reports them to the node's agent each second.

One connection per worker (:mod:`agent_connection`).  Totals are cumulative, so a lost message costs resolution, not
counts: rows stay *changed* until the socket took a message with them.  Without an agent the worker continues to
count and tries to connect again each second.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from sluice_code.code_store import CodeStore
from sluice_code.proven import ProvenCode
from sluice_core.connections.agent_connection import AgentConnection, worker_name
from sluice_core.messages.nodes import Counters, Hello
from sluice_core.messages.uploads import METRIC_CODE, Upload
from sluice_metrics.api import Metric
from sluice_metrics.meter.meter import Meter
from sluice_metrics.native import create_metric
from sluice_middleware.log import Logger

#: The longest message, even if the kernel would take a longer one.
MESSAGE_LIMIT: Final = 64 * 1024
_ROWS_PER_MESSAGE: Final = 512

Row = tuple[str, int, tuple[float, ...]]


class Reporter(AgentConnection):
    """Sends hello once per connection and counters each second; ``tick`` is called by a timer."""

    def __init__(
        self,
        path: str,
        meter: Meter,
        actions: Mapping[str, int],
        snapshot_id: Callable[[], str],
        logger: Logger,
        plugins: Mapping[str, str] = MappingProxyType({}),
        motifs: int = 0,
    ) -> None:
        """
        :param plugins: installed plugin that this worker runs without → the reason
        :param motifs: version of contracted objects that it serves, ``announcements.MOTIF_STATES``; 0: none
        """
        super().__init__(path, logger)
        self.worker = worker_name()
        self._meter = meter
        self._actions = dict(actions)
        self._snapshot_id = snapshot_id
        self._plugins = dict(plugins)
        self._motifs = motifs

    def tick(self) -> None:
        """Send the changed counters; disconnect when the agent has closed the connection."""
        if self._socket is None and not self._say_hello():
            return
        rows: Sequence[Row] = self._meter.changed()
        if not rows:
            self._send_rows(())
        for first in range(0, len(rows), _ROWS_PER_MESSAGE):
            part = tuple(rows[first : first + _ROWS_PER_MESSAGE])
            if not self._send_rows(part):
                return

    def update_actions(self, actions: Mapping[str, int]) -> None:
        """Send a new hello at the next tick, since this worker's actions have changed."""
        self._actions = dict(actions)
        self.disconnect()

    def _say_hello(self) -> bool:
        hello = Hello(
            worker=self.worker,
            role="proxy",
            pid=os.getpid(),
            actions=self._actions,
            metrics=self._meter.names,
            gauges=self._meter.gauges,
            quantiles=self._meter.quantiles,
            plugins=self._plugins,
            motifs=self._motifs,
        )
        if self.connect(hello.encode()) is None:
            return False
        self._meter.reconnected()
        return True

    def _send_rows(self, rows: tuple[Row, ...]) -> bool:
        """Send ``rows``; return whether the socket took all of them."""
        message = Counters(
            worker=self.worker,
            at=time.time(),
            rows=rows,
            snapshot=self._snapshot_id(),
            sketches=self._meter.sketches(rows),
        ).encode()
        if len(message) > MESSAGE_LIMIT and len(rows) > 1:
            half = len(rows) // 2
            return self._send_rows(rows[:half]) and self._send_rows(rows[half:])
        if not self.send(message):
            return False  # the rows stay changed
        self._meter.delivered(rows)
        return True


class WorkerMetrics:
    """The worker's ``meter``: installed metrics, and uploaded ones of the snapshot; called once a second."""

    def __init__(
        self,
        installed: Mapping[str, type[Metric]],
        options: Mapping[str, Any],
        logger: Logger,
    ) -> None:
        """
        :param options: ``code_dir`` and ``busiest_objects``
        """
        self._installed = {name: metric() for name, metric in installed.items()}
        self._logger = logger
        self.meter = Meter(self._installed.values(), objects=options["busiest_objects"])
        folder = options["code_dir"]
        self._uploaded = (
            ProvenCode(METRIC_CODE, CodeStore(folder), create_metric, logger, self._installed) if folder else None
        )

    def apply_uploads(self, uploads: tuple[Upload, ...]) -> bool:
        """Count the running metrics of ``uploads``, too; return whether the agent needs a new hello."""
        if self._uploaded is None or not self._uploaded.update(uploads):
            return False
        try:
            self.meter.measure((*self._installed.values(), *self._uploaded.found.values()))
        except ValueError as error:
            self._logger.error("sluice: uploaded metrics stay as they are: %s", error)
            return False
        return True
