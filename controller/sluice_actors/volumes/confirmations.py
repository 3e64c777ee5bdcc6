"""The host that answers konnectors which ask whether the attachments of the volumes that they took over still hold.

A konnector that starts, after a reboot or by itself, may have lost volumes meanwhile: an administrator said that its
machine is gone.  So it asks in its node's report (``NodeReport.unconfirmed_volumes``), and attaches nothing again that
could be attached elsewhere before it is answered.  What Cinder says counts, which has an attachment until it ends,
whatever Redis lost: one that it has is confirmed.  One that it has not is revoked if Cinder shows the volume, and so
would show the attachment.  One host of the cluster does this, the one that owns :data:`NAME`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final

from sluice_actors.node_watcher import is_away
from sluice_actors.runtime.event_log import LogEvent
from sluice_actors.runtime.services import Ownership, Service, Spawn, repeat_while_owned
from sluice_core.errors import CallerError, NotFound, PeerError
from sluice_core.messages.events import VOLUME_FAILED
from sluice_core.messages.nodes import NodeReport
from sluice_core.store.store import AsyncStore
from sluice_volumes import operations
from sluice_volumes.cinder.adapter import Cinder
from sluice_volumes.konnector_client import Konnector, konnector_urls
from sluice_volumes.messages import DETACH, UNDER_WAY

log = logging.getLogger(__name__)

#: What the answering host owns.
NAME: Final = "volumes/confirmations"
_INTERVAL: Final = 2.0
#: The source of its events, whichever host answers.
_SOURCE: Final = "volumes"


@dataclass(eq=False)
class Confirmations(Service):
    """Answers konnectors while this host owns :data:`NAME`.

    :param cinder: with our service user's rights
    :param konnectors: gives the konnector of a node, out of the URLs by node
    :param node_timeout: seconds without a report after which a node is away, and not answered
    """

    cinder: Cinder
    konnectors: Callable[[Mapping[str, str]], Callable[[str], Konnector]]
    store: AsyncStore
    ownership: Ownership
    node_timeout: float
    clock: Callable[[], float]
    log_event: LogEvent

    def start(self, spawn: Spawn) -> None:
        spawn(repeat_while_owned("confirm attachments of volumes", self.ownership, NAME, self.answer_all, _INTERVAL))

    async def answer_all(self) -> None:
        """Answer each konnector that asks; nodes do not wait for each other.

        :raises PeerError: when Redis is away
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
        :param leaving: volumes that are being detached, of which it is not known yet whether they are
        """
        for volume, attachment in report.unconfirmed_volumes.items():
            if volume not in leaving:
                try:
                    await self._answer(konnector, report.node, volume, attachment)
                except (CallerError, PeerError) as error:
                    log.warning("node `%s` asks about volume `%s` and is not answered: %s", report.node, volume, error)

    async def _answer(self, konnector: Konnector, node: str, volume: str, attachment: str) -> None:
        """
        :raises SluiceError: when Cinder or the konnector does not answer
        """
        holds = await asyncio.to_thread(self._holds, volume, attachment)
        call = konnector.confirm if holds else konnector.revoke
        try:
            await asyncio.to_thread(call, volume, attachment)
        except NotFound:  # it let the volume go by itself, or has it anew
            return
        if not holds:
            text = (
                f"node `{node}` took over volume `{volume}`, whose attachment `{attachment}` has ended in cinder, and "
                "serves it no more"
            )
            self.log_event(VOLUME_FAILED, text, _SOURCE, subject=volume)

    def _holds(self, volume: str, attachment: str) -> bool:
        """
        :raises SluiceError: when that is not known, as Cinder does not show the volume
        """
        if any(one.id == attachment for one in self.cinder.attachments(volume)):
            return True
        # a service user who sees only its own project is shown an empty list
        self.cinder.volume(volume)
        return False
