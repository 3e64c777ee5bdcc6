"""Watches the processes of all volumes: what ends is noticed at once, by its pid file descriptor."""

from __future__ import annotations

import os
import select
import threading
from typing import Final

from sluice_block.konnector.konnector import Konnector

#: Seconds after which all is looked at again, whatever ended or did not.
_INTERVAL: Final = 1.0


class Supervisor:
    """A thread that has the konnector check its volumes."""

    def __init__(self, konnector: Konnector) -> None:
        self._konnector = konnector
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="supervisor", daemon=True)

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def stop(self) -> None:
        """End; a check that is under way is waited for."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._wait()
            if not self._stopping.is_set():
                self._konnector.check()

    def _wait(self) -> None:
        """Until a process ends, or for a while."""
        opened = [one for volume in self._konnector.volumes() for one in volume.processes()]
        try:
            poll = select.poll()
            for descriptor in opened:
                poll.register(descriptor, select.POLLIN)
            poll.poll(int(_INTERVAL * 1000))
        finally:
            for descriptor in opened:
                os.close(descriptor)
