"""Frames between worker and host: complete for every split, and invalid bytes are reported."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice_sandbox.process import wire

WORDS = st.dictionaries(st.text(max_size=5), st.integers(), max_size=3)


def taken_apart(pieces):
    frames = wire.FrameParser()
    data, words = b"", []
    for piece in pieces:
        for kind, content in frames.feed(piece):
            if kind == wire.DATA:
                data += content
            else:
                words.append((kind, json.loads(content)))
    return data, words


@given(
    parts=st.lists(st.binary(max_size=300), max_size=5),
    kind=st.sampled_from([wire.END, wire.FAULT]),
    content=WORDS,
    step=st.integers(1, 64),
)
def test_frames_are_whole_however_they_are_cut(parts, kind, content, step):
    sent = b"".join(wire.frame_header(wire.DATA, len(part)) + part for part in parts) + wire.encode_message(
        kind, content
    )
    pieces = [sent[begin : begin + step] for begin in range(0, len(sent), step)]
    assert taken_apart(pieces) == (b"".join(parts), [(kind, content)])


@pytest.mark.parametrize(
    "nonsense",
    [
        b"\0\0\0\0\0",
        b"\xff" * 5,
        wire.frame_header(wire.END, wire.MAX_WORD + 1),
        wire.frame_header(wire.FAULT, 1 << 31),
    ],
)
def test_a_malformed_frame_is_refused_before_it_is_buffered(nonsense):
    with pytest.raises(wire.MalformedFrame, match="frame of kind"):
        taken_apart([nonsense])


def test_a_head_is_its_length_and_json():
    encode_head = wire.encode_head([{"code": "c", "main": "M", "params": {"a": 1}, "direction": "do"}])
    (size,) = wire.HEAD.unpack_from(encode_head)
    assert json.loads(encode_head[wire.HEAD.size :])["steps"][0]["params"] == {"a": 1}
    assert size == len(encode_head) - wire.HEAD.size
