"""Totals of several workers, merged into values per window."""

from __future__ import annotations

import pytest

from sluice_core.errors import DecodeError
from sluice_core.messages.nodes import Counters, Hello
from sluice_core.metrics.totals import AGENT_FORGETS, MOST_OBJECTS, OBJECTS_FORGET, Totals, birth, granularity, means

METRICS = ("PUTS_SEC", "PUT_BW", "ACTIVE_REQUESTS")
SILENCE = {"PUTS_SEC": {}, "PUT_BW": {}, "ACTIVE_REQUESTS": {}}


class Clock:
    now = 5000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def totals(clock):
    made = Totals(clock)
    clock.now += 1
    return made


def hello(totals, worker="w1", metrics=METRICS, gauges=("ACTIVE_REQUESTS",)):
    totals.add_worker(Hello(worker, "proxy", 1, {}, metrics, gauges))


def send(totals, *rows, worker="w1"):
    return totals.update(Counters(worker, 0.0, rows))


def close(totals, period=1.0):
    return totals.close_window(period)


def row_count(totals):
    """The number of remembered rows of all workers."""
    return sum(len(worker.rows) + len(worker.objects) for worker in totals._workers.values())


def test_growth_by_the_period_is_the_value_at_each_granularity(totals, clock):
    hello(totals)
    born = birth(clock)
    assert send(totals, ("acme", born, (4, 1000, 0)), ("acme/logs", born + 1, (4, 1000, 0)))
    assert close(totals, 2.0) == {
        "PUTS_SEC": {"tenant": {"acme": 2.0}, "container": {"acme/logs": 2.0}},
        "PUT_BW": {"tenant": {"acme": 500.0}, "container": {"acme/logs": 500.0}},
        "ACTIVE_REQUESTS": {},
    }


def test_only_what_grew_since_the_last_window_counts(totals, clock):
    hello(totals)
    born = birth(clock)
    send(totals, ("acme", born, (4, 0, 0)))
    close(totals)
    send(totals, ("acme", born, (5, 0, 0)))
    send(totals, ("acme", born, (7, 0, 0)))
    assert close(totals)["PUTS_SEC"] == {"tenant": {"acme": 3.0}}
    assert close(totals) == SILENCE


def test_workers_add_up(totals, clock):
    born = birth(clock)
    for worker, count in (("w1", 3), ("w2", 4)):
        hello(totals, worker)
        send(totals, ("acme", born, (count, 0, count)), worker=worker)
    values = close(totals)
    assert values["PUTS_SEC"] == {"tenant": {"acme": 7.0}}
    assert values["ACTIVE_REQUESTS"] == {"tenant": {"acme": 7}}


def test_workers_may_announce_metrics_in_another_order(totals, clock):
    hello(totals, "w1")
    hello(totals, "w2", ("ACTIVE_REQUESTS", "PUTS_SEC"))
    born = birth(clock)
    send(totals, ("acme", born, (1, 2, 3)), worker="w1")
    send(totals, ("acme", born, (30, 10)), worker="w2")
    values = close(totals)
    assert values["PUTS_SEC"]["tenant"] == {"acme": 11}
    assert values["ACTIVE_REQUESTS"]["tenant"] == {"acme": 33}


def test_a_gauge_stands_until_it_changes(totals, clock):
    hello(totals)
    born = birth(clock)
    send(totals, ("acme", born, (1, 0, 2)))
    for _ in range(3):
        assert close(totals, 5.0)["ACTIVE_REQUESTS"] == {"tenant": {"acme": 2}}
    send(totals, ("acme", born, (1, 0, 0)))
    assert close(totals) == SILENCE


def test_a_dead_worker_takes_its_levels_along_and_leaves_its_growth(totals, clock):
    hello(totals)
    hello(totals, "w2")
    born = birth(clock)
    send(totals, ("acme", born, (1, 0, 2)))
    send(totals, ("acme", born, (1, 0, 5)), worker="w2")
    totals.lose_worker("w1")
    totals.lose_worker("w1")
    values = close(totals)
    assert values["PUTS_SEC"] == {"tenant": {"acme": 2}}
    assert values["ACTIVE_REQUESTS"] == {"tenant": {"acme": 5}}


def test_a_worker_that_comes_back_continues(totals, clock):
    hello(totals)
    born = birth(clock)
    send(totals, ("acme", born, (10, 0, 2)))
    close(totals)
    totals.lose_worker("w1")
    assert not send(totals, ("acme", born, (11, 0, 2)))
    hello(totals)
    send(totals, ("acme", born, (12, 0, 2)))
    values = close(totals)
    assert values["PUTS_SEC"] == {"tenant": {"acme": 2}}
    assert values["ACTIVE_REQUESTS"] == {"tenant": {"acme": 2}}


def test_a_second_hello_does_not_double_levels(totals, clock):
    hello(totals)
    born = birth(clock)
    send(totals, ("acme", born, (1, 0, 2)))
    hello(totals)
    send(totals, ("acme", born, (1, 0, 2)))
    assert close(totals)["ACTIVE_REQUESTS"] == {"tenant": {"acme": 2}}


def test_a_worker_whose_metrics_change_goes_on_with_those_that_stay(totals, clock):
    hello(totals)
    born = birth(clock)
    send(totals, ("acme", born, (5, 0, 1)))
    hello(totals, metrics=("DELETES_SEC", "PUTS_SEC"), gauges=())
    send(totals, ("acme", born, (2, 9)))
    values = close(totals)
    assert values["PUTS_SEC"] == {"tenant": {"acme": 9}}
    assert values["DELETES_SEC"] == {"tenant": {"acme": 2}}
    assert "ACTIVE_REQUESTS" not in values
    hello(totals)
    send(totals, ("acme", born, (9, 0, 3)))
    values = close(totals)
    assert values["PUTS_SEC"] == {}
    assert values["ACTIVE_REQUESTS"] == {"tenant": {"acme": 3}}


def test_a_row_born_again_counts_from_zero(totals, clock):
    hello(totals)
    born = birth(clock)
    send(totals, ("acme", born, (10, 0, 3)))
    close(totals)
    send(totals, ("acme", born + 5, (12, 0, 1)))
    values = close(totals)
    assert values["PUTS_SEC"] == {"tenant": {"acme": 12}}
    assert values["ACTIVE_REQUESTS"] == {"tenant": {"acme": 1}}


def test_a_restarted_agent_takes_old_totals_as_a_baseline(clock):
    born = birth(clock)
    clock.now += 3600
    totals = Totals(clock)
    hello(totals)
    send(totals, ("acme", born, (1_000_000, 0, 4)))
    values = close(totals)
    assert values["PUTS_SEC"] == {}
    assert values["ACTIVE_REQUESTS"] == {"tenant": {"acme": 4}}
    send(totals, ("acme", born, (1_000_003, 0, 4)))
    assert close(totals)["PUTS_SEC"] == {"tenant": {"acme": 3}}


def test_a_total_that_shrinks_is_no_growth(totals, clock):
    hello(totals)
    born = birth(clock)
    send(totals, ("acme", born, (10, 0, 0)))
    close(totals)
    send(totals, ("acme", born, (4, 0, 0)))
    assert close(totals) == SILENCE
    send(totals, ("acme", born, (5, 0, 0)))
    assert close(totals)["PUTS_SEC"] == {"tenant": {"acme": 1}}


def test_an_unknown_worker_is_asked_to_say_hello(totals):
    assert not send(totals, ("acme", 1, (1, 2, 3)), worker="stranger")
    assert close(totals) == {}


@pytest.mark.parametrize("values", [(1, 2), (1, 2, 3, 4), (1, 2, float("nan")), (float("inf"), 2, 3), ("many", 2, 3)])
def test_a_row_that_cannot_be_right_is_refused_and_nothing_taken(totals, clock, values):
    hello(totals)
    with pytest.raises(DecodeError, match="row `bad`"):
        send(totals, ("acme", birth(clock), (1, 2, 3)), ("bad", birth(clock), values))
    assert close(totals) == SILENCE


def age(totals, clock, seconds):
    """Let windows pass."""
    clock.now += seconds
    return close(totals)


def test_rows_without_news_are_forgotten_but_never_counted_twice(totals, clock):
    hello(totals)
    born = birth(clock)
    send(totals, ("acme", born, (10, 0, 0)))
    close(totals)
    age(totals, clock, AGENT_FORGETS + 1)
    assert row_count(totals) == 0
    send(totals, ("acme", born, (11, 0, 0)))
    assert close(totals)["PUTS_SEC"] == {}
    send(totals, ("acme", born, (13, 0, 0)))
    assert close(totals)["PUTS_SEC"] == {"tenant": {"acme": 2}}


def test_a_row_with_a_level_is_kept(totals, clock):
    hello(totals)
    send(totals, ("acme", birth(clock), (10, 0, 1)))
    age(totals, clock, AGENT_FORGETS + 1)
    assert row_count(totals) == 1


def test_lost_workers_are_forgotten_in_the_end(totals, clock):
    for number in range(50):
        hello(totals, f"w{number}")
        send(totals, ("acme", birth(clock), (1, 0, 1)), worker=f"w{number}")
        totals.lose_worker(f"w{number}")
    assert row_count(totals) == 50
    age(totals, clock, AGENT_FORGETS + 1)
    assert row_count(totals) == 0
    assert not send(totals, ("acme", birth(clock), (2, 0, 0)), worker="w1")


@pytest.mark.parametrize(
    ("path", "level"), [("acme", "tenant"), ("acme/logs", "container"), ("a/b/c", "object"), ("a/b/c/d", "object")]
)
def test_the_path_says_its_granularity(path, level):
    assert granularity(path) == level


def test_rows_of_objects_are_forgotten_sooner_and_never_counted_twice(totals, clock):
    hello(totals)
    born = birth(clock)
    send(totals, ("acme", born, (1, 0, 0)), ("acme/logs/a", born + 1, (2, 0, 0)))
    assert close(totals)["PUTS_SEC"] == {"tenant": {"acme": 1.0}, "object": {"acme/logs/a": 2.0}}
    clock.now += OBJECTS_FORGET + 1
    close(totals)
    assert row_count(totals) == 1
    send(totals, ("acme/logs/a", born + 1, (9, 0, 0)))
    assert close(totals) == SILENCE, "a baseline, since it was known before"
    send(totals, ("acme/logs/a", born + 1, (12, 0, 0)), ("acme", born, (2, 0, 0)))
    assert close(totals)["PUTS_SEC"] == {"object": {"acme/logs/a": 3.0}, "tenant": {"acme": 1.0}}


def test_no_worker_fills_the_agent_with_objects(totals, clock):
    hello(totals)
    born = birth(clock)
    rows = [(f"acme/logs/{number}", born + number, (1, 0, 0)) for number in range(MOST_OBJECTS + 5)]
    send(totals, *rows, ("acme", born, (1, 0, 0)))
    assert row_count(totals) == MOST_OBJECTS + 1
    assert close(totals)["PUTS_SEC"]["tenant"] == {"acme": 1.0}


def test_means_divide_amounts_by_weights_where_there_are_any():
    amounts = {"tenant": {"a": 6.0, "b": 1.0}, "container": {"a/c": 6.0}}
    assert means(amounts, {"tenant": {"a": 3.0, "b": 0.0, "c": 4.0}}) == {"tenant": {"a": 2.0, "c": 0.0}}


# -- sketches


QUANTILES = {"TIME": ("TIME", 0.5), "TIME_P99": ("TIME", 0.99)}
TIMES = {"TIME": (0.5, {}), "TIME_P99": (0.99, {})}


def hello_with_sketches(totals, worker="w1", quantiles=None, metrics=("TIME:weight",)):
    totals.add_worker(Hello(worker, "proxy", 1, {}, metrics, quantiles=QUANTILES if quantiles is None else quantiles))


def send_sketch(totals, born, sketch, worker="w1", path="acme"):
    packed = [one for pair in sketch.items() for one in pair]
    counters = Counters(worker, 0.0, ((path, born, (sum(sketch.values()),)),), sketches={"TIME": [packed]})
    return totals.update(Counters.decode(counters.encode()))


def sketches(totals, period=1.0):
    close(totals, period)
    return totals.close_quantiles(period)


def test_sketches_grow_bucket_by_bucket_over_all_workers(totals, clock):
    born = birth(clock)
    for worker in ("w1", "w2"):
        hello_with_sketches(totals, worker)
        send_sketch(totals, born, {-5: 3, 7: 1}, worker)
    levels = {"tenant": {"acme": {-5: 6, 7: 2}}}
    assert sketches(totals) == {"TIME": (0.5, levels), "TIME_P99": (0.99, levels)}
    send_sketch(totals, born, {-5: 4, 8: 2}, "w2")
    assert sketches(totals, 2.0)["TIME"] == (0.5, {"tenant": {"acme": {-5: 0.5, 8: 1.0}}})
    send_sketch(totals, born, {7: 2}, "w2")
    assert sketches(totals)["TIME"] == (0.5, {"tenant": {"acme": {7: 1}}})
    assert sketches(totals) == TIMES


def test_a_sketch_that_was_there_before_the_agent_is_a_baseline(totals, clock):
    hello_with_sketches(totals)
    send_sketch(totals, birth(clock) - 5_000_000, {1: 100})
    assert sketches(totals) == TIMES
    send_sketch(totals, birth(clock) - 5_000_000, {1: 103})
    assert sketches(totals)["TIME"] == (0.5, {"tenant": {"acme": {1: 3}}})


def test_a_worker_that_counts_other_metrics_goes_on_with_sketches_that_stay(totals, clock):
    born = birth(clock)
    hello_with_sketches(totals)
    send_sketch(totals, born, {1: 100})
    sketches(totals)
    hello_with_sketches(totals, quantiles={"TIME": ("TIME", 0.9)})
    send_sketch(totals, born, {1: 101})
    assert sketches(totals) == {"TIME": (0.9, {"tenant": {"acme": {1: 1}}})}
    hello_with_sketches(totals, quantiles={})
    assert sketches(totals) == {}


@pytest.mark.parametrize("packed", [[1], [1, -1], [1000, 1], [1, float("nan")], ["a", 1], 7])
def test_a_bad_sketch_is_refused_with_its_message(packed):
    message = Counters("w", 0.0, (("acme", 1, (1,)),), sketches={"TIME": [packed]})
    with pytest.raises(DecodeError):
        Counters.decode(message.encode())


def test_each_row_needs_its_sketch():
    message = Counters("w", 0.0, (("acme", 1, (1,)),), sketches={"TIME": []})
    with pytest.raises(DecodeError, match="0 sketches `TIME`, expected one for each of 1 rows"):
        Counters.decode(message.encode())


def konnector(totals, worker="k1"):
    quantiles = {"VOLUME_LATENCY": ("VOLUME_LATENCY", 0.5)}
    metrics, gauges = ("VOLUME_READ_BW", "VOLUME_QUEUE"), ("VOLUME_QUEUE",)
    totals.add_worker(Hello(worker, "konnector", 2, {}, metrics, gauges, quantiles=quantiles))


def test_the_rows_of_a_konnector_are_of_volumes_and_their_tenants(totals, clock):
    konnector(totals)
    born = birth(clock)
    rows = (("acme/id-1", born, (100, 2)), ("acme/id-2", born, (50, 0)), ("beta/id-3", born, (7, 1)))
    sketches = {"VOLUME_LATENCY": ((3, 4), (3, 1, 5, 2), ())}
    assert totals.update(Counters("k1", 0.0, rows, sketches=sketches))
    assert close(totals) == {
        "VOLUME_READ_BW": {
            "volume": {"acme/id-1": 100.0, "acme/id-2": 50.0, "beta/id-3": 7.0},
            "tenant": {"acme": 150.0, "beta": 7.0},
        },
        "VOLUME_QUEUE": {"volume": {"acme/id-1": 2, "beta/id-3": 1}, "tenant": {"acme": 2, "beta": 1}},
    }
    assert totals.close_quantiles(1.0) == {
        "VOLUME_LATENCY": (
            0.5,
            {"volume": {"acme/id-1": {3: 4}, "acme/id-2": {3: 1, 5: 2}}, "tenant": {"acme": {3: 5, 5: 2}}},
        )
    }
    assert close(totals)["VOLUME_READ_BW"] == {}


def test_proxies_beside_a_konnector_count_containers(totals, clock):
    konnector(totals)
    hello(totals)
    send(totals, ("acme/logs", birth(clock), (4, 1000, 0)))
    assert close(totals)["PUTS_SEC"] == {"container": {"acme/logs": 4.0}}
