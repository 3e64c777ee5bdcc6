"""What nodes are told, in columns, and as the bytes of :class:`~sluice_core.messages.bandwidth.Shares`.

A round may have some hundred thousand shares.  What they begin with (whose they are) is the same on all nodes and in
all rounds, so it is packed once; numbers are packed as columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any, Final

import msgpack
import numpy as np
from numpy.typing import NDArray

from sluice_actors.bandwidth.arrays import FloatArray, IntArray
from sluice_actors.bandwidth.loads.flow_index import METHOD_SIDES, FlowIndex
from sluice_core.messages.bandwidth import SIDES, Share, Shares

#: MessagePack's marks of a double, and of a list as long as a share.
_DOUBLE: Final = 0xCB
_SHARE: Final = bytes((0x90 | len(Share._fields),))
#: How a share ends: rate, floor, ceiling, and the priority, which is a small number.
_NUMBERS: Final = ("rate", "floor", "ceiling")
_END: Final = np.dtype([*chain(*(((f"{name}:", "u1"), (name, ">f8")) for name in _NUMBERS)), ("priority", "u1")])


@dataclass(frozen=True, slots=True)
class ShareColumns:
    """Shares of one method: ``node`` is where it stands in ``LoadTable.nodes``, ``place`` as of ``FlowIndex``."""

    node: IntArray
    place: IntArray
    rate: FloatArray
    floor: FloatArray
    ceiling: FloatArray
    priority: IntArray


class SharePrefixes:
    """How shares begin, by place; to be made anew when flows are numbered anew."""

    def __init__(self, names: FlowIndex) -> None:
        self._names = names
        self._packed: NDArray[np.object_] = np.empty(0, dtype=object)

    def of(self, places: IntArray) -> list[bytes]:
        """Packed: a list of nine that begins with side, account, container, method, policy."""
        grown = len(self._names.flows) * METHOD_SIDES - len(self._packed)
        if grown > 0:
            self._packed = np.append(self._packed, np.empty(grown, dtype=object))
        found: list[bytes] = self._packed[places].tolist()
        if None in found:
            for place in {place for place, head in zip(places.tolist(), found, strict=True) if head is None}:
                self._packed[place] = self._pack(place)
            found = self._packed[places].tolist()
        return found

    def _pack(self, place: int) -> bytes:
        flow = self._names.flows[place // METHOD_SIDES]
        begin = (SIDES[place % len(SIDES)], flow.account, flow.container, flow.method, flow.policy)
        return _SHARE + b"".join(map(msgpack.packb, begin))


def together(several: Sequence[ShareColumns]) -> ShareColumns:
    """One after the other."""
    columns = ("node", "place", "rate", "floor", "ceiling", "priority")
    return ShareColumns(*(np.concatenate([getattr(one, name) for one in several]) for name in columns))


def packed(told: ShareColumns, heads: SharePrefixes, nodes: int) -> list[tuple[int, bytes]]:
    """For each of so many nodes how many shares it has, and these packed, one after the other."""
    order = np.argsort(told.node.astype(np.min_scalar_type(nodes)), kind="stable")
    ends = np.zeros(len(order), dtype=_END)
    for name in _NUMBERS:
        ends[f"{name}:"] = _DOUBLE
        ends[name] = getattr(told, name)[order]
    ends["priority"] = told.priority[order]
    pieces = [b""] * (2 * len(order))
    pieces[::2] = heads.of(told.place[order])
    pieces[1::2] = ends.view(f"V{_END.itemsize}").tolist()
    bounds = np.searchsorted(told.node[order], np.arange(nodes + 1)).tolist()
    return [(end - begin, b"".join(pieces[2 * begin : 2 * end])) for begin, end in pairwise(bounds)]


def encoded(shares: Shares, count: int, rows: bytes, spares: bytes) -> bytes:
    """``shares`` for the wire, with rows and spares that are packed already."""
    data: dict[str, Any] = {"v": shares.version, **shares.to_data()}
    del data["rows"], data["spares"]
    packer = msgpack.Packer(autoreset=False)
    packer.pack_map_header(len(data) + 2)
    for name, value in data.items():
        packer.pack(name)
        packer.pack(value)
    packer.pack("rows")
    packer.pack_array_header(count)
    return b"".join((packer.bytes(), rows, msgpack.packb("spares"), spares))
