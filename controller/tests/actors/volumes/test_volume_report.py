"""The last metrics of volumes, written to a real Redis by the host that owns the report."""

import asyncio

import pytest

from sluice_actors.metrics.windows import ClosedWindow
from sluice_actors.volumes import volume_report
from sluice_actors.volumes.volume_report import VolumeReporter
from sluice_core.store.store import AsyncStore
from sluice_volumes.metrics import VOLUME_METRICS
from sluice_volumes.operations import read_volume_report


class Windows:
    """The taps of a router."""

    def __init__(self):
        self.taps = {}

    def tap(self, metric, tap, who):
        self.taps[metric] = tap

    def untap(self, metric, who):
        del self.taps[metric]

    def close(self, metric, window, values):
        self.taps[metric](ClosedWindow(metric, window, 1.0, values))


class World:
    """A reporter at second 100, and its reports."""

    def __init__(self, store):
        self.now, self.windows = 100.0, Windows()
        self.store = store
        self.reporter = VolumeReporter(self.windows, store, self, lambda: self.now)
        self.is_owner = True

    def owns(self, name):
        return self.is_owner

    async def written(self):
        await self.reporter.write()
        report, age = await self.store.run(read_volume_report(self.store.keys))
        return report and report.values, age


@pytest.fixture
def story(redis_server):
    """Runs a scenario with a world."""

    def run(scenario):
        async def play():
            store = AsyncStore(redis_server.url, "volume_report")
            try:
                await scenario(World(store))
            finally:
                await store.client.flushdb()
                await store.close()

        asyncio.run(asyncio.wait_for(play(), 20))

    return run


def test_the_newest_window_of_each_metric_is_written(story):
    async def scenario(world):
        assert (await world.written())[0] is None
        assert world.windows.taps.keys() == {one.name for one in VOLUME_METRICS}
        world.windows.close("VOLUME_READ_BW", 97, {"volume": {"AUTH_a/v1": 1.0}})
        world.windows.close("VOLUME_READ_BW", 98, {"volume": {"AUTH_a/v1": 2.0}, "cluster": {"": 2.0}})
        world.windows.close("VOLUME_QUEUE", 98, {"cluster": {"": 5.0}})
        values, age = await world.written()
        assert values == {
            "VOLUME_READ_BW": {"volume": {"AUTH_a/v1": 2.0}, "cluster": {"": 2.0}},
            "VOLUME_QUEUE": {"cluster": {"": 5.0}},
        }
        assert 0 <= age < 15

    story(scenario)


def test_a_metric_that_is_not_measured_any_more_is_left_out(story):
    async def scenario(world):
        await world.written()
        world.windows.close("VOLUME_READ_BW", 98, {"cluster": {"": 2.0}})
        world.now = 110.0
        world.windows.close("VOLUME_QUEUE", 108, {"cluster": {"": 5.0}})
        assert (await world.written())[0].keys() == {"VOLUME_QUEUE"}

    story(scenario)


def test_a_host_that_lost_the_report_listens_and_writes_no_more(story):
    async def scenario(world):
        await world.written()
        world.windows.close("VOLUME_QUEUE", 98, {"cluster": {"": 5.0}})
        world.is_owner = False
        assert (await world.written())[0] is None
        assert world.windows.taps == {}

    story(scenario)


def test_of_more_volumes_than_fit_the_rest_is_counted(story, monkeypatch):
    monkeypatch.setattr(volume_report, "MOST", 2)

    async def scenario(world):
        await world.written()
        world.windows.close("VOLUME_QUEUE", 98, {"volume": {"AUTH_a/v3": 3.0, "AUTH_a/v1": 1.0, "AUTH_a/v2": 2.0}})
        await world.reporter.write()
        report, _ = await world.store.run(read_volume_report(world.store.keys))
        assert report.values["VOLUME_QUEUE"]["volume"] == {"AUTH_a/v1": 1.0, "AUTH_a/v2": 2.0}
        assert report.left_out == {"volume": 1}

    story(scenario)
