"""Registers this process with the node's agent, which reports when all daemons of the node run these disk files.

A stock daemon on the same node would quarantine every transformed object, so each process that builds a manager says
hello to the agent and stays connected.  The agent writes its verdict to a file beside its socket
(``messages.StorageState``), which object servers read before they apply a transform.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any, Final

from sluice_core.connections.agent_connection import AgentConnection, worker_name
from sluice_core.errors import DecodeError
from sluice_core.messages.nodes import STORAGE_STATE_SUFFIX, Hello, StorageState
from sluice_middleware.log import Logger
from sluice_middleware.object_server.diskfile.disk_filters import DiskFilters
from sluice_middleware.object_server.diskfile.stored_metadata import VERSION
from sluice_middleware.swift import green

OBJECT_SERVER: Final = "object-server"


class NodeReadiness:
    """The agent's verdict on this node's daemons; an empty ``path`` needs no verdict."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._seen: tuple[int, int] | None = None
        self._verdict = ""

    def reason_not_ready(self) -> str:
        """Return why no object may be transformed here yet; empty when it may."""
        if self._path is None:
            return ""
        try:
            found = self._path.stat()
            seen = (found.st_ino, found.st_mtime_ns)
            if seen != self._seen:
                self._verdict = _words(StorageState.decode(self._path.read_bytes()))
                self._seen = seen
        except (OSError, DecodeError) as error:
            self._seen = None
            return f"the agent has not said which storage daemons run disk files of Sluice: {error}"
        return self._verdict


class AgentRegistration(AgentConnection):
    """Keeps one process registered at its agent; ``tick`` is called by a timer and never raises."""

    def __init__(self, path: str, role: str, tools: DiskFilters, logger: Logger) -> None:
        super().__init__(path, logger)
        self._role = role
        self._tools = tools
        self._worker = worker_name()

    def tick(self) -> None:
        """Connect and say hello, unless the connection is alive and the filters have not changed."""
        if self._tools.refresh():
            self.disconnect()
        if self._socket is not None and not self._is_alive(self._socket):
            self.disconnect()
        if self._socket is None:
            self.connect(self._hello().encode())

    def _is_alive(self, connection: socket.socket) -> bool:
        try:
            return connection.recv(1, socket.MSG_DONTWAIT | socket.MSG_PEEK) != b""
        except BlockingIOError:
            return True  # the agent sends nothing
        except OSError:
            return False

    def _hello(self) -> Hello:
        filters = self._tools.filters
        return Hello(
            self._worker,
            self._role,
            os.getpid(),
            {keyword: one.info.version for keyword, one in filters.items()},
            disk_file=VERSION,
            stored=tuple(keyword for keyword, one in filters.items() if one.info.reversible and one.info.on_put),
            plugins=self._tools.failures,
        )


#: One per process and agent, however many policies and managers there are; a fork has its own, and so has
#: a server that Swift loads a second time, on the hub that it will run on.
_registrations: dict[tuple[int, int, str], AgentRegistration] = {}


def register(tools: DiskFilters, logger: Logger) -> NodeReadiness:
    """Register this process, once for all of its managers; return the agent's verdict on the node."""
    path = tools.options["sluice_agent_socket"]
    if not path:
        return NodeReadiness(None)
    place = (os.getpid(), green.hub_id(), path)
    if place not in _registrations:
        found = _registrations[place] = AgentRegistration(path, daemon_role(logger), tools, logger)
        found.tick()
        green.each_second(found.tick)
    return NodeReadiness(Path(path + STORAGE_STATE_SUFFIX))


def daemon_role(logger: Logger) -> str:
    """The daemon's name as Swift gives it to its loggers, whatever the operator names its section."""
    this: Any = logger
    return str(getattr(getattr(this, "logger", this), "name", "")) or OBJECT_SERVER


def _words(state: StorageState) -> str:
    if not state.waiting:
        return ""
    return f"storage daemons of this node that do not run disk files of Sluice: {', '.join(state.waiting)}"
