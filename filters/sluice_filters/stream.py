"""Streams of bytes: what a filter makes for one object, and the records by which they are undone.

The rules for ``feed``, ``finish`` and ``record`` are those of the filter contract (``api``), which shows these names
to filter authors.  Nothing here knows of filters, policies or hosts.
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
    """A parameter's value that the filter does not take."""


def record_number(record: Record, name: str, low: int, high: int, filter_name: str) -> int:
    """The integer ``name`` of a record, both bounds included.

    :raises CorruptData: when it is missing, of another type (a bool is no number) or out of its bounds
    """
    value = record.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise CorruptData(f"{filter_name} record: `{name}` is `{value!r}`, expected {low} to {high}")
    return value


@dataclass(frozen=True, slots=True)
class Hint:
    """What is known of a stream before its first byte; None is unknown.

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

    #: Becomes True once it is certain that the output is the input and ``record()`` will be None,
    #: so that the host may stop what it does for transformed streams only.
    transparent: bool = False

    #: Becomes True when no further input can change the output: the host stops reading and calls ``finish``.
    done: bool = False

    #: Bytes of input that are worth bringing at once, where work is done in blocks; 0: as they come.
    gather: int = 0

    #: True while ``more`` has output of what was fed; a host that never asks gets it from ``feed`` and ``finish``.
    behind: bool = False

    def feed(self, data: bytes) -> bytes:
        """The output that ``data`` makes possible; ``data`` is never empty."""
        return data

    def more(self) -> bytes:
        """The next output of what was fed, where that is too much to be given at once."""
        return b""

    def finish(self) -> bytes:
        """The rest of the output; called exactly once, after the last ``feed``."""
        return b""

    def record(self) -> Record | None:
        """After ``finish`` of an encoder: what undoes it, or None when it changed nothing."""
        return None


class Transparent(Stream):
    """Passes everything on, and says so from the start."""

    transparent = True


@dataclass(frozen=True, slots=True)
class Window:
    """The encoded bytes ``[start, stop)`` that hold a wanted plain range.

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
    """To locate anything, the filter first wants the encoded bytes ``[start, stop)``."""

    start: int
    stop: int


def window_parts(window: Window | None, count: int, what: str) -> tuple[int, int]:
    """The first part (frame, segment) of a window and the one behind its last; of all ``count`` without a window.

    :raises CorruptData: when the window's state does not name them
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
        """After ``finish``: what ``record`` would be for each of them, in running order."""
        raise FilterError("no records")
