import math

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice_core.errors import DecodeError
from sluice_objects.values import DEEPEST, pack, unpack

numbers = st.integers(-(1 << 63), (1 << 64) - 1) | st.floats(allow_nan=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | st.text(max_size=5) | st.binary(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def nested(depth):
    value = 1
    for _ in range(depth):
        value = [value]
    return value


@given(values)
def test_a_value_is_unpacked_as_it_was(value):
    assert unpack(pack(value)) == value


def test_nan_is_a_value():
    assert math.isnan(unpack(pack(math.nan)))


@pytest.mark.parametrize("value", [(1,), {1: 2}, {b"a": 1}, {1}, object(), 1 << 64, "\ud800", [[{"a": (1,)}]]])
def test_what_is_no_value_is_not_packed(value):
    with pytest.raises(ValueError):
        pack(value)


def test_the_depth_is_bounded_both_ways():
    assert unpack(pack(nested(DEEPEST))) == nested(DEEPEST)
    with pytest.raises(ValueError, match="nested"):
        pack(nested(DEEPEST + 1))
    with pytest.raises(DecodeError, match="nested"):
        unpack(msgpack.packb(nested(DEEPEST + 1)))


#: A timestamp, an extension, a key that is bytes, a key that is a number, two values, half a value, nothing, no UTF-8.
@pytest.mark.parametrize("raw", [
    b"\xd6\xff\x00\x00\x00\x01", b"\xd4\x05\x00", b"\x81\xc4\x01a\x01", b"\x81\x01\x01", b"\x01\x01", b"\x92\x01", b"",
    b"\xa1\xff", b"\xc1", b"\x91" * 5000,
])  # fmt: skip
def test_what_is_no_value_is_not_unpacked(raw):
    with pytest.raises(DecodeError):
        unpack(raw)
