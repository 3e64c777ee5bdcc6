"""Values cross hosts: each metric is aggregated by one host of the team, its *keeper*, and pushed to the others.

Theory of operation

* A subscription is of one host to one metric, for the targets that its actors wait for.  The keeper filters each
  closed window by these and pushes what *changed* since the window before.  Actors know nothing of all this: a
  feed gets closed windows, from here or from there.
* Who the keeper is, everybody computes from the members.  Hosts may differ for a moment; a keeper serves whoever asks,
  a subscriber listens to the one it asked, so that is harmless.
* A subscriber never waits for a keeper.  It keeps the batches of the last seconds undecoded, and *leads* the metric
  itself, from the last window it got, as soon as the keeper is another one or is late.  When the keeper
  delivers a window that joins what was delivered, it *follows* again.  No window is lost or told twice.
* Messages may be lost (bounded queues, cuts): both directions are numbered, and a gap ends the session.  A session
  of which nothing is heard for some seconds is over.

``send`` hands over to the bus; :meth:`received` takes from there; :meth:`tick` is called several times a second.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from sluice_actors.hosts.messages import InterestUpdate, MetricUsage, WindowUpdate, pack, unpack
from sluice_actors.hosts.metric_owner import MetricOwner
from sluice_actors.metrics.metric_router import MetricRouter
from sluice_actors.metrics.subscription import MetricSubscription
from sluice_actors.metrics.windows import ClosedWindow
from sluice_core.connections.exchanges import values_routing_key
from sluice_core.errors import DecodeError

log = logging.getLogger(__name__)

EVERYBODY: Final = "all"
RENEW: Final = 1.0
#: How late a keeper's window may be before we close it ourselves.
PATIENCE: Final = 0.75
#: A keeper that did not answer, or was late, is asked again after this.
AGAIN: Final = 3.0
_USES_HOLD: Final = 5.0
#: Actors begin and end in crowds; one message then says it all.
_GATHER: Final = 0.02

Send = Callable[[str, bytes], None]
Paths = dict[str, set[str]]


@dataclass(slots=True)
class RemoteSubscription:
    """What we asked of a keeper, and what we know from it."""

    keeper: str
    begun: float
    session: str = field(default_factory=lambda: uuid.uuid4().hex)
    number: int = 0
    expected: int = 0
    renewed: float = 0.0
    paths: Paths = field(default_factory=dict)
    everything: tuple[str, ...] = ()
    touched: dict[tuple[str, str], None] = field(default_factory=dict)
    columns: dict[str, dict[str, float]] = field(default_factory=dict)


class MetricExchange:
    """A host's subscriptions, and its duties as a keeper.

    :param keeper: the host that keeps a metric; empty when that cannot be known now
    :param bind: called with the metrics whose batches this host is to receive
    """

    def __init__(
        self,
        host: str,
        router: MetricRouter,
        send: Send,
        keeper: Callable[[str], str],
        bind: Callable[[frozenset[str]], None],
        clock: Callable[[], float],
    ) -> None:
        self._host = host
        self._router = router
        self._send = send
        self._keeper_of = keeper
        self._bind = bind
        self._clock = clock
        self._keeper = MetricOwner(host, router, lambda to, values: send(values_routing_key(to), pack(values)), clock)
        self._asked: dict[str, RemoteSubscription] = {}
        self._not_before: dict[str, float] = {}
        self._used_here: set[str] = set()
        self._used_there: dict[str, float] = {}
        self._told_uses = 0.0
        self._flushing: asyncio.TimerHandle | None = None
        #: Messages that could not be read.
        self.undecodable = 0
        router.on_interest = self._interest

    # -- called by the host

    def used(self, metric: str, used: bool) -> None:
        """For the hub: somebody here begins or ceases to need ``metric``."""
        (self._used_here.add if used else self._used_here.discard)(metric)
        self._rebind()

    def received(self, routing_key: str, body: bytes) -> None:
        """Take a message of another host."""
        try:
            message = unpack(body)
        except DecodeError as error:
            self.undecodable += 1
            if self.undecodable == 1:
                log.error("message with routing key `%s`: %s; raw %r", routing_key, error, error.raw[:200])
            return
        if isinstance(message, WindowUpdate):
            self._values(message)
        elif isinstance(message, InterestUpdate):
            self._keeper.asked(message)
        elif isinstance(message, MetricUsage) and message.host != self._host:
            self._used_there.update(dict.fromkeys(message.metrics, self._clock() + _USES_HOLD))
            self._rebind()

    def tick(self, alone: bool) -> None:
        """Look after all subscriptions."""
        now = self._clock()
        for metric in self._router.metrics:
            self._look_after(metric, now)
        for metric in self._asked.keys() - set(self._router.metrics):
            del self._asked[metric]
        self._keeper.expire(now)
        if not alone and now - self._told_uses >= RENEW:
            self._told_uses = now
            self._send(values_routing_key(EVERYBODY), pack(MetricUsage(self._host, tuple(sorted(self._used_here)))))
        if any(until < now for until in self._used_there.values()):
            self._used_there = {name: until for name, until in self._used_there.items() if until >= now}
            self._rebind()

    def report(self) -> dict[str, Any]:
        """For the host's report: metric → whom we follow, and how many hosts we serve."""
        follows = {name: one.keeper for name, one in self._asked.items() if self._router.follows(name)}
        return {"follows": follows, "serves": self._keeper.serves(), "undecodable": self.undecodable}

    def close(self) -> None:
        """Set no timer any more."""
        if self._flushing is not None:
            self._flushing.cancel()

    # -- as a subscriber

    def _look_after(self, metric: str, now: float) -> None:
        keeper, asked = self._keeper_of(metric), self._asked.get(metric)
        if not keeper:
            keeper = asked.keeper if asked is not None else self._host
        if keeper == self._host:
            self._asked.pop(metric, None)
            self._router.aggregate_here(metric)
        elif asked is not None and asked.keeper != keeper:
            self._give_up(metric)
            self._ask(metric, keeper, now)
        elif asked is None:
            if now >= self._not_before.get(metric, 0.0):
                self._ask(metric, keeper, now)
        elif self._silent(metric, asked, now):
            self._give_up(metric)
            self._not_before[metric] = now + AGAIN
        elif now - asked.renewed >= RENEW:
            self._tell(metric, asked, {}, {})

    def _silent(self, metric: str, asked: RemoteSubscription, now: float) -> bool:
        if not self._router.follows(metric):
            return now - asked.begun > AGAIN
        windows = self._router.history(metric)
        return windows.through is not None and windows.overdue(now) > PATIENCE

    def _give_up(self, metric: str) -> None:
        if self._router.follows(metric):
            keeper = self._asked[metric].keeper
            log.info("closing the windows of `%s` here, `%s` is late or not its keeper", metric, keeper)
        del self._asked[metric]
        self._router.aggregate_here(metric)

    def _ask(self, metric: str, keeper: str, now: float) -> None:
        """Begin a session."""
        asked = self._asked[metric] = RemoteSubscription(keeper, now)
        for feed in self._router.subscriptions(metric):
            asked.paths.setdefault(feed.granularity, set()).update(feed.paths)
        self._tell(metric, asked, asked.paths, {})

    def _interest(self, feed: MetricSubscription, path: str | None) -> None:
        for metric in feed.metrics:
            asked = self._asked.get(metric)
            if asked is not None:
                asked.touched[feed.granularity, "" if path is None else path] = None
                if self._flushing is None:
                    self._flushing = asyncio.get_running_loop().call_later(_GATHER, self._flush)

    def _flush(self) -> None:
        self._flushing = None
        for metric, asked in self._asked.items():
            touched, asked.touched = asked.touched, {}
            if not touched:
                continue
            more: Paths = {}
            less: Paths = {}
            waiting = self._router.subscriptions(metric)
            for granularity, path in touched:
                known = asked.paths.setdefault(granularity, set())
                wanted = any(path in feed.paths for feed in waiting if feed.granularity == granularity)
                if wanted and path not in known:
                    known.add(path)
                    more.setdefault(granularity, set()).add(path)
                elif not wanted and path in known:
                    known.discard(path)
                    less.setdefault(granularity, set()).add(path)
            self._tell(metric, asked, more, less)

    def _tell(self, metric: str, asked: RemoteSubscription, more: Paths, less: Paths) -> None:
        everything = dict.fromkeys(feed.granularity for feed in self._router.subscriptions(metric) if feed.wants_all)
        wants = InterestUpdate(
            self._host, metric, asked.session, asked.number, _listed(more), _listed(less), tuple(everything)
        )  # fmt: skip
        asked.number += 1
        asked.renewed = self._clock()
        self._send(values_routing_key(asked.keeper), pack(wants))

    def _values(self, values: WindowUpdate) -> None:
        asked = self._asked.get(values.metric)
        if asked is None or asked.session != values.session or values.number < asked.expected:
            return
        if values.number > asked.expected:
            log.info("values of `%s` were lost on the way, asking for all of them", values.metric)
            self._give_up(values.metric)
            return
        asked.expected += 1
        self._windows(values.metric, _merged(asked, values))

    def _windows(self, metric: str, closed: ClosedWindow) -> None:
        """The keeper closed a window: tell it if it joins what was told before."""
        if metric not in self._router.metrics:
            return
        through = self._router.history(metric).through
        if self._router.follows(metric):
            if through is None or closed.window > through:
                self._router.relay(closed)
        elif through is None or closed.window - through <= 1.5 * closed.period:
            self._router.follow(metric)
            if through is None or closed.window > through:
                self._router.relay(closed)

    def _rebind(self) -> None:
        self._bind(frozenset(self._used_here | self._used_there.keys()))


def _listed(paths: Paths) -> dict[str, tuple[str, ...]]:
    return {granularity: tuple(found) for granularity, found in paths.items() if found}


def _merged(asked: RemoteSubscription, values: WindowUpdate) -> ClosedWindow:
    """The window that ``values`` stands for; columns are never changed, others may hold them still."""
    touched: Iterable[str] = {*values.changed, *values.gone}
    for granularity in touched:
        column = dict(asked.columns.get(granularity, ()))
        column.update(values.changed.get(granularity, {}))
        for path in values.gone.get(granularity, ()):
            column.pop(path, None)
        asked.columns[granularity] = column
    return ClosedWindow(values.metric, values.window, values.period, dict(asked.columns))
