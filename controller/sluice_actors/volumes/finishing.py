"""The host that finishes operations on volumes which nobody works at, and forgets those that ended long ago.

Whoever orders an operation brings it further while it waits for it.  What is left over when that process dies, when
nobody asks again, or when Cinder takes longer than a request, is finished here.  One host of the cluster does this, the
one that owns :data:`NAME`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Final

from sluice_actors.runtime.ownership import Ownership
from sluice_actors.runtime.tasks import Service, Spawn, repeat_while_owned
from sluice_core.errors import CallerError, PeerError
from sluice_core.store.store import AsyncStore
from sluice_volumes import operations
from sluice_volumes.cinder.adapter import Cinder
from sluice_volumes.finishing import OperationReconciler
from sluice_volumes.keeping import save_outcome_async
from sluice_volumes.konnector_client import Konnector, konnector_urls
from sluice_volumes.messages import VolumeOperation
from sluice_volumes.outcomes import Outcome, failed

log = logging.getLogger(__name__)

#: What the finishing host owns.
NAME: Final = "volumes/operations"
INTERVAL: Final = 2.0
#: Seconds for which an operation is left to the request that ordered it.
GRACE: Final = 5.0
#: Operations that have ended and are kept.
KEPT: Final = 500


class OperationFinisher(Service):
    """Finishes operations while this host owns :data:`NAME`.

    :param konnectors: gives the konnector of a node, out of the URLs by node
    :param account_prefix: what makes a project's id an account
    """

    def __init__(
        self,
        cinder: Cinder,
        konnectors: Callable[[Mapping[str, str]], Callable[[str], Konnector]],
        store: AsyncStore,
        ownership: Ownership,
        account_prefix: str,
        clock: Callable[[], float],
    ) -> None:
        self._cinder = cinder
        self._konnectors = konnectors
        self._store = store
        self._ownership = ownership
        self._account_prefix = account_prefix
        self._clock = clock

    def start(self, spawn: Spawn) -> None:
        spawn(repeat_while_owned("finish operations on volumes", self._ownership, NAME, self.finish_all, INTERVAL))

    async def finish_all(self) -> None:
        """Advance each operation that no process works at.

        :raises PeerError: when Redis is away
        """
        known = await self._store.run(operations.JOBS.read_all(self._store.keys))
        now = self._clock()
        waiting = [one for one in known.values() if now - one.created >= GRACE and operations.is_free(one, now)]
        if waiting:
            urls = konnector_urls(await self._store.nodes())
            finisher = OperationReconciler(self._cinder, self._konnectors(urls), self._account_prefix, self._clock)
            for one in waiting:
                await self._finish(finisher, one)
        await self._store.run(operations.forget(self._store.keys, known, KEPT))

    async def _finish(self, finisher: OperationReconciler, operation: VolumeOperation) -> None:
        claimed, write = operations.claim(self._store.keys, operation, self._clock())
        if not await self._store.run(write):
            return
        before = None
        if claimed.volume:
            before = await self._store.run(operations.RECORDS.read(self._store.keys, claimed.volume))
        try:
            outcome = await asyncio.to_thread(finisher.advance, claimed, before)
        except CallerError as error:
            outcome = Outcome(failed(claimed, self._clock(), str(error)), before)
        except PeerError as error:
            log.warning("operation `%s` on a volume waits: %s", claimed.id, error)
            outcome = Outcome(claimed, before)
        await save_outcome_async(self._store, claimed, outcome, before)
