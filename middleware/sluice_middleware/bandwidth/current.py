"""What the node's agent says now, for those who ask in the middle of a request."""

from __future__ import annotations

from collections.abc import Mapping

from sluice_core.describe import STORAGE_NODE
from sluice_core.messages.bandwidth import Flow
from sluice_middleware.bandwidth.agent_client import shared_client


class CurrentAgentState:
    """What the agent says now, to be made before the process is what it will be (a fork, another hub)."""

    def __init__(self, path: str, side: str = STORAGE_NODE) -> None:
        self._path = path
        self._side = side

    def active(self) -> bool:
        """Whether any objective of bandwidth is in force on this node."""
        return shared_client(self._path, self._side).agent_state().active

    def level(self, flow: Flow) -> int:
        """The level of a flow's I/O, ``bandwidth.NO_CLASS`` unless the agent said another."""
        return shared_client(self._path, self._side).agent_state().level(flow)

    def spares(self) -> Mapping[str, float]:
        """Unused part, 0 to 1, of each storage node's capacity to read."""
        return shared_client(self._path, self._side).agent_state().spares
