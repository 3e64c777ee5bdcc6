"""The frames in the pipes between an actor host and a controller's process: a length, then MessagePack.

The child is not trusted: a length beyond :data:`LONGEST` and bytes that are not a message raise :class:`DecodeError`.
So do values that MessagePack cannot encode, on the side that packs.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, Final

import msgpack

from sluice_core.errors import DecodeError

#: Code of 64 MiB and the other fields of its message.
LONGEST: Final = 80 << 20
_HEAD: Final = struct.Struct(">I")
HEAD_SIZE: Final = _HEAD.size


def pack(message: Mapping[str, Any]) -> bytes:
    """Encode one message with its length before it.

    :raises DecodeError: when it holds a value that MessagePack cannot encode, or is too long
    """
    try:
        body: bytes = msgpack.packb(dict(message))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise DecodeError(f"no data: {error}") from error
    if len(body) > LONGEST:
        raise DecodeError(f"{len(body)} bytes, expected at most {LONGEST}")
    return _HEAD.pack(len(body)) + body


def length(head: bytes) -> int:
    """Return how many bytes follow ``head``.

    :raises DecodeError: when that exceeds :data:`LONGEST`
    """
    size: int = _HEAD.unpack(head)[0]
    if size > LONGEST:
        raise DecodeError(f"a frame of {size} bytes, expected at most {LONGEST}", head)
    return size


def unpack(body: bytes) -> dict[str, Any]:
    """Return the message in ``body``.

    :raises DecodeError: when it is not a message
    """
    try:
        message = msgpack.unpackb(body)
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException) as error:
        raise DecodeError(f"not a frame: {error}", body[:200]) from error
    if not isinstance(message, dict):
        raise DecodeError(f"not a frame: {type(message).__name__}", body[:200])
    return message
