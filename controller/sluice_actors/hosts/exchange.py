"""Values cross hosts: each metric is aggregated by one host of the team, its *owner*, and pushed to the others.

Theory of operation

* A subscription is of one host to one metric, for the targets that its actors wait for.  The owner filters each
  closed window by these and pushes what *changed* since the window before.  Actors know nothing of all this: they
  get closed windows, from here or from there.
* Every host computes the owner from the members.  Hosts may differ for a moment.  An owner serves every host that
  asks, and a subscriber listens to the host that it asked, so a difference does no harm.
* A subscriber keeps the batches of the last seconds undecoded, and can close the windows itself at any moment
  (``sluice_actors.hosts.metric_client``).
* Messages may be lost (bounded queues, cuts): both directions are numbered, and a gap ends the session.  A session
  of which nothing is heard for some seconds is over.

``send`` hands over to the bus; :meth:`MetricExchange.receive` takes from there; :meth:`MetricExchange.tick` is called
several times a second.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from sluice_actors.hosts.messages import InterestUpdate, MetricUsage, WindowUpdate, pack, unpack
from sluice_actors.hosts.metric_client import RENEW, MetricClient, Send
from sluice_actors.hosts.metric_owner import MetricOwner
from sluice_actors.metrics.metric_router import MetricRouter
from sluice_core.connections.exchanges import values_routing_key
from sluice_core.errors import DecodeError

log = logging.getLogger(__name__)

EVERYBODY: Final = "all"
_USES_HOLD: Final = 5.0


@dataclass
class MetricExchange:
    """A host's subscriptions, and its duties as an owner.

    :param owner_of: the host that owns a metric; empty when that cannot be known now
    :param bind: called with the metrics whose batches this host is to receive
    """

    host: str
    router: MetricRouter
    send: Send
    owner_of: Callable[[str], str]
    bind: Callable[[frozenset[str]], None]
    clock: Callable[[], float]
    undecodable: int = 0  #: messages that could not be read
    _used_here: set[str] = field(default_factory=set)
    _used_there: dict[str, float] = field(default_factory=dict)
    _told_uses: float = 0.0

    def __post_init__(self) -> None:
        self._client = MetricClient(self.host, self.router, self.send, self.owner_of, self.clock)
        self._owner = MetricOwner(self.host, self.router, self._push, self.clock)

    def set_used(self, metric: str, used: bool) -> None:
        """For the hub: somebody here begins or ceases to need ``metric``."""
        (self._used_here.add if used else self._used_here.discard)(metric)
        self._rebind()

    def receive(self, routing_key: str, body: bytes) -> None:
        """Take a message of another host."""
        try:
            message = unpack(body)
        except DecodeError as error:
            self.undecodable += 1
            if self.undecodable == 1:
                log.error("message with routing key `%s`: %s; raw %r", routing_key, error, error.raw[:200])
            return
        if isinstance(message, WindowUpdate):
            self._client.receive(message)
        elif isinstance(message, InterestUpdate):
            self._owner.subscribed(message)
        elif isinstance(message, MetricUsage) and message.host != self.host:
            self._used_there.update(dict.fromkeys(message.metrics, self.clock() + _USES_HOLD))
            self._rebind()

    def tick(self, alone: bool) -> None:
        """Look after all subscriptions."""
        now = self.clock()
        self._client.review(now)
        self._owner.expire(now)
        if not alone and now - self._told_uses >= RENEW:
            self._told_uses = now
            self.send(values_routing_key(EVERYBODY), pack(MetricUsage(self.host, tuple(sorted(self._used_here)))))
        if any(until < now for until in self._used_there.values()):
            self._used_there = {name: until for name, until in self._used_there.items() if until >= now}
            self._rebind()

    def report(self) -> dict[str, Any]:
        """For the host's report: metric → whom we follow, and how many hosts we serve."""
        return {"follows": self._client.follows(), "serves": self._owner.serves(), "undecodable": self.undecodable}

    def close(self) -> None:
        """Set no timer any more."""
        self._client.close()

    def _push(self, to: str, values: WindowUpdate) -> None:
        self.send(values_routing_key(to), pack(values))

    def _rebind(self) -> None:
        self.bind(frozenset(self._used_here | self._used_there.keys()))
