"""The encoded form of a state: what the object servers store as the body of an object.

::

    prefix, 17 bytes:  `SlTO`, format, CRC-32 of what follows the prefix, size of the header, size of the byte stream
    header:            a map in MessagePack
    byte stream

The byte stream is the last part: a proxy that knows the prefix reads any range of it from the stored object.  The CRC
is checked before a home takes a state over.  An object server compares a body with its ETag only after it has sent it,
and a home that stored a damaged state under a higher stamp would replace the undamaged ones.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from math import isfinite
from typing import Any, Final, NamedTuple, TypeVar

import msgpack

from sluice_core.errors import DecodeError
from sluice_objects.api import LARGEST_STATE, StateTooLarge
from sluice_objects.state.items import SortedItems
from sluice_objects.state.records import DELETED, PLAIN, TYPED, ContentState, ObjectState, Session
from sluice_objects.values import unpack_message

MAGIC: Final = b"SlTO"
FORMAT: Final = 1
_PREFIX: Final = struct.Struct(">4sBIII")
PREFIX_SIZE: Final = _PREFIX.size
#: Bytes at most of the fields that are short, with the prefix; and of numbers and lengths of a snapshot or session.
_HEADER_SIZE: Final = 1024
_ENTRY_SIZE: Final = 64
T = TypeVar("T")


class Layout(NamedTuple):
    """Where the byte stream is in an encoded state, in bytes."""

    offset: int
    size: int


def stream_layout(begin: bytes) -> Layout:
    """
    :param begin: the first :data:`PREFIX_SIZE` bytes of an encoded state, or more
    :raises DecodeError: when they do not begin a state, or one of another format
    """
    _, header, stream = _prefix(begin)
    return Layout(PREFIX_SIZE + header, stream)


def encode(state: ObjectState) -> bytes:
    """
    :raises StateTooLarge: when the encoded state has more than :data:`~sluice_objects.api.LARGEST_STATE` bytes
    """
    header = {
        "kind": state.kind,
        "class": state.class_name,
        "code": state.code,
        "version": state.version,
        "etag": state.etag,
        "modified": float(state.modified),
        "clock": float(state.clock),
        "type": state.content_type,
        "metadata": state.metadata,
        "expires": None if state.expires is None else float(state.expires),
        "items": state.content.items,
        "attributes": state.content.attributes,
        "snapshots": {
            name: [content.stream, content.items, content.attributes] for name, content in state.snapshots.items()
        },
        "sessions": {
            name: [kept.number, kept.answer, kept.version, float(kept.used)] for name, kept in state.sessions.items()
        },
    }
    return assemble(msgpack.packb(header, default=_as_dict), state.content.stream)


def check_size(state: ObjectState) -> None:
    """As :func:`encode`, without encoding the state unless it is close to the limit.

    :raises StateTooLarge: as :func:`encode`
    """
    size = _HEADER_SIZE + _content_size(state.content) + _texts_size(state.metadata) + _text_size(state.content_type)
    for name, content in state.snapshots.items():
        size += _text_size(name) + _ENTRY_SIZE + _content_size(content)
    for name, kept in state.sessions.items():
        size += _text_size(name) + _ENTRY_SIZE + len(kept.answer or b"")
    if size > LARGEST_STATE:
        encode(state)


def _content_size(content: ContentState) -> int:
    return len(content.stream) + SortedItems.of(content.items).size + _texts_size(content.attributes)


def _texts_size(texts: Mapping[str, str]) -> int:
    return sum(map(_text_size, texts)) + sum(map(_text_size, texts.values()))


def _text_size(text: str) -> int:
    """Bytes of a text in MessagePack at most."""
    return 4 * len(text) + 5


def assemble(header: bytes, stream: bytes) -> bytes:
    """An encoded state of an encoded header and a byte stream.

    :raises StateTooLarge: as :func:`encode`
    """
    size = PREFIX_SIZE + len(header) + len(stream)
    if size > LARGEST_STATE:
        raise StateTooLarge(size)
    crc = zlib.crc32(stream, zlib.crc32(header))
    return b"".join((_PREFIX.pack(MAGIC, FORMAT, crc, len(header), len(stream)), header, stream))


def decode(raw: bytes) -> ObjectState:
    """
    :raises DecodeError: when ``raw`` is no encoded state, is damaged, has another format or is too large
    """
    if len(raw) > LARGEST_STATE:
        raise DecodeError(f"a state of {len(raw)} bytes, expected at most {LARGEST_STATE}", raw)
    crc, header, stream = _prefix(raw)
    if len(raw) != PREFIX_SIZE + header + stream:
        raise DecodeError(f"a state of {len(raw)} bytes, expected {PREFIX_SIZE + header + stream}", raw)
    if zlib.crc32(memoryview(raw)[PREFIX_SIZE:]) != crc:
        raise DecodeError("a state is damaged: its CRC-32 differs", raw)
    end = PREFIX_SIZE + header
    data = unpack_message(raw[PREFIX_SIZE:end])
    try:
        return _read_state(data, raw[end:])
    except (ValueError, KeyError, TypeError) as error:
        raise DecodeError(f"the header of a state has another form: {error!r:.200}", raw) from error


def _prefix(raw: bytes) -> tuple[int, int, int]:
    """CRC-32, size of the header, size of the stream."""
    if len(raw) < PREFIX_SIZE or not raw.startswith(MAGIC):
        raise DecodeError("not a state of a typed object", raw)
    _, version, crc, header, stream = _PREFIX.unpack_from(raw)
    if version != FORMAT:
        raise DecodeError(f"a state of format `{version}`, expected {FORMAT}", raw)
    return crc, header, stream


def _as_dict(mapping: Any) -> dict[Any, Any]:
    """For MessagePack, which packs only dicts."""
    if isinstance(mapping, SortedItems):
        return mapping.plain
    if isinstance(mapping, Mapping):
        return dict(mapping)
    raise TypeError(f"`{type(mapping).__name__}` in a state")


def _read_state(data: dict[str, Any], stream: bytes) -> ObjectState:
    kind = data["kind"]
    if kind not in (TYPED, PLAIN, DELETED):
        raise ValueError("unknown kind")
    return ObjectState(
        kind=kind,
        content=_content(stream, data["items"], data["attributes"]),
        class_name=_a(str, data["class"]),
        code=_a(str, data["code"]),
        version=_count(data["version"]),
        etag=_a(str, data["etag"]),
        modified=_time(data["modified"]),
        clock=_time(data["clock"]),
        content_type=_a(str, data["type"]),
        metadata=_mapping(str, data["metadata"]),
        expires=None if data["expires"] is None else _time(data["expires"]),
        snapshots={_a(str, name): _content(*_a(list, parts)) for name, parts in _a(dict, data["snapshots"]).items()},
        sessions={_a(str, name): _session(*_a(list, kept)) for name, kept in _a(dict, data["sessions"]).items()},
    )


def _content(stream: Any, items: Any, attributes: Any) -> ContentState:
    return ContentState(_a(bytes, stream), SortedItems(_mapping(bytes, items)), _mapping(str, attributes))


def _session(number: Any, answer: Any, version: Any, used: Any) -> Session:
    return Session(_count(number), None if answer is None else _a(bytes, answer), _count(version), _time(used))


def _a(kind: type[T], value: Any) -> T:
    if type(value) is not kind:
        raise ValueError(f"`{type(value).__name__}`, expected `{kind.__name__}`")
    return value


def _mapping(kind: type[T], value: Any) -> dict[T, T]:
    """A dict whose keys and values are of ``kind``."""
    mapping = _a(dict, value)
    if not (set(map(type, mapping)) | set(map(type, mapping.values()))) <= {kind}:
        raise ValueError(f"a map of other types, expected `{kind.__name__}`")
    return mapping


def _count(value: Any) -> int:
    if _a(int, value) < 0:
        raise ValueError(f"`{value}`, expected 0 or more")
    return _a(int, value)


def _time(value: Any) -> float:
    if not isfinite(_a(float, value)):
        raise ValueError(f"`{value}`, expected seconds")
    return _a(float, value)
