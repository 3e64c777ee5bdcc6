"""A unit of a job while a rewriter works at it: its lease is renewed beside the work."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from sluice_core.errors import PeerError
from sluice_core.jobs import ENDED, GIVEN_BACK
from sluice_core.store.store import Store
from sluice_middleware.swift import green
from sluice_rewrites.messages import RUNNING, RewriteCounts, RewriteUnit, UnitSize
from sluice_rewrites.operations import LEASE, report_unit

log = logging.getLogger(__name__)

_RENEWAL: Final = LEASE / 4
_NO_COUNTS: Final = RewriteCounts()
_NO_UNITS: Final[Mapping[str, UnitSize | None]] = {}
#: The marker of what says nothing of names.  The last one may have been reported without an answer, and a renewal may
#: overtake a report: a marker that went back would have names counted twice.
_AS_REPORTED: Final = ""


class Claim:
    """:param stopped: whether this rewriter is to end"""

    def __init__(self, store: Store, unit: RewriteUnit, stopped: Callable[[], bool]) -> None:
        self.unit = unit
        #: Last name that is done, as it was reported.
        self.marker = unit.marker
        self._store = store
        self._stopped = stopped
        self._valid = True
        self._state: str | None = RUNNING
        self._renewal = green.start_green_thread(self._renew)

    @property
    def is_active(self) -> bool:
        """False when the unit is another rewriter's by now, the job is not to run, or this rewriter is to end."""
        return self._valid and self._state == RUNNING and not self._stopped()

    def report(
        self,
        marker: str,
        counts: RewriteCounts = _NO_COUNTS,
        units: Mapping[str, UnitSize | None] = _NO_UNITS,
        more: Mapping[str, int] | None = None,
        failures: Sequence[tuple[str, str]] = (),
    ) -> None:
        """Report that all names up to ``marker`` are done.

        :raises PeerError: when Redis is away; then either all of that counts, or the names are looked at once more
        """
        self._send(marker, counts, units, more, failures=failures)
        self.marker = marker

    def finish(self, more: Mapping[str, int] | None = None) -> None:
        """The unit is done.

        :raises PeerError: when Redis is away
        """
        self._renewal.kill()
        self._send(_AS_REPORTED, more=more, lease=ENDED)
        self._valid = False

    def release(self) -> None:
        """Give the unit back, so that another rewriter can claim it at once; without Redis its lease ends by itself."""
        self._renewal.kill()
        if self._valid:
            try:
                self._send(_AS_REPORTED, lease=GIVEN_BACK)
            except PeerError as error:
                log.warning("unit `%s` of rewrite `%s` is not given back: %s", self.unit.path, self.unit.job, error)

    def _renew(self) -> None:
        while self._valid:
            green.pause(_RENEWAL)
            try:
                self._send(_AS_REPORTED)
            except PeerError as error:
                log.warning("rewrite `%s`: %s", self.unit.job, error)

    def _send(
        self,
        marker: str,
        counts: RewriteCounts = _NO_COUNTS,
        units: Mapping[str, UnitSize | None] = _NO_UNITS,
        more: Mapping[str, int] | None = None,
        lease: float = LEASE,
        failures: Sequence[tuple[str, str]] = (),
    ) -> None:
        operation = report_unit(self._store.keys, self.unit, marker, counts, units, more, lease, failures)
        state = self._store.run(operation)
        self._valid, self._state = state is not None, state
