"""What Swift's processes and their node's agent say to each other about credit, over a Unix socket that keeps messages
apart (SEQPACKET) at the agent's socket's path with :data:`CREDIT_SUFFIX`.

* A worker says :class:`CreditHello`, then :class:`Ask` whenever a flow needs bytes and, just after each second,
  :class:`TrafficReport`.
* The agent answers with :class:`Grant` as soon as it has credit to give, in the order of asking within a flow, and
  never gives more than it has.  Each second it tells the rates that have become others, in a :class:`Grant` of no
  bytes, so that those of all workers together are about what was divided.  It tells :class:`PriorityUpdate` when that
  changes, and :class:`Renegotiate` when answers of before (that a flow is free) hold no longer.

A worker that hears nothing for two seconds, or whose connection ends, goes on at the last rate that it was told, with
flows of which it was told nothing at :attr:`PriorityUpdate.alone`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, NamedTuple, Self

import msgpack

from sluice_core.errors import DecodeError
from sluice_core.messages.bandwidth import OBJECT_BOUNDS, Flow, MovedObject
from sluice_core.messages.base import Message
from sluice_core.messages.bounds import MOST, MOST_RATE, MOST_TOTAL, NO_BOUND, Bounds, rates_within, rows_within

#: What the socket for credit is called, beside that for counters.
CREDIT_SUFFIX: Final = ".credit"
#: No message is longer; rows that do not fit go with the next.
MESSAGE_LIMIT: Final = 64 * 1024
#: Credit without end, in :attr:`CreditGrant.size`.
FREE: Final = -1
#: Level of a flow that gets what others leave (I/O class *idle*); 0 is for those below their floor.
IDLE: Final = 8

_ASKED: Final[Bounds] = {"size": (-MOST, MOST), "waiting": (0, MOST), "ceiling": (0, MOST_RATE)}
_GIVEN: Final[Bounds] = {"size": (FREE, MOST), "rate": (NO_BOUND, MOST_RATE)}
_MOVED: Final[Bounds] = {
    "moved": (0, MOST_TOTAL),
    "busy": (0, MOST_TOTAL),
    "held": (0, MOST_TOTAL),
    "open": (0, MOST),
    "waiting": (0, MOST),
}


class CreditRequest(NamedTuple):
    """``size`` bytes more are wanted; negative: so many are given back.  ``waiting`` transfers wait for them.

    ``ceiling`` (bytes per second, 0: none) is what policies bound the flow to, over the whole cluster, as far as the
    worker knows: it holds until the flow has a share.
    """

    account: str
    container: str
    method: str
    policy: int
    size: int
    waiting: int = 0
    ceiling: float = 0.0

    @property
    def flow(self) -> Flow:
        return Flow(self.account, self.method, self.policy, self.container)


class CreditGrant(NamedTuple):
    """``size`` bytes, maybe none, or :data:`FREE`; ``rate`` (bytes per second) is what this worker may go on with
    alone, -1 for what is free."""

    account: str
    container: str
    method: str
    policy: int
    size: int
    rate: float

    @property
    def flow(self) -> Flow:
        return Flow(self.account, self.method, self.policy, self.container)


class TrafficSample(NamedTuple):
    """Running totals of one flow on one device in this worker, since it said hello.

    ``moved`` bytes; ``busy`` and ``held`` are transfer-seconds, open and held back by us; ``open`` and ``waiting``
    are how many there are right now.
    """

    account: str
    container: str
    method: str
    policy: int
    device: str
    moved: int
    busy: float
    held: float
    open: int
    waiting: int

    @property
    def flow(self) -> Flow:
        return Flow(self.account, self.method, self.policy, self.container)


class Level(NamedTuple):
    """The level of best effort (0 to 7, or :data:`IDLE`) of a flow's I/O on this node."""

    account: str
    container: str
    method: str
    policy: int
    level: int

    @property
    def flow(self) -> Flow:
        return Flow(self.account, self.method, self.policy, self.container)


@dataclass(frozen=True, slots=True)
class CreditHello(Message):
    """First of a worker: ``side`` is where it holds back, ``server`` the ``ip:port`` of an object server.

    ``policies`` maps the index of each storage policy, as text, to its name.
    """

    worker: str
    side: str
    pid: int
    server: str = ""
    policies: Mapping[str, str] = field(default_factory=dict)

    binary: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Ask(Message):
    """What flows of this worker need."""

    rows: tuple[CreditRequest, ...]

    binary: ClassVar[bool] = True

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        made = super(Ask, cls).from_data({**data, "rows": tuple(CreditRequest(*row) for row in data.get("rows", ()))})
        rows_within(made.rows, _ASKED)
        return made


@dataclass(frozen=True, slots=True)
class Grant(Message):
    """Credit for flows of this worker."""

    rows: tuple[CreditGrant, ...]

    binary: ClassVar[bool] = True

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        made = super(Grant, cls).from_data({**data, "rows": tuple(CreditGrant(*row) for row in data.get("rows", ()))})
        rows_within(made.rows, _GIVEN)
        return made


@dataclass(frozen=True, slots=True)
class TrafficReport(Message):
    """Totals of the flows that changed since the last one, and the objects under way."""

    at: float
    rows: tuple[TrafficSample, ...] = ()
    objects: tuple[MovedObject, ...] = ()

    binary: ClassVar[bool] = True

    def to_data(self) -> dict[str, Any]:
        return {**super(TrafficReport, self).to_data(), "objects": [one.told() for one in self.objects]}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        made = super(TrafficReport, cls).from_data(
            {
                **data,
                "rows": tuple(TrafficSample(*row) for row in data.get("rows", ())),
                "objects": tuple(MovedObject(*row) for row in data.get("objects", ())),
            }
        )
        rows_within(made.rows, _MOVED)
        rows_within(made.objects, OBJECT_BOUNDS)
        return made


@dataclass(frozen=True, slots=True)
class PriorityUpdate(Message):
    """Levels of I/O: all that are not :data:`~sluice_core.messages.bandwidth.NO_CLASS`; ``active`` when any
    objective is.

    ``spares`` is ``bandwidth.Shares.spares``, for proxies.  ``alone`` maps a method to the rate of a flow that is new
    to the worker while the agent is away; where a method is missing, such move as they like.
    """

    rows: tuple[Level, ...] = ()
    active: bool = False
    spares: Mapping[str, float] | None = None
    alone: Mapping[str, float] = field(default_factory=dict)

    binary: ClassVar[bool] = True

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        made = super(PriorityUpdate, cls).from_data(
            {**data, "rows": tuple(Level(*row) for row in data.get("rows", ()))}
        )
        rates_within("PriorityUpdate.spares", made.spares or {})
        rates_within("PriorityUpdate.alone", made.alone)
        return made


@dataclass(frozen=True, slots=True)
class Renegotiate(Message):
    """Ask again: what was said to be free may not be any more."""

    binary: ClassVar[bool] = True


_KINDS: Final[Mapping[int, type[Message]]] = {
    1: CreditHello,
    2: Ask,
    3: Grant,
    4: TrafficReport,
    5: PriorityUpdate,
    6: Renegotiate,
}
_NUMBERS: Final = {kind: number for number, kind in _KINDS.items()}


def pack(message: Message) -> bytes:
    """A message of this module for the socket: a byte that tells its kind, then the message."""
    return bytes((_NUMBERS[type(message)],)) + message.encode()


def unpack(raw: bytes) -> Message:
    """
    :raises DecodeError: with the bytes
    """
    kind = _KINDS.get(raw[0]) if raw else None
    if kind is None:
        raise DecodeError(f"no message about credit begins with `{raw[:1]!r}`", raw)
    try:
        return kind.decode(raw[1:])
    except (TypeError, KeyError, msgpack.UnpackException) as error:
        raise DecodeError(f"not a {kind.__name__}: {error}", raw) from error
