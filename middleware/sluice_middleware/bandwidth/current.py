"""What the node's agent says now, for those who ask in the middle of a request."""

from __future__ import annotations

from collections.abc import Mapping

from sluice_core.describe import STORAGE_NODE
from sluice_core.messages.bandwidth import Flow
from sluice_middleware.bandwidth.agent_client import current


class CurrentAgentState:
    """What the agent says now, to be made before the process is what it will be (a fork, another hub)."""

    def __init__(self, path: str, side: str = STORAGE_NODE) -> None:
        self._path = path
        self._side = side

    def active(self) -> bool:
        """Whether any objective of bandwidth is in force on this node."""
        return current(self._path, self._side).standing().active

    def level(self, flow: Flow) -> int:
        """The level of a flow's I/O, ``bandwidth.NO_CLASS`` unless the agent said another."""
        return current(self._path, self._side).standing().level(flow)

    def spares(self) -> Mapping[str, float]:
        """Unused part, 0 to 1, of each storage node's capacity to read."""
        return current(self._path, self._side).standing().spares
