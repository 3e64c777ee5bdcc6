"""The unix socket on which the node's proxy workers ask: one connection a call, each in a green thread of its own."""

from __future__ import annotations

import logging
import os
import socket
from contextlib import suppress
from pathlib import Path
from typing import Final

from sluice_core.errors import PeerError
from sluice_middleware.motifs.daemon_protocol import WorkerCall, receive_frame
from sluice_middleware.swift import green
from sluice_motifs_swift.workers.calls import WorkerCalls

log = logging.getLogger(__name__)

#: Connections that wait to be accepted.
_BACKLOG: Final = 4096
#: Seconds for a frame to come, or to be taken by a slow client.
_PATIENCE: Final = 60.0


class WorkerServer:
    """A service; its socket is for processes of the same user.

    :param path: of the socket; one that a dead daemon left is replaced
    """

    def __init__(self, path: str, calls: WorkerCalls) -> None:
        self._path = Path(path)
        self._calls = calls
        self._socket: socket.socket | None = None
        self._running: green.Pending | None = None

    def start(self) -> None:
        """
        :raises PeerError: when the socket cannot be made, or another daemon listens there
        """
        listening = socket.socket(socket.AF_UNIX)
        try:
            if _listens(self._path):
                raise PeerError(f"another daemon listens on `{self._path}`")
            self._path.unlink(missing_ok=True)
            before = os.umask(0o077)
            try:
                listening.bind(str(self._path))
            finally:
                os.umask(before)
            listening.listen(_BACKLOG)
        except OSError as error:
            listening.close()
            raise PeerError(f"cannot listen on `{self._path}`: {error}") from error
        except PeerError:
            listening.close()
            raise
        self._socket = listening
        self._running = green.start_green_thread(self._accept)

    def stop(self) -> None:
        if self._running is not None:
            self._running.kill()
        if self._socket is not None:
            self._socket.close()
            with suppress(OSError):
                self._path.unlink()

    def _accept(self) -> None:
        assert self._socket is not None
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError as error:
                log.error("no connection is accepted: %s", error)
                green.pause(1.0)
                continue
            green.start_green(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            connection.settimeout(_PATIENCE)
            try:
                raw = receive_frame(connection)
                if raw is not None:
                    self._calls.serve(WorkerCall.decode(raw), connection)
            except OSError as error:
                log.debug("a proxy worker is gone: %s", error)
            except PeerError as error:
                log.warning("a call of a proxy worker is not understood: %s", error)
            except Exception:
                log.exception("a call of a proxy worker failed")


def _listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
        return True
