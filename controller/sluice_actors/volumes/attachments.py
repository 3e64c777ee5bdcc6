"""Confirms the attachments of volumes to konnectors, or revokes them.

*Confirmations*.  A konnector that starts, after a reboot or by itself, may have lost volumes meanwhile, because an
administrator declared its machine lost.  So its node's report has the volumes to confirm
(``NodeReport.unconfirmed_volumes``), and it does not attach again, before the answer, a volume that could be attached
elsewhere.  Cinder decides, because it keeps an attachment until it ends, whatever Redis lost.  An attachment that
Cinder has is confirmed.  One that it does not have is revoked if Cinder shows the volume, and so would show the
attachment.  One host of the cluster does this, the one that owns :data:`CONFIRMATIONS`.

*Revocations*.  A forced detachment does not wait for a konnector that does not answer.  It stays among the operations
until that konnector has received it, and then stops serving the volume (``sluice_volumes.attachments``).  One host of
the cluster does this, the one that owns :data:`REVOCATIONS`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final

from sluice_actors.node_watcher import is_away
from sluice_actors.runtime.event_log import LogEvent
from sluice_actors.runtime.services import Ownership, Service, Spawn, repeat_while_owned
from sluice_core.errors import CallerError, NotFound, PeerError
from sluice_core.messages.events import VOLUME_FAILED
from sluice_core.messages.nodes import NodeReport
from sluice_core.process.logs import log_fields, request_id
from sluice_core.store.store import AsyncStore
from sluice_volumes import operations
from sluice_volumes.cinder.adapter import Cinder
from sluice_volumes.konnector_client import Konnector, konnector_urls
from sluice_volumes.messages import DETACH, KONNECTOR_TOLD, UNDER_WAY, VolumeOperation

log = logging.getLogger(__name__)

#: The names under which the confirming and the revoking host own their work.
CONFIRMATIONS: Final = "volumes/confirmations"
REVOCATIONS: Final = "volumes/revocations"
_INTERVAL: Final = 2.0
#: The source of their events, whichever host acts.
_SOURCE: Final = "volumes"


@dataclass(eq=False)
class _KonnectorService(Service):
    """The common part of both services.

    :param konnectors: gives the konnector of a node, out of the URLs by node
    :param node_timeout: seconds without a report after which a node counts as away, and is not called
    """

    konnectors: Callable[[Mapping[str, str]], Callable[[str], Konnector]]
    store: AsyncStore
    ownership: Ownership
    node_timeout: float
    clock: Callable[[], float]
    log_event: LogEvent


@dataclass(eq=False)
class Confirmations(_KonnectorService):
    """Answers konnectors while this host owns :data:`CONFIRMATIONS`.

    :param cinder: with the rights of Sluice's service user
    """

    cinder: Cinder

    def start(self, spawn: Spawn) -> None:
        what = "confirm attachments of volumes"
        spawn(repeat_while_owned(what, self.ownership, CONFIRMATIONS, self.answer_all, _INTERVAL))

    async def answer_all(self) -> None:
        """Answer each konnector with unconfirmed volumes; nodes are answered in parallel.

        :raises PeerError: when Redis is unreachable
        """
        now = self.clock()
        nodes = [one for one in await self.store.nodes() if one.unconfirmed_volumes and one.konnector]
        asking = [one for one in nodes if not is_away(one, now, self.node_timeout)]
        if not asking:
            return
        known = await self.store.run(operations.JOBS.read_all(self.store.keys))
        leaving = {one.volume for one in known.values() if (one.what, one.state) == (DETACH, UNDER_WAY)}
        konnectors = self.konnectors(konnector_urls(asking))
        await asyncio.gather(*(self._answer_node(konnectors(one.node), one, leaving) for one in asking))

    async def _answer_node(self, konnector: Konnector, report: NodeReport, leaving: Collection[str]) -> None:
        """
        :param leaving: volumes with a running detachment, whose result is not known yet
        """
        for volume, attachment in report.unconfirmed_volumes.items():
            if volume not in leaving:
                with log_fields(request=request_id("")):
                    await self._try_answer(konnector, report.node, volume, attachment)

    async def _try_answer(self, konnector: Konnector, node: str, volume: str, attachment: str) -> None:
        try:
            await self._answer(konnector, node, volume, attachment)
        except (CallerError, PeerError) as error:
            log.warning("node `%s` asks about volume `%s` and is not answered: %s", node, volume, error)

    async def _answer(self, konnector: Konnector, node: str, volume: str, attachment: str) -> None:
        """
        :raises SluiceError: when Cinder or the konnector does not answer
        """
        holds = await asyncio.to_thread(self._holds, volume, attachment)
        call = konnector.confirm if holds else konnector.revoke
        try:
            await asyncio.to_thread(call, volume, attachment)
        except NotFound:  # the konnector released the volume by itself, or has attached it anew
            return
        if not holds:
            text = (
                f"node `{node}` took over volume `{volume}`, whose attachment `{attachment}` has ended in cinder, and "
                "serves it no more"
            )
            self.log_event(VOLUME_FAILED, text, _SOURCE, subject=volume)

    def _holds(self, volume: str, attachment: str) -> bool:
        """
        :raises SluiceError: when that is not known, because Cinder does not show the volume
        """
        if any(one.id == attachment for one in self.cinder.attachments(volume)):
            return True
        # Cinder shows an empty list of attachments to a service user that sees only its own project.
        self.cinder.volume(volume)
        return False


class Revocations(_KonnectorService):
    """Revokes volumes on konnectors that are reachable again, while this host owns :data:`REVOCATIONS`."""

    def start(self, spawn: Spawn) -> None:
        spawn(repeat_while_owned("revoke volumes", self.ownership, REVOCATIONS, self.notify_konnectors, _INTERVAL))

    async def notify_konnectors(self) -> None:
        """Send each reachable konnector the revocations that it has not received yet.

        :raises PeerError: when Redis is unreachable
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
                with log_fields(operation=one.id, request=request_id("")):
                    await self._revoke(konnectors(one.data["node"]), one)

    async def _revoke(self, konnector: Konnector, operation: VolumeOperation) -> None:
        node, volume = operation.data["node"], operation.volume
        try:
            await asyncio.to_thread(konnector.revoke, volume, operation.data["attachment"])
        except NotFound:  # the konnector released the volume by itself, or has attached it anew
            pass
        except (CallerError, PeerError) as error:
            log.warning("node `%s` cannot be told to release volume `%s`: %s", node, volume, error)
            return
        else:
            text = f"node `{node}` is back and serves volume `{volume}` no more, which was detached from it by force"
            self.log_event(VOLUME_FAILED, text, _SOURCE, subject=volume)
        told = replace(operation, data={**operation.data, KONNECTOR_TOLD: True})
        await self.store.run(operations.JOBS.replace(self.store.keys, operation, told))
