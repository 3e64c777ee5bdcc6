"""The clients of the agent in this process: one per hub, agent and side."""

from __future__ import annotations

import os
from typing import Final

from sluice_core.describe import STORAGE_NODE
from sluice_middleware.bandwidth.agent_client import CreditClient
from sluice_middleware.bandwidth.io_levels import AgentState
from sluice_middleware.log import Logger
from sluice_middleware.swift import green
from sluice_middleware.swift.proxy_api import POLICIES

#: One per process, hub, agent and side; a fork has its own, and so has a server that Swift loads a second time.
_clients: dict[tuple[int, int, str, str], CreditClient] = {}
_NO_AGENT: Final = AgentState()


class AgentStateReader:
    """Returns, when called, the last state from the agent at ``path``; with an empty path there is no agent, and no
    objective.

    Called for each request and each step of a stream, so it looks the client up once, and again after a fork.
    """

    __slots__ = ("_client", "_path", "_process", "_side")

    def __init__(self, path: str, side: str = STORAGE_NODE) -> None:
        self._path = path
        self._side = side
        self._client: CreditClient | None = None
        self._process = 0

    def __call__(self) -> AgentState:
        if self._client is None or self._process != os.getpid():
            if not self._path:
                return _NO_AGENT
            self._client, self._process = shared_client(self._path, self._side), os.getpid()
        return self._client.state


def shared_client(path: str, side: str = STORAGE_NODE, server: str = "", logger: Logger | None = None) -> CreditClient:
    """The client of this process for the agent at ``path`` (its socket for counters); connected at first use.

    Call it in green threads only; ``server`` as of :class:`CreditClient`, if the caller knows it.
    """
    place = (os.getpid(), green.hub_id(), path, side)
    client = _clients.get(place)
    if client is None:
        names = {str(int(one)): one.name for one in POLICIES}
        client = _clients[place] = CreditClient(path, side, server, names, logger)
        client.tick()
        green.each_second(client.tick)
    elif server:
        client.set_server(server)
    return client
