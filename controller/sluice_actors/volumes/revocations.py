"""The host that tells konnectors which came back that volumes were taken from them meanwhile.

A detachment by force does not wait for a konnector that does not answer.  It stays among the operations until that
konnector was told, which then serves the volume no more (``sluice_volumes.attachments``).  One host of the cluster
does this, the one that owns :data:`NAME`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from sluice_actors.node_watcher import is_away
from sluice_actors.runtime.event_log import LogEvent
from sluice_actors.runtime.services import Ownership, Service, Spawn, repeat_while_owned
from sluice_core.errors import CallerError, NotFound, PeerError
from sluice_core.messages.events import VOLUME_FAILED
from sluice_core.store.store import AsyncStore
from sluice_volumes import operations
from sluice_volumes.konnector_client import Konnector, konnector_urls
from sluice_volumes.messages import KONNECTOR_TOLD, VolumeOperation

log = logging.getLogger(__name__)

#: What the telling host owns.
NAME: Final = "volumes/revocations"
_INTERVAL: Final = 2.0
#: The source of its events, whichever host tells.
_SOURCE: Final = "volumes"


@dataclass(eq=False)
class Revocations(Service):
    """Tells konnectors while this host owns :data:`NAME`.

    :param konnectors: gives the konnector of a node, out of the URLs by node
    :param node_timeout: seconds without a report after which a node is away, and not asked
    """

    konnectors: Callable[[Mapping[str, str]], Callable[[str], Konnector]]
    store: AsyncStore
    ownership: Ownership
    node_timeout: float
    clock: Callable[[], float]
    log_event: LogEvent

    def start(self, spawn: Spawn) -> None:
        spawn(repeat_while_owned("revoke volumes", self.ownership, NAME, self.notify_konnectors, _INTERVAL))

    async def notify_konnectors(self) -> None:
        """Tell each konnector that is there what it does not know yet.

        :raises PeerError: when Redis is away
        """
        known = await self.store.run(operations.JOBS.read_all(self.store.keys))
        untold = [one for one in known.values() if operations.is_untold(one)]
        if not untold:
            return
        now = self.clock()
        nodes = [one for one in await self.store.nodes() if not is_away(one, now, self.node_timeout)]
        urls = konnector_urls(nodes)
        konnectors = self.konnectors(urls)
        for one in untold:
            if one.data["node"] in urls:
                await self._tell(konnectors(one.data["node"]), one)

    async def _tell(self, konnector: Konnector, operation: VolumeOperation) -> None:
        node, volume = operation.data["node"], operation.volume
        try:
            await asyncio.to_thread(konnector.revoke, volume, operation.data["attachment"])
        except NotFound:  # it let the volume go by itself, or has it anew
            pass
        except (CallerError, PeerError) as error:
            log.warning("node `%s` is not told that it lost volume `%s`: %s", node, volume, error)
            return
        else:
            text = f"node `{node}` is back and serves volume `{volume}` no more, which was detached from it by force"
            self.log_event(VOLUME_FAILED, text, _SOURCE, subject=volume)
        told = replace(operation, data={**operation.data, KONNECTOR_TOLD: True})
        await self.store.run(operations.JOBS.replace(self.store.keys, operation, told))
