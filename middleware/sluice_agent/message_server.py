"""A server on a Unix socket that keeps message boundaries (SEQPACKET), for the workers of Swift.

asyncio has no transport for such sockets, so they are watched by hand.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import socket
from abc import abstractmethod
from pathlib import Path
from typing import ClassVar, Final, Generic, Protocol, TypeVar

from sluice_core.errors import DecodeError, PeerError

log = logging.getLogger(__name__)

_BACKLOG: Final = 512
#: More than the limit of a message (64 KiB), so that a longer one is detected.
_RECEIVE: Final = 1 << 17


class Connected(Protocol):
    """A worker with its connection."""

    connection: socket.socket


W = TypeVar("W", bound=Connected)


class MessageServer(Generic[W]):
    """Listens at ``path`` on the running loop, and receives the messages of workers ``W``."""

    #: Messages received from one worker before the others have their turn.
    messages_per_turn: ClassVar[int] = 1

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._socket: socket.socket | None = None
        self._workers: dict[int, W] = {}

    @abstractmethod
    def _make_worker(self, connection: socket.socket) -> W:
        """The worker of a new connection."""

    @abstractmethod
    def _handle(self, worker: W, raw: bytes) -> bool:
        """Handle one message; False closes the connection.

        :raises DecodeError: for an invalid message, which closes the connection, too
        """

    @abstractmethod
    def _forget(self, worker: W) -> None:
        """The connection of ``worker`` was closed."""

    @property
    def is_open(self) -> bool:
        """Whether it listens now."""
        return self._socket is not None

    def open(self, mode: int = 0o660, group: str = "") -> None:
        """Listen; a socket file that a killed agent left is replaced.

        :raises PeerError: when the socket cannot be opened
        """
        self._socket = _listen(self._path, mode, group)
        asyncio.get_running_loop().add_reader(self._socket, self._accept, self._socket)

    def close(self) -> None:
        """Close all connections, stop listening, and remove the socket file."""
        for number in list(self._workers):
            self._hang_up(number)
        if self._socket is not None:
            asyncio.get_running_loop().remove_reader(self._socket)
            self._socket.close()
            self._socket = None
            self._path.unlink(missing_ok=True)

    def _accept(self, listener: socket.socket) -> None:
        connection = _next_connection(listener)
        if connection is not None:
            self._workers[connection.fileno()] = self._make_worker(connection)
            asyncio.get_running_loop().add_reader(connection, self._receive, connection.fileno())

    def _receive(self, number: int) -> None:
        worker = self._workers[number]
        for _ in range(self.messages_per_turn):
            try:
                raw = worker.connection.recv(_RECEIVE)
            except BlockingIOError:
                return
            except OSError as error:
                log.warning("lost a worker: %s", error)
                raw = b""
            try:
                goes_on = bool(raw) and self._handle(worker, raw)
            except DecodeError as error:
                log.warning("hung up on a worker: %s", error)
                goes_on = False
            if not goes_on:
                self._hang_up(number)
            if number not in self._workers:
                return

    def _hang_up(self, number: int) -> None:
        worker = self._workers.pop(number)
        loop = asyncio.get_running_loop()
        loop.remove_reader(worker.connection)
        loop.remove_writer(worker.connection)
        worker.connection.close()
        self._forget(worker)


def _listen(path: Path, mode: int, group: str) -> socket.socket:
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh.unlink(missing_ok=True)
        listener.bind(str(fresh))
        fresh.chmod(mode)
        if group:
            shutil.chown(fresh, group=group)
        listener.listen(_BACKLOG)
        fresh.replace(path)  # a socket that does not answer is never visible
    except (OSError, LookupError) as error:
        listener.close()
        raise PeerError(f"cannot listen at `{path}`: {error}") from error
    return listener


def _next_connection(listener: socket.socket) -> socket.socket | None:
    """Accept a connection; return None when the peer has closed it meanwhile."""
    try:
        connection, _ = listener.accept()
    except BlockingIOError:
        return None
    except OSError as error:
        log.error("cannot take a worker's connection: %s", error)
        return None
    connection.setblocking(False)
    return connection
