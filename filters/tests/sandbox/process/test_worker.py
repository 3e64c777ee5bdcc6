"""Whatever a worker in a jail answers, the host tells of a filter that misbehaves, and raises nothing else."""

import json

import pytest

from sluice_sandbox.limits import Misbehaved
from sluice_sandbox.process import wire
from sluice_sandbox.process.session import ProcessSession


class Reached(ProcessSession):
    """As it is once a worker was reached."""

    def __init__(self):
        self._names, self._frames, self._counts = ["one", "two"], wire.Frames(), None


def word(kind, raw):
    return wire.frame(kind, len(raw)) + raw


@pytest.mark.parametrize(
    "answer",
    [
        word(wire.END, b'{"counts": [[Infinity, 1]]}'),
        word(wire.END, b'{"counts": [[NaN, 1]]}'),
        word(wire.END, b'{"counts": [[1, null]]}'),
        word(wire.END, b'{"counts": 5}'),
        word(wire.END, b'{"counts": [[1]]}'),
        word(wire.END, b"[]"),
        word(wire.END, b"[" * 4000),
        word(wire.END, b"\xff"),
        word(wire.FAULT, b"[]"),
        word(wire.FAULT, b"null"),
        word(wire.FAULT, b'"text"'),
        word(wire.FAULT, b"[" * 4000),
        word(wire.FAULT, json.dumps({"step": [], "what": {}, "fault": None}).encode()),
        b"\xff" * 5,
    ],
)
def test_an_answer_that_is_none_is_told(answer):
    with pytest.raises(Misbehaved, match="filter `one`"):
        Reached()._parse(answer, [])
