"""When a window closes, and its values."""

import asyncio

import pytest

from sluice_actors.metrics.aggregator import Aggregator
from sluice_actors.metrics.aggregator_pool import AggregatorPool, Backlog
from sluice_actors.testing import Clock, batch_of
from sluice_core.connections.exchanges import metric_routing_key
from sluice_core.messages.nodes import MetricBatch


def metric(now=1000.0):
    return Aggregator("PUTS_SEC", now)


def give(aggregator, now, node, window, value=1.0, seq=None, **more):
    aggregator.add(batch_of("PUTS_SEC", window, {"A": value} if value else {}, node, seq, **more), now)
    return [(one.window, dict(one.at("tenant"))) for one in aggregator.close_due(now)]


def learn(aggregator, *nodes, start=1000):
    """Three windows of all nodes: after them the live nodes are known."""
    for window in range(start, start + 3):
        for node in nodes:
            give(aggregator, window + 1.05, node, window)
        aggregator.close_due(window + 1.5)
    return start + 3


def test_values_of_all_nodes_are_added():
    aggregator = metric()
    first = batch_of("PUTS_SEC", 1000, {"A": 1.0, "B": 2.0, "A/c": 1.0}, "n1")
    second = batch_of("PUTS_SEC", 1000, {"B": 3.0, "C": 4.0, "A/c": 0.5}, "n2")
    aggregator.add(first, 1001.05)
    aggregator.add(second, 1001.06)
    (closed,) = aggregator.close_due(1001.3)
    assert closed.at("tenant") == {"A": 1.0, "B": 5.0, "C": 4.0}
    assert closed.at("container") == {"A/c": 1.5}
    assert closed.at("cluster") == {"": 10.0}
    assert first.values["tenant"] == {"A": 1.0, "B": 2.0}


def test_a_window_closes_when_all_nodes_alive_have_delivered():
    aggregator = metric()
    window = learn(aggregator, "n1", "n2")
    assert give(aggregator, window + 1.05, "n1", window) == []
    assert give(aggregator, window + 1.06, "n2", window) == [(window, {"A": 2.0})]


def test_a_window_closes_when_its_time_is_over():
    aggregator = metric()
    window = learn(aggregator, "n1", "n2")
    give(aggregator, window + 1.05, "n1", window)
    assert aggregator.deadline() == window + 1.25
    assert aggregator.close_due(window + 1.24) == []
    (closed,) = aggregator.close_due(window + 1.25)
    assert closed.at("tenant") == {"A": 1.0}
    assert aggregator.deadline() is None
    assert aggregator.counts.partial == 1


def test_a_dead_node_is_waited_for_three_windows():
    aggregator = metric()
    window = learn(aggregator, "n1", "n2")
    waited = []
    for later in range(window, window + 5):
        closed = give(aggregator, later + 1.05, "n1", later)
        waited.append(not closed)
        aggregator.close_due(later + 1.5)
    assert waited == [True, True, True, False, False]


def test_only_time_closes_windows_while_it_is_not_known_who_is_alive():
    aggregator = metric()
    for window in (1000, 1001, 1002):
        assert give(aggregator, window + 1.05, "n1", window) == []
        assert len(aggregator.close_due(window + 1.25)) == 1
    assert give(aggregator, 1004.05, "n1", 1003) == [(1003, {"A": 1.0})]


def test_after_a_silence_the_first_node_does_not_close_a_window_alone():
    aggregator = metric()
    learn(aggregator, "n1", "n2")
    assert give(aggregator, 1061.05, "n1", 1060) == []
    assert give(aggregator, 1061.2, "n2", 1060) == []
    (closed,) = aggregator.close_due(1061.25)
    assert closed.at("tenant") == {"A": 2.0}


def test_an_empty_batch_closes_a_window_and_no_batch_closes_none():
    aggregator = metric()
    window = learn(aggregator, "n1")
    assert give(aggregator, window + 1.05, "n1", window, value=None) == [(window, {})]
    assert aggregator.close_due(window + 60) == []
    assert aggregator.through == window


def test_a_late_batch_is_counted_and_dropped():
    aggregator = metric()
    window = learn(aggregator, "n1", "n2")
    give(aggregator, window + 1.05, "n1", window)
    aggregator.close_due(window + 1.25)
    assert give(aggregator, window + 1.3, "n2", window) == []
    assert aggregator.counts.late == 1
    give(aggregator, window + 2.05, "n2", window + 1)
    assert give(aggregator, window + 2.06, "n1", window + 1) == [(window + 1, {"A": 2.0})]


def test_a_first_batch_after_the_time_leaves_others_a_moment():
    aggregator = metric()
    window = learn(aggregator, "n1", "n2")
    assert give(aggregator, window + 1.4, "n1", window) == []
    assert give(aggregator, window + 1.45, "n2", window) == [(window, {"A": 2.0})]


def test_windows_close_in_their_order():
    aggregator = metric()
    window = learn(aggregator, "n1", "n2")
    give(aggregator, window + 1.05, "n1", window)
    assert give(aggregator, window + 1.06, "n1", window + 1) == []
    assert give(aggregator, window + 1.07, "n2", window + 1) == []
    assert give(aggregator, window + 1.08, "n2", window) == [(window, {"A": 2.0}), (window + 1, {"A": 2.0})]


def test_a_batch_that_comes_twice_counts_once():
    aggregator = metric()
    give(aggregator, 1001.05, "n1", 1000, seq=7)
    give(aggregator, 1001.06, "n1", 1000, seq=7)
    (closed,) = aggregator.close_due(1001.5)
    assert closed.at("tenant") == {"A": 1.0}


@pytest.mark.parametrize(
    ("numbers", "lost"), [((1, 2, 3), 0), ((1, 2, 5), 2), ((8, 9, 1), 0), ((1, 4, 5, 7), 3), ((3, 3, 4), 0)]
)
def test_gaps_in_the_numbers_of_batches_are_counted(numbers, lost):
    aggregator = metric()
    for window, seq in enumerate(numbers, 1000):
        give(aggregator, window + 1.05, "n1", window, seq=seq)
    assert aggregator.counts.lost == lost


def test_a_batch_from_a_skewed_clock_is_counted_and_dropped():
    aggregator = metric()
    give(aggregator, 1001.05, "n1", 1100)
    assert aggregator.deadline() is None
    assert aggregator.counts.skewed == 1


def test_a_clock_set_back_begins_anew():
    aggregator = metric()
    window = learn(aggregator, "n1")
    give(aggregator, window - 499.0, "n1", window - 500)
    (closed,) = aggregator.close_due(window - 498.0)
    assert closed.window == window - 500
    assert aggregator.counts.late == 0


def test_a_metric_is_unreported_when_no_node_reports_it():
    aggregator = metric(now=1000.0)
    assert not aggregator.unreported(1002)
    assert aggregator.unreported(1003)
    window = learn(aggregator, "n1", start=1003)
    assert not aggregator.unreported(window + 2)
    assert aggregator.unreported(window + 3)


def test_windows_of_five_seconds():
    aggregator = metric()
    give(aggregator, 1005.05, "n1", 1000, period=5.0)
    assert aggregator.deadline() == 1005.25
    (closed,) = aggregator.close_due(1005.25)
    assert (closed.window, closed.period) == (1000, 5.0)
    assert aggregator.closed(1005, 1.0) is closed
    assert aggregator.closed(1011, 1.0) is None


def test_the_first_window_of_a_slow_metric_may_have_begun_before_anybody_listened():
    aggregator = metric(now=1200.0)
    aggregator.through = 1198
    assert give(aggregator, 1201.0, "n1", 600, period=600.0) == []
    (closed,) = aggregator.close_due(1212.0)
    assert (closed.window, closed.period) == (600, 600.0)
    give(aggregator, 1801.0, "n1", 600, period=600.0)
    assert aggregator.counts.late == 1


def test_a_slow_metric_waits_longer_for_its_nodes():
    aggregator = metric()
    give(aggregator, 1060.1, "n1", 1000, period=60.0)
    assert aggregator.deadline() == 1060 + 60 / 50


@pytest.mark.parametrize(("now", "found"), [(1030.0, {"A": 7.0}), (1200.0, None)])
def test_the_last_value_of_a_slow_metric_holds_on_a_host_that_needs_it_later(now, found):
    async def story():
        clock = Clock(1020.1)
        pool = AggregatorPool(lambda closed: None, clock, Backlog())
        body = MetricBatch("n1", "STORED", 960, 1, {"tenant": {"A": 7.0}}, 60.0).encode()
        pool.receive(metric_routing_key("STORED", "n1"), body)
        clock.now = now
        pool.start("STORED")
        pool.close_due("STORED")
        closed = pool.get("STORED").closed(int(now), 1.0)
        pool.close()
        assert (None if closed is None else closed.at("tenant")) == found

    asyncio.run(story())
