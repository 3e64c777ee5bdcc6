"""Frames of metric batches."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice_core.errors import DecodeError
from sluice_core.metrics.usage_metrics import HEAD, decode_head, encode_frame


@given(st.text(min_size=1, max_size=200), st.binary(min_size=1, max_size=300))
def test_a_frame_is_read_back(metric, body):
    raw = encode_frame(metric, body)
    name, size = decode_head(raw[: HEAD.size])
    assert raw[HEAD.size :][:name].decode() == metric
    assert raw[HEAD.size + name :] == body
    assert len(body) == size


@pytest.mark.parametrize("head", [(0, 5), (5, 0), (1001, 5), (5, (256 << 20) + 1)])
def test_lengths_that_no_frame_has_are_refused(head):
    with pytest.raises(DecodeError, match=f"lengths {head[0]} and {head[1]}"):
        decode_head(HEAD.pack(*head))
