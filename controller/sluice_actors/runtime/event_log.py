"""Sends the events of an actor host to the log in Redis.

:meth:`EventLog.add` never waits and never fails: events wait in memory until a task has written them.  While Redis is
unreachable the newest :data:`_LIMIT` are kept.  Events whose answer was lost are written again, which the log counts as
repeats.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from sluice_actors.runtime.services import Service, Spawn, repeat_forever
from sluice_core.errors import PeerError
from sluice_core.messages.events import Event
from sluice_core.store.store import AsyncStore

log = logging.getLogger(__name__)

_LIMIT: Final = 1000
#: Events in one call of the script.
_BATCH: Final = 100
#: Seconds for the last write when the host ends.
_LAST_WRITE: Final = 1.0


class LogEvent(Protocol):
    """The signature of :meth:`EventLog.add`."""

    def __call__(self, kind: str, text: str, source: str = "", **more: Any) -> None:
        """Log an event soon."""


def ignore_event(kind: str, text: str, source: str = "", **more: Any) -> None:
    """Log nothing."""


@dataclass(eq=False)
class EventLog(Service):
    """Logs events under the name ``source``, unless they have another one."""

    store: AsyncStore
    source: str
    clock: Callable[[], float]
    _waiting: deque[Event] = field(init=False, default_factory=lambda: deque(maxlen=_LIMIT))
    _work: asyncio.Event = field(init=False, default_factory=asyncio.Event)

    def add(self, kind: str, text: str, source: str = "", **more: Any) -> None:
        """Log an event soon.

        :param more: further fields of :class:`~sluice_core.messages.events.Event`
        """
        self._waiting.append(Event.make(self.clock(), kind, text, source or self.source, **more))
        self._work.set()

    def start(self, spawn: Spawn) -> None:
        spawn(repeat_forever("events", self._step))

    async def close(self) -> None:
        """Write the waiting events, for at most 1 s."""
        try:
            async with asyncio.timeout(_LAST_WRITE):
                await self._write()
        except (PeerError, TimeoutError) as error:
            log.warning("%d events were not logged at the end: %s", len(self._waiting), error)

    async def _step(self) -> None:
        await self._work.wait()
        self._work.clear()
        try:
            await self._write()
        except BaseException:
            self._work.set()
            raise

    async def _write(self) -> None:
        while self._waiting:
            batch = [self._waiting.popleft() for _ in range(min(_BATCH, len(self._waiting)))]
            try:
                await self.store.append_events(batch)
            except BaseException:
                # These go before the events that arrived meanwhile; where not all fit, the newest are kept.
                room = _LIMIT - len(self._waiting)
                self._waiting.extendleft(reversed(batch[-room:] if room else []))
                raise
