"""What a node told, with its rows as they came.

A thousand busy nodes tell of some hundred thousand rows each second, nearly all of which begin as one did a second
ago: what a row is of (side, account, ... device) is known by its bytes then, and the three numbers after it are read
as columns.  Only rows that are new, or written in another way than ours, are unpacked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Self

import msgpack
import numpy as np
from numpy.typing import NDArray

from sluice_actors.bandwidth.arrays import FloatArray, IntArray
from sluice_actors.bandwidth.loads.flow_index import Key
from sluice_core.errors import DecodeError
from sluice_core.messages.bandwidth import Load, NodeLoad

#: MessagePack's marks of a double, and of a list as long as a row.
_DOUBLE: Final = 0xCB
_ROW: Final = 0x90 | len(Load._fields)
#: How a row ends: three doubles.
NUMBERS: Final = ("moved", "open", "waiting")
_END: Final = np.dtype([pair for name in NUMBERS for pair in ((f"{name}:", "u1"), (name, ">f8"))])
_SPAN: Final = np.arange(-_END.itemsize, 0)


class Packed(Sequence[Sequence[Any]]):
    """Rows one after the other; ``bounds`` are where each begins, and the end of the last, in ``raw``.

    Each is a list as long as a row.
    """

    __slots__ = ("bounds", "raw")

    def __init__(self, raw: bytes, bounds: IntArray) -> None:
        self.raw = raw
        self.bounds = bounds

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def __getitem__(self, place: Any) -> Any:
        """
        :raises ValueError: when it cannot be unpacked
        """
        if isinstance(place, slice):
            return [self[one] for one in range(*place.indices(len(self)))]
        if not -len(self) <= place < len(self):
            raise IndexError(place)
        place %= len(self)
        return msgpack.unpackb(self.raw[self.bounds[place] : self.bounds[place + 1]])

    def begins(self) -> list[bytes]:
        """What comes before the numbers of each, supposed that these are doubles."""
        raw, ends = self.raw, self.bounds[1:] - _END.itemsize
        return [raw[begin:end] for begin, end in zip(self.bounds.tolist(), ends.tolist(), strict=False)]

    def numbers(self) -> FloatArray | None:
        """(3, rows) the last three fields of each, supposed that there are just three after its beginning.

        None when some are no doubles.
        """
        if not len(self) or np.diff(self.bounds).min() <= _END.itemsize:
            return None
        ends = _octets(self.raw)[self.bounds[1:, None] + _SPAN].view(_END)[:, 0]
        if any((ends[f"{name}:"] != _DOUBLE).any() for name in NUMBERS):
            return None
        return np.array([ends[name] for name in NUMBERS], dtype=np.float64)


def beginning(key: Key) -> bytes:
    """How a row of ours begins."""
    packed: bytes = msgpack.packb(key)
    return bytes((_ROW,)) + packed[1:]


class Report(NodeLoad):
    """A node's load whose rows are left as they came; they are looked at when they are fed."""

    __slots__ = ()

    @classmethod
    def decode(cls, raw: bytes) -> Self:
        try:
            data = _apart(raw)
            if data.get("v") == cls.version:
                return cls.from_data(data)
        except (DecodeError, ValueError, TypeError, AttributeError, RecursionError, msgpack.UnpackException):
            pass  # what is wrong is said by who unpacks everything
        return super().decode(raw)

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        rows: Sequence[Sequence[Any]] = data.get("rows", ())
        if not isinstance(rows, Packed) and _lengths(rows) - {len(Load._fields)}:
            raise TypeError(f"rows have {len(Load._fields)} fields")
        found = super().from_data({**data, "rows": ()})
        object.__setattr__(found, "rows", rows)
        return found

    def to_data(self) -> dict[str, Any]:
        return {**super().to_data(), "rows": list(self.rows)}


def _lengths(rows: Iterable[Sequence[Any]]) -> set[int]:
    return set(map(len, rows))


def _apart(raw: bytes) -> dict[str, Any]:
    """The fields of a message, with its rows packed.

    :raises ValueError: when rows are no lists as ours, or there is more than a message
    :raises msgpack.UnpackException: when it is none
    """
    unpacker = msgpack.Unpacker(max_buffer_size=len(raw))
    unpacker.feed(raw)
    data: dict[str, Any] = {}
    for _ in range(unpacker.read_map_header()):
        name = unpacker.unpack()
        data[name] = _packed(unpacker, raw) if name == "rows" else unpacker.unpack()
    if unpacker.tell() != len(raw):
        raise ValueError("more than a message")
    return data


def _packed(unpacker: msgpack.Unpacker, raw: bytes) -> Packed:
    count = unpacker.read_array_header()
    skip, tell = unpacker.skip, unpacker.tell
    places = [tell()]
    for _ in range(count):
        skip()
        places.append(tell())
    bounds = np.array(places)
    if (_octets(raw)[bounds[:-1]] != _ROW).any():
        raise ValueError("rows of another length")
    return Packed(raw, bounds)


def _octets(raw: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(raw, dtype=np.uint8)
