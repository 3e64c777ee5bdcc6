"""What all messages have in common: frozen, versioned, one ``encode``/``decode`` pair.

Documents that people may look at in Redis are JSON; what is sent every second
(metrics) is MessagePack.  Unknown *fields* are ignored, so that a newer sender
may add some; an unknown *version* is a :class:`DecodeError` that keeps the bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from typing import Any, ClassVar, Self

import msgpack

from sluice_core.errors import DecodeError


@cache
def _names(cls: Any) -> tuple[str, ...]:
    return tuple(one.name for one in fields(cls))


@cache
def _lists(cls: Any) -> frozenset[str]:
    """The fields that hold several."""
    return frozenset(one.name for one in fields(cls) if str(one.type).startswith("tuple"))


class Message:
    """Base of all messages: a flat frozen dataclass whose nested messages are in ``nested``."""

    __slots__ = ()
    version: ClassVar[int] = 1
    binary: ClassVar[bool] = False
    nested: ClassVar[Mapping[str, type[Message]]] = {}

    def to_data(self) -> dict[str, Any]:
        """Plain data: what ``encode`` writes, without the version."""
        data = {name: getattr(self, name) for name in _names(type(self))}  # type: ignore[arg-type]
        for name in self.nested:
            value = data[name]
            data[name] = [v.to_data() for v in value] if isinstance(value, tuple) else value and value.to_data()
        return data

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        """The message that ``data`` (of ``to_data``) describes.

        :raises DecodeError: when a field is missing or of a wrong shape
        """
        if not isinstance(data, Mapping):
            raise DecodeError(f"not a {cls.__name__}: `{type(data).__name__}` has no fields")
        known = {name: data[name] for name in _names(cls) if name in data}  # type: ignore[arg-type]
        for name, inner in cls.nested.items():
            if name not in known:
                continue
            value = known[name]
            if name not in _lists(cls):  # type: ignore[arg-type]
                known[name] = inner.from_data(value)
            elif isinstance(value, list | tuple):
                known[name] = tuple(map(inner.from_data, value))
            else:
                raise DecodeError(f"not a {cls.__name__}: `{name}` is no list")
        try:
            return cls(**known)
        except (TypeError, ValueError) as error:
            raise DecodeError(f"not a {cls.__name__}: {error}") from error

    def encode(self) -> bytes:
        """Bytes for the wire."""
        data = {"v": self.version, **self.to_data()}
        if self.binary:
            packed: bytes = msgpack.packb(data)
            return packed
        return json.dumps(data, separators=(",", ":"), sort_keys=True).encode()

    @classmethod
    def decode(cls, raw: bytes) -> Self:
        """The message in ``raw``.

        :raises DecodeError: with the bytes, when they are no message of this kind and version
        """
        try:
            data = msgpack.unpackb(raw) if cls.binary else json.loads(raw)
            version = data["v"]
        except (ValueError, TypeError, KeyError, RecursionError, msgpack.UnpackException) as error:
            raise DecodeError(f"not a {cls.__name__}: {error}", raw) from error
        if version != cls.version:
            raise DecodeError(f"{cls.__name__} of version `{version}`, expected {cls.version}", raw)
        try:
            return cls.from_data(data)
        except DecodeError as error:
            error.raw = raw
            raise
        except (TypeError, ValueError, AttributeError) as error:
            raise DecodeError(f"not a {cls.__name__}: {error}", raw) from error
