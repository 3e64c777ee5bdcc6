"""Distinguishes nodes that failed from nodes whose agent alone is silent, by the bytes that the other side moves.

Bytes that pass one side pass the other.  While all nodes report, the detector learns the proportion of both sides;
caches and the copies of uploads are why it is not 1.  When some nodes are silent and the other side moves no more than
the reporting nodes of their own side account for, the silent nodes have failed and other nodes get their share.
Otherwise their workers continue at their last rates, which no other node gets until the silent nodes are forgotten.
"""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from sluice_actors.bandwidth.loads.flow_index import METHOD_SIDES, method_side
from sluice_actors.bandwidth.loads.node_loads import FRESH_SECONDS, Node, NodeLoads
from sluice_core.describe import STORAGE_NODE
from sluice_core.messages.bandwidth import GET, PUT, SIDES

#: Unaccounted bytes, as a part of the accounted ones, up to which nodes count as failed, and still count as failed.
_SAME, _STILL = 0.10, 0.20
#: A smaller rate in bytes per second proves nothing, nor does a smaller proportion.
_TELLS: Final = 1e6
_LEAST: Final = 0.2
#: Seconds that are remembered; in a few of them buffers may have taken bytes that had not passed the other side.
_SECONDS: Final = 15
#: When every node reported within this many seconds, all reports are of the same second.
_SPEAKS: Final = 1.0


@dataclass(slots=True)
class FailureDetector:
    """Remembers for each method the proportion of bytes on both sides, and which nodes had failed in the last round."""

    failed: frozenset[str] = frozenset()
    _proportions: dict[str, deque[float]] = field(default_factory=dict)

    def detect(self, loads: NodeLoads, now: float, held: Collection[tuple[str, str]]) -> frozenset[str]:
        """Return the names of the nodes that count as failed.

        :param now: seconds on this host's monotonic clock
        :param held: methods, each with the side where it is held back
        """
        nodes = list(loads.nodes.values())
        silent = [node for node in nodes if now - node.arrived > FRESH_SECONDS]
        if all(now - node.arrived <= _SPEAKS for node in nodes):
            self._learn(nodes)
        failed_nodes: set[str] = set()
        for side in SIDES if silent else ():
            # A node that serves both sides would hide its own bytes.
            here = {node.name for node in silent if node.served_sides == (side,)}
            limit = _STILL if here & self.failed else _SAME
            verdicts = [self._accounted(nodes, here, method, side, limit) for method, there in held if there == side]
            if True in verdicts and False not in verdicts:
                failed_nodes |= here
        self.failed = frozenset(failed_nodes)
        return self.failed

    def _learn(self, nodes: list[Node]) -> None:
        sums = _sums(nodes)
        for method in (GET, PUT):
            proxies, stored = (sums[method_side(method, side)] for side in SIDES)
            if min(proxies, stored) >= _TELLS:
                self._proportions.setdefault(method, deque(maxlen=_SECONDS)).append(stored / proxies)

    def _accounted(self, nodes: list[Node], silent: set[str], method: str, side: str, limit: float) -> bool | None:
        """Whether the reporting nodes account for all bytes of the other side; None if there is no proof."""
        known, other = self._proportions.get(method), next(one for one in SIDES if one != side)
        speaking = _moved((node for node in nodes if node.name not in silent), method, side)
        if not known or speaking < _TELLS:
            return None
        proportion = statistics.median(known)
        if side == STORAGE_NODE:
            proportion = 1.0 / proportion
        if proportion < _LEAST:
            return False
        return _moved(nodes, method, other) <= speaking * proportion * (1.0 + limit)


def _moved(nodes: Iterable[Node], method: str, side: str) -> float:
    """Bytes of one method on one side that ``nodes`` reported for the last second."""
    return _sums(nodes)[method_side(method, side)]


def _sums(nodes: Iterable[Node]) -> list[float]:
    """The bytes of the last second, by ``method_side``."""
    stats = [node.stats for node in nodes]
    if not stats:
        return [0.0] * METHOD_SIDES
    kinds = np.concatenate([one.flow_sides for one in stats]) % METHOD_SIDES
    sums: list[float] = np.bincount(
        kinds, np.concatenate([one.moved for one in stats]), minlength=METHOD_SIDES
    ).tolist()
    return sums
