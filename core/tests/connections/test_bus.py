"""Publisher and consumer against a real RabbitMQ, which is killed and restarted."""

import asyncio
import logging

import pytest

from sluice_core.connections.bus_connection import parse_bus_url
from sluice_core.connections.consumer import Consumer
from sluice_core.connections.publisher import Publisher
from sluice_core.options import OptionError
from sluice_core.testing import FakeBus

LIMIT = 60  # seconds; a broker takes some to restart


class Inbox:
    """Collects messages and lets a test wait for a number of them."""

    def __init__(self):
        self.got = []
        self._news = asyncio.Event()

    def __call__(self, key, body):
        self.got.append((key, body))
        self._news.set()

    async def has(self, wanted):
        while wanted not in self.got:
            self._news.clear()
            await self._news.wait()


def play(story):
    async def limited():
        async with asyncio.timeout(LIMIT):
            return await story

    return asyncio.run(limited())


async def a_consumer(url, *bindings, received=None):
    inbox = received or Inbox()
    consumer = Consumer(url, inbox, bindings)
    consumer.start()
    await consumer.settled()
    return consumer, inbox


async def a_publisher(url, **options):
    publisher = Publisher(url, **options)
    publisher.start()
    await publisher.connected.wait()
    return publisher


def test_every_consumer_sees_all_that_it_is_bound_to(rabbit_server):
    async def story():
        consumers = [await a_consumer(rabbit_server.url, "metric.PUTS_SEC.*") for _ in range(3)]
        other, others = await a_consumer(rabbit_server.url, "metric.*.n2")
        publisher = await a_publisher(rabbit_server.url)
        sent = [(f"metric.{metric}.{node}", b"%d" % n) for n, (metric, node) in enumerate(
            [("PUTS_SEC", "n1"), ("GETS_SEC", "n2"), ("PUTS_SEC", "n2"), ("PUTS_SEC", "n1")]
        )]  # fmt: skip
        for key, body in sent:
            publisher.publish(key, body)
        await publisher.drained()
        for _, inbox in consumers:
            await inbox.has(sent[3])
            assert inbox.got == [sent[0], sent[2], sent[3]]
        await others.has(sent[2])
        assert others.got == [sent[1], sent[2]]
        for one in (publisher, other, *(consumer for consumer, _ in consumers)):
            await one.close()

    play(story())


def test_bindings_come_and_go_while_running(rabbit_server):
    async def story():
        consumer, inbox = await a_consumer(rabbit_server.url)
        publisher = await a_publisher(rabbit_server.url)
        consumer.bind("a.*")
        await consumer.settled()
        publisher.publish("a.1", b"1")
        await inbox.has(("a.1", b"1"))
        consumer.unbind("a.*")
        consumer.bind("b.*")
        await consumer.settled()
        assert consumer.bindings == ("b.*",)
        publisher.publish("a.2", b"2")
        publisher.publish("b.3", b"3")
        await inbox.has(("b.3", b"3"))
        assert inbox.got == [("a.1", b"1"), ("b.3", b"3")]
        await publisher.close()
        await consumer.close()

    play(story())


def test_a_callback_that_raises_costs_its_message_only(rabbit_server, caplog):
    async def story():
        inbox = Inbox()

        def moody(key, body):
            if body == b"bad":
                raise ValueError("moody")
            inbox(key, body)

        consumer, _ = await a_consumer(rabbit_server.url, "#", received=moody)
        publisher = await a_publisher(rabbit_server.url)
        publisher.publish("k", b"bad")
        publisher.publish("k", b"good")
        await inbox.has(("k", b"good"))
        assert consumer.failed == 1
        await publisher.close()
        await consumer.close()

    play(story())
    assert "moody" in caplog.text


@pytest.mark.probe
def test_both_ends_outlive_a_killed_broker(rabbit_server, caplog):
    async def story():
        consumer, inbox = await a_consumer(rabbit_server.url, "#")
        publisher = await a_publisher(rabbit_server.url)
        publisher.publish("k", b"before")
        await inbox.has(("k", b"before"))
        await asyncio.to_thread(rabbit_server.kill)
        while publisher.connected.is_set() or consumer.connected.is_set():
            await asyncio.sleep(0.01)  # until both sockets reported the end
        publisher.publish("k", b"meanwhile")
        assert publisher.pending == 1
        rabbit_server.start()  # tied to this thread, so not in another one
        await asyncio.to_thread(rabbit_server.wait_ready)
        await publisher.drained()  # confirmed, though no queue may have been bound yet
        await consumer.settled()
        publisher.publish("k", b"after")
        await inbox.has(("k", b"after"))
        assert publisher.dropped == 0
        await publisher.close()
        await consumer.close()

    with caplog.at_level(logging.DEBUG):
        play(story())
    assert "guest:guest" not in caplog.text


def test_an_absent_broker_costs_the_oldest_messages_and_counts_them():
    async def story():
        publisher = Publisher("amqp://u:secret@127.0.0.1:1/", limit=3)
        publisher.start()
        for n in range(5):
            publisher.publish("k", b"%d" % n)
        assert (publisher.dropped, publisher.pending) == (2, 3)
        assert not publisher.connected.is_set()
        await publisher.close()

    play(story())


def test_closing_while_connecting_or_before_starting_is_quiet(rabbit_server):
    async def story():
        for make in (Publisher, lambda url: Consumer(url, Inbox())):
            await make(rabbit_server.url).close()
            one = make(rabbit_server.url)
            one.start()
            await one.close()

    play(story())


@pytest.mark.parametrize("url", ["http://x/", "amqp://u:secret@h:port/", "amqp://h/?heartbeat=x"])
def test_a_wrong_url_is_an_error_without_its_password(url):
    with pytest.raises(OptionError) as caught:
        Publisher(url)
    assert "secret" not in str(caught.value)


def test_the_place_of_a_bus_names_hosts_and_ports_only():
    assert parse_bus_url("amqp://u:p@broker/").place == "broker:5672"
    assert parse_bus_url("amqps://u:p@broker:99/v").place == "broker:99"
    assert parse_bus_url("amqp://u:p@one,u:q@two:99/v").place == "one:5672,two:99"


@pytest.mark.parametrize(
    ("pattern", "key", "wanted"),
    [
        ("metric.PUTS_SEC.*", "metric.PUTS_SEC.n1", True),
        ("metric.PUTS_SEC.*", "metric.PUTS_SEC", False),
        ("metric.#", "metric", True),
        ("metric.#", "metric.a.b", True),
        ("#.n1", "metric.a.n1", True),
        ("metric.*.n2", "metric.a.n1", False),
    ],
)
def test_the_fake_bus_routes_like_a_topic_exchange(pattern, key, wanted):
    bus, got = FakeBus(), []
    bus.subscribe(pattern, lambda *message: got.append(message))
    bus.publish(key, b"x")
    assert got == ([(key, b"x")] if wanted else [])
