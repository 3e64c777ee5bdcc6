"""Invalid input found by fuzzing the decoders: each raises its documented error, and no other exception."""

import json

import pytest

from sluice_core.errors import DecodeError
from sluice_core.messages import registry
from sluice_core.messages.events import Event
from sluice_core.messages.nodes import MetricBatch
from sluice_core.messages.policies import Change, Entry, Target
from sluice_core.messages.predicate import compile_predicate
from sluice_core.store import change_stream
from sluice_core.store.keys import Keys
from sluice_core.store.operation import read_documents

DEEP = 5000
KEYS = Keys()


def change(**fields):
    return json.dumps({"v": 1, "epoch": 1, "history": "h", "at": 0.0, **fields}).encode()


def event(**fields):
    known = {"v": 1, "at": 1.0, "severity": "error", "kind": "refused", "text": "no", "source": "n1"}
    return json.dumps({**known, **fields}).encode()


@pytest.mark.parametrize(
    ("cls", "raw"),
    [
        (Target, b"[" * DEEP),
        (Target, b'{"a":' * DEEP),
        (MetricBatch, b"\x91" * DEEP),
        (Change, change(puts={"id": "p.0"})),
        (Change, change(puts=None)),
        (Change, change(puts=[5])),
        (Change, change(puts=[{"id": "p", "policy": "p", "kind": "k", "verb": "v", "keyword": "k", "target": []}])),
        (Change, change(uploads="text")),
        (Change, change(entries=[["kind", "name"]])),
        (Event, event(at="now")),
        (Event, event(at=float("nan"))),
        (Event, event(at=1e300)),
        (Event, event(text=5)),
        (Event, event(fields=["a"])),
    ],
)
def test_a_message_of_another_shape_or_depth_is_told_with_its_bytes(cls, raw):
    with pytest.raises(DecodeError) as caught:
        cls.decode(raw)
    assert caught.value.raw == raw


@pytest.mark.parametrize("data", [5, "text", None, ["level", "tenant"]])
def test_what_has_no_fields_is_no_message(data):
    with pytest.raises(DecodeError, match="has no fields"):
        Target.from_data(data)


@pytest.mark.parametrize(
    "predicate",
    [
        ["type", [5]],
        ["tag", [None]],
        ["method", [["GET"]]],
        ["method", 5],
        [],
        ["not"],
        [["and"], True],
        "and",
        5,
        None,
    ],
)
def test_what_is_no_predicate_is_refused_when_it_is_compiled(predicate):
    with pytest.raises(DecodeError, match="not a request predicate"):
        compile_predicate(predicate)


def test_a_bottomless_predicate_is_refused_in_a_short_sentence():
    predicate = True
    for _ in range(DEEP):
        predicate = ["not", predicate]
    with pytest.raises(DecodeError) as caught:
        compile_predicate(predicate)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("drops", [b"5", b"null", b'"p.0"', b"[[]]", b"[5]", b"[" * DEEP, b"{}"])
def test_a_change_with_other_drops_is_a_gap(drops):
    entry = (b"1-0", {b"change": change(), b"drops": drops, b"history": b"h"})
    found = change_stream.changes_after(KEYS, 0, 10, 0).parse([[[b"changes", [entry]]]])
    assert isinstance(found, change_stream.Gap)
    assert change_stream.changes_before(KEYS, 2, 10).parse([[entry]]) == []


def test_a_bottomless_document_is_left_out(caplog):
    found = read_documents("key").parse([{b"good": b'{"a": 1}', b"deep": b"[" * DEEP}])
    assert found == {"good": {"a": 1}}
    assert "deep" in caplog.text


@pytest.mark.parametrize("data", [[], 5, None, "text", {"values": 5}, {"values": [5]}])
def test_an_entry_whose_data_are_none_is_left_out(data):
    entry = Entry(registry.TERM, "DOCS", data)
    assert registry.named_records({"term/DOCS": entry}, registry.Term) == {}
