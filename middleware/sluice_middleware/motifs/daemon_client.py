"""A proxy worker's calls to its node's motif daemon, and its report to the daemon each second."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from types import TracebackType
from typing import Final, Self

from sluice_core.errors import PeerError, SluiceError
from sluice_middleware.motifs.daemon_protocol import REPORT, WorkerCall, WorkerReply, receive_frame, send_frame
from sluice_middleware.swift import green
from sluice_middleware.wsgi.response import Env, OwnersError, RefusedRequest

#: Seconds for a connection, and for each frame; the daemon ends a template that makes no bytes for 60.
_CONNECT: Final = 5.0
PATIENCE: Final = 75.0
#: Seconds after which a client may retry.
RETRY_AFTER: Final = 5
#: Objects of either kind that are reported in a second, at most.
MOST: Final = 1000


def transaction_of(env: Env) -> str:
    """Swift's id of the request that is served, for the daemon's log; empty outside of Swift's servers."""
    return str(env.get("swift.trans_id") or "")


class DaemonAway(OwnersError):
    """The daemon does not answer, or cannot do now what the call requests."""

    retry_after = RETRY_AFTER


class DaemonClient:
    """:param path: of the daemon's Unix socket; empty without a daemon"""

    def __init__(self, path: str) -> None:
        self.path = path

    def call(self, call: WorkerCall) -> GrantedCall:
        """Call the daemon and return what it grants; the caller closes it.

        :raises RefusedRequest: when the client's request cannot be granted
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
    """A call that was granted; the grant lasts as long as its connection."""

    def __init__(self, connection: socket.socket, reply: WorkerReply) -> None:
        self.reply = reply
        self._connection = connection
        self._first: bytes | None = None

    def begin(self) -> None:
        """Wait for the first of the bytes that follow the reply.

        :raises PeerError: when no bytes come; the call is ended then
        """
        try:
            self._first = self._receive()
        except PeerError:
            self.close()
            raise

    def __iter__(self) -> Iterator[bytes]:
        """The bytes that follow the reply.

        :raises PeerError: when they end before the daemon has verified them
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
            raise PeerError(f"the bytes of an object are no longer made: {error}") from error
        if piece is None:
            raise PeerError("the bytes that were made are not those of the object")
        return piece

    def close(self) -> None:
        """End the grant."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class ItemReports:
    """Reports to the daemon each second which objects were read, and which ones clients changed.

    The proxy answers a GET without the daemon when the object has its bytes, and the daemon sorts objects by their
    opens. Only these reports tell it that a client deleted an object, or wrote it again without motifs.  Reports beyond
    the limit, or that cannot be sent, are dropped: the order by opens does not need each open, and the daemon checks an
    object before it contracts it.
    """

    def __init__(self, daemon: DaemonClient) -> None:
        self._daemon = daemon
        self._opens: dict[str, int] = {}
        self._changed: set[str] = set()
        self._started = False

    def note_open(self, name: str) -> None:
        """Note a read of an object with motifs that has its bytes."""
        if self._begun():
            before = self._opens.pop(name, 0)
            if before or len(self._opens) < MOST:
                self._opens[name] = before + 1

    def note_change(self, name: str) -> None:
        """Note that a client wrote or deleted an object, which may have had motifs."""
        if self._begun() and len(self._changed) < MOST:
            self._changed.add(name)

    def _begun(self) -> bool:
        """Whether there is a daemon to report to; the first call starts the reports, after the worker's fork."""
        if self._daemon.path and not self._started:
            self._started = True
            green.each_second(self.send)
        return self._started

    def send(self) -> None:
        """Send the noted objects, the last open last."""
        if not self._opens and not self._changed:
            return
        call = WorkerCall(REPORT, "", opens=self._opens, changed=tuple(sorted(self._changed)))
        self._opens, self._changed = {}, set()
        try:
            self._daemon.call(call).close()
        except SluiceError:
            return  # the daemon is unreachable; no request depends on the reports
