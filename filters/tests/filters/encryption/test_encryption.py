"""Tests of encryption beyond the contract: keys, swaps, truncation, manipulated records, ranges."""

from __future__ import annotations

import base64
import random

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from hypothesis import given
from hypothesis import strategies as st

from sluice_filters.api import BadParameter, CorruptData, FilterError, Hint, HostServices, Window
from sluice_filters.chain import ChainEncoder, chain_decoder, locate
from sluice_filters.compression.compression import Compression
from sluice_filters.encryption.encryption import Encryption
from sluice_filters.encryption.sealing import TAG_SIZE, ObjectKeys
from sluice_filters.key_ring import MissingKey
from sluice_filters.testing import cut, encode, outcome, ranges, read_range, run
from sluice_filters.testing.fake_filters import FakeKeyRing

KIB = 1024
SEGMENT = 64
STORED = SEGMENT + TAG_SIZE
DATA = random.Random(11).randbytes(4 * SEGMENT + 7)


@pytest.fixture
def ring():
    return FakeKeyRing({"k1": b"1" * 32, "k2": b"2" * 32})


@pytest.fixture
def small(ring):
    """Encryption with segments of 64 bytes."""
    bound = Encryption.bound(HostServices(ring))
    bound.segment = SEGMENT
    return bound


def stored(small, data=DATA, **params):
    encoder = small(params).encoder(Hint(len(data)))
    out = run(encoder, cut(data, 50))
    return out, encoder.record()


def segments(out):
    return [out[begin : begin + STORED] for begin in range(0, len(out), STORED)]


def test_nothing_of_the_plain_bytes_is_stored(small):
    data = b"a secret of sixteen or more letters " * 20
    out, _ = stored(small, data)
    assert all(data[at : at + 4] not in out for at in range(40))


def test_each_segment_costs_its_tag_and_an_empty_object_stays_empty(small):
    for size in (1, 63, 64, 65, 128, 300):
        out, record = stored(small, DATA[:1] * size)
        assert len(out) == size + TAG_SIZE * -(-size // SEGMENT)
        assert (record["size"], record["seg"], record["key"]) == (size, SEGMENT, "k1")
    assert stored(small, b"") == (b"", None)


def test_the_stored_bytes_are_what_the_format_page_says(small):
    """A second implementation, written from the documentation of the format."""
    out, record = stored(small)
    material = HKDF(
        SHA256(), 71, base64.b64decode(record["salt"]), b"sluice encryption 1 AES-256-GCM HKDF-SHA256 STREAM"
    ).derive(b"1" * 32)
    cipher, plain = AESGCM(material[:32]), b""
    parts = segments(out)
    for number, part in enumerate(parts):
        last = number == len(parts) - 1
        plain += cipher.decrypt(material[64:] + number.to_bytes(4, "big") + bytes([last]), part, None)
    assert plain == DATA


def test_the_same_bytes_are_never_stored_the_same_way(small):
    """A salt for each encoder: each PUT, replica, fragment and rewrite."""
    one, other = stored(small), stored(small)
    assert one[1]["salt"] != other[1]["salt"]
    assert not set(segments(one[0])) & set(segments(other[0]))
    with pytest.raises(CorruptData, match="segment 0"):
        run(small().decoder(one[1]), [other[0]])


def swapped(parts):
    return [parts[1], parts[0], *parts[2:]]


def dropped(parts):
    return [parts[0], *parts[2:]]


def doubled(parts):
    return [parts[0], *parts]


def cut_at_a_boundary(parts):
    return parts[:-1]


def cut_and_shortened(parts):
    """The last full segment shortened to the length of the last one."""
    return [*parts[:-2], parts[-2][: len(parts[-1])]]


@pytest.mark.parametrize("harm", [swapped, dropped, doubled, cut_at_a_boundary, cut_and_shortened])
def test_segments_in_another_order_or_number_are_noticed(small, harm):
    out, record = stored(small)
    assert outcome(small().decoder(record), b"".join(harm(segments(out)))) is None


@pytest.mark.parametrize("harm", [swapped, dropped, doubled, cut_at_a_boundary])
def test_segments_in_another_order_or_number_are_noticed_whatever_size_is_claimed(small, harm):
    """Also for an attacker who could rewrite the record except its MAC: the segments are authenticated themselves."""
    out, record = stored(small, DATA[: 4 * SEGMENT])
    parts = harm(segments(out))
    keys = ObjectKeys(b"1" * 32, base64.b64decode(record["salt"]))
    size = len(parts) * SEGMENT
    forged = {**record, "size": size, "mac": base64.b64encode(keys.mac("k1", size, SEGMENT)).decode()}
    with pytest.raises(CorruptData, match="is not what was encrypted"):
        run(small().decoder(forged), [b"".join(parts)])


def test_a_segment_of_another_object_is_noticed(small):
    out, record = stored(small)
    parts = segments(out)
    parts[1] = segments(stored(small)[0])[1]
    with pytest.raises(CorruptData, match="segment 1 is not what was encrypted"):
        run(small().decoder(record), [b"".join(parts)])


def test_no_byte_of_a_damaged_segment_is_given(small):
    out, record = stored(small)
    bad = bytearray(out)
    bad[2 * STORED + 5] ^= 1
    decoder = small().decoder(record)
    assert decoder.feed(bytes(bad[: 2 * STORED])) == DATA[: 2 * SEGMENT]
    with pytest.raises(CorruptData, match="segment 2"):
        decoder.feed(bytes(bad[2 * STORED :]))


@pytest.mark.parametrize(
    "change",
    [
        {"size": len(DATA) - 7},
        {"size": len(DATA) + 1},
        {"size": 1},
        {"seg": 32},
        {"seg": 128},
        {"salt": base64.b64encode(b"s" * 32).decode()},
        {"mac": base64.b64encode(b"m" * 16).decode()},
    ],
)
def test_a_record_that_was_tampered_with_is_refused_before_a_byte_is_read(small, change):
    _, record = stored(small)
    bad = {**record, **change}
    for attempt in (lambda: small().decoder(bad), lambda: small().locate(bad, 0, 1)):
        with pytest.raises(CorruptData, match="not as it was written"):
            attempt()


@pytest.mark.parametrize("place", range(16))
def test_every_byte_of_a_records_mac_counts(small, place):
    _, record = stored(small)
    mac = bytearray(base64.b64decode(record["mac"]))
    mac[place] ^= 1
    with pytest.raises(CorruptData, match="not as it was written"):
        small().locate({**record, "mac": base64.b64encode(mac).decode()}, 0, 1)


@pytest.mark.parametrize(
    "change",
    [{"size": 0}, {"size": True}, {"size": 1 << 50}, {"seg": 8}, {"seg": 1 << 30}, {"key": "a b"}, {"salt": "***"},
     {"salt": "AAAA"}, {"mac": None}, {"v": 0}],
)  # fmt: skip
def test_a_record_that_makes_no_sense_is_corrupt(small, change):
    _, record = stored(small)
    with pytest.raises(CorruptData, match="encryption record"):
        small().decoder({**record, **change})


def test_a_record_of_the_future_cannot_be_undone_but_is_not_corrupt(small):
    _, record = stored(small)
    with pytest.raises(FilterError, match="expected at most 1") as error:
        small().decoder({**record, "v": 2})
    assert not isinstance(error.value, CorruptData)


# Keys


def test_new_objects_get_the_active_key_and_old_ones_keep_theirs(small, ring):
    old, record = stored(small)
    ring.use = "k2"
    new, other = stored(small)
    assert (record["key"], other["key"]) == ("k1", "k2")
    assert run(small().decoder(record), [old]) == run(small().decoder(other), [new]) == DATA


def test_a_policy_may_name_its_key(small):
    out, record = stored(small, key="k2")
    assert record["key"] == "k2"
    assert run(small().decoder(record), [out]) == DATA


@pytest.mark.parametrize("key", ["", "a b", "x" * 65, "a/b", "ä"])
def test_what_cannot_be_the_name_of_a_key_is_refused_with_the_policy(key):
    with pytest.raises(BadParameter, match="expected up to 64 letters"):
        Encryption({"key": key})


def test_without_its_key_an_object_is_not_read_and_that_is_no_damage(small, ring):
    _, record = stored(small)
    del ring.secrets["k1"]
    for attempt in (lambda: small().decoder(record), lambda: small().locate(record, 0, 1)):
        with pytest.raises(MissingKey, match="no key `k1`") as error:
            attempt()
        assert error.value.status == 503
        assert not isinstance(error.value, FilterError)


def test_another_key_of_the_same_name_is_no_damage_either(small, ring):
    """A damaged file is quarantined: a wrong key file must not cause that on a node."""
    _, record = stored(small)
    ring.secrets["k1"] = b"9" * 32
    with pytest.raises(MissingKey, match="key `k1` is not the one of this name"):
        small().decoder(record)


def test_nothing_is_stored_plain_for_want_of_a_key(small, ring):
    for params, use, words in (({"key": "k9"}, "k1", "no key `k9`"), ({}, "", "no active key"), ({}, "k9", "`k9`")):
        ring.use = use
        with pytest.raises(MissingKey, match=words):
            small(params).encoder(Hint(5))


def test_a_process_without_keys_says_so():
    with pytest.raises(MissingKey, match="no key manager is configured here"):
        Encryption().encoder(Hint(5))


def test_no_error_and_no_record_holds_a_secret(small, ring):
    ring.secrets["k1"] = secret = bytes(range(200, 232))
    _, record = stored(small)
    forms = {secret.hex(), base64.b64encode(secret).decode(), repr(secret)[2:-1]}
    texts = [str(record), repr(small()), repr(small().decoder(record))]
    for bad in ({**record, "size": 3}, {**record, "key": "gone"}):
        with pytest.raises((CorruptData, MissingKey)) as error:
            small().decoder(bad)
        texts.append(repr(error.value))
    assert not [text for text in texts if any(form in text for form in forms)]


# Ranges


@pytest.mark.parametrize(
    ("start", "stop", "wanted"),
    [
        (0, 1, (0, STORED)),
        (SEGMENT - 1, SEGMENT, (0, STORED)),
        (SEGMENT - 1, SEGMENT + 1, (0, 2 * STORED)),
        (SEGMENT, 2 * SEGMENT, (STORED, 2 * STORED)),
        (4 * SEGMENT, 4 * SEGMENT + 7, (4 * STORED, 4 * STORED + 7 + TAG_SIZE)),
        (0, len(DATA), (0, 4 * STORED + 7 + TAG_SIZE)),
    ],
)
def test_a_range_costs_the_segments_it_touches(small, start, stop, wanted):
    out, record = stored(small)
    where = small().locate(record, start, stop)
    assert (where.start, where.stop) == wanted
    plain = run(small().decoder(record, where), [out[where.start : where.stop]])
    assert plain[where.skip : where.skip + where.length] == DATA[start:stop]


@pytest.mark.parametrize(("start", "stop"), [(0, len(DATA) + 1), (5, 5), (-1, 1)])
def test_a_range_outside_is_refused(small, start, stop):
    _, record = stored(small)
    with pytest.raises(FilterError, match="of "):
        small().locate(record, start, stop)


@pytest.mark.parametrize("state", [[0, 0], [-1, 2], [0, 99], None, [1], ["a", "b"]])
def test_a_window_that_is_none_of_ours_is_corrupt(small, state):
    _, record = stored(small)
    with pytest.raises(CorruptData, match="window of segments"):
        small().decoder(record, Window(0, 1, 0, 1, state))


def test_a_window_must_hold_all_of_its_segments_and_nothing_else(small):
    out, record = stored(small)
    where = small().locate(record, 10, 100)
    for bad in (out[: where.stop - 1], out[: where.stop + 1], out[STORED : 3 * STORED]):
        assert outcome(small().decoder(record, where), bad) is None


# Behind compression


@pytest.fixture
def known(small):
    return {"compression": Compression, "encryption": small}


TEXT = b"".join(b"line %05d of a text that shrinks well\n" % number for number in range(300))


def test_compressed_objects_are_encrypted_and_any_range_of_them_is_read(small, known):
    press = Compression({"frame_size": 1024, "min_size": 0})
    out, records = encode([press, small()], TEXT)
    assert [one["f"] for one in records] == ["compression", "encryption"]
    assert len(out) < len(TEXT) / 2
    assert run(chain_decoder(records, known), cut(out, 33)) == TEXT
    for start, stop in list(ranges(len(TEXT)))[::29]:
        assert read_range(out, records, known, start, stop) == TEXT[start:stop]


def test_an_index_behind_encryption_is_fetched_decrypted(small, known, monkeypatch):
    monkeypatch.setattr("sluice_filters.compression.layout.INLINE_INDEX", 0)
    out, records = encode([Compression({"frame_size": 1024, "min_size": 0}), small()], TEXT)
    assert read_range(out, records, known, 5000, 5100) == TEXT[5000:5100]


def test_objects_that_compression_passes_on_are_encrypted(small, known):
    noise = random.Random(2).randbytes(5000)
    chain = ChainEncoder([Compression({"min_size": 0}), small()], Hint(len(noise)))
    out = run(chain, cut(noise, 700))
    assert [one["f"] for one in chain.records()] == ["encryption"]
    assert not chain.settled()
    assert run(chain_decoder(chain.records(), known), [out]) == noise


def test_a_missing_key_is_noticed_before_anything_is_fetched(small, known, ring):
    _, records = encode([Compression({"min_size": 0}), small()], TEXT)
    ring.secrets.clear()
    with pytest.raises(MissingKey):
        chain_decoder(records, known)
    with pytest.raises(MissingKey):
        next(locate(records, known, 0, 10))


@given(
    data=st.binary(max_size=400),
    steps=st.lists(st.integers(1, 150), min_size=1, max_size=6),
    segment=st.integers(16, 90),
)
def test_any_cut_of_any_bytes_comes_back(data, steps, segment):
    bound = Encryption.bound(HostServices(FakeKeyRing()))
    bound.segment = segment

    def pieces(whole):
        place = turn = 0
        while place < len(whole):
            yield whole[place : place + steps[turn % len(steps)]]
            place += steps[turn % len(steps)]
            turn += 1

    encoder = bound().encoder(Hint())
    out = run(encoder, pieces(data))
    if not data:
        assert (out, encoder.record()) == (b"", None)
        return
    assert run(bound().decoder(encoder.record()), pieces(out)) == data


def test_segments_of_the_default_size_are_64_kib():
    bound = Encryption.bound(HostServices(FakeKeyRing()))
    data = DATA * 700
    out, (record,) = encode([bound()], data)
    assert record["r"]["seg"] == 64 * KIB
    assert run(bound().decoder(record["r"]), cut(out, 100_000)) == data
