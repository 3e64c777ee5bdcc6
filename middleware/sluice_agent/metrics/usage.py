"""Keeps the usage reader of this node running, and forwards the batches and accounts that it writes.

The reader imports Swift and runs in Swift's interpreter, as Swift's user; the agent knows only its command line and
the frames on its standard output.
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
from sluice_code.native_trial import Interpreter
from sluice_core.connections.exchanges import metric_routing_key
from sluice_core.errors import DecodeError, PeerError
from sluice_core.messages.nodes import MetricBatch
from sluice_core.messages.policies import TENANT
from sluice_core.metrics.usage_metrics import ACCOUNTS, FORMAT_VARIABLE, HEAD, STORED, decode_head
from sluice_core.store.store import AsyncStore
from sluice_rewrites.accounts import (
    AccountReport,
    AccountsFound,
    add_accounts,
    open_requests,
    write_reading,
    write_report,
)

log = logging.getLogger(__name__)

_MODULE: Final = "sluice_middleware.usage"
_ENVIRONMENT: Final = {"PATH": os.defpath, "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}
#: Seconds after which a reader that ended is started again.
_AGAIN: Final = 10.0
#: Seconds between two checks for requests of accounts.
_LOOK: Final = 2.0
#: Seconds after which unreadable databases are read again, while a request for accounts is open.
_ONCE_MORE: Final = 5.0
#: Faults that are reported; a single fault makes the job refuse.
_MOST_FAULTS: Final = 20
#: Seconds after which all accounts are written again.
_WRITTEN_AGAIN: Final = 600.0


def reader_command(settings: Settings, swift: Interpreter) -> list[str]:
    """The command line of the usage reader."""
    given = [settings.node, str(settings.usage_period), *settings.storage_confs]
    return [swift.python or sys.executable, "-I", "-m", _MODULE, *given]


async def serve(
    settings: Settings, swift: Interpreter, bus: Bus, accounts: NodeAccounts, again: float = _AGAIN
) -> None:
    """Publish the reader's output until cancelled; start a reader that ended again.

    :param again: seconds before it is started again
    """
    while True:
        try:
            await _run_reader(settings, swift, bus, accounts)
        except (OSError, DecodeError) as error:
            log.error("the usage reader failed, stored bytes are not measured: %s", error)
        await asyncio.sleep(again)


async def _run_reader(settings: Settings, swift: Interpreter, bus: Bus, accounts: NodeAccounts) -> None:
    become: dict[str, Any] = {}
    if swift.user:
        become = {"user": swift.user, "group": swift.group or None, "extra_groups": ()}
    reader = await asyncio.create_subprocess_exec(
        *reader_command(settings, swift),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        cwd="/",
        env={**_ENVIRONMENT, FORMAT_VARIABLE: settings.log_format},
        **become,
    )
    assert reader.stdin is not None
    assert reader.stdout is not None
    stdin = reader.stdin
    accounts.reader_started(lambda: stdin.write(b"."))
    try:
        while True:
            name, size = decode_head(await reader.stdout.readexactly(HEAD.size))
            metric = (await reader.stdout.readexactly(name)).decode()
            body = await reader.stdout.readexactly(size)
            if metric == ACCOUNTS:
                await accounts.answer(AccountsFound.decode(body))
                continue
            bus.publish(metric_routing_key(metric, settings.node), body)
            if metric == STORED:
                await accounts.add(MetricBatch.decode(body))
    except asyncio.IncompleteReadError:
        log.error("the usage reader ended with status %s", await reader.wait())
    finally:
        accounts.reader_ended()
        with contextlib.suppress(ProcessLookupError):
            reader.kill()
        # wait until its pipes are closed, even if the agent is cancelled at this moment
        ended = asyncio.get_running_loop().create_task(reader.wait())
        try:
            await asyncio.shield(ended)
        except asyncio.CancelledError:
            await ended
            raise


class NodeAccounts:
    """Writes the accounts of this node's databases into the cluster's list, and reports when all of them are written.

    The usage reader reads the databases.  The agent sends it a request as one byte on its standard input, one request
    at a time; the reader answers with all accounts of its databases.  While it reads, which takes long on a node of
    many databases, the agent writes that it is reading.
    """

    def __init__(self, node: str, store: AsyncStore, clock: Callable[[], float] = time.monotonic) -> None:
        self._node = node
        self._store = store
        self._clock = clock
        self._known: set[str] = set()
        self._since = clock()
        self._ask: Callable[[], None] | None = None
        #: The requests that the reader is answering; None while it has no request.
        self._asked: frozenset[str] | None = None
        self._answered: frozenset[str] = frozenset()
        #: When to read unreadable databases again.
        self._once_more: float | None = None

    async def add(self, batch: MetricBatch) -> None:
        """Add the accounts of a batch of STORED, each new account once; without Redis they are added with the next
        batch.

        All accounts are written again every :data:`_WRITTEN_AGAIN` seconds, in case Redis lost them.
        """
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

    def reader_started(self, ask: Callable[[], None]) -> None:
        """Handle the start of a reader, which ``ask`` requests accounts from."""
        self._ask = ask

    def reader_ended(self) -> None:
        """Handle the end of the reader: its open request gets no answer."""
        self._ask = self._asked = None

    async def serve_requests(self, interval: float = _LOOK) -> None:
        """Forward requests to the reader until cancelled."""
        while True:
            try:
                await self._look()
            except PeerError as error:
                log.debug("requests for accounts cannot be read: %s", error)
            await asyncio.sleep(interval)

    async def _look(self) -> None:
        wanted = await self._store.run(open_requests(self._store.keys))
        if self._ask is None or not wanted:
            return
        due = self._once_more is not None and self._clock() >= self._once_more
        if self._asked is None and (due or wanted - self._answered):
            self._asked = wanted
            self._ask()
        if self._asked is not None:
            await self._store.run(write_reading(self._store.keys, self._node))

    async def answer(self, accounts: AccountsFound) -> None:
        """Handle the reader's answer; without Redis the request is sent to the reader again."""
        asked, self._asked = self._asked or frozenset(), None
        keys = self._store.keys
        report = AccountReport(
            self._node, tuple(sorted(asked)), accounts.ring, accounts.read, accounts.faults[:_MOST_FAULTS]
        )
        try:
            await self._store.run(add_accounts(keys, accounts.accounts))
            await self._store.run(write_report(keys, report))
        except PeerError as error:
            log.warning("accounts are not reported: %s", error)
            return
        self._answered = asked
        self._once_more = self._clock() + _ONCE_MORE if accounts.faults else None
        if accounts.faults:
            log.warning("%d databases of accounts cannot be read: %s", len(accounts.faults), accounts.faults[0])
