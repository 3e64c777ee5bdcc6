"""Several filters in a row: records, order, sizes, missing filters, random access through layers."""

from __future__ import annotations

import json

import pytest

from sluice_core.describe import FILTER, ActionInfo
from sluice_filters.api import CorruptData, Filter, FilterError, Hint, NeedIndex, Stream, Window
from sluice_filters.basic.noop import Noop
from sluice_filters.chain import (
    ChainEncoder,
    can_seek,
    chain_decoder,
    chain_reader,
    locate,
    missing,
    plain_size,
)
from sluice_filters.compression.compression import Compression
from sluice_filters.testing import check_ranges, cut, encode, read_range, run
from sluice_filters.testing.fake_filters import HeadedXor

KNOWN = {one.info.keyword: one for one in (Noop, Compression, HeadedXor)}
TEXT = b"".join(b"line %05d of a text that shrinks well\n" % number for number in range(160))


def small(engine="zstd"):
    return Compression({"engine": engine, "frame_size": 1024, "min_size": 0, "min_gain": 0.0})


CHAINS = {
    "xor": lambda: [HeadedXor()],
    "xor twice": lambda: [HeadedXor(), HeadedXor()],
    "noop, compression": lambda: [Noop(), small()],
    "compression, xor": lambda: [small(), HeadedXor()],
    "xor, compression": lambda: [HeadedXor(), small("lz4")],
    "compression twice": lambda: [small(), Compression({"engine": "gzip", "min_size": 0, "min_gain": 0})],
    "compression, xor, compression": lambda: [small("gzip"), HeadedXor(), small()],
}


@pytest.fixture(params=CHAINS)
def steps(request):
    return CHAINS[request.param]()


@pytest.fixture(params=["inline", "tail"])
def place_of_index(request, monkeypatch):
    if request.param == "tail":
        monkeypatch.setattr("sluice_filters.compression.layout.INLINE_INDEX", 0)


@pytest.mark.parametrize("data", [b"", b"x", TEXT[:1000], TEXT])
@pytest.mark.parametrize("step", [1, 1000, 1 << 20])
def test_a_chain_and_its_decoder_are_identity(steps, place_of_index, data, step):
    chain = ChainEncoder(steps, Hint(len(data)))
    stored = run(chain, cut(data, step))
    records = json.loads(json.dumps(chain.records()))
    assert missing(records, KNOWN) == []
    if records:
        assert plain_size(records) == len(data)
    assert run(chain_decoder(records, KNOWN), cut(stored, step)) == data


def test_any_range_can_be_read_through_all_layers(steps, place_of_index):
    data = TEXT[:2600]
    stored, records = encode(steps, data)
    assert can_seek(records, KNOWN)
    check_ranges(stored, records, KNOWN, data)


def test_records_name_what_changed_in_running_order():
    _, records = encode([Noop(), small(), HeadedXor()], TEXT)
    assert [(one["f"], one["v"]) for one in records] == [("compression", 1), ("xor", 1)]


def test_a_filter_that_passed_the_bytes_on_leaves_no_record():
    stored, records = encode([Compression(), HeadedXor()], b"tiny")
    assert [one["f"] for one in records] == ["xor"]
    assert len(stored) == 5


def test_a_chain_that_changed_nothing_stores_the_plain_bytes():
    assert encode([Noop(), Compression()], b"tiny") == (b"tiny", ())
    assert encode([], TEXT) == (TEXT, ())


def test_the_size_is_unknown_behind_a_filter_that_changes_lengths():
    hints = []

    class Asks(Noop):
        def encoder(self, hint):
            hints.append(hint)
            return Stream()

    ChainEncoder([Asks(), HeadedXor(), Asks()], Hint(7, "text/plain", "a.txt"))
    assert hints == [Hint(7, "text/plain", "a.txt"), Hint(None, "text/plain", "a.txt")]


@pytest.mark.parametrize(("steps", "heavy"), [([], False), ([Noop()], False), ([Noop(), small()], True)])
def test_a_chain_is_heavy_when_one_of_its_filters_is(steps, heavy):
    assert ChainEncoder(steps, Hint()).heavy is heavy


def test_only_the_index_and_the_frames_of_the_range_are_fetched(monkeypatch):
    monkeypatch.setattr("sluice_filters.compression.layout.INLINE_INDEX", 0)
    stored, records = encode([small(), HeadedXor()], TEXT)
    search = locate(records, KNOWN, 2000, 2010)
    index = next(search)
    assert index == (records[0]["r"]["tail"] + 1, len(stored))
    with pytest.raises(StopIteration) as done:
        search.send(stored[slice(*index)])
    found = done.value.value
    assert found.stop - found.start < 600
    assert run(found.stream, [stored[found.start : found.stop]]) == TEXT[2000:2010]


def test_the_index_is_fetched_once_for_many_ranges(monkeypatch):
    monkeypatch.setattr("sluice_filters.compression.layout.INLINE_INDEX", 0)
    stored, records = encode([small()], TEXT)
    search = locate(records, KNOWN, 0, 10)
    with pytest.raises(StopIteration) as done:
        search.send(stored[slice(*next(search))])
    with pytest.raises(StopIteration) as again:
        next(locate(done.value.value.records, KNOWN, 3000, 3010))
    found = again.value.value
    assert run(found.stream, [stored[found.start : found.stop]]) == TEXT[3000:3010]


def test_a_broken_or_short_index_is_noticed(monkeypatch):
    monkeypatch.setattr("sluice_filters.compression.layout.INLINE_INDEX", 0)
    stored, records = encode([small()], TEXT)
    for harm in (lambda index: index[:-1], lambda index: b"\1" + index[1:], lambda index: b""):
        search = locate(records, KNOWN, 0, 10)
        index = stored[slice(*next(search))]
        with pytest.raises(CorruptData, match="index"):
            search.send(harm(index))


@pytest.mark.parametrize(("start", "stop"), [(-1, 5), (5, 5), (6, 5), (0, len(TEXT) + 1)])
def test_a_range_outside_of_the_object_is_refused(start, stop):
    _, records = encode([small()], TEXT)
    with pytest.raises(FilterError, match=f"of {len(TEXT)}"):
        next(locate(records, KNOWN, start, stop))


def info(keyword, **more):
    return ActionInfo(keyword, FILTER, "a test", changes_content=True, **more)


class Blind(HeadedXor):
    info = info("blind", reversible=True)


class OneWay(Filter):
    info = info("one_way")


class Newer(HeadedXor):
    info = info("xor", reversible=True, random_access=True, version=2)


class AsksAgain(HeadedXor):
    info = info("asks_again", reversible=True, random_access=True)

    def locate(self, record, start, stop):
        return NeedIndex(0, 1)

    def with_index(self, record, index):
        return record


class Short(HeadedXor):
    info = info("short", reversible=True, random_access=True)

    def locate(self, record, start, stop):
        return Window(start + 1, stop + 1, 1, stop - start)


def test_a_filter_that_gives_less_than_its_window_is_noticed():
    stored, records = encode([Short()], TEXT)
    with pytest.raises(CorruptData, match="ends `1` bytes early"):
        read_range(stored, records, {"short": Short}, 10, 20)


def test_a_filter_without_random_access_is_decoded_sequentially():
    known = {**KNOWN, "blind": Blind}
    stored, records = encode([small(), Blind()], TEXT)
    assert not can_seek(records, known)
    with pytest.raises(FilterError, match="`blind` has no random access"):
        next(locate(records, known, 0, 1))
    assert run(chain_decoder(records, known), [stored]) == TEXT


def test_a_filter_that_never_has_enough_index_is_stopped():
    _, records = encode([AsksAgain()], TEXT)
    search = locate(records, {"asks_again": AsksAgain}, 0, 1)
    next(search)
    with pytest.raises(FilterError, match="asks for its index again"):
        search.send(b"X")


@pytest.mark.parametrize(
    ("records", "known", "faults"),
    [
        ([], {}, []),
        ([{"f": "xor", "v": 1, "r": {}}], {}, ["filter `xor` is not installed"]),
        ([{"f": "xor", "v": 2, "r": {}}], KNOWN, ["filter `xor` of version 2 is needed, installed is 1"]),
        ([{"f": "xor", "v": 1, "r": {}}], {"xor": Newer}, []),
        ([{"f": "one_way", "v": 1, "r": {}}], {"one_way": OneWay}, ["filter `one_way` as installed is not reversible"]),
        (
            [{"f": "a", "v": 1, "r": {}}, {"f": "xor", "v": 1, "r": {}}, {"f": "b", "v": 1, "r": {}}],
            KNOWN,
            ["filter `a` is not installed", "filter `b` is not installed"],
        ),
    ],
)
def test_filters_that_cannot_undo_a_record_are_named(records, known, faults):
    assert missing(records, known) == faults
    assert can_seek(records, known) is not bool(faults)
    if faults:
        with pytest.raises(FilterError) as error:
            chain_decoder(records, known)
        assert str(error.value) == "; ".join(faults)


@pytest.mark.parametrize(
    "record", [{}, {"f": 1, "v": 1, "r": {}}, {"f": "xor", "v": "1", "r": {}}, {"f": "xor", "v": 1, "r": []}]
)
def test_records_of_another_form_are_corrupt(record):
    with pytest.raises(CorruptData, match="not a filter's record"):
        missing([record], KNOWN)
    with pytest.raises(CorruptData, match="not a filter's record"):
        plain_size([record])


def test_without_records_there_is_no_size():
    with pytest.raises(CorruptData, match="no size"):
        plain_size([])


def test_readers_run_in_the_reverse_order_and_only_where_declared():
    class Mark(Stream):
        def __init__(self, mark):
            self._mark = mark

        def finish(self):
            return self._mark

    class First(Noop):
        def reader(self, hint):
            return Mark(b"1")

    class Second(Noop):
        def reader(self, hint):
            return Mark(b"2")

    assert run(chain_reader([First(), small(), Second()], Hint()), [b"0"]) == b"021"
