"""Finishes abandoned operations on volumes, and removes those that ended long ago.

The API's request that starts an operation advances it while it waits for it.  This service finishes the operation when
that process has ended, when no request follows, or when Cinder takes longer than a request.  One host of the cluster
does this, the one that owns :data:`NAME`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from sluice_actors.runtime.services import Ownership, Service, Spawn, repeat_while_owned
from sluice_core.process.logs import log_fields, request_id
from sluice_core.store.store import AsyncStore
from sluice_volumes import operations
from sluice_volumes.cinder.adapter import Cinder
from sluice_volumes.konnector_client import Konnector, konnector_urls
from sluice_volumes.messages import VolumeOperation
from sluice_volumes.outcomes import save_outcome_async
from sluice_volumes.reconciler import OperationReconciler

#: The name under which the finishing host owns its work.
NAME: Final = "volumes/operations"
INTERVAL: Final = 2.0
#: Seconds for which an operation is left to the request that started it.
GRACE: Final = 5.0
#: The number of operations that are kept after their end.
KEPT: Final = 500


@dataclass(eq=False)
class OperationFinisher(Service):
    """Finishes operations while this host owns :data:`NAME`.

    :param konnectors: gives the konnector of a node, out of the URLs by node
    :param account_prefix: the prefix of a project's id in its account
    """

    cinder: Cinder
    konnectors: Callable[[Mapping[str, str]], Callable[[str], Konnector]]
    store: AsyncStore
    ownership: Ownership
    account_prefix: str
    clock: Callable[[], float]

    def start(self, spawn: Spawn) -> None:
        spawn(repeat_while_owned("finish operations on volumes", self.ownership, NAME, self.finish_all, INTERVAL))

    async def finish_all(self) -> None:
        """Advance each operation that no other process advances.

        :raises PeerError: when Redis is unreachable
        """
        known = await self.store.run(operations.JOBS.read_all(self.store.keys))
        now = self.clock()
        waiting = [one for one in known.values() if now - one.created >= GRACE and operations.is_free(one, now)]
        if waiting:
            urls = konnector_urls(await self.store.nodes())
            reconciler = OperationReconciler(self.cinder, self.konnectors(urls), self.account_prefix, self.clock)
            for one in waiting:
                await self._finish(reconciler, one)
        await self.store.run(operations.forget(self.store.keys, known, KEPT))

    async def _finish(self, reconciler: OperationReconciler, operation: VolumeOperation) -> None:
        claimed, write = operations.claim(self.store.keys, operation, self.clock())
        if not await self.store.run(write):
            return
        before = None
        if claimed.volume:
            before = await self.store.run(operations.RECORDS.read(self.store.keys, claimed.volume))
        with log_fields(request=request_id("")):
            outcome = await asyncio.to_thread(reconciler.try_advance, claimed, before)
        await save_outcome_async(self.store, claimed, outcome, before)
