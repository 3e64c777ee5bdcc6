"""Encodes shares, which are columns, as the bytes of :class:`~sluice_core.messages.bandwidth.Shares`.

A round may have some hundred thousand shares.  Each begins with its flow, which is the same on all nodes and in all
rounds, so these bytes are made once; the numbers after them are encoded as columns.
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

#: MessagePack's type bytes of a double, and of a list as long as a share.
_DOUBLE: Final = 0xCB
_SHARE: Final = bytes((0x90 | len(Share._fields),))
#: How a share ends: rate, floor, ceiling, and the priority, which is a small number.
_NUMBERS: Final = ("rate", "floor", "ceiling")
_END: Final = np.dtype([*chain(*(((f"{name}:", "u1"), (name, ">f8")) for name in _NUMBERS)), ("priority", "u1")])


@dataclass(frozen=True, slots=True)
class ShareColumns:
    """Shares of one method; all arrays are (shares,), rates bytes per second, a negative rate is no limit."""

    node: IntArray  #: positions in ``LoadTable.nodes``
    flow_side: IntArray  #: see ``flow_index``
    rate: FloatArray
    floor: FloatArray
    ceiling: FloatArray
    priority: IntArray


class SharePrefixes:
    """The bytes with which shares begin, by flow-side; they must be made anew when flows are numbered anew."""

    def __init__(self, names: FlowIndex) -> None:
        self._names = names
        self._packed: NDArray[np.object_] = np.empty(0, dtype=object)

    def packed(self, flow_sides: IntArray) -> list[bytes]:
        """Each is the beginning of a list of nine: side, account, container, method, policy."""
        grown = len(self._names.flows) * METHOD_SIDES - len(self._packed)
        if grown > 0:
            self._packed = np.append(self._packed, np.empty(grown, dtype=object))
        packed: list[bytes] = self._packed[flow_sides].tolist()
        if None in packed:
            for flow_side in {
                flow_side for flow_side, head in zip(flow_sides.tolist(), packed, strict=True) if head is None
            }:
                self._packed[flow_side] = self._pack(flow_side)
            packed = self._packed[flow_sides].tolist()
        return packed

    def _pack(self, flow_side: int) -> bytes:
        flow = self._names.flows[flow_side // METHOD_SIDES]
        begin = (SIDES[flow_side % len(SIDES)], flow.account, flow.container, flow.method, flow.policy)
        return _SHARE + b"".join(map(msgpack.packb, begin))


def concatenate(several: Sequence[ShareColumns]) -> ShareColumns:
    """The shares of ``several`` one after the other."""
    columns = ("node", "flow_side", "rate", "floor", "ceiling", "priority")
    return ShareColumns(*(np.concatenate([getattr(each, name) for each in several]) for name in columns))


def pack_shares(shares: ShareColumns, prefixes: SharePrefixes, nodes: int) -> list[tuple[int, bytes]]:
    """For each of ``nodes`` nodes the number of its shares, and these encoded one after the other."""
    order = np.argsort(shares.node.astype(np.min_scalar_type(nodes)), kind="stable")
    ends = np.zeros(len(order), dtype=_END)
    for name in _NUMBERS:
        ends[f"{name}:"] = _DOUBLE
        ends[name] = getattr(shares, name)[order]
    ends["priority"] = shares.priority[order]
    pieces = [b""] * (2 * len(order))
    pieces[::2] = prefixes.packed(shares.flow_side[order])
    pieces[1::2] = ends.view(f"V{_END.itemsize}").tolist()
    bounds = np.searchsorted(shares.node[order], np.arange(nodes + 1)).tolist()
    return [(end - begin, b"".join(pieces[2 * begin : 2 * end])) for begin, end in pairwise(bounds)]


def encode_shares(shares: Shares, count: int, rows: bytes, spares: bytes) -> bytes:
    """Encode ``shares`` with ``count`` rows, and spares, that are already encoded."""
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
