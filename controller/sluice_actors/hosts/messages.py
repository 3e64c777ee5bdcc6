"""The messages between actor hosts, on the exchange ``sluice.values``.

A *session* is one subscription of one host to one metric; both directions count their messages in it, and
whoever finds one missing gives the session up.  The subscriber then begins another, with everything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from sluice_core.messages.base import Message, PackedMessage


@dataclass(frozen=True, slots=True)
class InterestUpdate(PackedMessage):
    """From a subscriber to the owner of ``metric``: the targets it wants values of.

    ``number`` 0 begins the session.  ``more`` and ``less`` map a granularity to paths; ``all`` names the
    granularities of which everything is wanted.  An empty one says that the subscriber still lives.
    """

    host: str
    metric: str
    session: str
    number: int
    more: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    less: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    all: tuple[str, ...] = ()

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        paths = {name: {g: tuple(found) for g, found in data.get(name, {}).items()} for name in ("more", "less")}
        return super(InterestUpdate, cls).from_data({**data, **paths})


@dataclass(frozen=True, slots=True)
class WindowUpdate(PackedMessage):
    """From the owner to one subscriber: a window was closed, and this is what changed since the one before.

    ``changed`` maps a granularity to path and value, ``gone`` to paths that have none any more.  Number 0 of a
    session changes from nothing.
    """

    host: str
    metric: str
    session: str
    number: int
    window: int
    period: float
    changed: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    gone: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        gone = {granularity: tuple(found) for granularity, found in data.get("gone", {}).items()}
        return super(WindowUpdate, cls).from_data({**data, "gone": gone})


@dataclass(frozen=True, slots=True)
class MetricUsage(PackedMessage):
    """To all hosts, each second: the metrics that ``host`` needs, so that all keep a backlog of them."""

    host: str
    metrics: tuple[str, ...] = ()


KINDS: dict[bytes, type[Message]] = {b"w": InterestUpdate, b"v": WindowUpdate, b"u": MetricUsage}
_LETTERS = {kind: letter for letter, kind in KINDS.items()}


def pack(message: Message) -> bytes:
    """The bytes of one, its kind in front."""
    return _LETTERS[type(message)] + message.encode()


def unpack(body: bytes) -> Message | None:
    """The message in ``body``; None for a kind of a newer host.

    :raises DecodeError: when it is of a kind we know and cannot be read
    """
    kind = KINDS.get(body[:1])
    return None if kind is None else kind.decode(body[1:])
