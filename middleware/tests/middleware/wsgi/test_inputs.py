"""Wrappers of ``wsgi.input``: no byte is lost, doubled or reported too late, for any order of reads."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice_filters.api import FilterError, Stream
from sluice_middleware.swift.proxy_api import HTTPException, Request
from sluice_middleware.wsgi.inputs import IterableInput, ObservedInput, RewoundInput, TrackedInput

SIZES = st.lists(st.integers(1, 7), min_size=1, max_size=5)


def read_all(source, sizes):
    """Read all bytes, with the ``sizes`` in turn."""
    found = []
    while True:
        for size in sizes:
            piece = source.read(size)
            assert len(piece) <= size or isinstance(source, ObservedInput)
            if not piece:
                return b"".join(found)
            found.append(piece)


@given(st.binary(max_size=20), st.binary(max_size=20), SIZES)
def test_a_rewound_input_returns_the_sample_first(sample, rest, sizes):
    assert read_all(RewoundInput(sample, io.BytesIO(rest)), sizes) == sample + rest
    started = RewoundInput(sample, io.BytesIO(rest))
    first = started.read(sizes[0])
    assert first + started.read() == sample + rest
    assert started.read(1) == started.read() == b""


class Closing(list):
    """Pieces that record whether they were closed."""

    closed = False

    def close(self):
        self.closed = True


@given(st.lists(st.binary(max_size=9), max_size=6), SIZES)
def test_an_iterable_input_reads_like_a_file(pieces, sizes):
    body = Closing(pieces)
    source = IterableInput(body)
    assert read_all(source, sizes) == b"".join(pieces)
    source.close()
    assert body.closed
    started = IterableInput(pieces)
    assert started.read(2) + started.read() == b"".join(pieces)


@given(st.binary(max_size=30), SIZES)
def test_a_tracked_input_knows_when_it_is_complete(body, sizes):
    for expected in (len(body), None):
        watched = TrackedInput(io.BytesIO(body), expected)
        assert watched.complete is (expected == 0)
        assert read_all(watched, sizes) == body
        assert watched.complete
    longer = TrackedInput(io.BytesIO(body), len(body) + 1)
    read_all(longer, sizes)
    assert not longer.complete


def test_a_body_that_is_complete_need_not_be_read_to_its_empty_end():
    watched = TrackedInput(io.BytesIO(b"abcdef"), 6)
    watched.read(6)
    assert watched.complete
    assert watched.readline() == b""


class Holding(Stream):
    """Holds all bytes back until the end."""

    def __init__(self):
        self.held = b""
        self.finished = 0

    def feed(self, data):
        self.held += data
        return b""

    def finish(self):
        self.finished += 1
        return self.held


def passing(body, stream, length):
    env = Request.blank("/v1/a/c/o", method="PUT").environ | {"wsgi.input": io.BytesIO(body)}
    if length:
        env["CONTENT_LENGTH"] = str(len(body))
    else:
        env.pop("CONTENT_LENGTH", None)
    return ObservedInput(env, stream)


@given(st.binary(min_size=1, max_size=30), SIZES, st.booleans())
def test_a_stream_is_finished_before_its_last_bytes_pass(body, sizes, length):
    stream = Holding()
    assert read_all(passing(body, stream, length), sizes) == body
    assert stream.finished == 1


def test_with_a_known_length_the_end_comes_before_anybody_asks_for_more():
    stream = Holding()
    assert passing(b"abc", stream, True).read(10) == b"abc"
    assert stream.finished == 1


@pytest.mark.parametrize("point", ["feed", "finish"])
def test_a_failing_stream_is_a_503(point):
    class Failing(Stream):
        pass

    def fail(*_):
        raise FilterError("no luck today")

    stream = Failing()
    setattr(stream, point, fail)
    with pytest.raises(HTTPException) as caught:
        read_all(passing(b"abc", stream, True), [2])
    assert caught.value.status_int == 503
    assert b"no luck today" in caught.value.body
