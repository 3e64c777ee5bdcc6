"""Endlessly nested metadata count as damaged, and cause no other error."""

import pytest

from sluice_core.errors import DecodeError
from sluice_middleware.object_server.diskfile import request_context, stored_metadata
from sluice_middleware.wsgi import sysmeta

DEEP = "[" * 5000


@pytest.mark.parametrize(
    "decode", [sysmeta.decode_chain, stored_metadata.StoredMetadata.decode, request_context.parse_steps]
)
def test_deeply_nested_metadata_are_refused(decode):
    with pytest.raises(DecodeError):
        decode(DEEP)


def test_unreadable_metadata_name_no_filter():
    assert sysmeta.filter_keywords(DEEP, None) == ("",)
