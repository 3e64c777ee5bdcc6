"""A listening Unix socket that keeps messages apart (SEQPACKET), and who comes to it."""

from __future__ import annotations

import logging
import os
import shutil
import socket
from pathlib import Path
from typing import Final

from sluice_core.errors import PeerError

log = logging.getLogger(__name__)

_BACKLOG: Final = 512


def listen(path: Path, mode: int = 0o660, group: str = "") -> socket.socket:
    """Listen at ``path``, non-blocking; a socket file that a killed agent left is replaced.

    :raises PeerError: when that cannot be
    """
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
        fresh.replace(path)  # nobody ever sees a socket that does not answer
    except (OSError, LookupError) as error:
        listener.close()
        raise PeerError(f"cannot listen at `{path}`: {error}") from error
    return listener


def accepted(listener: socket.socket) -> socket.socket | None:
    """The next worker's connection, non-blocking; None when there is none after all."""
    try:
        connection, _ = listener.accept()
    except BlockingIOError:
        return None
    except OSError as error:
        log.error("cannot take a worker's connection: %s", error)
        return None
    connection.setblocking(False)
    return connection
