"""Policies on uploaded metrics: an aggregator learns all properties of a metric from its batches."""

import asyncio

import pytest

from sluice_actors.testing import PolicyTestbed, plan_of
from sluice_core.describe import MetricInfo
from sluice_core.messages.nodes import MetricBatch
from sluice_core.messages.uploads import Upload
from sluice_dsl.catalogue.base import Catalogue
from sluice_dsl.catalogue.vocabulary import default_catalogue
from sluice_dsl.compile import compile_text

#: The result of a trial of the code, in the form of ``Upload.info``.
INFO = {"unit": "ratio", "help": "", "granularities": ["tenant", "container"], "period": 5.0, "sample_size": 4096}


def plan(sentence):
    upload = Upload("REDUNDANCY", "native", "python", "", "0" * 64, 5, kind="metric", info=INFO)
    told = {name: value for name, value in upload.info.items() if name not in ("gauge", "sample_size")}
    info = MetricInfo(upload.keyword, **{**told, "granularities": tuple(told["granularities"])})
    words = Catalogue(default_catalogue().actions, {**default_catalogue().metrics, info.name: info})
    return compile_text(sentence, words)[0].plan


def mean(node, window, value, weight):
    rows, weights = {"tenant": {"AUTH_a": value}}, {"tenant": {"AUTH_a": weight}}
    return MetricBatch(node, "REDUNDANCY", window, window, rows, 5.0, weights)


def level(node, window, value):
    return MetricBatch(node, "REDUNDANCY", window, window, {"tenant": {"AUTH_a": value}}, 5.0)


@pytest.mark.parametrize(
    ("batches", "fires"),
    [
        # 900 bytes at 1.0 and 100 at 9.0 are 1.8 together; 500 and 500 are 5.0
        ([mean("n1", 1000, 1.0, 900.0), mean("n2", 1000, 9.0, 100.0)], False),
        ([mean("n1", 1000, 1.0, 500.0), mean("n2", 1000, 9.0, 500.0)], True),
        # levels and rates add up
        ([level("n1", 1000, 1.5), level("n2", 1000, 0.4)], False),
        ([level("n1", 1000, 1.5), level("n2", 1000, 0.6)], True),
    ],
)
def test_values_of_nodes_are_merged_as_their_batches_say(batches, fires):
    async def story():
        stage = PolicyTestbed()
        actor = stage.add(plan("FOR TENANT AUTH_a WHEN REDUNDANCY > 50% DO SET compression TRANSIENT"))
        await stage.batches(batches)
        assert (stage.in_force(actor) == {("", 0): True}) is fires
        await stage.close()

    asyncio.run(story())


def test_windows_of_an_uploaded_metric_are_as_long_as_its_batches_say():
    async def story():
        stage = PolicyTestbed()
        actor = stage.add(plan("FOR TENANT AUTH_a WHEN REDUNDANCY > 2 SUSTAINED 10s DO SET compression TRANSIENT"))
        for window in (1000, 1005):
            assert stage.in_force(actor) == {}
            await stage.batches([level("n1", window, 3.0)])
        assert stage.in_force(actor) == {("", 0): True}
        for window in (1010, 1015):
            await stage.batches([level("n1", window, 1.0)])
        assert stage.done(actor) == [("set", 1005), ("taken_back", 1015)]
        await stage.close()

    asyncio.run(story())


def test_the_last_value_of_a_slow_metric_holds_beside_a_faster_one():
    async def story():
        stage = PolicyTestbed()
        both = ["and", ["metric", "PUTS_SEC", ">", 3], ["metric", "REDUNDANCY", ">", 2]]
        actor = stage.add(plan_of(both, "AUTH_a"))
        await stage.batches([level("n1", 1000, 3.0)])
        await stage.window(1005, PUTS_SEC={"AUTH_a": 8.0})
        assert stage.in_force(actor) == {("", 0): True}
        await stage.close()

    asyncio.run(story())
