"""The content of an object during a call: byte stream, items and attributes, copied when they change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping

from sluice_objects.api import LARGEST_STATE, StateTooLarge
from sluice_objects.state.items import Gate, ItemsOverlay
from sluice_objects.state.records import ContentState


class StreamOverlay:
    """:class:`~sluice_objects.api.Stream` of one call."""

    def __init__(self, data: bytes, gate: Gate) -> None:
        self._gate = gate
        self.reset(data)

    def reset(self, data: bytes) -> None:
        """Have ``data``, and no changes."""
        self._given = data
        self._data: bytes | bytearray = data

    def freeze(self) -> bytes:
        """The bytes now; the given ones when they did not change."""
        return self._given if self._data == self._given else bytes(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def read(self, offset: int = 0, size: int | None = None) -> bytes:
        if offset < 0 or (size is not None and size < 0):
            raise ValueError(f"{size} bytes from `{offset}`, expected 0 or more")
        return bytes(self._data[offset : None if size is None else offset + size])

    def write(self, data: bytes, offset: int | None = None) -> None:
        at = len(self._data) if offset is None else offset
        if at < 0:
            raise ValueError(f"offset `{at}`, expected 0 or more")
        self._gate()
        if data:
            stream = self._changeable(max(at + len(data), len(self._data)))
            stream.extend(bytes(max(0, at - len(stream))))
            stream[at : at + len(data)] = data

    def truncate(self, size: int) -> None:
        if size < 0:
            raise ValueError(f"size `{size}`, expected 0 or more")
        self._gate()
        if size < len(self._data):
            self._data = bytearray(self._data[:size])
        else:
            stream = self._changeable(size)
            stream.extend(bytes(size - len(stream)))

    def _changeable(self, size: int) -> bytearray:
        """The bytes, which the caller makes ``size`` bytes long."""
        if size > LARGEST_STATE:
            raise StateTooLarge(size)
        if isinstance(self._data, bytes):
            self._data = bytearray(self._data)
        return self._data


class AttributesOverlay(MutableMapping[str, str]):
    """The attributes during one call."""

    def __init__(self, attributes: Mapping[str, str], gate: Gate) -> None:
        self._gate = gate
        self.reset(attributes)

    def reset(self, attributes: Mapping[str, str]) -> None:
        """Have ``attributes``, and no changes."""
        self._given = attributes
        self._values = dict(attributes)
        self._size = sum(map(_size, attributes.items()))

    def freeze(self) -> Mapping[str, str]:
        """The attributes now; the given ones when they did not change."""
        return self._given if self._values == self._given else self._values.copy()

    def __getitem__(self, name: str) -> str:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __setitem__(self, name: str, value: str) -> None:
        for given in (name, value):
            if type(given) is not str:
                raise TypeError(f"an attribute has `{type(given).__name__}`, expected text")
            given.encode()  # a text that is not Unicode cannot be stored
        self._gate()
        size = self._size + _size((name, value)) - self._size_of(name)
        if size > LARGEST_STATE:
            raise StateTooLarge(size)
        self._size, self._values[name] = size, value

    def __delitem__(self, name: str) -> None:
        self._gate()
        self._size -= self._size_of(name)
        del self._values[name]

    def _size_of(self, name: str) -> int:
        return _size((name, self._values[name])) if name in self._values else 0


def _size(attribute: tuple[str, str]) -> int:
    return len(attribute[0]) + len(attribute[1])


class ContentOverlay:
    """:class:`~sluice_objects.api.Content` of one call.

    :param gate: raises an error where the content must not change
    """

    def __init__(self, content: ContentState, gate: Gate) -> None:
        self._given = content
        self.stream = StreamOverlay(content.stream, gate)
        self.items = ItemsOverlay(content.items, gate)
        self.attributes = AttributesOverlay(content.attributes, gate)

    def reset(self, content: ContentState) -> None:
        """Have ``content``, and no changes."""
        self._given = content
        self.stream.reset(content.stream)
        self.items.reset(content.items)
        self.attributes.reset(content.attributes)

    def freeze(self) -> ContentState:
        """The content now; the given one when it did not change."""
        parts = self.stream.freeze(), self.items.freeze(), self.attributes.freeze()
        given = self._given
        if parts[0] is given.stream and parts[1] is given.items and parts[2] is given.attributes:
            return given
        return ContentState(*parts)
