"""Which object servers have room to read, for the proxies' choice among replicas.

A server has what is not used of its capacity; where that is about as much as of all of them, just that much: small
differences are noise, and who follows them makes them great.  When downloads are held back by the object servers, all
of them may be used up, and clients drawn at random to one that is always full just stay there: how many wait at each
server walks at random, until one has none and its bandwidth lies idle.  Nothing in the division can turn that; the
proxies can, if those with fewer who wait seem to have more room, be it only a little.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from sluice_actors.bandwidth.arrays import FloatArray
from sluice_actors.bandwidth.loads.table import LoadTable
from sluice_core.describe import STORAGE_NODE
from sluice_core.messages.bandwidth import GET

#: A server whose unused part differs by less from that of all has the same.
_ALIKE: Final = 0.075
#: The room of a server that is used up and has as many who wait as others, and how much less one has with twice as
#: many.  More than that would swing, as proxies hear of it two seconds late.
_USED_UP: Final = 0.5
_LESS: Final = 0.1
#: How many wait is reckoned this much farther along the way from the mean to the last second.
_LEAD: Final = 0.4
_DIGITS: Final = 3


def rooms(table: LoadTable, capacity: FloatArray) -> dict[str, float]:
    """``ip:port`` → 0 to 1.

    :param capacity: (nodes,) bytes per second; of those that have an address and a finite one, the room is said
    """
    stats = table.stats
    moved = table.per_node(GET, STORAGE_NODE, stats.mean_moved)
    waiting = np.maximum(stats.waiting + _LEAD * (stats.waiting - stats.mean_waiting), 0.0)
    which = np.isfinite(capacity) & np.array([bool(node.server) for node in table.nodes], dtype=bool)
    held = np.where(which, table.per_node(GET, STORAGE_NODE, waiting), 0.0)
    everywhere, carried = float(held.sum()), float(capacity[which].sum())
    room = 1.0 - moved / capacity
    usual = 1.0 - float(moved[which].sum()) / carried if carried > 0 else 0.0
    room = np.where(np.abs(room - usual) < _ALIKE, usual, room)
    if everywhere > 0:
        crowd = held / np.maximum(everywhere * capacity / carried, 1.0)
        room = np.maximum(room, _USED_UP - _LESS * (crowd - 1.0))
    rounded = np.round(np.clip(room, 0.0, 1.0), _DIGITS).tolist()
    return {table.nodes[place].server: rounded[place] for place in np.flatnonzero(which).tolist()}
