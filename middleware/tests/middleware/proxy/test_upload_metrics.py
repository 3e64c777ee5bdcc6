"""A proxy worker's metrics of uploads and of single objects, up to the batch that its agent publishes."""

import io
import random

import pytest

from sluice_agent.metrics.publisher import MetricPublisher
from sluice_core.messages.nodes import Counters, Hello, MetricBatch
from sluice_core.metrics.totals import Totals
from sluice_core.testing import FakeBus, assignment
from sluice_metrics.meter.meter import Meter
from sluice_metrics.meter.sampling import ONE_IN
from sluice_metrics.registry import BUILT_IN
from sluice_middleware.bandwidth.bodies import UploadInput
from sluice_middleware.proxy.metric_adapters import RequestMetrics
from sluice_middleware.testing import ProxyStack

NOISE = random.Random(3).randbytes(100_000)
TEXT = b"the quick brown fox jumps over the lazy dog\n" * 4000
PATH = "/v1/AUTH_a/{}/o"


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


class Node:
    """An agent's part in it: workers' rows in, batches out."""

    def __init__(self, *meters, objects=1000):
        self.clock, self.bus = Clock(), FakeBus()
        self.totals = Totals(lambda: 0.0)
        self.meters = meters
        self.publisher = MetricPublisher("n1", self.totals, self.bus, 0.06, self.clock, objects)
        for number, meter in enumerate(meters):
            hello = Hello(f"w{number}", "proxy", 1, {}, meter.names, meter.gauges, quantiles=meter.quantiles)
            self.totals.add_worker(hello)

    def batches(self):
        for number, meter in enumerate(self.meters):
            rows = meter.changed()
            self.totals.update(Counters(f"w{number}", 0.0, tuple(rows)))
            meter.delivered(rows)
        self.clock.now += 1
        self.bus.sent.clear()
        self.publisher.tick()
        found = [MetricBatch.decode(body) for _, body in self.bus.sent]
        return {batch.metric: batch for batch in found}


@pytest.fixture
def stand(tmp_path):
    made = ProxyStack(tmp_path)
    made.set_policies()
    return made


def test_compressibility_is_measured_on_plain_bytes(stand):
    for policies in ((), (assignment(keyword="compression", stage=300),)):
        stand.set_policies(*policies)
        for container, body in ((f"text{len(policies)}", TEXT), (f"noise{len(policies)}", NOISE)):
            assert stand("PUT", PATH.format(container), body).status_int == 201
    assert stand.swift.headers[-2]["Transfer-Encoding"] == "chunked", "the text was stored compressed"
    batch = Node(stand.proxy.meter).batches()["COMPRESSIBILITY"]
    values = batch.values["container"]
    assert values["AUTH_a/text0"] == values["AUTH_a/text1"] > 20
    assert values["AUTH_a/noise0"] == values["AUTH_a/noise1"] == 1
    assert 1.5 < batch.values["tenant"]["AUTH_a"] < 2.5, "of half and half"
    assert set(batch.values) == set(batch.weights) == {"tenant", "container"}
    assert batch.weights["container"]["AUTH_a/noise0"] == 64 * 1024


def test_workers_of_a_node_are_one_and_the_value_stands_in_later_windows(tmp_path):
    stands = [ProxyStack(tmp_path) for _ in range(2)]
    for stand, body in zip(stands, (TEXT, NOISE), strict=True):
        stand.set_policies()
        stand("PUT", PATH.format("c"), body)
    node = Node(*(stand.proxy.meter for stand in stands))
    first, second = node.batches()["COMPRESSIBILITY"], node.batches()["COMPRESSIBILITY"]
    assert 1.9 < first.values["tenant"]["AUTH_a"] < 2.1
    assert second.values == first.values
    node.totals.lose_worker("w1")
    assert node.batches()["COMPRESSIBILITY"].values["tenant"]["AUTH_a"] > 20


def test_batches_of_weights_are_not_published_and_other_metrics_have_none(stand):
    stand("PUT", PATH.format("c"), TEXT)
    batches = Node(stand.proxy.meter).batches()
    assert set(batches) == {one.info.name for one in BUILT_IN}
    assert [name for name, batch in batches.items() if batch.weights] == ["ERRORS", "COMPRESSIBILITY"]


def test_single_objects_are_counted_and_the_busiest_published(stand):
    stand("PUT", PATH.format("c"), TEXT)
    for number in range(4):
        for _ in range(number):
            stand("GET", f"/v1/AUTH_a/c/dir/{number}")
    assert Node(stand.proxy.meter).batches()["GETS_SEC"].values == {
        "tenant": {"AUTH_a": 6},
        "container": {"AUTH_a/c": 6},
        "object": {"AUTH_a/c/dir/2": 2, "AUTH_a/c/dir/3": 3},
    }


@pytest.mark.parametrize(("most", "left"), [(1, {"AUTH_a/c/3": 3}), (0, {})])
def test_an_agent_publishes_no_more_objects_than_it_is_told(stand, most, left):
    for number in (2, 3):
        for _ in range(number):
            stand("GET", f"/v1/AUTH_a/c/{number}")
    batch = Node(stand.proxy.meter, objects=most).batches()["GETS_SEC"]
    assert batch.values["object"] == left
    assert batch.values["tenant"] == {"AUTH_a": 5}


class CutOff(io.BytesIO):
    def read(self, *args):
        data = super().read(*args)
        if not data:
            raise OSError("client disconnected")
        return data


@pytest.mark.parametrize(("source", "looked"), [(None, True), ("SLO", False)])
def test_an_interrupted_upload_is_sampled_and_sub_requests_are_not(source, looked):
    meter = Meter([one() for one in BUILT_IN])
    life = RequestMetrics(meter.begin("a", "c", "o"), "PUT", source)
    body = UploadInput(CutOff(TEXT[:3000]), metrics=life)
    assert body.read(2000) == TEXT[:2000]
    body.read(2000)
    with pytest.raises(OSError, match="disconnected"):
        body.read(2000)
    for _ in range(2):
        life.end()
    column = meter.names.index("COMPRESSIBILITY")
    amounts = {path: values[column] for path, _, values in meter.changed()}
    assert amounts == dict.fromkeys(("a", "a/c"), 3000 if looked else 0)


def test_readline_is_sampled_like_read():
    meter = Meter([one() for one in BUILT_IN])
    body = UploadInput(io.BytesIO(TEXT), metrics=RequestMetrics(meter.begin("a", "c", "o"), "PUT", None))
    while body.readline():
        pass
    column = meter.names.index("COMPRESSIBILITY")
    assert {values[column] for _, _, values in meter.changed()} == {64 * 1024}


def test_most_uploads_of_a_container_are_not_sampled(stand):
    for _ in range(ONE_IN):
        stand("PUT", PATH.format("c"), TEXT)
    column = stand.proxy.meter.names.index("COMPRESSIBILITY")
    amounts = {path: values[column] for path, _, values in stand.proxy.meter.changed() if path == "AUTH_a"}
    assert amounts == {"AUTH_a": 64 * 1024}


def test_an_upload_that_nobody_throttles_is_counted_and_closes_its_source():
    meter = Meter([one() for one in BUILT_IN])
    metrics = RequestMetrics(meter.begin("a", "c", "o"), "PUT", None)
    source = io.BytesIO(TEXT)
    body = UploadInput(source, metrics=metrics)
    assert not metrics.begun
    assert (body.read(0), metrics.begun) == (b"", True)
    assert body.read(10) + body.read() == TEXT
    metrics.flush()
    column = meter.names.index("PUT_BW")
    assert {values[column] for _, _, values in meter.changed()} == {len(TEXT)}
    body.close()
    assert source.closed
