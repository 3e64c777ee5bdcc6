"""Whether everybody knows motifs: before that, and as soon as it is not so any more, nothing is contracted.

A proxy that does not know motifs answers a GET of a contracted object with no bytes and the ETag of none.  So each
proxy worker that serves contracted objects says so in its hello, each agent reports whether all workers of its node
did, and whoever contracts asks here before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from sluice_core.errors import PeerError
from sluice_core.messages.nodes import NodeReport

#: What a hello says of a process that knows contracted objects, as this version writes them.
MOTIF_STATES: Final = 1
READY: Final = "ready"
#: Nodes that a reason names.
_NAMED: Final = 5


def suspension(nodes: Iterable[NodeReport], now: float, timeout: float) -> str:
    """Why nothing may be contracted now; empty when it may.

    :param now: unix seconds
    :param timeout: seconds after which a node that does not report counts as one that does not know motifs
    """
    known = list(nodes)
    if not known:
        return "no node has reported"
    reasons = {one.node: _reason(one, now, timeout) for one in known}
    found = [f"node `{node}` {reason}" for node, reason in sorted(reasons.items()) if reason]
    more = f", and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return "; ".join(found[:_NAMED]) + more


def _reason(node: NodeReport, now: float, timeout: float) -> str:
    if now - node.at > timeout:
        return f"has not reported for {now - node.at:.0f} s (forget it, if it is no more)"
    if not node.motifs:
        return f"runs `{node.software}`, which does not know motifs"
    return "" if node.motifs == READY else f"is {node.motifs}"


class ContractionGuard:
    """Asks :func:`suspension` of what nodes report, at most once in ``interval`` seconds.

    While nobody can be asked nothing may be contracted.

    :param read_nodes: the reports of all nodes; raises PeerError
    :param timeout: as of :func:`suspension`
    :param now: unix seconds
    """

    def __init__(
        self,
        read_nodes: Callable[[], Sequence[NodeReport]],
        now: Callable[[], float],
        timeout: float = 15.0,
        interval: float = 2.0,
    ) -> None:
        self._read_nodes = read_nodes
        self._now = now
        self._timeout = timeout
        self._interval = interval
        self._asked = float("-inf")
        self._reason = ""

    def __call__(self) -> str:
        """Why nothing may be contracted now; empty when it may."""
        now = self._now()
        if not 0 <= now - self._asked < self._interval:
            try:
                self._reason = suspension(self._read_nodes(), now, self._timeout)
            except PeerError as error:
                self._reason = f"what the nodes report cannot be read: {error}"
            self._asked = now
        return self._reason
