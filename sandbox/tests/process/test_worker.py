"""For every answer of a worker in a jail, the host reports a filter that misbehaves, and raises no other error."""

import json

import pytest

from sluice_sandbox.limits import SandboxFault
from sluice_sandbox.process import wire
from sluice_sandbox.process.session import ProcessSession


class Reached(ProcessSession):
    """A session after the connection to a worker."""

    def __init__(self):
        self._names, self._frames, self._counts = ["one", "two"], wire.FrameParser(), None


def encode_message(kind, raw):
    return wire.frame_header(kind, len(raw)) + raw


@pytest.mark.parametrize(
    "answer",
    [
        encode_message(wire.END, b'{"counts": [[Infinity, 1]]}'),
        encode_message(wire.END, b'{"counts": [[NaN, 1]]}'),
        encode_message(wire.END, b'{"counts": [[1, null]]}'),
        encode_message(wire.END, b'{"counts": 5}'),
        encode_message(wire.END, b'{"counts": [[1]]}'),
        encode_message(wire.END, b"[]"),
        encode_message(wire.END, b"[" * 4000),
        encode_message(wire.END, b"\xff"),
        encode_message(wire.FAULT, b"[]"),
        encode_message(wire.FAULT, b"null"),
        encode_message(wire.FAULT, b'"text"'),
        encode_message(wire.FAULT, b"[" * 4000),
        encode_message(wire.FAULT, json.dumps({"step": [], "what": {}, "fault": None}).encode()),
        b"\xff" * 5,
    ],
)
def test_a_malformed_worker_message_is_an_error(answer):
    with pytest.raises(SandboxFault, match="filter `one`"):
        Reached()._parse(answer, [])
