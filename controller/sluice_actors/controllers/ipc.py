"""What goes through the pipes between an actor host and a controller's process: a length, then MessagePack.

The child is not trusted to keep this: a length beyond :data:`LONGEST` and bytes that are no message are
:class:`DecodeError`, and so are values that MessagePack cannot hold, for whoever packs.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, Final

import msgpack

from sluice_core.errors import DecodeError

#: Code of 64 MiB and what comes with it.
LONGEST: Final = 80 << 20
_HEAD: Final = struct.Struct(">I")
HEAD_SIZE: Final = _HEAD.size


def pack(message: Mapping[str, Any]) -> bytes:
    """One message with its length before it.

    :raises DecodeError: when it holds what no frame can
    """
    try:
        body: bytes = msgpack.packb(dict(message))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise DecodeError(f"no data: {error}") from error
    if len(body) > LONGEST:
        raise DecodeError(f"{len(body)} bytes, expected at most {LONGEST}")
    return _HEAD.pack(len(body)) + body


def length(head: bytes) -> int:
    """How many bytes follow ``head``.

    :raises DecodeError: when nobody would send that many
    """
    size: int = _HEAD.unpack(head)[0]
    if size > LONGEST:
        raise DecodeError(f"a frame of {size} bytes, expected at most {LONGEST}", head)
    return size


def unpack(body: bytes) -> dict[str, Any]:
    """The message in ``body``.

    :raises DecodeError: when there is none
    """
    try:
        message = msgpack.unpackb(body)
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException) as error:
        raise DecodeError(f"not a frame: {error}", body[:200]) from error
    if not isinstance(message, dict):
        raise DecodeError(f"not a frame: {type(message).__name__}", body[:200])
    return message
