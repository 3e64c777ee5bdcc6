"""Which object servers have room to read, for the proxies' choice among replicas.

A server has what is not used of its capacity.  When downloads are held back by the object servers, all of them may be
used up, and clients drawn at random to one that is always full just stay there: how many wait at each server walks at
random, until one has none and its bandwidth lies idle.  Nothing in the division can turn that; the proxies can, if
those with fewer who wait seem to have more room.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from sluice_actors.bandwidth_loads import Node
from sluice_core.bandwidth import GET
from sluice_core.describe import STORAGE_NODE

#: The room of a server that is used up and has as many who wait as others, and how much less one has with twice as
#: many.  More than that would swing, as proxies hear of it two seconds late.
_USED_UP: Final = 0.5
_LESS: Final = 0.15
#: How many wait is reckoned this much farther along the way from the mean to the last second.
_LEAD: Final = 0.4
_DIGITS: Final = 3


def rooms(nodes: Sequence[Node], capacity: Mapping[str, float]) -> dict[str, float]:
    """``ip:port`` → 0 to 1.

    :param capacity: node's name → bytes per second
    """
    moved, held = {}, {}
    for node in nodes:
        reads = [trace for (side, flow), trace in node.traces.items() if side == STORAGE_NODE and flow.method == GET]
        moved[node.name] = sum(trace.bytes for trace in reads)
        held[node.name] = sum(max(trace.waiting + _LEAD * (trace.waiting - trace.held), 0.0) for trace in reads)
    everywhere, carried = sum(held.values()), sum(capacity[node.name] for node in nodes)
    found = {}
    for node in nodes:
        room = 1.0 - moved[node.name] / capacity[node.name]
        if everywhere > 0:
            crowd = held[node.name] / max(everywhere * capacity[node.name] / carried, 1.0)
            room = max(room, _USED_UP - _LESS * (crowd - 1.0))
        found[node.server] = round(min(max(room, 0.0), 1.0), _DIGITS)
    return found
