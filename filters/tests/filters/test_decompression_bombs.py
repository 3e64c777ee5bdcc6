"""Objects that are compressed several times: a decoder bounds the output of each call."""

import pytest

from sluice_filters.api import Hint
from sluice_filters.chain import ChainEncoder, chain_decoder, locate
from sluice_filters.compression.compression import Compression
from sluice_filters.testing import run

FILTERS = {"compression": Compression}
SIZE = 96 << 20
#: Greatest output of a decoder at once.
MOST = 5 << 20


@pytest.fixture(scope="module")
def bomb():
    """Three times compressed zeros, as stored bytes and records."""
    step = Compression({"min_size": 0, "min_gain": 0.0})
    encoder = ChainEncoder([step, step, step], Hint())
    stored = b"".join(encoder.feed(bytes(1 << 20)) for _ in range(SIZE >> 20)) + encoder.finish()
    assert len(stored) < 64 << 10
    assert len(encoder.records()) == 3
    return stored, encoder.records()


def in_order(stream, data):
    out = [stream.feed(data)]
    while stream.behind:
        out.append(stream.more())
    return [*out, stream.finish()]


def test_a_host_that_reads_more_gets_bounded_pieces(bomb):
    stored, records = bomb
    sizes = [len(piece) for piece in in_order(chain_decoder(records, FILTERS), stored)]
    assert sum(sizes) == SIZE
    assert max(sizes) <= MOST
    assert sizes[-1] == 0


def test_a_host_that_never_reads_more_gets_all_bytes(bomb):
    stored, records = bomb
    decoder = chain_decoder(records, FILTERS)
    assert sum(len(decoder.feed(stored[place : place + 7])) for place in range(0, len(stored), 7)) < SIZE
    assert len(decoder.finish()) > 0
    assert not run(chain_decoder(records, FILTERS), [stored]).strip(b"\0")


def test_a_range_of_a_bomb_is_bounded(bomb):
    stored, records = bomb
    search = locate(records, FILTERS, 5, SIZE - 5)
    try:
        wanted = next(search)
        while True:
            wanted = search.send(stored[slice(*wanted)])
    except StopIteration as found:
        where = found.value
    sizes = [len(piece) for piece in in_order(where.stream, stored[where.start : where.stop])]
    assert sum(sizes) == SIZE - 10
    assert max(sizes) <= MOST
