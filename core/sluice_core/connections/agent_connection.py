"""A worker's connection to its node's agent: a SEQPACKET socket, on which a message is sent whole or not at all.

Sending does not block.  Without an agent the worker continues, and connects again when its timer permits; the log says
once that the agent is missing, and once that it is back.
"""

from __future__ import annotations

import logging
import os
import socket
import uuid
from typing import Any, ClassVar


class AgentConnection:
    """Base of the connections to the agent at ``path``."""

    #: Log messages: the agent is missing, is there again, has closed the connection.
    away_text: ClassVar[str] = "sluice: no agent at `%s`: %s"
    back_text: ClassVar[str] = "sluice: agent at `%s` is back"
    lost_text: ClassVar[str] = "sluice: lost the agent at `%s`: %s"

    def __init__(self, path: str, logger: logging.Logger | logging.LoggerAdapter[Any]) -> None:
        self._path = path
        self._logger = logger
        self._socket: socket.socket | None = None
        self._away = False

    def connect(self, hello: bytes) -> socket.socket | None:
        """Connect, and send ``hello`` first; return the socket, or None when the agent is missing."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        connection.setblocking(False)
        try:
            connection.connect(self._path)
            connection.send(hello)
        except OSError as error:
            connection.close()
            if not self._away:
                self._logger.warning(self.away_text, self._path, error)
            self._away = True
            return None
        if self._away:
            self._logger.info(self.back_text, self._path)
        self._away = False
        self._socket = connection
        return connection

    def send(self, message: bytes) -> bool:
        """Return whether the socket accepted ``message``; it does not when the agent is missing or slow."""
        if self._socket is None:
            return False
        try:
            self._socket.send(message)
        except BlockingIOError:
            return False
        except OSError as error:
            self._logger.warning(self.lost_text, self._path, error)
            self._away = True
            self.disconnect()
            return False
        return True

    def disconnect(self) -> None:
        """Leave the agent."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def worker_name() -> str:
    """A name for this process in a hello, unique among processes and over time."""
    return f"{os.getpid()}-{uuid.uuid4().hex[:12]}"
