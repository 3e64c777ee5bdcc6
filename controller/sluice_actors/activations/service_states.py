"""Writes to Redis what the services of third parties answered: the last state of each assignment, in few commands."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from sluice_actors.runtime.tasks import Service, Spawn, repeat_forever
from sluice_core.messages.services import ServiceState
from sluice_core.store.store import AsyncStore


@dataclass(slots=True)
class ServiceStates(Service):
    """States that are not written yet; they wait while Redis is away."""

    store: AsyncStore
    _unwritten: dict[str, ServiceState | None] = field(default_factory=dict)
    _work: asyncio.Event = field(default_factory=asyncio.Event)

    def keep(self, assignment: str, state: ServiceState | None) -> None:
        """Write the state of an assignment's call soon; None forgets it."""
        self._unwritten[assignment] = state
        self._work.set()

    def start(self, spawn: Spawn) -> None:
        """Have states written."""
        spawn(repeat_forever("service states", self._write))

    async def _write(self) -> None:
        await self._work.wait()
        self._work.clear()
        changes, self._unwritten = self._unwritten, {}
        try:
            await self.store.write_service_states(changes)
        except BaseException:
            self._unwritten = {**changes, **self._unwritten}
            self._work.set()
            raise
