"""Values between two hosts, over a wire that may lose messages; windows and time are given by hand."""

import asyncio
import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.actors.host import BUSY, run_scenario

from sluice_actors.hosts.exchange import MetricExchange
from sluice_actors.hosts.messages import InterestUpdate, MetricUsage, WindowUpdate, pack, unpack
from sluice_actors.metrics import backlog as backlogs
from sluice_actors.metrics.metric_router import MetricRouter
from sluice_actors.policies.actor import Context
from sluice_actors.policies.conditions import ConditionCache
from sluice_actors.policies.family_actor import FamilyActor
from sluice_actors.policies.group_index import GroupIndex
from sluice_actors.policies.single_actor import SingleActor
from sluice_actors.runtime.system import ActorSystem
from sluice_actors.testing import Clock, RecordingListener, batch_of, plan_of
from sluice_core.connections.exchanges import metric_routing_key, values_routing_key
from sluice_core.errors import DecodeError
from sluice_core.messages.nodes import MetricBatch
from sluice_core.messages.policies import Target
from sluice_core.metrics.reading import Reading
from sluice_dsl.plan import Plan

METRIC = "PUTS_SEC"


class Recorder(SingleActor):
    """Remembers what it was told."""

    __slots__ = ("told",)

    def on_start(self):
        self.told = []
        super().on_start()

    def on_message(self, message):
        self.told.append((message[0], message[2]))


class FamilyRecorder(FamilyActor):
    __slots__ = ("told",)

    def on_start(self):
        self.told = []
        super().on_start()

    def on_message(self, message):
        self.told.append((message[0], dict(message[2].observed)))


class OneHost:
    """A router of metrics with an exchange."""

    def __init__(self, name, pair):
        self.name = name
        self.system = ActorSystem()
        self.bound = frozenset()
        self.router = MetricRouter(self.system, 0.25, pair.clock)
        self.router.on_use = self._used
        self.exchange = MetricExchange(name, self.router, pair.send, lambda metric: pair.owner, self._bind, pair.clock)
        self.context = Context(
            RecordingListener(), self.router.subscription, GroupIndex(), ConditionCache(), 2, pair.clock
        )

    def _used(self, metric, used):
        self.exchange.set_used(metric, used)

    def _bind(self, metrics):
        self.bound = metrics

    async def watch(self, path, kind=Recorder, plan=None):
        target = path if kind is Recorder else Target("tenant", "all")
        actor = kind(self.context, f"p-{path}", plan or plan_of(BUSY, target), 1, 1)
        self.system.spawn(actor)
        await self.system.idle()
        self.exchange._client._flush()
        return actor


class Pair:
    """Two hosts on one wire, ``a`` and ``b``; the metric is kept by ``owner``."""

    def __init__(self, owner="a"):
        self.clock = Clock(1000.0)
        self.owner = owner
        self.window = 1000
        self.loses = lambda message: False
        self.deaf = ()
        self.messages = []
        self.hosts = {}
        for name in ("a", "b"):
            self.hosts[name] = OneHost(name, self)
        self.a, self.b = self.hosts.values()

    def send(self, routing_key, body):
        message = unpack(body)
        self.messages.append(message)
        if self.loses(message):
            return
        for name, host in self.hosts.items():
            if routing_key in (values_routing_key(name), values_routing_key("all")) and name not in self.deaf:
                asyncio.get_running_loop().call_soon(host.exchange.receive, routing_key, body)

    async def step(self, *rows):
        """One window per dictionary: batches, time, and what follows from them."""
        for values in rows:
            self.window += 1
            self.clock.now = self.window + 1.05
            values = values if isinstance(next(iter(values.values()), None), dict) else batch_of("", 0, values).values
            body = MetricBatch("node1", METRIC, self.window, self.window, values).encode()
            for host in self.hosts.values():
                if METRIC in host.bound:
                    host.router.aggregators.receive(metric_routing_key(METRIC, "node1"), body)
            self.clock.now = self.window + 1.3
            await self.settle()

    async def settle(self):
        for _ in range(2):
            for host in self.hosts.values():
                with contextlib.suppress(KeyError):
                    host.router.aggregators.close_due(METRIC)
                host.exchange.tick(alone=False)
            for _ in range(4):
                await asyncio.sleep(0)
            for host in self.hosts.values():
                await host.system.idle()

    def values(self):
        return [one for one in self.messages if isinstance(one, WindowUpdate)]

    def close(self):
        for host in self.hosts.values():
            host.router.aggregators.close()
            host.exchange.close()


def story(test, owner="a"):
    async def told():
        pair = Pair(owner)
        try:
            await test(pair)
        finally:
            pair.close()

    run_scenario(told())


def test_the_owner_aggregates_and_the_subscriber_gets_what_it_wants():
    async def test(pair):
        actor = await pair.b.watch("A")
        await pair.settle()
        await pair.step({"A": 1.0, "B": 2.0}, {"A": 4.0, "B": 5.0}, {"A": 6.0, "B": 7.0})
        assert [value for _, value in actor.told][-2:] == [4.0, 6.0]
        assert pair.b.router.follows(METRIC)
        assert pair.b.router.last_window(METRIC) is None  # nothing is aggregated there
        assert pair.a.router.last_window(METRIC).at("tenant") == {"A": 6.0, "B": 7.0}
        assert all(set(one.changed.get("tenant", ())) <= {"A"} for one in pair.values())
        assert pair.a.exchange.report()["serves"] == {METRIC: 1}
        assert pair.b.exchange.report()["follows"] == {METRIC: "a"}

    story(test)


def test_only_changed_values_are_pushed():
    async def test(pair):
        first, second = await pair.b.watch("A"), await pair.b.watch("B")
        await pair.settle()
        await pair.step({"A": 1.0, "B": 2.0}, {"A": 1.0, "B": 2.0}, {"A": 1.0, "B": 3.0}, {"A": 1.0})
        assert [one.changed for one in pair.values()][-2:] == [{"tenant": {"B": 3.0}}, {}]
        assert [one.gone for one in pair.values()][-2:] == [{}, {"tenant": ("B",)}]
        windows = [window for window, _ in first.told]
        assert windows == sorted(set(windows))
        assert first.told[-1] == (pair.window, 1.0)
        assert second.told[-1] == (pair.window - 1, 3.0)

    story(test)


def test_an_added_target_gets_the_next_window_and_a_removed_one_costs_nothing():
    async def test(pair):
        await pair.b.watch("A")
        await pair.settle()
        await pair.step({"A": 1.0, "B": 2.0}, {"A": 1.0, "B": 2.0})
        later = await pair.b.watch("B")
        await pair.settle()
        await pair.step({"A": 1.0, "B": 2.0})
        assert later.told == [(pair.window, 2.0)]
        pair.b.system.stop(later)
        await pair.settle()
        pair.b.exchange._client._flush()
        await pair.settle()
        await pair.step({"A": 1.0, "B": 9.0})
        assert pair.values()[-1].changed == {}

    story(test)


def test_a_subscriber_of_all_tenants_gets_all_of_them():
    async def test(pair):
        everybody = await pair.b.watch("all", FamilyRecorder)
        await pair.settle()
        await pair.step({"A": 1.0, "B": 2.0}, {"A": 1.0, "C": 2.0})
        assert pair.b.router.follows(METRIC)
        assert everybody.told[-1] == (pair.window, {"A": 1.0, "C": 2.0})

    story(test)


def test_a_subscriber_gets_the_values_of_the_nodes_that_it_names_whatever_its_target_is():
    highest, named = Reading(METRIC, "cluster"), Reading(METRIC, "node", "n1")
    condition = ["and", *(["metric_at", *reading, ">", 3] for reading in (highest, named))]

    async def test(pair):
        plan = plan_of(BUSY, "A")
        plan = Plan(plan.target, plan.actions, condition, 0.0, (METRIC,), "cluster", readings=(highest, named))
        actor = await pair.b.watch("A", plan=plan)
        await pair.settle()
        await pair.step(*({"node": {"n1": value, "n2": 2.0, "n3": 1.0}} for value in (1.0, 1.0, 8.0)))
        assert pair.b.router.follows(METRIC)
        assert [value for _, value in actor.told][-2:] == [(2.0, 1.0), (8.0, 8.0)]
        assert pair.values()[-1].changed == {"cluster": {"": 8.0}, "node": {"n1": 8.0}}

    story(test)


def told_each_once(actor, last):
    windows = [window for window, _ in actor.told]
    assert windows == list(range(windows[0], last + 1)), windows
    assert all(value == float(window % 7 + 1) for window, value in actor.told)


def rows(pair, count):
    return [{"A": float((pair.window + 1 + more) % 7 + 1)} for more in range(count)]


def test_an_owner_that_falls_silent_is_replaced_without_a_window_lost_or_delivered_twice():
    async def test(pair):
        actor = await pair.b.watch("A")
        await pair.settle()
        await pair.step(*rows(pair, 3))
        assert pair.b.router.follows(METRIC)
        pair.deaf = ("b",)
        await pair.step(*rows(pair, 4))
        assert not pair.b.router.follows(METRIC)
        told_each_once(actor, pair.window)
        pair.deaf = ()
        await pair.step(*rows(pair, 6))
        assert pair.b.router.follows(METRIC)
        told_each_once(actor, pair.window)

    story(test)


def test_a_new_owner_takes_over_between_two_windows():
    async def test(pair):
        there, here = await pair.b.watch("A"), await pair.a.watch("A")
        await pair.settle()
        for owner in ("a", "b", "a", "", "b"):
            pair.owner = owner
            await pair.step(*rows(pair, 3))
        assert pair.a.router.follows(METRIC)
        assert not pair.b.router.follows(METRIC)
        told_each_once(there, pair.window)
        told_each_once(here, pair.window)

    story(test)


def test_a_subscriber_that_sends_nothing_is_forgotten():
    async def test(pair):
        await pair.b.watch("A")
        await pair.settle()
        await pair.step(*rows(pair, 2))
        del pair.hosts["b"]
        await pair.step(*rows(pair, 6))
        assert pair.a.exchange.report()["serves"] == {}
        assert pair.a.router.last_window(METRIC) is None
        assert METRIC not in pair.a.bound

    story(test)


def test_hosts_keep_batches_of_metrics_that_only_others_use():
    async def test(pair):
        await pair.b.watch("A")
        await pair.settle()
        await pair.step(*rows(pair, 3))
        assert pair.a.bound == {METRIC}
        assert len(pair.a.router.backlog.since(METRIC, 0.0)) >= 2
        pair.b.exchange.set_used(METRIC, False)

    story(test, owner="b")


STEPS = st.lists(
    st.tuples(st.sampled_from(["a", "b", ""]), st.sets(st.sampled_from(["a", "b"])), st.integers(0, 3)),
    min_size=1,
    max_size=8,
)


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_every_window_is_delivered_once_and_in_order_whatever_message_is_lost(steps):
    async def test(pair):
        count = 0
        lose = [0]

        def loses(message):
            nonlocal count
            count += 1
            return bool(lose[0]) and count % (lose[0] + 1) == 0

        pair.loses = loses
        actors = [await host.watch("A") for host in (pair.a, pair.b)]
        await pair.settle()
        for owner, deaf, every in steps:
            pair.owner, pair.deaf, lose[0] = owner, tuple(deaf), every
            await pair.step(*rows(pair, 2))
        pair.owner, pair.deaf, lose[0] = "a", (), 0
        await pair.step(*rows(pair, 8))
        assert pair.b.router.follows(METRIC)
        for actor in actors:
            told_each_once(actor, pair.window)

    story(test)


PATHS = st.dictionaries(st.sampled_from(["tenant", "container", "object"]), st.lists(st.text(), max_size=3).map(tuple))
NUMBERS = st.integers(0, 2**40)
MESSAGES = st.one_of(
    st.builds(InterestUpdate, st.text(), st.text(), st.text(), NUMBERS, PATHS, PATHS, st.lists(st.text()).map(tuple)),
    st.builds(
        WindowUpdate, st.text(), st.text(), st.text(), NUMBERS, NUMBERS, st.floats(0.1, 60),
        st.dictionaries(st.text(), st.dictionaries(st.text(), st.floats(allow_nan=False))), PATHS,
    ),
    st.builds(MetricUsage, st.text(), st.lists(st.text()).map(tuple)),
)  # fmt: skip


@given(MESSAGES)
def test_a_message_between_hosts_decodes_to_what_was_encoded(message):
    assert unpack(pack(message)) == message


@given(st.binary(max_size=60), st.sampled_from([b"w", b"v", b"u", b"x", b""]))
def test_bytes_that_are_no_message_are_refused_or_ignored(noise, letter):
    with contextlib.suppress(DecodeError):
        found = unpack(letter + noise)
        assert found is None or isinstance(found, InterestUpdate | WindowUpdate | MetricUsage)


def test_an_exchange_counts_what_it_cannot_read(caplog):
    async def test(pair):
        for _ in range(2):
            pair.a.exchange.receive("values.a", b"v no message")
        assert pair.a.exchange.report()["undecodable"] == 2
        assert caplog.text.count("values.a") == 1

    story(test)


@pytest.mark.parametrize(("limit", "kept"), [(1000, [1003.0, 1004.0, 1005.0]), (8, [1004.0, 1005.0])])
def test_a_backlog_is_bounded_by_time_and_by_size(limit, kept, monkeypatch):
    monkeypatch.setattr(backlogs, "KEPT", 2.0)
    monkeypatch.setattr(backlogs, "BYTES", limit)
    backlog = backlogs.Backlog()
    for second in range(6):
        backlog.add("M", b"1234", 1000.0 + second)
    assert [came for came, _ in backlog.since("M", 0.0)] == kept
    backlog.add("M", b"1234", 500.0)  # the clock was set back
    assert [came for came, _ in backlog.since("M", 0.0)] == [500.0]
    assert list(backlog.decoded("M", 0.0)) == []
