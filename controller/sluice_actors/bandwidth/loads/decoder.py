"""Decodes the report of a node and leaves its rows packed.

A thousand busy nodes report some hundred thousand rows each second, and nearly all of them begin with the same bytes
as one of the second before.  So the key of a row (side, account, ... device) is found by these bytes, and the three
numbers after it are read as columns.  Only rows that are new, or encoded in another way than ours, are unpacked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Self

import msgpack
import numpy as np
from numpy.typing import NDArray

from sluice_actors.bandwidth.arrays import FloatArray, IntArray
from sluice_actors.bandwidth.loads.flow_index import Key
from sluice_core.errors import DecodeError
from sluice_core.messages.bandwidth import Load, NodeLoad

#: MessagePack's type bytes of a double, and of a list as long as a row.
_DOUBLE: Final = 0xCB
_ROW: Final = 0x90 | len(Load._fields)
#: How a row ends: three doubles.
NUMBERS: Final = ("moved", "open", "waiting")
_END: Final = np.dtype([pair for name in NUMBERS for pair in ((f"{name}:", "u1"), (name, ">f8"))])
_SPAN: Final = np.arange(-_END.itemsize, 0)


class PackedRows(Sequence[Sequence[Any]]):
    """Rows one after the other in ``raw``, each of them a list as long as a row.

    :param bounds: (rows + 1,) where each row begins, and where the last one ends
    """

    __slots__ = ("bounds", "raw")

    def __init__(self, raw: bytes, bounds: IntArray) -> None:
        self.raw = raw
        self.bounds = bounds

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def __getitem__(self, index: Any) -> Any:
        """Unpack one row, or the rows of a slice.

        :raises ValueError: when it cannot be unpacked
        """
        if isinstance(index, slice):
            return [self[position] for position in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        index %= len(self)
        return msgpack.unpackb(self.raw[self.bounds[index] : self.bounds[index + 1]])

    def prefixes(self) -> list[bytes]:
        """The bytes of each row before its three numbers, provided that these are doubles."""
        raw, ends = self.raw, self.bounds[1:] - _END.itemsize
        return [raw[begin:end] for begin, end in zip(self.bounds.tolist(), ends.tolist(), strict=False)]

    def values(self) -> FloatArray | None:
        """(3, rows) the last three fields of each, provided that only the prefix precedes them; else None."""
        if not len(self) or np.diff(self.bounds).min() <= _END.itemsize:
            return None
        ends = _octets(self.raw)[self.bounds[1:, None] + _SPAN].view(_END)[:, 0]
        if any((ends[f"{name}:"] != _DOUBLE).any() for name in NUMBERS):
            return None
        return np.array([ends[name] for name in NUMBERS], dtype=np.float64)


def row_prefix(key: Key) -> bytes:
    """The bytes with which our agents begin a row of this key."""
    packed: bytes = msgpack.packb(key)
    return bytes((_ROW,)) + packed[1:]


class PackedNodeLoad(NodeLoad):
    """The report of a node with its rows packed; ``NodeLoads.feed`` reads them."""

    __slots__ = ()

    @classmethod
    def decode(cls, raw: bytes) -> Self:
        try:
            data = _unpack_fields(raw)
            if data.get("v") == cls.version:
                return cls.from_data(data)
        except (DecodeError, ValueError, TypeError, AttributeError, RecursionError, msgpack.UnpackException):
            pass  # decoding everything finds out what is wrong
        return super().decode(raw)

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        rows: Sequence[Sequence[Any]] = data.get("rows", ())
        if not isinstance(rows, PackedRows) and set(map(len, rows)) - {len(Load._fields)}:
            raise TypeError(f"rows have {len(Load._fields)} fields")
        found = super().from_data({**data, "rows": ()})
        object.__setattr__(found, "rows", rows)
        return found

    def to_data(self) -> dict[str, Any]:
        return {**super().to_data(), "rows": list(self.rows)}


def _unpack_fields(raw: bytes) -> dict[str, Any]:
    """Unpack a message but for its rows.

    :raises ValueError: when rows are not lists of the right length, or bytes follow the message
    :raises msgpack.UnpackException: when ``raw`` is not MessagePack
    """
    unpacker = msgpack.Unpacker(max_buffer_size=len(raw))
    unpacker.feed(raw)
    data: dict[str, Any] = {}
    for _ in range(unpacker.read_map_header()):
        name = unpacker.unpack()
        data[name] = _packed_rows(unpacker, raw) if name == "rows" else unpacker.unpack()
    if unpacker.tell() != len(raw):
        raise ValueError("more than a message")
    return data


def _packed_rows(unpacker: msgpack.Unpacker, raw: bytes) -> PackedRows:
    count = unpacker.read_array_header()
    skip, tell = unpacker.skip, unpacker.tell
    bounds = [tell()]
    for _ in range(count):
        skip()
        bounds.append(tell())
    at = np.array(bounds)
    if (_octets(raw)[at[:-1]] != _ROW).any():
        raise ValueError("rows of another length")
    return PackedRows(raw, at)


def _octets(raw: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(raw, dtype=np.uint8)
