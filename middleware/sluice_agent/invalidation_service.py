"""The write exchange of one node, assembled: journal, marks and broker."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Final

from sluice_agent.settings import Settings
from sluice_agent.write_exchange import WriteExchange
from sluice_core.cache.write_journal import WriteJournalReader
from sluice_core.cache.write_marks import WriteMarks, open_write_marks
from sluice_core.connections.consumer import Consumer
from sluice_core.connections.exchanges import WRITES_EXCHANGE
from sluice_core.connections.publisher import Publisher
from sluice_core.errors import PeerError

log = logging.getLogger(__name__)

_TICK_SECONDS: Final = 0.02
_RETRY_SECONDS: Final = 5.0


async def serve(settings: Settings) -> None:
    """Exchange writes until cancelled; a folder that cannot be used is retried.

    :param settings: with ``cache_dir`` and ``amqp_url``
    """
    folder = Path(settings.cache_dir)
    marks = await _open_marks(folder, settings.worker_group)
    journal = WriteJournalReader(folder, marks)
    publisher = Publisher(settings.amqp_url, WRITES_EXCHANGE, limit=2000)
    exchange = WriteExchange(settings.node, marks, journal, publisher, folder / "nodes", settings.cache_forget)
    consumer = Consumer(settings.amqp_url, exchange.receive, ["writes.#"], WRITES_EXCHANGE)
    publisher.start()
    consumer.start()
    try:
        while True:
            try:
                exchange.tick()
            except OSError as error:  # the others notice the silence
                log.warning("cannot read the journal in `%s`: %s", folder, error)
            await asyncio.sleep(_TICK_SECONDS)
    finally:
        await publisher.close()
        await consumer.close()
        journal.close()
        marks.close()


async def _open_marks(folder: Path, group: str) -> WriteMarks:
    while True:
        try:
            return open_write_marks(folder, group)
        except PeerError as error:  # the node's policies matter more than its cache
            log.error("%s; again in %g s", error, _RETRY_SECONDS)
        await asyncio.sleep(_RETRY_SECONDS)
