"""Whether all processes of the cluster support motifs: only then, and as long as that holds, objects are contracted.

A proxy that does not support motifs answers a GET of a contracted object with no bytes and their ETag.  So each
proxy worker that serves contracted objects announces it in its hello, each agent reports whether all workers of its
node did, and a process that contracts calls this module before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from sluice_core.errors import PeerError
from sluice_core.messages.nodes import NodeReport

#: The version of contracted objects in the hello of a process, as this version writes them.
MOTIF_STATES: Final = 1
READY: Final = "ready"
#: The most nodes that a reason names.
_NAMED: Final = 5


def suspension(nodes: Iterable[NodeReport], now: float, timeout: float) -> str:
    """Return why no object may be contracted now; empty when objects may.

    :param now: unix seconds
    :param timeout: seconds after which a silent node counts as one without motifs
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
        return f"has not reported for {now - node.at:.0f} s (forget the node if it does not exist any more)"
    if not node.motifs:
        return f"runs `{node.software}`, which does not know motifs"
    return "" if node.motifs == READY else f"is {node.motifs}"


class ContractionGuard:
    """Calls :func:`suspension` with the reports of all nodes, at most once in ``interval`` seconds.

    While the reports cannot be read no object may be contracted.

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
        """Return why no object may be contracted now; empty when objects may."""
        now = self._now()
        if not 0 <= now - self._asked < self._interval:
            try:
                self._reason = suspension(self._read_nodes(), now, self._timeout)
            except PeerError as error:
                self._reason = f"what the nodes report cannot be read: {error}"
            self._asked = now
        return self._reason
