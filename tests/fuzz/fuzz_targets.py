"""Fuzz targets: each target takes any bytes and must not raise.

A target parses its bytes as a message, text or record, and handles the result as its readers do at first.
Sluice's errors for invalid input are expected; any other exception is a finding.  If the result can be
encoded again, it must be the same.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, is_dataclass

from sluice_code.loader import check_source
from sluice_core.errors import CallerError, DecodeError
from sluice_core.messages import policies, registry, uploads
from sluice_core.messages.base import Message
from sluice_core.messages.predicate import Facts, compile_predicate
from sluice_core.metrics import node_metrics
from sluice_core.snapshot import records
from sluice_core.store import change_stream
from sluice_core.store.keys import Keys
from sluice_dsl.compile import Compiled, compile_text
from sluice_dsl.diagnostics import Diagnostic, PolicyErrors, Reporter
from sluice_dsl.plan import residual
from sluice_dsl.syntax.grammar import parse
from sluice_dsl.testing import make_catalogue
from sluice_objects import values
from sluice_objects.state import codec
from sluice_objects.state.records import TYPED, ContentState, ObjectState, Session

CATALOGUE = make_catalogue()
FACTS = (Facts("GET"), Facts("PUT", "a/b.pdf", 10, "text/plain; charset=x", frozenset({"x"})))


#: Modules with messages, beside those imported above.
_MODULES = (
    "sluice_actors.bandwidth.loads.decoder",
    "sluice_actors.hosts.cluster_services",
    "sluice_agent.write_exchange",
    "sluice_core.control",
    "sluice_code.native_trial",
    "sluice_dsl.plan",
)


@dataclass(frozen=True)
class Target:
    """A parser of bytes; ``seeds`` are valid inputs."""

    name: str
    feed: Callable[[bytes], None]
    seeds: tuple[bytes, ...] = ()


def message_classes(base: type[Message] = Message) -> Iterator[type[Message]]:
    """Every message class of the imported packages."""
    for one in base.__subclasses__():
        if is_dataclass(one):  # else it is a base of messages
            yield one
        yield from message_classes(one)


def load_all_messages() -> list[type[Message]]:
    """All message classes, by name: importing a package registers its messages."""
    for module in _MODULES:
        importlib.import_module(module)
    # a dataclass with slots leaves its first class object behind
    found = [one for one in message_classes() if getattr(sys.modules[one.__module__], one.__name__, None) is one]
    return sorted(found, key=lambda one: (one.__module__, one.__name__))


MESSAGES = load_all_messages()


def feed_message(cls: type[Message], raw: bytes) -> None:
    """A message that can be decoded can be encoded, and is then decoded from the same bytes."""
    found = _decoded(cls, raw)
    if found is None:
        return
    written = found.encode()
    assert cls.decode(written).encode() == written


def _decoded(cls: type[Message], raw: bytes) -> Message | None:
    told: list[DecodeError] = []
    try:
        return cls.decode(raw)
    except DecodeError as error:
        told.append(error)
    assert told[0].raw == raw, "an error keeps the bytes"
    return None


def feed_any_message(raw: bytes) -> None:
    """The first byte chooses the message class."""
    if raw:
        feed_message(MESSAGES[raw[0] % len(MESSAGES)], raw[1:])


def feed_entry(raw: bytes) -> None:
    """The registry: readers of all entries skip an invalid one."""
    with contextlib.suppress(DecodeError):
        entry = policies.Entry.decode(raw)
        found = {"it": entry}
        for cls in set(registry.KINDS.values()):
            registry.named_records(found, cls)


def feed_predicate(raw: bytes) -> None:
    """A predicate is refused when it is compiled, or evaluates for any facts."""
    with contextlib.suppress(ValueError, RecursionError, DecodeError):
        data = json.loads(raw)
        test = compile_predicate(data)
        answers = {test(facts) for facts in FACTS}
        assert answers <= {True, False, None}


def feed_snapshot_records(raw: bytes) -> None:
    """LMDB: each kind of record."""
    for decode in (records.Meta.decode, records.IndexEntry.decode, records.decode_record):
        with contextlib.suppress(DecodeError):
            decode(raw)


def feed_stream(raw: bytes) -> None:
    """The change stream: an entry that cannot be decoded is a gap, and left out of the past."""
    drops, _, change = raw.partition(b"\x00")
    entry = (b"1-0", {b"change": change, b"drops": drops or b"[]", b"history": b"h"})
    keys = Keys()
    after = change_stream.changes_after(keys, 0, 10, 0).parse([[[b"changes", [entry]]]])
    assert isinstance(after, change_stream.Gap) or after[0].epoch == 1
    assert len(change_stream.changes_before(keys, 2, 10).parse([[entry]])) in (0, 1)


def feed_collectd(raw: bytes) -> None:
    """Messages of a foreign sender."""
    with contextlib.suppress(DecodeError):
        node_metrics.parse_collectd(raw)


def feed_actors(raw: bytes) -> None:
    """Messages between actor hosts: a host continues after any message."""
    from sluice_actors.hosts.cluster_services import MetricUsageExchange

    MetricUsageExchange("h", lambda key, body: None, lambda metrics: None, lambda: 0.0).receive("values.all", raw)


def feed_sandbox(raw: bytes) -> None:
    """A worker in a jail may send anything, in any pieces; messages are bounded before they are buffered."""
    from sluice_sandbox.process import wire as process_wire
    from sluice_sandbox.storlets import wire as storlets_wire

    step = (raw[0] if raw else 0) + 1
    frames, kept = process_wire.FrameParser(), 0
    with contextlib.suppress(process_wire.MalformedFrame):
        for begin in range(0, len(raw), step):
            for kind, piece in frames.feed(raw[begin : begin + step]):
                kept += len(piece)
                assert kind == process_wire.DATA or len(piece) <= process_wire.MAX_WORD
    assert kept <= len(raw)
    with contextlib.suppress(ValueError):
        storlets_wire.unpack(raw)


def feed_worker_answer(raw: bytes) -> None:
    """The host's side of such a worker: its messages are accepted, or refused as invalid."""
    from sluice_sandbox.limits import SandboxFault
    from sluice_sandbox.process.session import ProcessSession
    from sluice_sandbox.process.wire import FrameParser

    class Begun(ProcessSession):
        """Its state once a worker was reached."""

        def __init__(self) -> None:
            self._names, self._frames, self._counts = ["one", "two"], FrameParser(), None

    out: list[bytes] = []
    with contextlib.suppress(SandboxFault):
        session = Begun()
        session._parse(raw, out)
        assert all(isinstance(number, int) for pair in session.counts() for number in pair)
    assert sum(map(len, out)) <= len(raw)


def feed_objects(raw: bytes) -> None:
    """Metadata of objects, as the middlewares read them."""
    from sluice_middleware.object_server.diskfile import request_context, stored_metadata
    from sluice_middleware.wsgi import sysmeta

    text = raw.decode("latin-1")
    for decode in (
        sysmeta.decode_chain,
        stored_metadata.StoredMetadata.decode,
        request_context.parse_steps,
        sysmeta.filter_keywords,
    ):
        with contextlib.suppress(DecodeError):
            decode(text)


def feed_object_state(raw: bytes) -> None:
    """A stored state, or the header of one whose checksum is right; and a value."""
    for stored in (raw, codec.assemble(raw, b"stream")):
        with contextlib.suppress(DecodeError):
            state = codec.decode(stored)
            again = codec.encode(state)
            assert codec.encode(codec.decode(again)) == again
            layout = codec.stream_layout(stored)
            assert stored[layout.offset :] == state.content.stream
    with contextlib.suppress(DecodeError):
        written = values.pack(values.unpack(raw))
        assert values.pack(values.unpack(written)) == written


def feed_language(raw: bytes) -> None:
    """Any text: plans, or errors whose spans are in the text; plans that can be printed parse to the same."""
    try:
        check_text(raw.decode("utf-8", "surrogatepass"))
    except UnicodeDecodeError:
        check_text(raw.decode("latin-1"))


def check_text(text: str) -> None:
    """Check all rules of the language for one text."""
    compiled, errors = _compiled(text)
    assert bool(compiled) != bool(errors)
    lines = text.split("\n")
    for error in errors:
        width = len(lines[error.line - 1])
        assert 1 <= error.column <= width + 1, error
        assert 1 <= error.length <= width + 2 - error.column, error
        assert error.message, "an error says something"
        json.dumps(error.to_data(), ensure_ascii=False).encode()
    for one in compiled:
        assert one.source in text
        (again,) = compile_text(one.text, CATALOGUE)
        assert (again.text, again.plan) == (one.text, one.plan)
        assert [str(sentence) for sentence in parse(one.text, Reporter(one.text))] == [one.text]
        one.plan.encode()
        compile_predicate(residual(one.plan.condition, dict.fromkeys(one.plan.metrics)))


def _compiled(text: str) -> tuple[list[Compiled], tuple[Diagnostic, ...]]:
    try:
        return compile_text(text, CATALOGUE), ()
    except PolicyErrors as errors:
        return [], (*errors.problems, *errors.warnings)


def feed_source(raw: bytes) -> None:
    """Uploaded code is parsed before it is run."""
    for kind in uploads.CODE_KINDS:
        with contextlib.suppress(CallerError):
            check_source(raw, kind)


def feed_yaml(raw: bytes) -> None:
    """A configuration to be imported."""
    from sluice_controller.configuration import yaml_adapter

    with contextlib.suppress(CallerError):
        found = yaml_adapter.load(raw)
        assert yaml_adapter.load(yaml_adapter.dump(found)) == found


_SENTENCES = (
    "FOR TENANT acme WHEN PUTS_SEC > 3 AND NOT (OBJECT_SIZE < 5MB OR OBJECT_TYPE = DOCS) SUSTAINED 5s "
    "DO SET compression WITH engine=zstd ON PROXY TRANSIENT, SET encryption ON STORAGE_NODE",
    "FOR GROUP gold DO DELETE noop; FOR ALL CONTAINERS DO SET caching",
    "FOR CONTAINER 'AUTH_a/b c' WHEN ERRORS > 50% DO SET sampler mode=fast, every=2min # so",
)
_JSON = (
    b'{"v":1,"level":"tenant","select":"name","name":"AUTH_a","label":""}',
    b'{"v":1,"kind":"term","name":"DOCS","data":{"values":["pdf"]},"created":1}',
    b'{"v":1,"epoch":1,"history":"h","at":0.5,"puts":[{"id":"p.0","policy":"p","kind":"filter","verb":"set",'
    b'"keyword":"noop","target":{"level":"tenant"},"when":["and",["size",">",10],["type",["pdf"]]]}]}',
)
_PACKED = (
    b"\x85\xa1v\x01\xa6worker\xa1w\xa2at\xcb?\xe0\x00\x00\x00\x00\x00\x00\xa4rows\x91\x93\xa1a\x01\x91\x02\xa8snapshot\xa0",
    b"\x95\x01\xa2id\xa1h\x05\x06",
)

_COLLECTD = (
    b'[{"plugin":"cpu","plugin_instance":"","type":"percent","type_instance":"idle","dsnames":["value"],'
    b'"values":[1.5],"interval":1}]'
)
_OBJECTS = (b'[{"f":"compression","r":{"v":1}}]', b'{"v":1,"size":5,"crc":1,"chain":[{}]}')
_OBJECT_STATE = codec.encode(
    ObjectState(
        TYPED,
        ContentState(b"stream", {b"key": b"value"}, {"name": "value"}),
        version=3,
        class_name="map",
        expires=5.0,
        snapshots={"s": ContentState(b"old")},
        sessions={"client": Session(2, b"\xc0", 3, 5.0)},
    )
)
_OBJECT_STATES = (_OBJECT_STATE, _OBJECT_STATE[codec.PREFIX_SIZE : codec.stream_layout(_OBJECT_STATE).offset])
_WORKER = (b'\x02\x00\x00\x00\x12{"counts":[[1,2]]}', b'\x03\x00\x00\x00\x0a{"step":0}')
_EACH = tuple(bytes([number]) + raw for number in range(len(MESSAGES)) for raw in _JSON + _PACKED)

TARGETS = {
    one.name: one
    for one in (
        Target("language", feed_language, tuple(text.encode() for text in _SENTENCES)),
        Target("messages", feed_any_message, _EACH),
        Target("entries", feed_entry, _JSON[1:2]),
        Target("predicates", feed_predicate, (b'["and",["size",">",10],["not",["type",["pdf"]]],["tag",["x"]]]',)),
        Target("snapshot", feed_snapshot_records, _PACKED[1:]),
        Target("stream", feed_stream, (b'["p.0"]\x00' + _JSON[2],)),
        Target("collectd", feed_collectd, (_COLLECTD,)),
        Target("actors", feed_actors, (b"w" + _PACKED[0], b"u\x83\xa1v\x01\xa4host\xa2h1\xa7metrics\x91\xa1M")),
        Target("sandbox", feed_sandbox, (b"\x01\x00\x00\x00\x01x\x02\x00\x00\x00\x02{}",)),
        Target("worker", feed_worker_answer, _WORKER),
        Target("objects", feed_objects, _OBJECTS),
        Target("object_state", feed_object_state, _OBJECT_STATES),
        Target("source", feed_source, (b"import os\nclass A:\n    x = 1\n", b"from sluice_filters import api\n")),
        Target("yaml", feed_yaml, (b"sluice: 1\npolicies:\n- {id: a, policy: 'FOR x'}\n",)),
    )
}
