"""Node metrics: CollectD's values as batches; and a real CollectD that sends them to a real broker."""

import asyncio
import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.cluster.certificates import Authority
from tests.support.cluster.collectd import CollectdDaemon
from tests.support.cluster.secured_services import SecureRabbit

from sluice_agent.agent import Agent
from sluice_agent.metrics.collectd import NodeValues
from sluice_agent.settings import Settings
from sluice_aio.base.backing_servers import RedisServer
from sluice_aio.base.ports import HOST, free_port
from sluice_core.connections.consumer import Consumer
from sluice_core.errors import DecodeError
from sluice_core.messages.nodes import MetricBatch
from sluice_core.metrics.node_metrics import NODE_METRICS, parse_collectd

pytestmark = pytest.mark.service

LIMIT = 60


def value_list(plugin, type_, numbers, part="", instance="", interval=10.0):
    names, values = zip(*numbers.items(), strict=True)
    return {
        "values": values,
        "dstypes": ["gauge"] * len(names),
        "dsnames": names,
        "time": 1.0,
        "interval": interval,
        "host": "h",
        "plugin": plugin,
        "plugin_instance": part,
        "type": type_,
        "type_instance": instance,
    }


def message(*lists):
    return json.dumps(lists).encode()


class Node:
    def __init__(self):
        self.now, self.told = 1000.5, []
        self.values = NodeValues("n1", lambda *args: self.told.append(args), lambda: self.now)

    def hear(self, *lists):
        self.values.received("collectd.n1", message(*lists))

    def until(self, end):
        while self.now < end:
            self.now += 1
            self.values.tick()
        told, self.told = self.told, []
        return told


@pytest.mark.parametrize(
    ("lists", "expected"),
    [
        ([value_list("cpu", "percent", {"value": 25.0}, instance="active")], {"NODE_CPU": 0.25}),
        ([value_list("cpu", "percent", {"value": 75.0}, instance="idle")], {}),
        ([value_list("memory", "percent", {"value": 40}, instance="used")], {"NODE_MEMORY": 0.4}),
        (
            [value_list("disk", "disk_octets", {"read": 1000.0, "write": 5.0}, disk) for disk in ("sda", "sdb")],
            {"NODE_DISK_READ": 2000.0, "NODE_DISK_WRITE": 10.0},
        ),
        (
            [value_list("disk", "disk_io_time", {"io_time": busy, "weighted_io_time": 9}, disk)
             for disk, busy in (("sda", 200.0), ("sdb", 900.0))],
            {"NODE_DISK_BUSY": 0.9},
        ),
        (
            [value_list("interface", "if_octets", {"rx": 7.0, "tx": 8.0}, "eth0")],
            {"NODE_NET_IN": 7.0, "NODE_NET_OUT": 8.0},
        ),
        ([value_list("interface", "if_octets", {"rx": None, "tx": None}, "eth0")], {}),
        ([value_list("load", "load", {"shortterm": 1.0})], {}),
    ],
)  # fmt: skip
def test_what_collectd_measures_is_told_in_our_units_at_the_end_of_a_window(lists, expected):
    node = Node()
    node.hear(*lists)
    told = node.until(1010.5)
    assert {metric: values for metric, _, values, _ in told} == {
        name: {"node": {"n1": pytest.approx(value)}} for name, value in expected.items()
    }
    assert {(window, period) for _, window, _, period in told} <= {(1000, 10.0)}


def test_the_newest_value_lasts_for_one_window_without_a_message():
    node = Node()
    node.hear(value_list("cpu", "percent", {"value": 10.0}, instance="active"))
    node.hear(value_list("cpu", "percent", {"value": 20.0}, instance="active"))
    windows = [(window, values["node"]["n1"]) for _, window, values, _ in node.until(1100)]
    assert windows == [(1000, 0.2), (1010, 0.2)]


def test_invalid_messages_are_counted_and_logged_once(caplog):
    node = Node()
    endless = value_list("cpu", "percent", {"value": 1}, interval=0)
    for body in (b"", b"PUTVAL x", b"[1]", b'[{"values": []}]', message(endless)):
        node.values.received("collectd.n1", body)
    assert node.values.undecodable == 5
    assert len(caplog.records) == 1
    assert node.until(1100) == []


FIELDS = st.sampled_from(list(value_list("a", "b", {"c": 1})))
json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELDS, inner),
    max_leaves=20,
)


@settings(deadline=None)
@given(st.binary(max_size=60) | json_values.map(lambda data: json.dumps(data).encode()))
def test_no_message_raises_an_error(body):
    node = Node()
    node.values.received("collectd.n1", body)
    assert node.values.undecodable <= 1
    assert node.until(1020) == []


@pytest.mark.parametrize("body", [b"[", b"{}x", b'[{"plugin": 1}]'])
def test_a_decode_error_keeps_the_bytes(body):
    with pytest.raises(DecodeError) as refused:
        parse_collectd(body)
    assert refused.value.raw == body


def test_every_metric_of_nodes_is_measured_per_node_only():
    names = [one.info.name for one in NODE_METRICS]
    assert len(set(names)) == len(names)
    assert {one.info.granularities for one in NODE_METRICS} == {("node",)}


@pytest.mark.functional
def test_a_real_collectd_is_heard_through_a_real_broker_over_tls(tmp_path):
    async def story(redis, rabbit, daemon):
        options = Settings("node.1", redis.url, str(tmp_path / "s"), amqp_url=rabbit.secure_url, collectd=True)
        batches, enough = {}, asyncio.Event()

        def received(key, body):
            batch = MetricBatch.decode(body)
            batches.setdefault(batch.metric, []).append(batch)
            if {"NODE_CPU", "NODE_MEMORY", "NODE_NET_IN", "NODE_NET_OUT"} <= batches.keys():
                enough.set()

        consumer = Consumer(rabbit.url, received, ["metric.*.node_1"])
        consumer.start()
        await consumer.settled()
        agent = asyncio.create_task(Agent(options).run())
        daemon.start()  # not before the exchange exists: CollectD would lose its channel, and pause
        try:
            async with asyncio.timeout(LIMIT):
                await enough.wait()
        finally:
            daemon.stop()
            agent.cancel()
            await asyncio.wait([agent])
            await consumer.close()
        return batches

    ports = (free_port(), free_port(), free_port())
    with (
        RedisServer(free_port(), tmp_path / "redis", tied=True) as redis,
        SecureRabbit(ports, free_port(), tmp_path / "rabbit", Authority(tmp_path / "ca"), tied=True) as rabbit,
    ):
        # librabbitmq checks names in certificates, and finds no address
        url = rabbit.secure_url.replace(f"@{HOST}", "@localhost")
        daemon = CollectdDaemon(tmp_path / "collectd", "node.1", url, interval=1, links=("lo",), tied=True)
        batches = asyncio.run(story(redis, rabbit, daemon))
    for name in ("NODE_CPU", "NODE_MEMORY"):
        assert all(0 < batch.values["node"]["node.1"] <= 1 for batch in batches[name])
    assert all(batch.values["node"]["node.1"] >= 0 for batch in batches["NODE_NET_IN"])
    newest = batches["NODE_CPU"][-1]
    assert (newest.node, newest.period) == ("node.1", 1.0)
    assert abs(newest.window - time.time()) < LIMIT
