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
from typing import Any, Final

from sluice_agent.metrics.accounts import NodeAccounts
from sluice_agent.metrics.publisher import Bus
from sluice_agent.settings import Settings
from sluice_code.native_trial import Interpreter
from sluice_core.connections.exchanges import metric_routing_key
from sluice_core.errors import DecodeError
from sluice_core.messages.nodes import MetricBatch
from sluice_core.metrics.usage_metrics import ACCOUNTS, HEAD, STORED, decode_head
from sluice_rewrites.accounts import AccountsFound

log = logging.getLogger(__name__)

_MODULE: Final = "sluice_middleware.usage"
#: Seconds after which a reader that ended is started again.
_AGAIN: Final = 10.0


def reader_command(settings: Settings, swift: Interpreter) -> list[str]:
    """The command line of the usage reader."""
    given = [settings.node, str(settings.usage_period), *settings.storage_confs]
    return [swift.python or sys.executable, "-I", "-m", _MODULE, *given]


async def serve(
    settings: Settings, swift: Interpreter, bus: Bus, accounts: NodeAccounts, again: float = _AGAIN
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


async def _run_reader(settings: Settings, swift: Interpreter, bus: Bus, accounts: NodeAccounts) -> None:
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
        # until its pipes are closed, too, also when the agent ends in this very moment
        ended = asyncio.get_running_loop().create_task(reader.wait())
        try:
            await asyncio.shield(ended)
        except asyncio.CancelledError:
            await ended
            raise
