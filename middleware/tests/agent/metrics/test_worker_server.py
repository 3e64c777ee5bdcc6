"""A worker that reconnects while its old connection still has unread messages."""

import asyncio
import socket

from sluice_agent.metrics.worker_server import WorkerServer
from sluice_core.messages.nodes import Counters, Hello
from sluice_core.metrics.totals import Totals, birth

LIMIT = 30


def connected(path):
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.connect(path)
    return connection


def hello(*metrics):
    return Hello("w", "proxy", 1, {"noop": 1}, metrics, ()).encode()


def counters(*row):
    return Counters("w", 0.0, (("AUTH_a", BORN, row),), "gen").encode()


BORN = birth() + 10**9


async def until(holds):
    while not holds():
        await asyncio.sleep(0)


def test_counters_of_a_replaced_connection_are_ignored(tmp_path):
    path = str(tmp_path / "agent.sock")
    arrived, left = [], []

    async def story():
        totals = Totals()
        workers = WorkerServer(path, totals, lambda one: arrived.append(tuple(one.metrics)), left.append)
        workers.open()
        with connected(path) as old, connected(path) as new:
            old.send(hello("A", "B"))
            await until(lambda: arrived)
            new.send(hello("B", "C"))
            await until(lambda: len(arrived) == 2)
            old.send(counters(1000, 7))
            await asyncio.get_running_loop().run_in_executor(None, old.recv, 1)  # the agent closes it
            new.send(counters(8, 1))
            await until(lambda: any(one.rows for one in totals._workers.values()))
            found = totals.close_window(1.0)
            assert {name: one["tenant"]["AUTH_a"] for name, one in found.items()} == {"B": 8, "C": 1}
            assert workers.count == 1
            assert left == []
        workers.close()

    async def limited():
        async with asyncio.timeout(LIMIT):
            await story()

    asyncio.run(limited())
