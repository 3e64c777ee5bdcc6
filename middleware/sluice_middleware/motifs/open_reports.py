"""Opens of objects whose bytes are there: told to the node's motif daemon, which orders objects by them.

The proxy answers such a GET without the daemon, so opens are summed up for a second and sent by one call.  What is
beyond a bound, or cannot be sent, is left out: an order by opens does not need every single one.
"""

from __future__ import annotations

from typing import Final

from sluice_core.errors import SluiceError
from sluice_middleware.motifs.daemon_client import DaemonClient
from sluice_middleware.motifs.daemon_protocol import OPENED, WorkerCall
from sluice_middleware.swift import green

#: Objects that are told of in a second.
MOST: Final = 1000
_PERIOD: Final = 1.0


class OpenReports:
    """:param daemon: who is told"""

    def __init__(self, daemon: DaemonClient) -> None:
        self._daemon = daemon
        self._opens: dict[str, int] = {}

    def note(self, name: str) -> None:
        """An object with motifs is read whose bytes are there."""
        if not self._daemon.path:
            return
        if not self._opens:
            green.call_later(_PERIOD, self._send_soon)
        before = self._opens.pop(name, 0)
        if before or len(self._opens) < MOST:
            self._opens[name] = before + 1

    def _send_soon(self) -> None:
        green.start_green_thread(self.send)

    def send(self) -> None:
        """Tell what was noted, the last open last."""
        opens, self._opens = self._opens, {}
        try:
            self._daemon.call(WorkerCall(OPENED, "", opens=opens)).close()
        except SluiceError:
            return  # the daemon is away; nothing depends on it
