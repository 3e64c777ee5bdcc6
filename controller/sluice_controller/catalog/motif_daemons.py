"""The daemons of motifs that run, and what sentences may say since they do."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from sluice_core.describe import ActionInfo
from sluice_core.store.store import Store
from sluice_dsl.catalogue.base import Catalogue
from sluice_dsl.catalogue.motifs import with_motifs
from sluice_motif_control.daemons import live_daemons
from sluice_motif_control.messages import MotifDaemon, MotifTemplate

log = logging.getLogger(__name__)

#: Seconds for which daemons are remembered.
REMEMBERED: Final = 1.0


class KnownMotifs:
    """Reads Redis at most once in :data:`REMEMBERED` seconds, and each time while no daemon is known."""

    def __init__(self, store: Store, now: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._now = now
        self._lock = threading.Lock()
        self._daemons: list[MotifDaemon] = []
        self._read_at = float("-inf")

    def daemons(self) -> Sequence[MotifDaemon]:
        """Those that run.

        :raises PeerError: when Redis is away
        """
        with self._lock:
            now = self._now()
            if not self._daemons or now - self._read_at >= REMEMBERED:
                self._daemons = self._store.run(live_daemons(self._store.keys))
                self._read_at = now
            return self._daemons

    def templates(self) -> dict[str, MotifTemplate]:
        """The templates that every daemon knows, by keyword: any of them may have to make an object again.

        :raises PeerError: when Redis is away
        """
        daemons = self.daemons()
        if not daemons:
            return {}
        known = [{one.keyword: one for one in daemon.templates} for daemon in daemons]
        common = set.intersection(*map(set, known))
        return {keyword: known[0][keyword] for keyword in sorted(common)}

    def extend(self, native: Catalogue) -> Catalogue:
        """``native`` with motifs, when a daemon runs.

        :raises PeerError: when Redis is away
        """
        if not self.daemons():
            return native
        return with_motifs(native, _infos(self.templates()))


def _infos(templates: dict[str, MotifTemplate]) -> dict[str, ActionInfo]:
    found = {}
    for keyword, template in templates.items():
        try:
            found[keyword] = template.info
        except TypeError as error:  # of a daemon that knows more
            log.error("left out template `%s`: %s", keyword, error)
    return found
