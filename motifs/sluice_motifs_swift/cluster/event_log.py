"""The way of a motif daemon's events to the log in Redis."""

from __future__ import annotations

import logging
from collections.abc import Callable

from sluice_core.errors import PeerError
from sluice_core.messages.events import Event
from sluice_core.store.store import Store

log = logging.getLogger(__name__)


class EventTeller:
    """Logs events in the name of a node; while Redis is away they are in the daemon's own log alone.

    :param now: unix seconds
    """

    def __init__(self, store: Store, node: str, now: Callable[[], float]) -> None:
        self._store = store
        self._node = node
        self._now = now

    def __call__(self, kind: str, subject: str, text: str) -> None:
        """
        :param kind: one of ``sluice_core.messages.events.KINDS``
        :param subject: the space or object that it is about
        """
        log.warning("%s: %s", kind, text)
        event = Event.make(self._now(), kind, text, f"motifs/{self._node}", subject=subject, node=self._node)
        try:
            self._store.append_events([event])
        except PeerError as error:
            log.warning("an event is not logged: %s", error)
