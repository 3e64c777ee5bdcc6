"""A proxy worker's calls to its node's motif daemon."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from types import TracebackType
from typing import Final, Self

from sluice_core.errors import PeerError
from sluice_middleware.motifs.daemon_protocol import WorkerCall, WorkerReply, receive_frame, send_frame
from sluice_middleware.swift import green
from sluice_middleware.wsgi.response import OwnersError, RefusedRequest

#: Seconds for a connection, and for each frame; the daemon gives up a template that makes nothing for 60.
_CONNECT: Final = 5.0
PATIENCE: Final = 75.0
#: Seconds after which a client may try again.
RETRY_AFTER: Final = 5


class DaemonAway(OwnersError):
    """No daemon answers, or it cannot do now what it was asked to."""

    retry_after = RETRY_AFTER


class DaemonClient:
    """:param path: of the daemon's unix socket; empty when there is none"""

    def __init__(self, path: str) -> None:
        self.path = path

    def call(self, call: WorkerCall) -> GrantedCall:
        """What the daemon grants; close it.

        :raises RefusedRequest: when the client asked for what cannot be
        :raises DaemonAway: when it cannot be granted now
        """
        if not self.path:
            raise DaemonAway("this proxy has no `motif_socket`, so it asks no motif daemon")
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.settimeout(_CONNECT)
            connection.connect(self.path)
            connection.settimeout(PATIENCE)
            send_frame(connection, call.encode())
            raw = receive_frame(connection)
            if raw is None:
                raise PeerError("it ended the connection")
            reply = WorkerReply.decode(raw)
        except (OSError, PeerError) as error:
            connection.close()
            raise DaemonAway(f"the motif daemon at `{self.path}` is away: {error}") from error
        if reply.status >= 300:
            connection.close()
            if reply.status >= 500:
                raise DaemonAway(reply.reason)
            raise RefusedRequest(reply.reason, reply.status)
        return GrantedCall(connection, reply)


class GrantedCall:
    """A call that was granted, with the connection on which that rests."""

    def __init__(self, connection: socket.socket, reply: WorkerReply) -> None:
        self.reply = reply
        self._connection = connection
        self._first: bytes | None = None

    @property
    def holds(self) -> bool:
        """Whether the daemon has not taken it back."""
        return not green.is_readable(self._connection)

    def begin(self) -> None:
        """Wait for the first of the bytes that follow the reply.

        :raises PeerError: when none come; the call is ended then
        """
        try:
            self._first = self._receive()
        except PeerError:
            self.close()
            raise

    def pieces(self) -> Iterator[bytes]:
        """The bytes that follow the reply.

        :raises PeerError: when they end without having been proven
        """
        try:
            piece = self._receive() if self._first is None else self._first
            while piece:
                yield piece
                piece = self._receive()
        finally:
            self.close()

    def _receive(self) -> bytes:
        try:
            piece = receive_frame(self._connection)
        except OSError as error:
            raise PeerError(f"bytes of an object are not made any more: {error}") from error
        if piece is None:
            raise PeerError("the bytes that were made are not those of the object")
        return piece

    def close(self) -> None:
        """Give back what was granted."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
