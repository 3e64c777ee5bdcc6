"""Spaces that daemons reported in Redis are published as metrics."""

import asyncio

from tests.support.actors.ownership import SingleHost

from sluice_actors.metrics.space_metrics import SpaceMetrics
from sluice_core.messages.nodes import MetricBatch
from sluice_core.store.store import AsyncStore
from sluice_motif_control.messages import SpaceStatus
from sluice_motif_control.spaces import write_spaces


def test_what_spaces_hold_is_published(redis_server, monkeypatch):
    sent = []

    async def play():
        store = AsyncStore(redis_server.url, "space-metrics")
        service = SpaceMetrics(store, SingleHost(), lambda: 100.999, "amqp://127.0.0.1:1")
        monkeypatch.setattr(service._publisher, "publish", lambda key, raw: sent.append((key, raw)))
        try:
            await service._step()
            assert sent == [], "there is no space"
            await store.run(write_spaces(store.keys, [SpaceStatus("AUTH_a", "tenant", 100, 80, 7)]))
            await service._step()
        finally:
            await store.client.flushdb()
            await store.close()

    asyncio.run(asyncio.wait_for(play(), 20))
    batches = {one.metric: one for one in (MetricBatch.decode(raw) for _, raw in sent)}
    assert set(batches) == {"FREE_SPACE", "CONTRACTED", "EXPANSIONS_SEC", "EXPANSION_TIME"}
    assert batches["CONTRACTED"].values == {"tenant": {"AUTH_a": 7.0}}
    assert batches["FREE_SPACE"].window == 99
