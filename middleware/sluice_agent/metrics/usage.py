"""Keeps the usage reader of this node running, and passes on the batches that it writes.

The reader imports Swift and runs in Swift's interpreter, as Swift's user; the agent knows its command line and the
frames on its standard output alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
import time
from collections.abc import Callable
from typing import Any, Final

from sluice_agent.metrics.publisher import Bus
from sluice_agent.settings import Settings
from sluice_core.code.sandbox_trial import Interpreter
from sluice_core.connections.exchanges import metric_routing_key
from sluice_core.errors import DecodeError, PeerError
from sluice_core.messages.nodes import MetricBatch
from sluice_core.messages.policies import TENANT
from sluice_core.metrics.batch_frame import HEAD, decode_head
from sluice_core.metrics.usage_metrics import STORED
from sluice_core.rewrites.accounts import add_accounts
from sluice_core.store.store import AsyncStore

log = logging.getLogger(__name__)

_MODULE: Final = "sluice_middleware.usage"
#: Seconds after which a reader that ended is started again.
_AGAIN: Final = 10.0
#: Seconds after which all accounts are written again.
_WRITTEN_AGAIN: Final = 600.0


def reader_command(settings: Settings, swift: Interpreter) -> list[str]:
    """The command line of the usage reader."""
    given = [settings.node, str(settings.usage_period), *settings.storage_confs]
    return [swift.python or sys.executable, "-I", "-m", _MODULE, *given]


class KnownAccounts:
    """Writes the accounts of this node's databases into the cluster's list, each new one once.

    All are written again now and then, for a Redis that lost them.
    """

    def __init__(self, store: AsyncStore, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._clock = clock
        self._known: set[str] = set()
        self._since = clock()

    async def add(self, batch: MetricBatch) -> None:
        """Add the accounts of a batch of STORED; without Redis with the next batch."""
        if self._clock() - self._since > _WRITTEN_AGAIN:
            self._known, self._since = set(), self._clock()
        fresh = batch.values.get(TENANT, {}).keys() - self._known
        if fresh:
            try:
                await self._store.run(add_accounts(self._store.keys, sorted(fresh)))
            except PeerError as error:
                log.debug("accounts are not written: %s", error)
            else:
                self._known |= fresh


async def serve(
    settings: Settings, swift: Interpreter, bus: Bus, accounts: KnownAccounts, again: float = _AGAIN
) -> None:
    """Publish what the reader writes, until cancelled; a reader that ends is started again.

    :param again: seconds until then
    """
    while True:
        try:
            await _run_reader(settings, swift, bus, accounts)
        except (OSError, DecodeError) as error:
            log.error("nothing is measured of what is stored: %s", error)
        await asyncio.sleep(again)


async def _run_reader(settings: Settings, swift: Interpreter, bus: Bus, accounts: KnownAccounts) -> None:
    become: dict[str, Any] = {}
    if swift.user:
        become = {"user": swift.user, "group": swift.group or None, "extra_groups": ()}
    reader = await asyncio.create_subprocess_exec(
        *reader_command(settings, swift),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        cwd="/",
        env={"PATH": os.defpath, "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"},
        **become,
    )
    assert reader.stdout is not None
    try:
        while True:
            name, size = decode_head(await reader.stdout.readexactly(HEAD.size))
            metric = (await reader.stdout.readexactly(name)).decode()
            body = await reader.stdout.readexactly(size)
            bus.publish(metric_routing_key(metric, settings.node), body)
            if metric == STORED:
                await accounts.add(MetricBatch.decode(body))
    except asyncio.IncompleteReadError:
        log.error("the usage reader ended with status %s", await reader.wait())
    finally:
        with contextlib.suppress(ProcessLookupError):
            reader.kill()
        # until its pipes are closed, too, also when the agent ends in this very moment
        ended = asyncio.get_running_loop().create_task(reader.wait())
        try:
            await asyncio.shield(ended)
        except asyncio.CancelledError:
            await ended
            raise
