"""A filter in C and its equivalent in Python give the same bytes, and so do their chains."""

import contextlib
import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.block.nbd import RequestFailed, Server, connected, serve

from sluice_block.stack.page import Page
from sluice_block.uploaded import sandbox
from sluice_filters.api import Hint
from sluice_filters.chain import ChainEncoder, chain_decoder
from sluice_filters.registry import load_filters

pytestmark = pytest.mark.service

SIZE = 1 << 20
#: Distinguishes an unallocated place from one that was written with zeroes.
EMPTY = bytes(number % 251 for number in range(SIZE))
PYTHON = load_filters()
#: Filters in written order, with the parameters of nbdkit and of Python.
CHAINS = {
    "nop": (["nop"], [], []),
    "xor": (["xor"], [], [("xor", {"key": 0x55})]),
    "xor 1": (["xor"], ["xor-key=1"], [("xor", {"key": 1})]),
    "xor 255": (["xor"], ["xor-key=0xff"], [("xor", {"key": 255})]),
    "bitrev": (["bitrev"], [], [("bitrev", {})]),
    "xor bitrev": (["xor", "bitrev"], ["xor-key=0x0f"], [("xor", {"key": 0x0F}), ("bitrev", {})]),
    "bitrev xor": (["bitrev", "xor"], ["xor-key=0x0f"], [("bitrev", {}), ("xor", {"key": 0x0F})]),
    "all": (
        ["nop", "throttle", "xor", "nop", "bitrev"],
        ["xor-key=3", "throttle-page={page}", "nop-page={page}"],
        [("xor", {"key": 3}), ("bitrev", {})],
    ),
}


def run(stream, data):
    """All output of a stream for ``data``."""
    output = stream.feed(data)
    while stream.behind:
        output += stream.more()
    return output + stream.finish()


class Volume:
    """A file behind a chain of filters, a client of it, and the expected bytes of Python's chain on both sides."""

    def __init__(self, client, image, twins):
        self.client = client
        self.image = image
        self._twins = twins

    def _encoder(self):
        return ChainEncoder([PYTHON[name](params) for name, params in self._twins], Hint())

    def stored(self, data):
        """Return the bytes that the plugin stores for ``data``."""
        return run(self._encoder(), data)

    def shown(self, data):
        """Return the bytes that a client reads if ``data`` is stored."""
        encoder = self._encoder()
        run(encoder, bytes(len(data)))  # a record has the size of the object
        return run(chain_decoder(encoder.records(), PYTHON), data)

    def check(self, expected):
        """Check that the image has exactly ``expected``, and that the client reads the matching bytes."""
        assert self.image.read_bytes() == expected
        assert self.client.read(SIZE, 0) == self.shown(expected)


#: An uploaded filter, in its sandbox: adding 128 is the same as XOR with it.
UPLOADED = (["rot-by=128"], [("xor", {"key": 128})])


@contextlib.contextmanager
def serve_uploaded(folder, built, code, image):
    """The image behind an uploaded filter."""
    with serve(folder, built, [], "file", str(image), name="base") as base:
        shown = folder / "volume.sock"
        made = sandbox.start(
            code, UPLOADED[0], shown, base.socket, built, sandbox.Confinement(lasting=False), folder / "volume.log"
        )
        try:
            yield Server(base.process, shown)
        finally:
            made.process.end(patience=0)
            sandbox.how_it_ended(made.outer)


@pytest.fixture(scope="module", params=[*CHAINS, "uploaded"])
def volume(request, built, uploadable, tmp_path_factory):
    folder = tmp_path_factory.mktemp("volume")
    if request.param == "uploaded":
        image = folder / "image"
        image.write_bytes(EMPTY)
        with serve_uploaded(folder, built, uploadable("rot"), image) as server, connected(server) as client:
            yield Volume(client, image, UPLOADED[1])
        return
    Page.create(folder / "page").close()
    filters, parameters, twins = CHAINS[request.param]
    image = folder / "image"
    image.write_bytes(EMPTY)
    given_ = [text.format(page=folder / "page") for text in parameters]
    with serve(folder, built, filters, "file", str(image), *given_) as server, connected(server) as client:
        yield Volume(client, image, twins)


@pytest.fixture
def fresh(volume):
    volume.image.write_bytes(EMPTY)
    return volume


def test_what_was_stored_before_is_read_reversed(fresh):
    fresh.check(EMPTY)


def test_all_byte_values_are_stored_as_in_python(fresh):
    data = bytes(range(256))
    fresh.client.write(data, 1000)
    fresh.check(EMPTY[:1000] + fresh.stored(data) + EMPTY[1256:])


places = st.tuples(st.integers(0, SIZE - 1), st.one_of(st.integers(1, 70), st.integers(1, SIZE)), st.integers(0, 2**32))


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(places, min_size=1, max_size=5))
def test_writes_at_any_place_are_stored_there_and_nowhere_else(fresh, writes):
    expected = bytearray(fresh.image.read_bytes())
    for offset, length, seed in writes:
        data = random.Random(seed).randbytes(min(length, SIZE - offset))
        fresh.client.write(data, offset)
        expected[offset : offset + len(data)] = fresh.stored(data)
        assert fresh.client.read(len(data), offset) == data
    fresh.check(bytes(expected))


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(places)
def test_reads_of_any_place_are_those_of_the_whole(fresh, place):
    offset, length, _ = place
    length = min(length, SIZE - offset)
    assert fresh.client.read(length, offset) == fresh.shown(fresh.image.read_bytes())[offset : offset + length]


def test_a_write_that_must_be_on_the_disk_is_stored_in_the_same_way(fresh):
    fresh.client.ask("fua", b"durable".hex(), 77)
    fresh.client.ask("flush")
    fresh.check(EMPTY[:77] + fresh.stored(b"durable") + EMPTY[84:])


@pytest.mark.parametrize("operation", ["zero", "trim"])
def test_what_was_zeroed_or_trimmed_reads_as_zeroes_or_is_not_offered(fresh, operation):
    if fresh.client.ask("can", operation):
        fresh.client.ask(operation, 65536, 131072)
        fresh.check(EMPTY[:131072] + fresh.stored(bytes(65536)) + EMPTY[196608:])
        assert fresh.stored(b"\0") == b"\0"
    else:
        assert fresh.stored(b"\0") != b"\0"
        with pytest.raises(RequestFailed):
            fresh.client.ask(operation, 65536, 131072)
        fresh.check(EMPTY)


def test_what_is_told_to_be_a_hole_reads_as_zeroes(fresh):
    with open(fresh.image, "r+b") as image:
        image.truncate(0)
        image.truncate(SIZE)
    lengths_and_flags = fresh.client.ask("extents", SIZE, 0)
    read = fresh.client.read(SIZE, 0)
    holes = [flags for flags in lengths_and_flags[1::2] if flags]
    assert bool(holes) == (read == bytes(SIZE))
    fresh.image.write_bytes(EMPTY)


def test_the_order_of_a_chain_is_the_written_one():
    both = [PYTHON["xor"]({"key": 0x0F}), PYTHON["bitrev"]({})]
    forward, backward = ChainEncoder(both, Hint()), ChainEncoder(both[::-1], Hint())
    # else the chains "xor bitrev" and "bitrev xor" above would be equal
    assert forward.feed(b"\1") + forward.finish() != backward.feed(b"\1") + backward.finish()
