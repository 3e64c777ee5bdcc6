import re
import tracemalloc
from dataclasses import replace
from pathlib import Path

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice_core.errors import DecodeError
from sluice_objects.api import LARGEST_STATE, StateTooLarge
from sluice_objects.state.codec import FORMAT, PREFIX_SIZE, assemble, check_size, decode, encode, stream_layout
from sluice_objects.state.records import DELETED, PLAIN, TYPED, ContentState, ObjectState, Session

texts = st.text(max_size=8)
numbers = st.integers(0, (1 << 63) - 1)
times = st.floats(0, 4e9)
mappings = st.dictionaries(texts, texts, max_size=3)
contents = st.builds(
    ContentState, st.binary(max_size=40), st.dictionaries(st.binary(max_size=8), st.binary(max_size=300)), mappings
)
sessions = st.builds(Session, numbers, st.none() | st.binary(max_size=9), numbers, times)
states = st.builds(
    ObjectState,
    kind=st.sampled_from((TYPED, PLAIN, DELETED)),
    content=contents,
    etag=texts,
    class_name=texts,
    code=texts,
    version=numbers,
    modified=times,
    clock=times,
    content_type=texts,
    metadata=mappings,
    expires=st.none() | times,
    snapshots=st.dictionaries(texts, contents, max_size=2),
    sessions=st.dictionaries(texts, sessions, max_size=2),
)
STATE = ObjectState(
    TYPED,
    ContentState(b"the stream", {b"k": b"v"}, {"a": "b"}),
    version=3,
    class_name="map",
    snapshots={"s": ContentState(b"old")},
    sessions={"c": Session(2, b"\xc0", 3, 5.0)},
)
#: A header that is right but for one field.
FIELDS = {
    "kind": "typed", "class": "map", "code": "", "version": 1, "etag": "", "modified": 1.0, "clock": 1.0, "type": "",
    "metadata": {}, "expires": None, "items": {b"k": b"v"}, "attributes": {}, "snapshots": {}, "sessions": {},
}  # fmt: skip
WRONG = {
    "kind": ("other", None, []),
    "class": (None, b"map"),
    "version": (-1, 1.0, True, None),
    "modified": (float("nan"), float("inf"), 1, None),
    "expires": (0, "x"),
    "metadata": ({"a": 1}, {"a": None}, [], None),
    "etag": (None, b""),
    "items": ({"k": b"v"}, {b"k": "v"}, [], None),
    "attributes": ({b"a": "b"}, None),
    "snapshots": ({"s": [b""]}, {"s": ["", {}, {}]}, {b"s": [b"", {}, {}]}, []),
    "sessions": ({"c": [1, b""]}, {"c": [1, "", 1, 1.0]}, {"c": [-1, None, 1, 1.0]}, None),
}


@given(states)
def test_a_decoded_state_is_the_encoded_one(state):
    assert decode(encode(state)) == state


@given(states)
def test_a_proxy_finds_the_stream_by_the_prefix(state):
    raw = encode(state)
    layout = stream_layout(raw[:PREFIX_SIZE])
    assert layout.offset + layout.size == len(raw)
    assert raw[layout.offset :] == state.content.stream


def test_any_damaged_byte_and_any_other_length_is_found():
    raw = encode(STATE)
    for at in range(len(raw)):
        for mask in (0x01, 0x80, 0xFF):
            with pytest.raises(DecodeError):
                decode(raw[:at] + bytes((raw[at] ^ mask,)) + raw[at + 1 :])
        with pytest.raises(DecodeError):
            decode(raw[:at])
    with pytest.raises(DecodeError):
        decode(raw + b"\0")


def test_another_format_is_named():
    raw = bytearray(encode(STATE))
    raw[4] = FORMAT + 1
    with pytest.raises(DecodeError, match=f"format `{FORMAT + 1}`, expected {FORMAT}"):
        stream_layout(bytes(raw))


MUCH = 1 << 20
PARTS = {
    "stream": {},
    "items": {"content": ContentState(items={b"%06d" % number: b"value" for number in range(60_000)})},
    "attributes": {"content": ContentState(attributes={"name": "é" * MUCH})},
    "metadata": {"metadata": {"x-object-meta-a": "é" * MUCH}},
    "snapshots": {"snapshots": {f"s{number}": ContentState(bytes(MUCH)) for number in range(3)}},
    "small snapshots": {"snapshots": {str(number): ContentState() for number in range(60_000)}},
    "sessions": {"sessions": {f"s{number}": Session(1, bytes(4096), 1, 1.0) for number in range(1000)}},
}


@pytest.mark.parametrize("parts", PARTS.values(), ids=PARTS)
def test_the_size_of_a_state_is_checked_to_the_byte(parts):
    state = ObjectState(TYPED, **{"content": ContentState(), **parts})
    free = LARGEST_STATE - len(encode(state))
    largest = replace(state, content=replace(state.content, stream=bytes(free)))
    assert len(encode(largest)) == LARGEST_STATE
    check_size(largest)
    with pytest.raises(StateTooLarge):
        check_size(replace(state, content=replace(state.content, stream=bytes(free + 1))))


def test_the_page_of_the_format_names_each_field_of_the_header():
    page = (Path(__file__).parents[4] / "docs/reference/format-object-state.md").read_text()
    raw = encode(STATE)
    header = msgpack.unpackb(raw[PREFIX_SIZE : stream_layout(raw).offset])
    assert re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE) == list(header)


def test_a_right_header_is_taken():
    assert decode(assemble(msgpack.packb(FIELDS), b"s")).content == ContentState(b"s", {b"k": b"v"})


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_a_field_of_another_form_is_refused(name, value):
    with pytest.raises(DecodeError):
        decode(assemble(msgpack.packb({**FIELDS, name: value}), b""))


@pytest.mark.parametrize("name", FIELDS)
def test_a_missing_field_is_refused(name):
    with pytest.raises(DecodeError):
        decode(assemble(msgpack.packb({key: value for key, value in FIELDS.items() if key != name}), b""))


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_a_header_of_any_bytes_is_taken_or_refused(header):
    with pytest.raises(DecodeError):
        decode(assemble(header, b""))


def test_a_header_that_claims_millions_of_members_is_refused_before_they_are_allocated():
    header = b"\xdd\x00\x0f\xff\xff" * 200 + bytes(1 << 20)
    raw = assemble(header, b"")
    tracemalloc.start()
    try:
        with pytest.raises(DecodeError):
            decode(raw)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 << 20


def test_the_largest_state_is_encoded_and_a_byte_more_is_refused():
    rest = len(encode(ObjectState(TYPED, ContentState(b""))))
    stream = bytes(LARGEST_STATE - rest)
    raw = encode(ObjectState(TYPED, ContentState(stream)))
    assert len(raw) == LARGEST_STATE
    assert decode(raw).content.stream == stream
    with pytest.raises(StateTooLarge) as refused:
        encode(ObjectState(TYPED, ContentState(stream + b"x")))
    assert refused.value.status == 413
    with pytest.raises(DecodeError):
        decode(raw + b"x")
