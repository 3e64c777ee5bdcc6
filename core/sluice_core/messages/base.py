"""The base of all messages: frozen, versioned dataclasses with one ``encode``/``decode`` pair.

Documents that an operator may read in Redis are JSON; messages that are sent every second are MessagePack.  A field's
name is its name on the wire.  A decoder ignores unknown *fields*, so that a newer sender may add some.  An unknown
*version* is a :class:`DecodeError` that keeps the bytes.

A class declares the shapes of its fields beside them:

* ``nested``: field → class of the message, or messages, in it;
* ``row_types``: field → named tuple of each of its rows, and the bounds of that tuple's numbers, so that sums of
  received values stay finite;
* ``rates``: fields with numbers by name, which may be mappings of mappings; each is a rate.

Fields annotated as tuples become tuples.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from functools import cache
from typing import Any, ClassVar, Final, Self

import msgpack

from sluice_core.errors import DecodeError

#: Greatest measured value of one second.
MOST: Final = 1e15
#: Greatest rate that is guaranteed, configured or allocated; policies allow less.
MOST_RATE: Final = 1e20
#: Greatest running total.
MOST_TOTAL: Final = 1e18
#: A rate without a bound.
NO_BOUND: Final = -1.0

#: Field → least and most.
Bounds = Mapping[str, tuple[float, float]]


def check_number(where: str, value: Any, least: float = 0.0, most: float = MOST) -> None:
    """Check one number.

    :raises DecodeError: naming ``where``, when ``value`` is not a number between ``least`` and ``most``
    """
    try:
        if least <= value <= most:
            return
    except TypeError:
        pass
    raise DecodeError(f"`{where}` is `{value!r}`, expected a number from {least:g} to {most:g}")


def check_rows(rows: Iterable[Any], bounds: Bounds) -> None:
    """Check some fields of named tuples, all of one type.

    :raises DecodeError: naming the field
    """
    places: list[tuple[int, str, float, float]] | None = None
    for row in rows:
        if places is None:
            places = [(row._fields.index(name), name, *bound) for name, bound in bounds.items()]
        for place, name, least, most in places:
            try:
                fits = least <= row[place] <= most
            except TypeError:
                fits = False
            if not fits:
                check_number(f"{type(row).__name__}.{name}", row[place], least, most)


def check_rates(where: str, rates: Any, least: float = 0.0, most: float = MOST_RATE) -> None:
    """Check all numbers in a mapping, which may hold mappings.

    :raises DecodeError: naming the field
    """
    if not isinstance(rates, Mapping):
        raise DecodeError(f"`{where}` is `{rates!r}`, expected rates by name")
    for name, rate in rates.items():
        if isinstance(rate, Mapping):
            check_rates(f"{where}.{name}", rate, least, most)
        else:
            check_number(f"{where}.{name}", rate, least, most)


@cache
def _names(cls: Any) -> tuple[str, ...]:
    return tuple(one.name for one in fields(cls))


@cache
def tuple_fields(cls: Any, annotation: str = "tuple") -> frozenset[str]:
    """The fields of a message class that are tuples: those whose annotation begins with ``annotation``."""
    return frozenset(one.name for one in fields(cls) if str(one.type).startswith(annotation))


class Message:
    """Base of all messages; see the head of this module for what a class declares."""

    __slots__ = ()
    version: ClassVar[int] = 1
    binary: ClassVar[bool] = False
    nested: ClassVar[Mapping[str, type[Message]]] = {}
    row_types: ClassVar[Mapping[str, tuple[Callable[..., tuple[Any, ...]], Bounds]]] = {}
    rates: ClassVar[tuple[str, ...]] = ()

    def to_data(self) -> dict[str, Any]:
        """Plain data: what ``encode`` writes, without the version."""
        data = {name: getattr(self, name) for name in _names(type(self))}  # type: ignore[arg-type]
        for name in self.nested:
            value = data[name]
            data[name] = [v.to_data() for v in value] if isinstance(value, tuple) else value and value.to_data()
        return data

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        """Return the message that ``data`` (of ``to_data``) describes.

        :raises DecodeError: when a field is missing, of a wrong shape or out of bounds
        """
        if not isinstance(data, Mapping):
            raise DecodeError(f"not a {cls.__name__}: `{type(data).__name__}` has no fields")
        known = {name: data[name] for name in _names(cls) if name in data}  # type: ignore[arg-type]
        for name, inner in cls.nested.items():
            if name not in known:
                continue
            value = known[name]
            if name not in tuple_fields(cls):  # type: ignore[arg-type]
                known[name] = inner.from_data(value)
            elif isinstance(value, list | tuple):
                known[name] = tuple(map(inner.from_data, value))
            else:
                raise DecodeError(f"not a {cls.__name__}: `{name}` is no list")
        try:
            for name, (row, _) in cls.row_types.items():
                known[name] = tuple(row(*values) for values in known.get(name, ()))
            for name in tuple_fields(cls) & known.keys():  # type: ignore[arg-type]
                known[name] = tuple(known[name])
            made = cls(**known)
        except (TypeError, ValueError) as error:
            raise DecodeError(f"not a {cls.__name__}: {error}") from error
        for name, (_, bounds) in cls.row_types.items():
            check_rows(getattr(made, name), bounds)
        for name in cls.rates:
            check_rates(f"{cls.__name__}.{name}", getattr(made, name) or {})
        return made

    def encode(self) -> bytes:
        """Bytes for the wire."""
        data = {"v": self.version, **self.to_data()}
        if self.binary:
            packed: bytes = msgpack.packb(data)
            return packed
        return json.dumps(data, separators=(",", ":"), sort_keys=True).encode()

    @classmethod
    def decode(cls, raw: bytes) -> Self:
        """Return the message in ``raw``.

        :raises DecodeError: with the bytes, when they are not a message of this kind and version
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


class PackedMessage(Message):
    """Base of the messages that are MessagePack on the wire."""

    __slots__ = ()
    binary: ClassVar[bool] = True
