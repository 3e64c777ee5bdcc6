"""Keeps the table of the runtime complete: after the start, and after Redis has lost what it knew.

Nothing that must hold rests on it: it tells spaces what there is, and what is expanded when everything is.  A daemon
that lives on puts what it knows back; a walk over the accounts of the cluster finds the rest.
"""

from __future__ import annotations

import logging
from typing import Final

from sluice_core.errors import SluiceError
from sluice_core.store.store import Store
from sluice_middleware.swift import green
from sluice_motifs.runtime import Runtime
from sluice_motifs_swift.cluster.known_items import is_complete, set_complete
from sluice_motifs_swift.daemon import GreenService
from sluice_rewrites.account_reports import close_request, new_request, open_request, read_collection

log = logging.getLogger(__name__)

#: Seconds between two looks whether a scan is needed, and after a scan that did not see all accounts.
_INTERVAL: Final = 2.0
_TRY_AGAIN: Final = 600.0


class Scan(GreenService):
    """A service: scans the storage for objects with motifs when not all of them are known."""

    def __init__(self, store: Store, runtime: Runtime) -> None:
        self._store = store
        self._runtime = runtime

    def _run(self) -> None:
        reason = ""
        while True:
            pause = _INTERVAL
            try:
                pause = self._look()
                reason = ""
            except SluiceError as error:
                if reason != f"{error}":
                    reason = f"{error}"
                    log.warning("objects with motifs are not looked for: %s", reason)
            except Exception:
                log.exception("the scan for objects with motifs failed")
            green.pause(pause)

    def _look(self) -> float:
        """Scan if that is needed; seconds until the next look."""
        keys, items = self._store.keys, self._runtime.items
        complete = self._store.run(is_complete(keys))
        if complete and items.complete:
            return _INTERVAL
        problem = "" if complete else self._collect_accounts()
        found = self._runtime.restart(complete=not problem)
        if problem:
            log.warning("%d objects have motifs, and there may be more: %s", found, problem)
            return _TRY_AGAIN
        self._store.run(set_complete(keys))
        log.info("%d objects have motifs", found)
        return _INTERVAL

    def _collect_accounts(self) -> str:
        """Wait until all accounts are in the list; why they are not, or empty."""
        keys, request = self._store.keys, new_request()
        self._store.run(open_request(keys, request))
        try:
            while True:
                collection = self._store.run(read_collection(keys, request))
                if collection.is_complete or collection.problem:
                    return collection.problem
                green.pause(_INTERVAL)
        finally:
            self._store.run(close_request(keys, request))
