"""What a proxy worker tells its node's motif daemon each second: objects that were read, and that clients changed.

The proxy answers a GET without the daemon when the bytes are there, and the daemon orders objects by their opens.  It
knows no other way that a client deleted an object, or wrote it anew without motifs.  What is beyond a bound, or cannot
be sent, is left out: an order by opens does not need every single one, and the daemon looks at an object before it
contracts it.
"""

from __future__ import annotations

from typing import Final

from sluice_core.errors import SluiceError
from sluice_middleware.motifs.daemon_client import DaemonClient
from sluice_middleware.motifs.daemon_protocol import REPORT, WorkerCall
from sluice_middleware.swift import green

#: Objects of either kind that are told of in a second.
MOST: Final = 1000


class ItemReports:
    """:param daemon: who is told"""

    def __init__(self, daemon: DaemonClient) -> None:
        self._daemon = daemon
        self._opens: dict[str, int] = {}
        self._changed: set[str] = set()
        self._started = False

    def note_open(self, name: str) -> None:
        """An object with motifs is read whose bytes are there."""
        if self._begun():
            before = self._opens.pop(name, 0)
            if before or len(self._opens) < MOST:
                self._opens[name] = before + 1

    def note_change(self, name: str) -> None:
        """A client wrote or deleted an object, which may have had motifs."""
        if self._begun() and len(self._changed) < MOST:
            self._changed.add(name)

    def _begun(self) -> bool:
        """Whether there is somebody to tell; the first object that is noted begins it, which is after the fork."""
        if self._daemon.path and not self._started:
            self._started = True
            green.each_second(self.send)
        return self._started

    def send(self) -> None:
        """Tell what was noted, the last open last."""
        if not self._opens and not self._changed:
            return
        call = WorkerCall(REPORT, "", opens=self._opens, changed=tuple(sorted(self._changed)))
        self._opens, self._changed = {}, set()
        try:
            self._daemon.call(call).close()
        except SluiceError:
            return  # the daemon is away; nothing depends on it
