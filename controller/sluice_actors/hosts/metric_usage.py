"""Hosts of a team tell each other which metrics they use, on the exchange ``sluice.values``.

Each host closes the windows of the metrics that its own actors need.  It receives the batches of those that others need
as well, and keeps these for some seconds without decoding them (``sluice_actors.metrics.backlog``): a host that takes
over a policy evaluates the windows that the previous host had not evaluated.

Hosts of earlier versions aggregate each metric once and push its values to the others.  They ask the host that they
take for the owner, get no answer from this one, and go on to close the windows themselves.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

from sluice_core.connections.exchanges import EVERY_HOST
from sluice_core.errors import DecodeError
from sluice_core.messages.base import PackedMessage

log = logging.getLogger(__name__)

#: Stands before the message; what begins otherwise is of other versions.
_LETTER: Final = b"u"
#: Seconds between two messages, and for which one holds.
RENEW: Final = 1.0
_HOLDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class MetricUsage(PackedMessage):
    """The metrics that ``host`` needs."""

    host: str
    metrics: tuple[str, ...] = ()

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        """As that of the base.

        :raises DecodeError: also for names of metrics that are no texts
        """
        found = super(MetricUsage, cls).from_data(data)
        if not all(isinstance(one, str) for one in (found.host, *found.metrics)):
            raise DecodeError(f"`{found}` names no host and metrics")
        return found


@dataclass
class MetricUsageExchange:
    """What this host uses, and what the others say that they do.

    :param send: hands a message over to the bus
    :param bind: called with the metrics whose batches this host is to receive
    """

    host: str
    send: Callable[[str, bytes], None]
    bind: Callable[[frozenset[str]], None]
    clock: Callable[[], float]
    undecodable: int = 0  #: messages that could not be read
    _used_here: set[str] = field(default_factory=set)
    _used_there: dict[str, float] = field(default_factory=dict)
    _told: float = 0.0

    def set_used(self, metric: str, used: bool) -> None:
        """For the router: somebody here begins or ceases to need ``metric``."""
        (self._used_here.add if used else self._used_here.discard)(metric)
        self._rebind()

    def receive(self, routing_key: str, body: bytes) -> None:
        """Take a message of a host."""
        if body[:1] != _LETTER:
            return
        try:
            usage = MetricUsage.decode(body[1:])
        except DecodeError as error:
            self.undecodable += 1
            if self.undecodable == 1:
                log.error("message with routing key `%s`: %s; raw %r", routing_key, error, body[:200])
            return
        if usage.host != self.host:
            self._used_there.update(dict.fromkeys(usage.metrics, self.clock() + _HOLDS))
            self._rebind()

    def tick(self, alone: bool) -> None:
        """Tell the other hosts each second, and forget metrics that none uses; called several times a second."""
        now = self.clock()
        if not alone and now - self._told >= RENEW:
            self._told = now
            usage = MetricUsage(self.host, tuple(sorted(self._used_here)))
            self.send(EVERY_HOST, _LETTER + usage.encode())
        if any(until < now for until in self._used_there.values()):
            self._used_there = {name: until for name, until in self._used_there.items() if until >= now}
            self._rebind()

    def report(self) -> dict[str, Any]:
        """For the host's report: how many metrics this host and others use."""
        here, there = len(self._used_here), len(self._used_there.keys() - self._used_here)
        return {"used": here, "kept": there, "undecodable": self.undecodable}

    def _rebind(self) -> None:
        self.bind(frozenset(self._used_here | self._used_there.keys()))
