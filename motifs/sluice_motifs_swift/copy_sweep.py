"""Removes copies that no object needs any more, now and then, one daemon at a time."""

from __future__ import annotations

import logging
from typing import Final

from sluice_core.errors import SluiceError
from sluice_middleware.swift import green
from sluice_motifs.contraction.copies import CopySweeper
from sluice_motifs.storage.leases import Renewal, release
from sluice_motifs.storage.shim import Leases
from sluice_motifs_swift.daemon import GreenService

log = logging.getLogger(__name__)

#: What daemons lease to sweep; no object is called so.
_LEASE: Final = "sweep of copies"


class CopySweep(GreenService):
    """A service.

    :param interval: seconds between two sweeps
    """

    def __init__(self, sweeper: CopySweeper, leases: Leases, interval: float) -> None:
        self._sweeper = sweeper
        self._leases = leases
        self._interval = interval

    def _run(self) -> None:
        while True:
            green.pause(self._interval)
            try:
                self._sweep()
            except SluiceError as error:
                log.warning("copies that nobody needs stay: %s", error)
            except Exception:
                log.exception("the sweep of copies failed")

    def _sweep(self) -> None:
        lease = self._leases.acquire(_LEASE)
        if lease is None:
            return
        try:
            removed = self._sweeper.sweep(Renewal(lambda: self._leases.renew(lease)))
            if removed:
                log.info("%d copies were removed, which nobody needed", removed)
        finally:
            release(self._leases, lease)
