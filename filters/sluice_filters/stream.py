"""Streams of bytes: a filter's encoder or decoder of one object, and the records by which they are reversed.

The rules for ``feed``, ``finish`` and ``record`` are those of the filter contract (``api``), which exports these names
to filter authors.  This module does not depend on filters, policies or hosts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sluice_core.errors import CallerError, SluiceError

Record = Mapping[str, Any]


class FilterError(SluiceError):
    """A filter cannot do its work; the host aborts the request, data is never half transformed."""


class CorruptData(FilterError):
    """Stored bytes are not what an encoder wrote."""


class BadParameter(CallerError):
    """A parameter's value that the filter refuses."""


def record_number(record: Record, name: str, low: int, high: int, filter_name: str) -> int:
    """Return the integer ``name`` of a record, both bounds included.

    :raises CorruptData: when it is missing, of another type (a bool is not a number) or out of its bounds
    """
    value = record.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise CorruptData(f"{filter_name} record: `{name}` is `{value!r}`, expected {low} to {high}")
    return value


@dataclass(frozen=True, slots=True)
class Hint:
    """The known properties of a stream before its first byte; None is unknown.

    ``size`` is in bytes, ``content_type`` as the client sent it (or as guessed from ``name``).
    ``account`` is the Swift account, for filters that keep tenants apart.  ``asked`` holds those
    request headers that the filter declares in :attr:`Filter.asks`, by their declared names.
    """

    size: int | None = None
    content_type: str | None = None
    name: str = ""
    account: str = ""
    asked: Mapping[str, str] = field(default_factory=dict)


class Stream:
    """An encoder, decoder or read-time transform of one stream; the base passes bytes on."""

    #: Becomes True once it is certain that the output is the input and ``record()`` will be None, so that the host can
    #: stop the work for transformed streams.
    transparent: bool = False

    #: Becomes True when no further input can change the output: the host stops reading and calls ``finish``.
    done: bool = False

    #: Input size in bytes for efficient block-wise work; 0: any size.
    gather: int = 0

    #: True while ``more`` has output of earlier input; a host that does not call it receives the output from ``feed``
    #: and ``finish``.
    behind: bool = False

    def feed(self, data: bytes) -> bytes:
        """Return the output that ``data`` makes possible; ``data`` is never empty."""
        return data

    def more(self) -> bytes:
        """Return the next output of earlier input, if that is too large to be returned at once."""
        return b""

    def finish(self) -> bytes:
        """Return the rest of the output; called exactly once, after the last ``feed``."""
        return b""

    def record(self) -> Record | None:
        """After ``finish`` of an encoder: the record for the decoder, or None when it changed nothing."""
        return None


class Transparent(Stream):
    """Passes everything on, and is transparent from the start."""

    transparent = True


@dataclass(frozen=True, slots=True)
class Window:
    """The encoded bytes ``[start, stop)`` that hold a plain range.

    Decoding exactly these bytes with ``decoder(record, window)`` gives plain bytes of which the
    first ``skip`` are dropped and the next ``length`` are the range.  ``state`` is the filter's own
    (JSON data).
    """

    start: int
    stop: int
    skip: int
    length: int
    state: Any = None


@dataclass(frozen=True, slots=True)
class NeedIndex:
    """The filter first needs the encoded bytes ``[start, stop)`` (an index) before it can locate a range."""

    start: int
    stop: int


def window_parts(window: Window | None, count: int, what: str) -> tuple[int, int]:
    """Return the first part (frame, segment) of a window and the one behind its last; without a window those of all
    ``count``.

    :raises CorruptData: when the window's state does not have them
    """
    if window is None:
        return 0, count
    match window.state:
        case [int(first), int(stop)] if 0 <= first < stop <= count:
            return first, stop
    raise CorruptData(f"window of {what} `{window.state!r}`, expected two numbers up to {count}")


class GroupEncoder(Stream):
    """The encoder of several filters at once."""

    def records(self) -> Sequence[Record | None]:
        """After ``finish``: the ``record`` of each of them, in running order."""
        raise FilterError("no records")
