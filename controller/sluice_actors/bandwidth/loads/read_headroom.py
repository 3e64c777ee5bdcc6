"""The headroom of object servers for reading, by which proxies choose among replicas.

The headroom of a server is the unused part of its capacity.  Where it is about as much as that of all servers together,
it is set to just that: small differences are noise, and proxies that follow noise amplify it.

When the object servers hold back downloads, all of them may be used up.  Clients that go to a server at random keep
going to one that is always full, so the number of transfers that wait at each server is a random walk, until a server
has none and its bandwidth is idle.  Shares cannot correct that.  Proxies can, if servers where fewer transfers wait
seem to have a little more headroom.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from sluice_actors.bandwidth.arrays import FloatArray
from sluice_actors.bandwidth.loads.table import LoadTable
from sluice_core.describe import STORAGE_NODE
from sluice_core.messages.bandwidth import GET

#: A smaller difference to the unused part of all servers is noise.
_NOISE: Final = 0.075
#: The headroom of a used-up server with as many waiting transfers as others, and how much less it is with twice as
#: many.  A greater difference would oscillate, as proxies learn of it two seconds late.
_USED_UP: Final = 0.5
_LESS: Final = 0.1
#: The number of waiting transfers is extrapolated by this part of the way from the mean to the last second.
_LEAD: Final = 0.4
_DIGITS: Final = 3


def read_headroom(table: LoadTable, capacity: FloatArray) -> dict[str, float]:
    """``ip:port`` of each object server with an address and a known capacity → 0 to 1.

    :param capacity: (nodes,) bytes per second, infinite if unknown
    """
    stats = table.stats
    moved = table.per_node(GET, STORAGE_NODE, stats.mean_moved)
    waiting = np.maximum(stats.waiting + _LEAD * (stats.waiting - stats.mean_waiting), 0.0)
    which = np.isfinite(capacity) & np.array([bool(node.server) for node in table.nodes], dtype=bool)
    held = np.where(which, table.per_node(GET, STORAGE_NODE, waiting), 0.0)
    everywhere, carried = float(held.sum()), float(capacity[which].sum())
    room = 1.0 - moved / capacity
    usual = 1.0 - float(moved[which].sum()) / carried if carried > 0 else 0.0
    room = np.where(np.abs(room - usual) < _NOISE, usual, room)
    if everywhere > 0:
        crowd = held / np.maximum(everywhere * capacity / carried, 1.0)
        room = np.maximum(room, _USED_UP - _LESS * (crowd - 1.0))
    rounded = np.round(np.clip(room, 0.0, 1.0), _DIGITS).tolist()
    return {table.nodes[position].server: rounded[position] for position in np.flatnonzero(which).tolist()}
