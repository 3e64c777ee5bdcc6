"""Metadata that is nested without end is damaged like any other, and no bug."""

import pytest

from sluice_core.errors import DecodeError
from sluice_middleware import disk_intent, disk_state, metadata

DEEP = "[" * 5000


@pytest.mark.parametrize("decode", [metadata.decode_chain, disk_state.Stored.decode, disk_intent.parse])
def test_what_is_nested_without_end_is_refused(decode):
    with pytest.raises(DecodeError):
        decode(DEEP)


def test_what_cannot_be_read_names_no_filter():
    assert metadata.keywords(DEEP, None) == ("",)
