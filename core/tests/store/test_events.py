"""The log of events on a real Redis: its order, its cursors, and the isolation of sources from each other."""

import threading

import pytest

from sluice_core.messages.events import EVENTS_LEFT_OUT, NODE_AWAY, NODE_WELL, REFUSED, WARNING, Event
from sluice_core.store.events import FIRST, EventLimits, append_events, id_before

#: Small limits, for tests that count; times are parameters.
LIMITS = EventLimits(length=1000, burst=3, repeat=100.0, refill=10.0, pause=30.0)


def refusal(policy="p1", node="n1", at=1.0, text="no"):
    return Event(at, WARNING, REFUSED, text, node, node=node, policy=policy)


@pytest.fixture
def append(store):
    """A function that logs events at a time."""

    def run(now, *events, limits=LIMITS):
        store.run(append_events(store.keys, events, limits, now))

    return run


@pytest.fixture
def told(store):
    """A function that returns the log: policy of each event, or how many were left out."""

    def read():
        return [one.fields.get("left_out", one.policy) for one in store.events_after(FIRST, 1000).events]

    return read


def test_events_are_read_in_the_order_of_their_ids_from_a_cursor_on(store):
    store.append_events([refusal("a"), refusal("b")])
    store.append_events([refusal("c")])
    first = store.events_after(FIRST, 2)
    assert ([one.policy for one in first.events], first.full) == (["a", "b"], True)
    assert first.last == first.events[-1].id
    rest = store.events_after(first.last, 2)
    assert ([one.policy for one in rest.events], rest.full) == (["c"], False)
    end = store.events_after(rest.last, 2)
    assert (end.events, end.last) == ((), rest.last)


def test_a_time_names_the_events_from_it_on(store):
    store.append_events([refusal("a")])
    (event,) = store.events_after(FIRST, 10).events
    at = int(event.id.partition("-")[0]) / 1000
    assert store.events_after(id_before(at), 10).events == (event,)
    assert store.events_after(id_before(at + 0.001), 10).events == ()
    assert id_before(0.0) == FIRST


def test_a_reader_waits_for_the_next_event(store):
    read = []
    waiting = threading.Thread(target=lambda: read.append(store.events_after(FIRST, 1, 3000)))
    waiting.start()
    while not store.client.info("clients")["blocked_clients"]:
        pass
    store.append_events([refusal("a")])
    waiting.join()
    assert [one.policy for one in read[0].events] == ["a"]


def test_a_repeat_is_left_out_and_counted(append, told):
    append(1.0, refusal("a"))
    append(2.0, refusal("a", text="no, by another worker"), refusal("a"))
    assert told() == ["a"]
    append(32.0, refusal("b"))
    assert told() == ["a", 2, "b"]
    append(102.0, refusal("a"))
    assert told() == ["a", 2, "b", "a"], "it is said again after a while"


def test_a_beginning_and_an_end_are_no_repeats(append, store):
    events = [Event(1.0, WARNING, kind, "", "n1", node="n1") for kind in (NODE_AWAY, NODE_WELL)]
    append(1.0, *events)
    append(21.0, *events)
    assert [one.kind for one in store.events_after(FIRST, 10).events] == [NODE_AWAY, NODE_WELL] * 2


def test_a_node_that_cries_without_end_is_counted_and_others_are_heard(append, store, told):
    for second in range(60):
        append(1.0 + second, *(refusal(f"p{second}-{number}") for number in range(20)))
        append(1.0 + second, refusal(f"q{second}", node="n2")) if second % 20 == 0 else None
    found = store.events_after(FIRST, 1000).events
    assert [one.policy for one in found if one.node == "n2"] == ["q0", "q20", "q40"]
    loud = [one for one in found if one.node == "n1"]
    logged = [one for one in loud if one.kind == REFUSED]
    assert len(logged) == 3 + 5, "the burst, and one each ten seconds"
    append(200.0)
    counts = [one for one in store.events_after(FIRST, 1000).events if one.kind == EVENTS_LEFT_OUT]
    assert sum(one.fields["left_out"] for one in counts) + len(logged) == 60 * 20
    assert [one.node for one in counts] == ["n1", "n1"]
    assert counts[0].text == f"{counts[0].fields['left_out']} more events of `n1` were left out"


def test_whoever_logs_next_counts_for_a_source_that_fell_silent(append, told):
    append(1.0, refusal("a"), refusal("a"))
    append(40.0, refusal("b", node="n2"))
    assert told() == ["a", "b", 1]


def test_a_source_that_logs_nothing_is_forgotten(append, store):
    append(1.0, refusal("a"))
    append(50.0)
    assert b"n1" in store.client.hkeys(store.keys.event_sources), "a repeat must still be known"
    append(150.0)
    assert store.client.hkeys(store.keys.event_sources) == [b""]


def test_the_log_has_a_length(append, store):
    limits = EventLimits(length=100, burst=1000)
    append(1.0, *(refusal(f"p{number}") for number in range(500)), limits=limits)
    assert store.client.xlen(store.keys.events) <= 200  # redis trims whole nodes of the stream, of 100 entries
    assert store.events_after(FIRST, 1000).events[-1].policy == "p499"


def test_what_is_no_event_is_left_out_of_a_page(store, caplog):
    store.append_events([refusal("a")])
    store.client.xadd(store.keys.events, {"event": "{}"})
    store.client.xadd(store.keys.events, {"other": "x"})
    store.append_events([refusal("b")])
    found = store.events_after(FIRST, 3)
    assert ([one.policy for one in found.events], found.full) == (["a"], True)
    assert [one.policy for one in store.events_after(found.last, 3).events] == ["b"]
    assert "cannot be decoded" in caplog.text


@pytest.mark.parametrize("state", ["", "{", "5", "null", "{}"])
def test_a_source_of_which_redis_holds_nonsense_begins_anew(append, store, told, state):
    store.client.hset(store.keys.event_sources, "n1", state)
    append(1.0, refusal("a"))
    assert told() == ["a"]


def test_a_long_text_is_cut(store):
    store.append_events([refusal(text="x" * 5000)])
    assert len(store.events_after(FIRST, 1).events[0].text) == 1001
