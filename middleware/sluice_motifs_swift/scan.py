"""Keeps the table of the runtime and what Redis knows complete: after the start, and after Redis has begun anew."""

from __future__ import annotations

import logging
from typing import Final

from sluice_core.errors import SluiceError
from sluice_core.motifs.dependents import current_run, is_complete, set_complete
from sluice_core.store.store import Store
from sluice_middleware.swift import green
from sluice_motifs.runtime import Runtime

log = logging.getLogger(__name__)

#: Seconds between two looks whether a scan is needed.
_INTERVAL: Final = 2.0


class Scan:
    """A service: scans the storage for objects with motifs when not all of them are known."""

    def __init__(self, store: Store, runtime: Runtime) -> None:
        self._store = store
        self._runtime = runtime
        self._scanned = False
        self._running: green.Pending | None = None

    def start(self) -> None:
        self._running = green.start_green_thread(self._run)

    def stop(self) -> None:
        if self._running is not None:
            self._running.kill()

    def _run(self) -> None:
        reason = ""
        while True:
            try:
                self._look()
                reason = ""
            except SluiceError as error:
                if reason != f"{error}":
                    reason = f"{error}"
                    log.warning("objects with motifs are not looked for: %s", reason)
            except Exception:
                log.exception("the scan for objects with motifs failed")
            green.pause(_INTERVAL)

    def _look(self) -> None:
        if self._scanned and self._store.run(is_complete(self._store.keys)):
            return
        run = self._store.run(current_run(self._store.keys))
        found = self._runtime.restart()
        self._scanned = self._store.run(set_complete(self._store.keys, run))
        log.info("%d objects have motifs", found)
