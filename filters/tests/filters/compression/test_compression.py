"""When compression stores plain bytes, the layout of frames, and the damage that it detects."""

from __future__ import annotations

import random
import struct
import tracemalloc
import zlib

import lz4.block
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from sluice_filters.api import BadParameter, CorruptData, FilterError, Hint, Window
from sluice_filters.compression import layout
from sluice_filters.compression.compression import COMPRESSED_TYPES, Compression
from sluice_filters.compression.engines import ENGINES
from sluice_filters.compression.frames import ENOUGH, LARGEST_PIECE, PROBE
from sluice_filters.compression.layout import HEADER_SIZE, choose_frame_size, pack_lengths, read_record, unpack_lengths
from sluice_filters.testing import cut, outcome, run

KIB = 1024
MIB = KIB * KIB
TEXT = b"".join(b"line %07d of a text that shrinks well\n" % number for number in range(30_000))
NOISE = random.Random(5).randbytes(300 * KIB)


def stored(data, hint=None, step=64 * KIB, **params):
    """Stored bytes and record."""
    encoder = Compression(params).encoder(hint or Hint(len(data)))
    out = run(encoder, cut(data, step))
    return out, encoder.record()


def plain(data, record):
    return run(Compression().decoder(record), cut(data, 64 * KIB))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("size", [4096, 256 * KIB - 1, 256 * KIB, 256 * KIB + 1, MIB])
def test_text_is_stored_smaller_and_comes_back(engine, size):
    data = TEXT[:size]
    out, record = stored(data, engine=engine)
    assert len(out) < size * 0.5
    assert record["size"] == size
    assert record["stored"] == len(out)
    assert record["engine"] == engine
    assert plain(out, record) == data


#: Every level of each engine; of LZ4's many fast ones, those around its library's limit.
LEVELS = {
    "gzip": range(10),
    "lz4": (-65536, -65535, -100, -9, -2, *range(-1, 13)),
    "zstd": range(-7, 20),
}
#: Levels that differ clearly, from fast to small.
EFFORTS = {"gzip": (1, 4, 9), "lz4": (-8, 0, 9), "zstd": (-7, 1, 9, 19)}
#: Independent libraries: payload and plain length → plain bytes.
OTHER_READERS = {
    "gzip": lambda payload, length: zlib.decompressobj(-15).decompress(payload),
    "lz4": lambda payload, length: lz4.block.decompress(payload, uncompressed_size=length),
    "zstd": lambda payload, length: zstandard.ZstdDecompressor().decompress(payload, allow_extra_data=True),
}


def test_every_level_is_tried():
    for name, engine in ENGINES.items():
        assert (min(LEVELS[name]), max(LEVELS[name])) == (engine.lowest, engine.highest)
        assert engine.default in LEVELS[name]


@pytest.mark.parametrize(("engine", "level"), [(engine, level) for engine in LEVELS for level in LEVELS[engine]])
@pytest.mark.parametrize("data", [TEXT[: 20 * KIB], b"\0" * 20 * KIB, TEXT[: 8 * KIB] + NOISE[: 12 * KIB]])
def test_what_any_level_has_written_is_read_without_knowing_the_level(engine, level, data):
    out, record = stored(data, engine=engine, level=level, frame_size=8 * KIB, min_gain=0)
    if record is None:  # LZ4's fastest levels find no match
        assert (engine, out) == ("lz4", data)
        return
    assert set(record) == {"v", "engine", "size", "stored", "frame", "index"}
    assert plain(out, record) == data
    found = b""
    for piece in frames(out, record):
        _, length, held, _ = struct.unpack_from("<IIII", piece)
        payload = piece[HEADER_SIZE:]
        found += payload if held >> 31 else OTHER_READERS[engine](payload, length)
    assert found == data


@pytest.mark.parametrize("engine", ENGINES)
def test_more_effort_makes_a_text_smaller(engine):
    sizes = [len(stored(TEXT[: 256 * KIB], engine=engine, level=level)[0]) for level in EFFORTS[engine]]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < sizes[0]


@pytest.mark.parametrize(
    ("data", "hint", "params"),
    [
        (b"", None, {}),
        (b"", Hint(), {"min_size": 0}),
        (TEXT[:4095], None, {}),
        (TEXT[:4095], Hint(), {}),
        (TEXT, None, {"min_size": 2 * MIB}),
        (TEXT, Hint(), {"min_size": 2 * MIB}),
        (NOISE, None, {}),
        (NOISE, Hint(), {}),
        (NOISE + TEXT, None, {}),
        (TEXT[: 64 * KIB], None, {"min_gain": 0.99}),
        (TEXT, Hint(len(TEXT), None, "photos/cat.JPG"), {}),
        (TEXT, Hint(len(TEXT), "video/mp4", "cat"), {}),
        (TEXT, Hint(len(TEXT), "application/zip; a=b", "cat"), {}),
        (TEXT, Hint(len(TEXT), "text/plain", "a.txt"), {"types": "pdf, image/*"}),
        (TEXT, Hint(len(TEXT), None, "unknown"), {"types": "text/plain"}),
    ],
)
def test_incompressible_objects_are_stored_plain_without_a_record(data, hint, params):
    out, record = stored(data, hint, **params)
    assert out == data
    assert record is None


@pytest.mark.parametrize(
    ("hint", "params"),
    [
        (Hint(len(TEXT), None, "unknown"), {}),
        (Hint(len(TEXT), "text/plain", "a.txt"), {}),
        (Hint(len(TEXT), "application/pdf", "a.pdf"), {}),
        (Hint(len(TEXT), None, "a.LOG"), {"types": "log"}),
        (Hint(len(TEXT), "text/csv", "a"), {"types": "pdf, text/*"}),
        (Hint(len(TEXT), None, "a.zip"), {"types": "zip"}),
        (Hint(), {}),
    ],
)
def test_other_types_are_compressed(hint, params):
    out, record = stored(TEXT, hint, **params)
    assert len(out) < len(TEXT) / 2
    assert plain(out, record) == TEXT


def test_the_list_of_compressed_types_has_no_doubles():
    assert len(set(COMPRESSED_TYPES)) == len(COMPRESSED_TYPES)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"engine": "brotli"}, "`engine` is `brotli`, expected one of gzip, lz4, zstd"),
        ({"engine": "gzip", "level": 10}, "`level` is `10`, expected 0 to 9"),
        ({"engine": "lz4", "level": 13}, "`level` is `13`, expected -65536 to 12"),
        ({"level": -8}, "`level` is `-8`, expected -7 to 19"),
        ({"engine": "brotli", "level": 99}, "`engine` is `brotli`, expected one of gzip, lz4, zstd$"),
        ({"level": "fast"}, "`level` is `'fast'`, expected a int"),
        ({"min_gain": 1.5}, "`min_gain` is `1.5`, expected 0.0 to 0.99"),
        ({"frame_size": 12}, "`frame_size` is `12`"),
        ({"speed": 1}, "filter `compression` has no parameter `speed`"),
    ],
)
def test_bad_parameters_are_refused_in_words(params, words):
    with pytest.raises(BadParameter, match=words.replace("(", r"\(")):
        Compression(params)


def watched(data, hint, step, **params):
    """Output and record, and the number of bytes after which the encoder was transparent."""
    encoder = Compression(params).encoder(hint)
    out, known = b"", None
    for place in range(0, len(data), step):
        out += encoder.feed(data[place : place + step])
        if encoder.transparent and known is None:
            known = min(place + step, len(data))
            assert out == data[:known]
    return out + encoder.finish(), encoder.record(), known


@pytest.mark.parametrize("hint", [Hint(len(NOISE) * 4), Hint(), Hint(1 << 30)])
@pytest.mark.parametrize(
    ("step", "known"), [(64 * KIB, PROBE), (PROBE, PROBE), (PROBE - 1, 2 * PROBE - 2), (7000, 266_000)]
)
@pytest.mark.parametrize("params", [{}, {"frame_size": 8 * MIB}, {"min_size": MIB}])
def test_what_does_not_shrink_is_known_after_256_kib_however_large_the_frames_are(hint, step, known, params):
    data = NOISE * 4
    assert watched(data, hint, step, **params) == (data, None, known)


@pytest.mark.parametrize("size", [PROBE - 1, PROBE, PROBE + 1, 512 * KIB - 1, 512 * KIB, 512 * KIB + 1])
@pytest.mark.parametrize("beginning", [NOISE[:PROBE], TEXT[:PROBE]])
@pytest.mark.parametrize("frame", [128 * KIB, PROBE, 512 * KIB])
def test_the_beginning_alone_decides_however_the_object_comes(size, beginning, frame):
    data = (beginning + (TEXT if beginning[:1] == NOISE[:1] else NOISE * 2))[:size]
    found = {stored(data, Hint(), step, frame_size=frame)[0] for step in (50_000, PROBE, PROBE + 1, MIB)}
    (out,) = found
    assert (out == data) is (beginning[:1] == NOISE[:1])
    again, record = stored(data, Hint(), frame_size=frame)
    assert again == out
    assert (plain(out, record) if record else out) == data


def test_text_whose_first_large_frame_is_mostly_noise_is_stored_raw_in_frames():
    data = TEXT[:PROBE] + NOISE[:PROBE] * 3
    out, record = stored(data, Hint(), frame_size=MIB)
    assert record["size"] == MIB
    assert plain(out, record) == data


def test_a_small_object_that_does_not_shrink_is_passed_on_at_its_end():
    data = NOISE[: 100 * KIB]
    assert watched(data, Hint(), 64 * KIB) == (data, None, None)


def test_noise_in_a_text_is_stored_raw_at_almost_no_cost():
    data = TEXT[: 256 * KIB] + NOISE[: 256 * KIB] + TEXT[: 256 * KIB]
    out, record = stored(data)
    lengths = read_record(record).lengths
    assert lengths[1] == 256 * KIB + HEADER_SIZE
    assert max(lengths[0], lengths[2]) < 128 * KIB
    assert plain(out, record) == data


@pytest.mark.parametrize(
    ("size", "frame"),
    [
        (None, 512 * KIB),
        (1, 256 * KIB),
        (64 * MIB, 256 * KIB),
        (64 * MIB + 1, 512 * KIB),
        (100_000_000, 512 * KIB),
        (512 * MIB, 2 * MIB),
        (2 << 30, 8 * MIB),
        (1 << 40, 8 * MIB),
    ],
)
def test_frames_grow_with_the_object(size, frame):
    assert choose_frame_size(size) == frame


@given(size=st.integers(1, 2 << 30))
def test_the_index_of_an_object_up_to_2_gib_is_inline_even_if_nothing_shrinks(size):
    frame = choose_frame_size(size)
    lengths = [frame + HEADER_SIZE] * -(-size // frame)
    record, tail = layout.write_record("zstd", size, frame, lengths)
    assert not tail
    assert len(record["index"]) <= layout.INLINE_INDEX


@given(lengths=st.lists(st.integers(0, (1 << 28) - 1)))
def test_lengths_survive_packing(lengths):
    assert list(unpack_lengths(pack_lengths(lengths))) == lengths


@given(data=st.binary(max_size=200))
def test_arbitrary_bytes_are_an_index_or_refused(data):
    try:
        lengths = unpack_lengths(data)
    except CorruptData:
        return
    assert len(lengths) <= len(data)


def test_a_big_index_goes_to_the_tail_with_a_checksum():
    data = TEXT[: 700 * KIB]
    out, record = stored(data, frame_size=1024)
    assert "index" not in record
    assert plain(out, record) == data
    for place in [*range(record["tail"], record["stored"], 97), record["stored"] - 1]:
        bad = out[:place] + bytes((out[place] ^ 4,)) + out[place + 1 :]
        assert outcome(Compression().decoder(record), bad) is None


def frames(out, record):
    """The stored frames, one by one."""
    begin = 0
    pieces = []
    for length in read_record(record).lengths:
        pieces.append(out[begin : begin + length])
        begin += length
    return pieces


@pytest.mark.parametrize(
    "harm",
    [
        lambda frames: [frames[1], frames[0], *frames[2:]],
        lambda frames: frames[1:],
        lambda frames: frames[:-1],
        lambda frames: [frames[0], frames[0], *frames[1:]],
        lambda frames: [*frames, frames[-1]],
        lambda frames: [frames[0], frames[2], frames[2], *frames[3:]],
    ],
)
@pytest.mark.parametrize("same_length", [False, True])
def test_swapped_dropped_and_doubled_frames_are_noticed(harm, same_length):
    data = (TEXT[:1024] * 5) if same_length else TEXT[:5000]
    out, record = stored(data, frame_size=1024)
    assert outcome(Compression().decoder(record), b"".join(harm(frames(out, record)))) is None


def test_damage_is_noticed_before_any_byte_of_that_frame_is_passed_on():
    out, record = stored(TEXT[:4096], frame_size=1024, min_size=0)
    first, second = frames(out, record)[:2]
    decoder = Compression().decoder(record)
    assert decoder.feed(first) == TEXT[:1024]
    with pytest.raises(CorruptData, match="frame 1"):
        decoder.feed(second[:-1] + bytes((second[-1] ^ 1,)))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"number": 1}, "frame `1`, expected 0"),
        ({"length": 0x8000_0000}, "frame 0 of `2147483648` bytes, expected 4096"),
        ({"length": 4095}, "frame 0 of `4095` bytes, expected 4096"),
        ({"held": 0x7FFF_FFFF}, "frame 0 stores `2147483647` bytes for 4096"),
        ({"held": 0xFFFF_FFFF}, "frame 0 stores `2147483647` bytes for 4096"),
        ({"held": 4096}, "frame 0 stores `4096` bytes for 4096"),
        ({"held": 15}, "frame 0 stores `15` bytes for 4096"),
        ({"held": 0x8000_0000 | 4095}, "frame 0 stores `4095` bytes for 4096"),
        ({"held": 4095}, "frame 0 is not as long as its index says"),
    ],
)
def test_a_header_is_refused_before_a_byte_is_held_for_it(change, words):
    out, record = stored(TEXT[:8192], frame_size=4096)
    number, length, held, crc = struct.unpack_from("<IIII", out)
    header = {"number": number, "length": length, "held": held, "crc": crc} | change
    with pytest.raises(CorruptData, match=words):
        Compression().decoder(record).feed(struct.pack("<IIII", *header.values()))


def test_a_frame_goes_out_as_soon_as_it_is_full():
    encoder = Compression({"min_size": MIB, "frame_size": 256 * KIB}).encoder(Hint())
    assert encoder.feed(TEXT[: MIB - 1]) == b""
    assert len(encoder.feed(TEXT[MIB - 1 : MIB])) > 4 * HEADER_SIZE
    assert encoder.feed(TEXT[: 256 * KIB - 1]) == b""
    assert len(encoder.feed(b"x")) > HEADER_SIZE


def tailed(monkeypatch):
    """An object whose index is at the tail."""
    monkeypatch.setattr(layout, "INLINE_INDEX", 0)
    return stored(TEXT[:8192], frame_size=1024)


def test_bytes_behind_the_end_are_noticed_at_once(monkeypatch):
    for out, record in (stored(TEXT), tailed(monkeypatch)):
        with pytest.raises(CorruptData, match="`3` bytes behind the last frame"):
            feed_all(Compression().decoder(record), out + b"abc")


def feed_all(decoder, data):
    """The pieces in which ``decoder`` returns the output for ``data``."""
    out = [decoder.feed(data)]
    while decoder.behind:
        out.append(decoder.more())
    return out


@pytest.mark.parametrize(("frame", "largest"), [(1 << 16, ENOUGH + (1 << 16)), (16 << 20, LARGEST_PIECE)])
def test_a_decoder_never_gives_more_than_some_mib_at_once(frame, largest):
    plain = TEXT * 12
    out, record = stored(plain, frame_size=frame)
    pieces = feed_all(Compression().decoder(record), out)
    assert b"".join(pieces) == plain
    assert max(map(len, pieces)) <= largest


def test_a_missing_end_is_named(monkeypatch):
    out, record = tailed(monkeypatch)
    for length, words in ((0, "inside of frame 0"), (record["tail"] - 1, "inside of frame 7"), (-1, "of its index")):
        decoder = Compression().decoder(record)
        if length:
            decoder.feed(out[:length])
        with pytest.raises(CorruptData, match=words):
            decoder.finish()


def test_a_record_with_a_shifted_tail_is_noticed(monkeypatch):
    out, record = tailed(monkeypatch)
    shifted = {**record, "tail": record["tail"] - 1, "stored": record["stored"] - 1}
    with pytest.raises(CorruptData, match="not as long as the record says"):
        run(Compression().decoder(shifted), [out])


@pytest.mark.parametrize("engine", ENGINES)
def test_a_bomb_does_not_grow_beyond_its_frame(engine):
    """A payload of 64 MiB of zeros in a frame that declares 4 KiB."""
    _, record = stored(TEXT[:4096], engine=engine)
    bomb = ENGINES[engine].packer(1)(bytes(64 * MIB))[:4000]
    bad = struct.pack("<IIII", 0, 4096, len(bomb), 0) + bomb
    record = {**record, "stored": len(bad), "index": layout.base64.urlsafe_b64encode(pack_lengths([len(bad)])).decode()}
    tracemalloc.start()
    try:
        assert outcome(Compression().decoder(record), bad) is None
        assert tracemalloc.get_traced_memory()[1] < MIB
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("engine", ENGINES)
def test_an_object_full_of_zeros_does_not_swell_beyond_256_times_a_feed(engine):
    out, record = stored(bytes(4 * MIB), engine=engine)
    assert len(out) >= 4 * MIB / 256
    decoder = Compression().decoder(record)
    held = 0
    for piece in cut(out, 1024):
        got = len(decoder.feed(piece))
        assert got <= 256 * 1024 + record["frame"]
        held += got
    assert decoder.finish() == b""
    assert held == 4 * MIB


@pytest.mark.parametrize(
    "change",
    [
        {"v": 2},
        {"engine": "brotli"},
    ],
)
def test_a_record_of_the_future_cannot_be_undone_but_is_not_corrupt(change):
    _, record = stored(TEXT)
    with pytest.raises(FilterError, match="expected") as error:
        Compression().decoder({**record, **change})
    assert not isinstance(error.value, CorruptData)


@pytest.mark.parametrize(
    "change",
    [
        {"size": True},
        {"size": 0},
        {"frame": 64 * MIB},
        {"frame": 1},
        {"stored": 10},
        {"index": "****"},
        {"index": ""},
        {"tail": 100},
        {"size": 1 << 61},
    ],
)
def test_a_record_that_contradicts_itself_is_corrupt(change):
    _, record = stored(TEXT)
    with pytest.raises(CorruptData):
        Compression().decoder({**record, **change})


def test_a_record_without_index_and_tail_is_corrupt():
    _, record = stored(TEXT)
    with pytest.raises(CorruptData, match="neither"):
        Compression().decoder({name: value for name, value in record.items() if name != "index"})


@pytest.mark.parametrize("state", [[0, 0], [-1, 2], [0, 99], [3, 2], None, [1], ["a", "b"], [0.5, 2]])
def test_a_window_that_is_none_of_ours_is_corrupt(state):
    _, record = stored(TEXT)
    with pytest.raises(CorruptData, match="frames"):
        Compression().decoder(record, Window(0, 1, 0, 1, state))


def test_a_range_costs_the_frames_it_touches():
    out, record = stored(TEXT)
    where = Compression().locate(record, 300 * KIB, 301 * KIB)
    assert where.state == [1, 2]
    assert where.stop - where.start == read_record(record).lengths[1]
    got = run(Compression().decoder(record, where), [out[where.start : where.stop]])
    assert got[where.skip : where.skip + where.length] == TEXT[300 * KIB : 301 * KIB]


@pytest.mark.parametrize(("start", "stop"), [(0, len(TEXT) + 1), (5, 5), (-1, 1)])
def test_a_range_outside_is_refused(start, stop):
    _, record = stored(TEXT)
    with pytest.raises(FilterError, match="of "):
        Compression().locate(record, start, stop)
