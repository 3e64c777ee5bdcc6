"""The write exchange of one node, assembled: journal, marks and broker."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Final

from sluice_agent.cache.write_exchange import WriteExchange
from sluice_agent.settings import Settings
from sluice_core.cache.write_journal import WriteJournalReader
from sluice_core.cache.write_marks import WriteMarks, open_write_marks
from sluice_core.connections.consumer import Consumer
from sluice_core.connections.exchanges import WRITES_EXCHANGE
from sluice_core.connections.publisher import Publisher
from sluice_core.errors import PeerError

log = logging.getLogger(__name__)

_TICK_SECONDS: Final = 0.02
_RETRY_SECONDS: Final = 5.0


class InvalidationService:
    """The write exchange of one node over a broker."""

    def __init__(self, settings: Settings) -> None:
        """
        :param settings: with ``cache_dir`` and ``amqp_url``
        """
        self._settings = settings
        self._folder = Path(settings.cache_dir)
        self._publisher = Publisher(settings.amqp_url, WRITES_EXCHANGE, limit=2000)
        self._consumer = Consumer(settings.amqp_url, self._receive, ["writes.#"], WRITES_EXCHANGE)
        self._exchange: WriteExchange | None = None

    async def run(self) -> None:
        """Exchange writes until cancelled; a folder that cannot be used is tried again."""
        marks = await self._open()
        journal = WriteJournalReader(self._folder, marks)
        self._exchange = WriteExchange(
            self._settings.node, marks, journal, self._publisher, self._folder / "nodes", self._settings.cache_forget
        )
        self._publisher.start()
        self._consumer.start()
        try:
            while True:
                self._tick(self._exchange)
                await asyncio.sleep(_TICK_SECONDS)
        finally:
            await self._publisher.close()
            await self._consumer.close()
            journal.close()
            marks.close()

    async def _open(self) -> WriteMarks:
        while True:
            try:
                return open_write_marks(self._folder, self._settings.worker_group)
            except PeerError as error:  # the node's policies matter more than its cache
                log.error("%s; again in %g s", error, _RETRY_SECONDS)
            await asyncio.sleep(_RETRY_SECONDS)

    def _tick(self, exchange: WriteExchange) -> None:
        try:
            exchange.tick()
        except OSError as error:  # the others notice the silence
            log.warning("cannot read the journal in `%s`: %s", self._folder, error)

    def _receive(self, routing_key: str, body: bytes) -> None:
        if self._exchange is not None:
            self._exchange.receive(routing_key, body)
