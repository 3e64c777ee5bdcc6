"""The credit protocol between Swift's processes and their node's agent.

It runs over a Unix socket that keeps messages apart (SEQPACKET), at the path of the agent's socket with
:data:`CREDIT_SUFFIX`.

* A worker sends :class:`CreditHello` first, then :class:`Ask` whenever a flow needs bytes, and :class:`TrafficReport`
  just after each second.
* The agent answers with :class:`Grant` as soon as it has credit to give, in the order of the requests within a flow,
  and never gives more than it has.  Each second it sends the rates that changed, in a :class:`Grant` of no bytes, so
  that the sum over all workers is about the node's share.  It sends :class:`PriorityUpdate` when that changes, and
  :class:`Renegotiate` when an earlier answer that a flow is free no longer holds.

A worker that receives nothing for two seconds, or whose connection ends, continues at the last rate that it received;
flows without one continue at :attr:`PriorityUpdate.alone`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from sluice_core.errors import DecodeError
from sluice_core.messages.bandwidth import OBJECT_BOUNDS, Flow, MovedObject
from sluice_core.messages.base import MOST, MOST_RATE, MOST_TOTAL, NO_BOUND, Bounds, Message, PackedMessage

#: Suffix of the socket for credit, beside the socket for counters.
CREDIT_SUFFIX: Final = ".credit"
#: The longest message; rows that do not fit are sent in the next one.
MESSAGE_LIMIT: Final = 64 * 1024
#: Unlimited credit, in :attr:`CreditGrant.size`.
FREE: Final = -1
#: Level of a flow in the I/O class *idle*; 0 is for flows below their floor.
IDLE: Final = 8

_REQUEST_BOUNDS: Final[Bounds] = {"size": (-MOST, MOST), "waiting": (0, MOST), "ceiling": (0, MOST_RATE)}
_GRANT_BOUNDS: Final[Bounds] = {"size": (FREE, MOST), "rate": (NO_BOUND, MOST_RATE)}
_SAMPLE_BOUNDS: Final[Bounds] = {
    "moved": (0, MOST_TOTAL),
    "busy": (0, MOST_TOTAL),
    "held": (0, MOST_TOTAL),
    "open": (0, MOST),
    "waiting": (0, MOST),
}


class CreditRequest(NamedTuple):
    """A request for ``size`` bytes; a negative ``size`` returns bytes.  ``waiting`` transfers wait for them.

    ``ceiling`` (bytes per second, 0: none) is the flow's ceiling over the whole cluster, if the worker knows it from
    policies.  It holds until the flow has a share.
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
        """The flow that this row is about."""
        return Flow(self.account, self.method, self.policy, self.container)


class CreditGrant(NamedTuple):
    """A grant of ``size`` bytes (0 or more, or :data:`FREE`).

    ``rate`` (bytes per second) is the rate of this worker while the agent is missing, -1 for a free flow.
    """

    account: str
    container: str
    method: str
    policy: int
    size: int
    rate: float

    @property
    def flow(self) -> Flow:
        """The flow that this row is about."""
        return Flow(self.account, self.method, self.policy, self.container)


class TrafficSample(NamedTuple):
    """Running totals of one flow on one device in this worker, since its :class:`CreditHello`.

    ``moved`` is bytes.  ``busy`` and ``held`` are transfer-seconds: of all open transfers, and of those that were held
    back.  ``open`` and ``waiting`` are the present numbers of both.
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
        """The flow that this row is about."""
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
        """The flow that this row is about."""
        return Flow(self.account, self.method, self.policy, self.container)


@dataclass(frozen=True, slots=True)
class CreditHello(PackedMessage):
    """A worker's first message: the ``side`` on which it holds bytes back, and an object server's ``ip:port``.

    ``policies`` maps the index of each storage policy, as text, to its name.
    """

    worker: str
    side: str
    pid: int
    server: str = ""
    policies: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ask(PackedMessage):
    """Requests of flows of one worker."""

    rows: tuple[CreditRequest, ...]

    row_types = {"rows": (CreditRequest, _REQUEST_BOUNDS)}


@dataclass(frozen=True, slots=True)
class Grant(PackedMessage):
    """Credit for flows of one worker."""

    rows: tuple[CreditGrant, ...]

    row_types = {"rows": (CreditGrant, _GRANT_BOUNDS)}


@dataclass(frozen=True, slots=True)
class TrafficReport(PackedMessage):
    """Totals of the flows that changed since the last report, and the objects in transfer."""

    at: float
    rows: tuple[TrafficSample, ...] = ()
    objects: tuple[MovedObject, ...] = ()

    row_types = {"rows": (TrafficSample, _SAMPLE_BOUNDS), "objects": (MovedObject, OBJECT_BOUNDS)}

    def to_data(self) -> dict[str, Any]:
        return {**super(TrafficReport, self).to_data(), "objects": [one.wire_row() for one in self.objects]}


@dataclass(frozen=True, slots=True)
class PriorityUpdate(PackedMessage):
    """All I/O levels other than :data:`~sluice_core.messages.bandwidth.NO_CLASS`; ``active`` when any objective is.

    ``spares`` is ``bandwidth.Shares.spares``, for proxies.  ``alone`` maps a method to the fallback rate (bytes per
    second) of a flow that is new to the worker while the agent is missing; flows of a missing method are not limited.
    """

    rows: tuple[Level, ...] = ()
    active: bool = False
    spares: Mapping[str, float] | None = None
    alone: Mapping[str, float] = field(default_factory=dict)

    row_types = {"rows": (Level, {})}
    rates = ("spares", "alone")


@dataclass(frozen=True, slots=True)
class Renegotiate(PackedMessage):
    """Flows that were free may have a limit now: the worker sends its requests again."""


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
    """The bytes of a message of this module: its kind (one byte), then the message."""
    return bytes((_NUMBERS[type(message)],)) + message.encode()


def unpack(raw: bytes) -> Message:
    """Return the message in ``raw``.

    :raises DecodeError: with the bytes, when they are not a message of this protocol
    """
    kind = _KINDS.get(raw[0]) if raw else None
    if kind is None:
        raise DecodeError(f"no message about credit begins with `{raw[:1]!r}`", raw)
    return kind.decode(raw[1:])
