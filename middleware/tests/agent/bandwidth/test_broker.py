"""A whole agent between a worker and a real broker, to which the test publishes shares."""

import asyncio
import socket
import time

import pytest

from sluice_agent.agent import Agent
from sluice_agent.settings import Settings
from sluice_aio.base.backing_servers import RabbitServer, RedisServer
from sluice_aio.base.ports import free_port
from sluice_core.connections.consumer import Consumer
from sluice_core.connections.exchanges import BANDWIDTH_EXCHANGE, shares_routing_key
from sluice_core.connections.publisher import Publisher
from sluice_core.describe import PROXY
from sluice_core.messages.bandwidth import GET, NodeLoad, Share, Shares
from sluice_core.messages.credit import (
    CREDIT_SUFFIX,
    FREE,
    Ask,
    CreditHello,
    CreditRequest,
    Grant,
    Renegotiate,
    TrafficReport,
    TrafficSample,
    pack,
    unpack,
)

pytestmark = pytest.mark.service

LIMIT = 60


async def heard(line, kind):
    while True:
        raw = await asyncio.get_running_loop().sock_recv(line, 1 << 17)
        assert raw, "hung up"
        message = unpack(raw)
        if isinstance(message, kind):
            return message


async def connected(path):
    while True:
        line = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK)
        try:
            line.connect(path)
        except OSError:
            line.close()
            await asyncio.sleep(0)
        else:
            return line


@pytest.mark.functional
def test_loads_go_to_the_broker_and_shares_come_from_it(tmp_path):
    async def story(redis, rabbit):
        path = str(tmp_path / "agent.sock")
        options = Settings("node.1", redis.url, str(tmp_path / "s"), amqp_url=rabbit.url, socket=path)
        loads = asyncio.Queue()
        consumer = Consumer(
            rabbit.url, lambda _, body: loads.put_nowait(NodeLoad.decode(body)), ["load.#"], BANDWIDTH_EXCHANGE
        )
        publisher = Publisher(rabbit.url, BANDWIDTH_EXCHANGE)
        consumer.start()
        publisher.start()
        await consumer.settled()
        agent = asyncio.create_task(Agent(options).run())
        try:
            with await connected(path + CREDIT_SUFFIX) as line:
                await divided(line, loads, publisher)
        finally:
            agent.cancel()
            await asyncio.wait([agent])
            await consumer.close()
            await publisher.close()

    async def divided(line, loads, publisher):
        line.send(pack(CreditHello("w", PROXY, 1)))
        line.send(pack(Ask((CreditRequest("a", "", GET, 0, 1),))))
        assert (await heard(line, Grant)).rows[0].size == FREE
        await loads.get()  # a young agent publishes no load
        line.send(pack(TrafficReport(time.time(), (TrafficSample("a", "", GET, 0, "", 1000, 0.5, 0.0, 0, 0),))))
        while not (load := await loads.get()).rows:
            pass
        assert (load.node, load.rows[0].moved, load.sides) == ("node.1", 1000.0, (PROXY,))
        # an allocator publishes each second; the first message may arrive before the agent listens
        rows = (Share(PROXY, "a", "", GET, 0, 40_000.0),)
        told = asyncio.create_task(heard(line, Renegotiate))
        number = 0
        while not told.done():
            number += 1
            publisher.publish(shares_routing_key("node.1"), Shares("node.1", 1, number, 0.0, rows).encode())
            await asyncio.wait([told], timeout=0.2)
        line.send(pack(Ask((CreditRequest("a", "", GET, 0, 10_000),))))
        assert (await heard(line, Grant)).rows[0][4:] == (10_000, 40_000.0)

    async def limited(redis, rabbit):
        async with asyncio.timeout(LIMIT):
            await story(redis, rabbit)

    with (
        RedisServer(free_port(), tmp_path / "redis", tied=True) as redis,
        RabbitServer(free_port(), free_port(), free_port(), tmp_path / "rabbit", tied=True) as rabbit,
    ):
        asyncio.run(limited(redis, rabbit))
