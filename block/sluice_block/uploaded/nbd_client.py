"""A minimal client of NBD on a unix socket for trials of filters: one request at a time, simple replies.

The protocol is that of the NBD project (``doc/proto.md``): fixed newstyle negotiation, ``NBD_OPT_GO``.
"""

from __future__ import annotations

import socket
import struct
from pathlib import Path
from typing import Final, Self

from sluice_core.errors import PeerError

_GREETING: Final = struct.Struct(">8s8sH")
_OPTION: Final = struct.Struct(">8sII")
_OPTION_REPLY: Final = struct.Struct(">QIII")
_REQUEST: Final = struct.Struct(">IHHQQI")
_REPLY: Final = struct.Struct(">IIQ")
_MAGIC: Final = b"NBDMAGIC"
_OPTION_MAGIC: Final = b"IHAVEOPT"
_REQUEST_MAGIC: Final = 0x25609513
_FLAGS: Final = 3  # fixed newstyle, no zeroes behind the old reply
_GO: Final = 7
_ACKNOWLEDGED, _INFORMATION = 1, 3
_EXPORT: Final = 0
_READ, _WRITE, _FLUSH, _TRIM, _ZERO = 0, 1, 3, 4, 6


class RequestFailed(PeerError):
    """The server answered a request with ``errno``."""

    def __init__(self, what: str, number: int) -> None:
        super().__init__(f"{what} is answered with errno {number}")
        self.errno = number


class NbdClient:
    """One connection, to be closed.

    :param seconds: time-out of an answer
    :raises PeerError: when the server does not export a volume
    """

    def __init__(self, path: Path, seconds: float) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(seconds)
        self._cookie = 0
        try:
            self._socket.connect(str(path))
            #: Bytes of the export.
            self.size = self._negotiate()
        except (OSError, PeerError) as error:
            self._socket.close()
            raise PeerError(f"the export is not shown: {error}") from error

    def read(self, count: int, offset: int) -> bytes:
        """
        :raises RequestFailed: when the server answers with an error
        :raises PeerError: when it does not answer
        """
        self._ask("a read", _READ, offset, count)
        return self._receive(count)

    def write(self, data: bytes, offset: int) -> None:
        """Raises as :meth:`read` does."""
        self._ask("a write", _WRITE, offset, len(data), data)

    def zero(self, count: int, offset: int) -> None:
        """Raises as :meth:`read` does; EOPNOTSUPP where zeroes are not offered."""
        self._ask("a zero request", _ZERO, offset, count)

    def trim(self, count: int, offset: int) -> None:
        """Raises as :meth:`read` does; EINVAL where trim is not offered."""
        self._ask("a trim request", _TRIM, offset, count)

    def flush(self) -> None:
        """Raises as :meth:`read` does."""
        self._ask("a flush", _FLUSH, 0, 0)

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _negotiate(self) -> int:
        magic, option, _ = _GREETING.unpack(self._receive(_GREETING.size))
        if (magic, option) != (_MAGIC, _OPTION_MAGIC):
            raise PeerError("what it says is not NBD")
        wanted = struct.pack(">IH", 0, 0)  # the default export, whatever the server says about it
        self._send(struct.pack(">I", _FLAGS) + _OPTION.pack(_OPTION_MAGIC, _GO, len(wanted)) + wanted)
        size = -1
        while True:
            _, _, kind, length = _OPTION_REPLY.unpack(self._receive(_OPTION_REPLY.size))
            data = self._receive(length)
            if kind == _ACKNOWLEDGED and size >= 0:
                return size
            if kind != _INFORMATION:
                raise PeerError(f"the server refuses it: {data.decode(errors='replace') or kind}")
            if int.from_bytes(data[:2], "big") == _EXPORT:
                size = int.from_bytes(data[2:10], "big")

    def _ask(self, what: str, kind: int, offset: int, count: int, data: bytes = b"") -> None:
        self._cookie += 1
        self._send(_REQUEST.pack(_REQUEST_MAGIC, 0, kind, self._cookie, offset, count) + data)
        _, number, cookie = _REPLY.unpack(self._receive(_REPLY.size))
        if cookie != self._cookie:
            raise PeerError(f"{what} is answered for another request")
        if number:
            raise RequestFailed(what, number)

    def _send(self, data: bytes) -> None:
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise PeerError(f"nothing can be sent: {error}") from error

    def _receive(self, count: int) -> bytes:
        received = bytearray()
        while len(received) < count:
            try:
                piece = self._socket.recv(count - len(received))
            except OSError as error:
                raise PeerError(f"no answer: {error}") from error
            if not piece:
                raise PeerError("the connection is lost")
            received += piece
        return bytes(received)
