"""The small filters: their exact output, and the errors that they detect."""

from __future__ import annotations

import hashlib
import random
import zlib

import pytest

from sluice_filters.api import BadParameter, CorruptData, FilterError, Hint, Window
from sluice_filters.basic.bitrev import BitReverse
from sluice_filters.basic.xor import Xor
from sluice_filters.encryption.checksum import Checksum
from sluice_filters.testing import cut, encode, read_range, run

KIB = 1024
NOISE = random.Random(4).randbytes(200 * KIB)


def only(coded):
    stored, (record,) = coded
    return stored, record["r"]


@pytest.mark.parametrize(
    ("filter", "plain", "stored", "record"),
    [
        (Xor(), b"\x00\x5a\xff", b"\x5a\x00\xa5", {"size": 3, "key": 0x5A}),
        (Xor({"key": 255}), b"\x00\x0f", b"\xff\xf0", {"size": 2, "key": 255}),
        (BitReverse(), b"\x01\x80\x0f\xff", b"\x80\x01\xf0\xff", {"size": 4}),
    ],
)
def test_bytes_are_mapped_one_by_one(filter, plain, stored, record):  # noqa: A002  the word of the house
    assert only(encode([filter], plain)) == (stored, record)


@pytest.mark.parametrize("filter_class", [Xor, BitReverse, Checksum])
def test_an_empty_object_stays_empty_and_plain(filter_class):
    assert encode([filter_class()], b"") == (b"", ())


@pytest.mark.parametrize("key", [0, 256, "x"])
def test_a_key_that_is_no_byte_or_changes_nothing_is_refused(key):
    with pytest.raises(BadParameter, match="`key`"):
        Xor({"key": key})


def test_the_record_alone_tells_how_to_undo():
    stored, record = only(encode([Xor({"key": 7})], NOISE))
    assert run(Xor({"key": 9}).decoder(record), [stored]) == NOISE
    for bad in (0, 256, True, "7", None):
        with pytest.raises(CorruptData, match="xor record: `key`"):
            Xor().decoder({**record, "key": bad})


def test_a_range_of_mapped_bytes_lies_where_it_was():
    assert Xor().locate({"size": 9, "key": 1}, 3, 5) == Window(3, 5, 0, 2)


@pytest.mark.parametrize(("change", "words"), [(b"x", "`1` bytes too long"), (b"", "`1` bytes too short")])
def test_a_mapped_object_of_another_length_is_noticed(change, words):
    decoder = BitReverse().decoder({"size": 4})
    with pytest.raises(CorruptData, match=words):
        run(decoder, [b"abc", change + change] if change else [b"abc"])


# checksum


def digests(name, data, segment=64 * KIB):
    """The digest behind each segment, computed from the description."""
    parts = list(cut(data, segment))
    for number, part in enumerate(parts):
        said = number.to_bytes(8, "little") + bytes([number == len(parts) - 1]) + part
        yield part, zlib.crc32(said).to_bytes(4, "little") if name == "crc32" else hashlib.sha256(said).digest()


@pytest.mark.parametrize("name", ["crc32", "sha256"])
@pytest.mark.parametrize("size", [1, 64 * KIB - 1, 64 * KIB, 64 * KIB + 1, 200 * KIB])
def test_a_digest_stands_behind_each_segment(name, size):
    data = NOISE[:size]
    stored, record = only(encode([Checksum({"digest": name})], data))
    assert stored == b"".join(part + digest for part, digest in digests(name, data))
    assert record == {"v": 1, "digest": name, "size": size, "seg": 64 * KIB}


def test_a_range_is_verified_by_its_own_segments():
    stored, records = encode([Checksum()], NOISE)
    known = {"checksum": Checksum}
    bad = bytearray(stored)
    bad[70 * KIB] ^= 1
    assert read_range(bytes(bad), records, known, 0, 64 * KIB) == NOISE[: 64 * KIB]
    with pytest.raises(CorruptData, match="segment 1 with another crc32"):
        read_range(bytes(bad), records, known, 64 * KIB, 64 * KIB + 1)


@pytest.mark.parametrize("change", [{"digest": "md5"}, {"digest": 5}, {"v": 2}])
def test_a_digest_that_is_unknown_here_is_no_damage(change):
    _, record = only(encode([Checksum()], b"abc"))
    with pytest.raises(FilterError, match="unknown here") as error:
        Checksum().decoder({**record, **change})
    assert not isinstance(error.value, CorruptData)


@pytest.mark.parametrize("change", [{"size": 0}, {"seg": 1}, {"seg": 1 << 30}, {"v": 0}, {"size": "3"}])
def test_a_record_of_nonsense_is_corrupt(change):
    _, record = only(encode([Checksum()], b"abc"))
    with pytest.raises(CorruptData, match="checksum record"):
        Checksum().decoder({**record, **change})


def test_a_shorter_claim_is_noticed():
    """The last segment is sealed as the last."""
    stored, record = only(encode([Checksum()], NOISE[: 128 * KIB]))
    with pytest.raises(CorruptData, match="segment 0"):
        run(Checksum().decoder({**record, "size": 64 * KIB}), [stored[: 64 * KIB + 4]])


def test_nothing_of_a_known_length_of_zero_needs_a_checksum():
    assert not Checksum().applies(Hint(0))
    assert Checksum().applies(Hint())
