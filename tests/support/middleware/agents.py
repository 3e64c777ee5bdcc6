"""Agents on the loop of a test, against a real Redis, and a test's messages to and from them."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any, Final

from sluice_agent.agent import Agent
from sluice_agent.settings import Settings
from sluice_core.messages.nodes import Counters, Hello, NodeReport
from sluice_core.store.records import Committed, Draft
from sluice_core.store.store import AsyncStore, Store
from sluice_core.testing import assignment

#: Seconds of one test.
LIMIT: Final = 30


def play(story: Coroutine[Any, Any, None]) -> None:
    """Run ``story`` on a loop of its own.

    :raises TimeoutError: when it does not end
    """

    async def limited() -> None:
        async with asyncio.timeout(LIMIT):
            await story

    asyncio.run(limited())


@contextlib.asynccontextmanager
async def running(url: str, folder: Path, **options: Any) -> AsyncIterator[Agent]:
    """An agent of node ``n1`` with its snapshot in ``folder``, until the end of the block."""
    given = {"report_interval": 0.5, "replace_wait": 0.3, **options}
    agent = Agent(Settings("n1", url, str(folder / "snapshot"), **given))
    task = asyncio.create_task(agent.run())
    try:
        yield agent
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def reported(url: str, holds: Callable[[NodeReport], Any]) -> NodeReport:
    """The first report of the node for which ``holds`` is true; each report is announced, so no test polls."""
    store = AsyncStore(url)
    async with store.client.pubsub(ignore_subscribe_messages=True) as news:
        await news.subscribe(store.keys.acks)
        await news.get_message(timeout=5)
        while True:
            for report in await store.nodes():
                if holds(report):
                    await store.close()
                    return report
            await news.get_message(timeout=5)


def at_epoch(epoch: int, state: str = "ok") -> Callable[[NodeReport], bool]:
    """Whether a report is of this epoch and state."""
    return lambda report: (report.epoch, report.state) == (epoch, state)


def ids(agent: Agent) -> list[str]:
    """The assignments in the agent's snapshot."""
    return sorted(one.id for one in agent.writer.assignments())


def commit(store: Store, *names: str, **more: Any) -> Committed:
    """Commit an assignment ``NAME.0`` for the account of each name; ``more`` is the draft's."""
    return store.commit(Draft("test", puts=tuple(assignment(f"{name}.0", f"AUTH_{name}") for name in names), **more))


async def worker(path: Path, *keywords: str, name: str = "w1", pid: int = 11, role: str = "proxy") -> socket.socket:
    """A Swift worker's end of the agent's socket, after its hello."""
    loop = asyncio.get_running_loop()
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.setblocking(False)
    await loop.sock_connect(connection, str(path))
    hello = Hello(name, role, pid, dict.fromkeys(keywords, 1), ("PUTS_SEC",))
    await loop.sock_sendall(connection, hello.encode())
    return connection


async def reads_on(connection: socket.socket, snapshot: str) -> None:
    """Worker ``w1`` reports the snapshot that it reads."""
    await asyncio.get_running_loop().sock_sendall(connection, Counters("w1", 0.0, (), snapshot).encode())


async def until(holds: Callable[[], Any]) -> None:
    """Run the loop until a condition in this process ``holds``."""
    while not holds():
        await asyncio.sleep(0.01)
