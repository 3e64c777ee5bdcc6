"""A listening Unix socket that keeps message boundaries (SEQPACKET)."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Final

from sluice_core.errors import PeerError

log = logging.getLogger(__name__)

_BACKLOG: Final = 512


class Listener:
    """Listens at ``path`` on the running loop; ``on_connection`` gets each worker's non-blocking connection."""

    def __init__(self, path: str, on_connection: Callable[[socket.socket], None]) -> None:
        self._path = Path(path)
        self._on_connection = on_connection
        self._socket: socket.socket | None = None

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
        """Stop listening, and remove the socket file."""
        if self._socket is not None:
            asyncio.get_running_loop().remove_reader(self._socket)
            self._socket.close()
            self._socket = None
            self._path.unlink(missing_ok=True)

    def _accept(self, listener: socket.socket) -> None:
        connection = _next_connection(listener)
        if connection is not None:
            self._on_connection(connection)


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
    """The next connection; None when there is none after all."""
    try:
        connection, _ = listener.accept()
    except BlockingIOError:
        return None
    except OSError as error:
        log.error("cannot take a worker's connection: %s", error)
        return None
    connection.setblocking(False)
    return connection
