"""The worker's voice: tells the node's agent each second what it counted.

One connected SEQPACKET unix socket per worker; a message is sent whole or not at all and sending
never blocks.  Totals are cumulative, so a lost message costs resolution, not counts: rows stay
*changed* until a message with them was taken by the socket.  Without an agent the worker goes on
counting and tries to connect again each second.
"""

from __future__ import annotations

import logging
import os
import socket
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from sluice_core.messages.nodes import Counters, Hello
from sluice_metrics.meter.meter import Meter

#: A message never exceeds this, whatever the kernel would take.
MESSAGE_LIMIT: Final = 64 * 1024
_ROWS_PER_MESSAGE: Final = 512

Row = tuple[str, int, tuple[float, ...]]


class Reporter:
    """Sends hello once per connection and counters each second; ``tick`` is called by a timer."""

    def __init__(
        self,
        path: str,
        meter: Meter,
        actions: Mapping[str, int],
        snapshot_id: Callable[[], str],
        logger: logging.Logger | logging.LoggerAdapter[Any],
    ) -> None:
        self.worker = f"{os.getpid()}-{uuid.uuid4().hex[:12]}"
        self._path = path
        self._meter = meter
        self._actions = dict(actions)
        self._snapshot_id = snapshot_id
        self._logger = logger
        self._socket: socket.socket | None = None
        self._away = False

    def tick(self) -> None:
        """Send what changed; drop the connection when the agent has gone."""
        if self._socket is None and not self._connect():
            return
        rows: Sequence[Row] = self._meter.changed()
        if not rows:
            self._send(())
        for first in range(0, len(rows), _ROWS_PER_MESSAGE):
            part = tuple(rows[first : first + _ROWS_PER_MESSAGE])
            if not self._send(part):
                return

    def update_actions(self, actions: Mapping[str, int]) -> None:
        """What this worker can do has changed: say hello anew at the next tick."""
        self._actions = dict(actions)
        self.close()

    def close(self) -> None:
        """Leave the agent."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _connect(self) -> bool:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        connection.setblocking(False)
        hello = Hello(
            worker=self.worker,
            role="proxy",
            pid=os.getpid(),
            actions=self._actions,
            metrics=self._meter.names,
            gauges=self._meter.gauges,
        )
        try:
            connection.connect(self._path)
            connection.send(hello.encode())
        except OSError as error:
            connection.close()
            if not self._away:
                self._logger.warning("sluice: no agent at `%s`: %s", self._path, error)
            self._away = True
            return False
        if self._away:
            self._logger.info("sluice: agent at `%s` is back", self._path)
        self._away = False
        self._socket = connection
        self._meter.reconnected()
        return True

    def _send(self, rows: tuple[Row, ...]) -> bool:
        """True when the socket took all of ``rows``."""
        message = Counters(worker=self.worker, at=time.time(), rows=rows, snapshot=self._snapshot_id()).encode()
        if len(message) > MESSAGE_LIMIT and len(rows) > 1:
            half = len(rows) // 2
            return self._send(rows[:half]) and self._send(rows[half:])
        assert self._socket is not None
        try:
            self._socket.send(message)
        except BlockingIOError:
            return False  # the agent is slow; the rows stay changed
        except OSError as error:
            self._logger.warning("sluice: lost the agent at `%s`: %s", self._path, error)
            self.close()
            self._away = True
            return False
        self._meter.delivered(rows)
        return True
