"""The history of metrics in a real Redis: rows are written, ranges are read, series are found and deleted."""

import struct

from sluice_metric_history.operations import (
    find_series,
    forget_series,
    read_directory,
    read_points,
    write_row,
    write_series,
)
from sluice_metric_history.records import SeriesKey, SeriesRecord
from sluice_metric_history.resolutions import RESOLUTIONS, invert

SECONDS, TENS, MINUTES = RESOLUTIONS
#: Starts a round of all rings.
START = 2000 * MINUTES.seconds


def record(name, path="AUTH_a", step=1, **more):
    return SeriesRecord(name, "PUTS_SEC", "tenant", path, step, START, **more)


def value(number):
    return invert(struct.pack("<f", number))


def summary(number):
    return invert(struct.pack("<ffHH", number, number, 0, 0))


def means(store, resolution, begin, end, name="s1"):
    points = store.run(read_points(store.keys, resolution, name, begin, end))
    return [None if one is None else one.mean for one in points]


def write(store, resolution, at, points):
    """Write rows through the asynchronous store; the commands are the same."""
    store.run(write_row(store.keys, resolution, at, points))


def test_rows_are_read_back_and_what_was_not_written_is_a_gap(store):
    store.run(write_series(store.keys, [record("s1")]))
    for second in (0, 1, 3):
        write(store, SECONDS, START + second, {"s1": value(second)})
    assert means(store, SECONDS, START, START + 5) == [0.0, 1.0, None, 3.0, None]


def test_a_range_across_the_end_of_a_ring_is_in_order(store):
    store.run(write_series(store.keys, [record("s1")]))
    for place in range(-3, 3):
        write(store, MINUTES, START + 60 * place, {"s1": summary(place)})
    assert means(store, MINUTES, START - 180, START + 180) == [-3.0, -2.0, -1.0, 0.0, 1.0, 2.0]


def test_points_of_the_round_before_are_gaps(store):
    store.run(write_series(store.keys, [record("s1")]))
    write(store, SECONDS, START, {"s1": value(5.0)})
    assert means(store, SECONDS, START, START + 1) == [5.0]
    assert means(store, SECONDS, START + SECONDS.seconds, START + SECONDS.seconds + 1) == [None]


def test_a_row_without_a_series_does_not_give_it_an_old_value(store):
    store.run(write_series(store.keys, [record("s1"), record("s2", "AUTH_b")]))
    write(store, TENS, START, {"s1": summary(1.0)})
    assert means(store, TENS, START, START + 10, "s2") == [None]


def test_a_new_series_has_whole_rings_which_its_points_do_not_make_larger(store):
    store.run(write_series(store.keys, [record("s1")]))
    sizes = [store.client.strlen(store.keys.metric_points(resolution.step, "s1")) for resolution in RESOLUTIONS]
    for resolution in RESOLUTIONS:
        write(store, resolution, START - resolution.step, {"s1": b"\1" * resolution.point_size})
    assert [store.client.strlen(store.keys.metric_points(resolution.step, "s1")) for resolution in RESOLUTIONS] == sizes
    assert all(store.client.ttl(key) > MINUTES.seconds for key in store.client.scan_iter())


def test_a_slow_series_has_no_ring_of_seconds(store):
    store.run(write_series(store.keys, [record("s1", step=60)]))
    assert [store.client.exists(store.keys.metric_points(resolution.step, "s1")) for resolution in RESOLUTIONS] == [
        0,
        0,
        1,
    ]


def test_series_are_found_by_what_they_are_of_whatever_their_names_are(store):
    odd = record("s1", 'AUTH_a/\n"ä\udcff')
    rest = SeriesRecord("s2", "PUTS_SEC", "tenant", "", 1, START, rest=True, of=7)
    store.run(write_series(store.keys, [odd, rest]))
    missing = SeriesKey("PUTS_SEC", "container", "AUTH_a/logs")
    assert store.run(find_series(store.keys, [missing, odd.key])) == odd
    assert store.run(find_series(store.keys, [SeriesKey("PUTS_SEC", "tenant", "", rest=True)])) == rest
    assert store.run(find_series(store.keys, [missing])) is None
    assert store.run(read_directory(store.keys)) == {odd.key: odd, rest.key: rest}


def test_a_forgotten_series_leaves_nothing(store):
    store.run(write_series(store.keys, [record("s1"), record("s2", "AUTH_b")]))
    store.run(forget_series(store.keys, [record("s1")]))
    assert list(store.run(read_directory(store.keys))) == [record("s2", "AUTH_b").key]
    assert not store.client.keys("*:s1")
    store.run(forget_series(store.keys, []))
