"""The calls of a proxy worker to its node's motif daemon, over a Unix socket.

One connection is one call.  Each message is a frame: its length in four bytes, most significant first, and so many
bytes.  The worker sends a :class:`WorkerCall`, the daemon a :class:`WorkerReply`.

* ``OPEN``: status 200 is followed by frames of bytes as they are made, and an empty frame at the end; if the
  connection ends without it, the bytes must not be used.  204: the object has its bytes.
* ``EXPAND``: 204 as soon as the object has its bytes.
* ``CONTRACT``: 204 when the object has no bytes, whoever removed them; for tools on the node.
* ``ATTACH``: ``record`` is to be written with the object.
* ``REPORT``: objects with their bytes were read, and other objects were changed by clients.
* ``CHANGE`` and ``COPY``: the grant lasts until the worker closes the connection; a daemon that closes it
  earlier withdraws the grant.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from sluice_core.errors import DecodeError, PeerError
from sluice_core.messages.base import Message

OPEN: Final = "open"
EXPAND: Final = "expand"
CONTRACT: Final = "contract"
ATTACH: Final = "attach"
CHANGE: Final = "change"
COPY: Final = "copy"
REPORT: Final = "report"

#: The longest frame.
FRAME_LIMIT: Final = 1 << 20
_LENGTH: Final = struct.Struct("!I")


@dataclass(frozen=True, slots=True)
class WorkerCall(Message):
    """
    :param item: the object of the call, ``account/container/object``
    :param start: first byte to send, of ``OPEN``
    :param stop: the byte behind the last one; None for the end
    :param sources: objects that it is made from, as far as the worker knows, of ``OPEN``
    :param motifs: the motifs to attach: template and parameters of each
    :param identity: the identity that attaches or copies (``rights``)
    :param fresh: whether the object is written anew, which removes earlier motifs
    :param to: the target of the copy
    :param item_version: of the item as the worker saw it, of ``COPY``
    :param opens: how often objects were read, the last one read at the end, of ``REPORT``
    :param changed: objects that clients wrote or deleted, with motifs or without, of ``REPORT``
    :param verify: what is proven before (``sluice_motifs.contraction.contractor``), of ``CONTRACT``
    :param request: Swift's id of the transaction that it is for; empty for none
    """

    kind: str
    item: str
    start: int = 0
    stop: int | None = None
    sources: tuple[str, ...] = ()
    motifs: tuple[dict[str, Any], ...] = ()
    identity: str = ""
    fresh: bool = False
    to: str = ""
    item_version: str = ""
    verify: str = "head"
    opens: Mapping[str, int] = field(default_factory=dict)
    changed: tuple[str, ...] = ()
    request: str = ""


@dataclass(frozen=True, slots=True)
class WorkerReply(Message):
    """
    :param status: as of HTTP
    :param reason: the error, for a status other than 2xx
    :param same: whether the bytes that follow are those that the object had
    :param record: to be written with the object
    :param contracted: whether the copied object has no bytes; ``size`` and ``etag`` are those that it had
    """

    status: int
    reason: str = ""
    same: bool = True
    record: str = ""
    contracted: bool = False
    size: int = 0
    etag: str = ""


def send_frame(connection: socket.socket, data: bytes) -> None:
    """Send one frame.

    :raises OSError: when the peer has closed the connection
    """
    connection.sendall(_LENGTH.pack(len(data)) + data)


def receive_frame(connection: socket.socket) -> bytes | None:
    """Receive a frame; return None when the peer closed the connection between two frames.

    :raises PeerError: when the connection ended within a frame, or the frame is too long
    :raises OSError: when the connection fails, or exceeds its time-out
    """
    head = _receive(connection, _LENGTH.size)
    if not head:
        return None
    if len(head) < _LENGTH.size:
        raise PeerError("a connection ended within a frame")
    (length,) = _LENGTH.unpack(head)
    if length > FRAME_LIMIT:
        raise DecodeError(f"a frame of {length} bytes, expected at most {FRAME_LIMIT}", head)
    data = _receive(connection, length)
    if len(data) < length:
        raise PeerError("a connection ended within a frame")
    return data


def _receive(connection: socket.socket, size: int) -> bytes:
    """Receive ``size`` bytes, fewer at the end of the connection."""
    pieces = []
    while size:
        piece = connection.recv(size)
        if not piece:
            break
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)
