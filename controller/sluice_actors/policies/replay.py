"""The windows of the last seconds once more, for actors that come from another host.

Their former host is gone, or left them a moment ago; what it decided and did not write is lost with it.
So they are told again of every window since the last one that their written state knows: one that was true in the
meantime still fires, and one that fired already is known to their machines and does nothing.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable, Iterator, Sequence

from sluice_actors.metrics.aggregator import Aggregator
from sluice_actors.metrics.aggregator_pool import routing_name
from sluice_actors.metrics.backlog import KEPT, Backlog
from sluice_actors.metrics.subscription import Columns, MetricSubscription
from sluice_actors.metrics.windows import ClosedWindow
from sluice_actors.policies.actor import PolicyActor
from sluice_actors.runtime.actor import Delivery
from sluice_core.messages.nodes import MetricBatch


class Replay:
    """What the backlog holds of some metrics, decoded and merged.

    Batches go on coming while the first ones are decoded: :meth:`prepare` does most, :meth:`deliveries` the rest.
    """

    def __init__(self, backlog: Backlog, metrics: Iterable[str], clock: Callable[[], float]) -> None:
        self._backlog = backlog
        self._since = clock() - KEPT
        # Old windows are none of an aggregator's business, hence a time before all of them.
        self._merging = {metric: Aggregator(metric, self._since) for metric in metrics}
        self._read = dict.fromkeys(self._merging, self._since)
        self._closed: dict[str, dict[int, ClosedWindow]] = {}

    async def prepare(self) -> None:
        """Decode what there is; after each batch others get their turn."""
        for metric in self._merging:
            for _ in self._absorb(metric):
                await asyncio.sleep(0)

    def deliveries(self, actors: Sequence[PolicyActor]) -> Iterator[Delivery]:
        """Tell ``actors``, which have started, of each window from the last they know to the last that was told."""
        for metric, merging in self._merging.items():
            for _ in self._absorb(metric):
                pass
            self._closed[metric] = {one.window: one for one in merging.close_due(math.inf)}
        for actor in actors:
            subscription = actor.subscription
            if subscription is not None:
                for window, period, columns in self._windows(subscription, max(actor.seen, actor.created // 1000)):
                    yield actor, subscription.message_for(actor, window, period, columns)

    def _absorb(self, metric: str) -> Iterator[MetricBatch]:
        for came, batch in self._backlog.decoded(routing_name(metric), self._read[metric]):
            self._read[metric] = came
            self._merging[metric].add(batch, came)
            yield batch

    def _windows(self, subscription: MetricSubscription, first: int) -> Iterator[tuple[int, float, Columns]]:
        through = subscription.delivered_through
        closed = [self._closed.get(metric, {}) for metric in subscription.metrics]
        for window in sorted(set(closed[0]).intersection(*closed[1:])):
            if first <= window <= through:
                found = [one[window] for one in closed]
                yield window, min(one.period for one in found), subscription.columns_of(found)
