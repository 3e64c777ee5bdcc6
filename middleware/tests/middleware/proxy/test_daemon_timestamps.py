"""The time of an object in responses to Swift's daemons is not before that of its container row."""

import pytest
from swift.common.utils import Timestamp

from sluice_middleware.proxy.middleware import _after_offsets

NOW = 1795480688.66231


@pytest.mark.parametrize("offset", [1, 2**32 + 7, 2**64 - 1])
def test_a_timestamp_is_behind_every_offset_and_has_none_itself(offset):
    stored = Timestamp(NOW, offset=offset)
    headers = [("X-Backend-Timestamp", stored.internal), ("X-Timestamp", stored.normal), ("Etag", "e")]
    found = dict(_after_offsets(headers))
    assert found["Etag"] == "e"
    shown = Timestamp(found["X-Timestamp"])
    assert shown > stored, "the row's"
    assert (shown.offset, found["X-Timestamp"]) == (0, "1795480688.66232")


@pytest.mark.parametrize("headers", [[("X-Backend-Timestamp", Timestamp(NOW).internal), ("X-Timestamp", "t")], []])
def test_without_an_offset_nothing_is_changed(headers):
    assert _after_offsets(headers) is headers
