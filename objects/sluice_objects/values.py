"""The encoded form of :data:`~sluice_objects.api.Value`: MessagePack."""

from __future__ import annotations

from typing import Any, Final

import msgpack

from sluice_core.errors import DecodeError
from sluice_objects.api import Value

#: Lists and dicts in each other; a limit of our own, since that of Python depends on the caller.
DEEPEST: Final = 100
_PLAIN: Final = (type(None), bool, int, float, str, bytes)


def pack(value: Value) -> bytes:
    """
    :raises ValueError: when it is no value: another type, a number of more than 64 bits, a text that is not Unicode
    """
    _check(value)
    try:
        packed: bytes = msgpack.packb(value)
    except OverflowError as error:
        raise ValueError(f"an integer has more than 64 bits: {error}") from error
    return packed


def unpack(raw: bytes) -> Value:
    """
    :raises DecodeError: when ``raw`` is no encoded value
    """
    value = unpack_message(raw)
    try:
        _check(value)
    except ValueError as error:
        raise DecodeError(str(error), raw) from error
    return value


def unpack_message(raw: bytes) -> Any:
    """The only value in ``raw``, with text and bytes as keys.

    The first pass allocates nothing.  Without it a list of few bytes that claims millions of members, in another one
    like it, and so on, would be allocated before its end is missed.

    :raises DecodeError: when ``raw`` is not MessagePack
    """
    try:
        unpacker = msgpack.Unpacker(max_buffer_size=len(raw))
        unpacker.feed(raw)
        unpacker.skip()
        return msgpack.unpackb(raw)
    except (ValueError, TypeError, OverflowError, msgpack.UnpackException) as error:
        raise DecodeError(f"no value in MessagePack: {error}", raw) from error


def _check(value: Any, depth: int = 0) -> None:
    kind = type(value)
    if kind in _PLAIN:
        return
    if depth == DEEPEST:
        raise ValueError(f"lists and maps are nested, expected at most {DEEPEST} in each other")
    if kind is list:
        for member in value:
            _check(member, depth + 1)
    elif kind is dict:
        for key, member in value.items():
            if type(key) is not str:
                raise ValueError(f"a key of a map is `{type(key).__name__}`, expected text")
            _check(member, depth + 1)
    else:
        raise ValueError(f"`{kind.__name__}` is no value, expected None, bool, int, float, str, bytes, list or dict")
