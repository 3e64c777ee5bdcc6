"""The class of an error says which party must act."""

import pytest

from sluice_core.errors import CallerError, Conflict, DecodeError, NotFound, PeerError, SluiceError
from sluice_core.snapshot.reader import SnapshotError


@pytest.mark.parametrize(
    ("error", "kind", "status"),
    [
        (SluiceError("x"), SluiceError, 500),
        (CallerError("x"), CallerError, 400),
        (NotFound("x"), CallerError, 404),
        (Conflict("x"), CallerError, 409),
        (PeerError("x"), PeerError, 503),
        (DecodeError("x", b"raw"), PeerError, 503),
        (SnapshotError("x"), PeerError, 503),
    ],
    ids=lambda value: type(value).__name__,
)
def test_each_error_has_one_addressee_and_a_status(error, kind, status):
    assert isinstance(error, kind)
    assert isinstance(error, CallerError) + isinstance(error, PeerError) == (kind is not SluiceError)
    assert error.status == status


def test_a_decode_error_keeps_the_bytes():
    assert DecodeError("x", b"\x00raw").raw == b"\x00raw"
