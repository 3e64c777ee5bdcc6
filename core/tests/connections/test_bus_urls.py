"""A real broker behind TLS, several hosts tried in turn, and queues that drop their oldest message."""

import asyncio
import logging

import pytest
from tests.support.cluster.certificates import Authority

from sluice_aio.base.ports import HOST, free_port
from sluice_core.connections.consumer import Consumer
from sluice_core.connections.publisher import Publisher

pytestmark = pytest.mark.service

LIMIT = 120


def play(story):
    async def limited():
        async with asyncio.timeout(LIMIT):
            await story

    asyncio.run(limited())


class Inbox:
    """Keeps the received messages; ``has`` waits for a body."""

    def __init__(self):
        self.got = []
        self._news = asyncio.Event()

    def __call__(self, key, body):
        self.got.append(body)
        self._news.set()

    async def has(self, body):
        while body not in self.got:
            self._news.clear()
            await self._news.wait()


async def sent_and_received(url, exchange="t.links"):
    inbox = Inbox()
    consumer, publisher = Consumer(url, inbox, ["#"], exchange), Publisher(url, exchange)
    for one in (consumer, publisher):
        one.start()
    await consumer.settled()
    publisher.publish("k", b"news")
    await publisher.drained()
    await inbox.has(b"news")
    hosts = {consumer.host, publisher.host}
    for one in (consumer, publisher):
        await one.close()
    return hosts


def test_messages_pass_over_tls(rabbit_server):
    play(sent_and_received(rabbit_server.secure_url))


def test_hosts_are_tried_in_turn_until_one_answers(rabbit_server, caplog):
    away = f"{HOST}:{free_port()}"
    url = rabbit_server.secure_url.replace("@", f"@{away},", 1)

    async def story():
        assert await sent_and_received(url) == {f"{HOST}:{rabbit_server.tls_port}"}

    with caplog.at_level(logging.DEBUG):
        play(story())
    assert f"bus at {away} is away" in caplog.text
    assert "guest:guest" not in caplog.text


def test_a_broker_that_nobody_vouches_for_is_not_talked_to(rabbit_server, authority, tmp_path, caplog):
    stranger = Authority(tmp_path)

    async def story():
        publisher = Publisher(rabbit_server.secure_url.replace(str(authority.ca), str(stranger.ca)))
        publisher.start()
        publisher.publish("k", b"secret news")
        while "is away" not in caplog.text:
            await asyncio.sleep(0.01)  # until the first attempt has failed
        assert not publisher.connected.is_set()
        assert publisher.pending == 1
        await publisher.close()

    logging.getLogger("pika").setLevel(logging.CRITICAL)
    try:
        play(story())
    finally:
        logging.getLogger("pika").setLevel(logging.NOTSET)


@pytest.mark.probe
def test_connections_that_are_cut_come_back_at_a_host_that_lives(rabbit_server):
    """Two addresses of the same broker; the first stops listening."""

    async def story():
        pipes = []

        async def pass_on(reader, writer):
            try:
                while data := await reader.read(65536):
                    writer.write(data)
                    await writer.drain()
            except (ConnectionError, asyncio.CancelledError):
                pass
            finally:
                writer.close()

        async def open_door(reader, writer):
            back, forth = await asyncio.open_connection(HOST, rabbit_server.tls_port)
            pipes.extend((asyncio.ensure_future(pass_on(reader, forth)), asyncio.ensure_future(pass_on(back, writer))))

        door = await asyncio.start_server(open_door, HOST, 0)
        port = door.sockets[0].getsockname()[1]
        inbox = Inbox()
        url = rabbit_server.secure_url.replace("@", f"@{HOST}:{port},", 1)
        consumer, publisher = Consumer(url, inbox, ["#"], "t.door"), Publisher(url, "t.door")
        for one in (consumer, publisher):
            one.start()
        await consumer.settled()
        await publisher.connected.wait()
        assert {consumer.host, publisher.host} == {f"{HOST}:{port}"}
        door.close()
        for pipe in pipes:
            pipe.cancel()
        while consumer.connected.is_set() or publisher.connected.is_set():
            await asyncio.sleep(0.01)  # until both have seen the end
        await consumer.settled()
        publisher.publish("k", b"after")
        await inbox.has(b"after")
        assert {consumer.host, publisher.host} == {f"{HOST}:{rabbit_server.tls_port}"}
        for one in (consumer, publisher):
            await one.close()
        await asyncio.gather(*pipes, return_exceptions=True)
        await door.wait_closed()

    play(story())


def test_a_full_queue_forgets_its_oldest(rabbit_server):
    async def story():
        inbox = Inbox()
        consumer = Consumer(rabbit_server.secure_url, inbox, ["#"], "t.full", max_length=3)
        publisher = Publisher(rabbit_server.secure_url, "t.full")
        for one in (consumer, publisher):
            one.start()
        await consumer.settled()
        await publisher.connected.wait()
        # the queue as Sluice's consumer declares it, without a consumer, which would take messages at once
        channel, held = publisher._channel, asyncio.Event()
        channel.queue_declare("held", exclusive=True, arguments=consumer._arguments, callback=lambda _: held.set())
        await held.wait()
        bound = asyncio.Event()
        channel.queue_bind("held", "t.full", routing_key="#", callback=lambda _: bound.set())
        await bound.wait()
        for number in range(10):
            publisher.publish("k", b"%d" % number)
        await publisher.drained()
        left = asyncio.Queue()
        channel.basic_consume("held", lambda *parts: left.put_nowait(parts[3]), auto_ack=True)
        assert [await left.get() for _ in range(3)] == [b"7", b"8", b"9"]
        assert left.empty()
        for one in (consumer, publisher):
            await one.close()

    play(story())
