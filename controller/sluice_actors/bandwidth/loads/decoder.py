"""Decodes the report of a node, whose rows stay packed until they are read into arrays.

A thousand busy nodes report some hundred thousand rows each second, and nearly all of them begin with the same bytes
as a row of the second before.  So these bytes find the key of a row (side, account, ... device), and the three numbers
after it are read as columns.  Only rows that are new, or that another encoder wrote, are unpacked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple, Self

import msgpack
import numpy as np
from numpy.typing import NDArray

from sluice_actors.bandwidth.arrays import FloatArray, IntArray
from sluice_actors.bandwidth.loads.flow_index import FlowIndex, Key, is_valid_key
from sluice_core.errors import DecodeError
from sluice_core.messages.bandwidth import Load, NodeLoad
from sluice_core.messages.base import MOST

#: MessagePack's type bytes of a double, and of a list as long as a row.
_DOUBLE: Final = 0xCB
_ROW: Final = 0x90 | len(Load._fields)
#: The last fields of a row: three doubles.
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
    """The bytes with which Sluice's agents begin a row of this key."""
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
            pass  # the full decoder reports what is wrong
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
    """Unpack a message except for its rows.

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


#: Fields before the three numbers of a row.
_KEY: Final = len(Load._fields) - 3
_NUMBERS: Final = (int, float)


class RowColumns(NamedTuple):
    """Rows in columns."""

    rows: IntArray  #: (rows,) numbers of ``FlowIndex.row``
    values: FloatArray  #: (3, rows) bytes moved in the last second, open transfers, waiting ones
    unsound: int = 0  #: how many rows were refused


def read_rows(rows: Sequence[Sequence[Any]], flow_index: FlowIndex) -> RowColumns:
    """Read ``rows``, and skip those that are not valid.

    :raises ValueError: when some cannot be unpacked
    """
    columns = _packed_columns(rows, flow_index) if isinstance(rows, PackedRows) else None
    if columns is not None:
        return columns
    unpacked = list(rows)
    try:
        return _columns(unpacked, flow_index)
    except (TypeError, ValueError):
        valid = [row for row in unpacked if _is_valid(row)]
        return _columns(valid, flow_index)._replace(unsound=len(unpacked) - len(valid))


def _packed_columns(rows: PackedRows, flow_index: FlowIndex) -> RowColumns | None:
    """Read rows without unpacking them; return None when they must be read one by one.

    :raises ValueError: when some cannot be unpacked
    """
    values = rows.values()
    if values is None or not np.all((values >= 0) & (values <= MOST)):
        return None
    prefixes = rows.prefixes()
    numbers = list(map(flow_index.rows_by_prefix.get, prefixes))
    if None in numbers:
        for position, number in enumerate(numbers):
            if number is None and not _learn(rows[position], prefixes[position], flow_index):
                return None
        numbers = list(map(flow_index.rows_by_prefix.get, prefixes))
    return RowColumns(np.array(numbers, dtype=np.intp), values)


def _learn(row: Sequence[Any], prefix: bytes, flow_index: FlowIndex) -> bool:
    """Remember the number of ``row`` by its ``prefix``; False when it is not valid, or not in Sluice's own encoding."""
    side, account, container, method, policy, device, *_ = row
    key = side, account, container, method, policy, device
    try:
        if row_prefix(key) != prefix:
            return False  # the numbers may be elsewhere than `PackedRows.values` assumed
        flow_index.rows_by_prefix[prefix] = flow_index.row(key)
    except (TypeError, ValueError):
        return False
    return True


def _columns(rows: Sequence[Sequence[Any]], flow_index: FlowIndex) -> RowColumns:
    """Read unpacked rows.

    :raises ValueError: when some row is not valid
    :raises TypeError: likewise
    """
    if not rows:
        return RowColumns(np.empty(0, dtype=np.intp), np.empty((3, 0)))
    columns = tuple(zip(*rows, strict=True))
    if not all(issubclass(kind, _NUMBERS) for kind in set(map(type, chain(*columns[_KEY:])))):
        raise TypeError("not a number")
    values = np.array(columns[_KEY:], dtype=np.float64)
    if not np.all((values >= 0) & (values <= MOST)):
        raise ValueError("not a rate")
    numbers = list(map(flow_index.row, zip(*columns[:_KEY], strict=True)))
    return RowColumns(np.array(numbers, dtype=np.intp), values)


def _is_valid(row: Iterable[Any]) -> bool:
    *key, moved, opened, waiting = row
    try:
        numbers = all(isinstance(number, _NUMBERS) and 0 <= number <= MOST for number in (moved, opened, waiting))
        return numbers and is_valid_key(key)
    except (TypeError, ValueError):
        return False
