"""Samples of uploads: which are taken, their values, and their end."""

from __future__ import annotations

import logging
import random

import pytest

from sluice_core.describe import MetricInfo
from sluice_metrics.api import Metric
from sluice_metrics.builtin.compressibility import Compressibility
from sluice_metrics.builtin.requests import PutsSec
from sluice_metrics.meter.meter import Meter
from sluice_metrics.meter.sampling import MIN_SAMPLE, ONE_IN, PER_SECOND, VALUE_LIFETIME
from sluice_metrics.testing import FakeClock, upload, values

TEXT = b"the same words again and again, " * 4096
NOISE = random.Random(1).randbytes(1 << 17)


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def meter(clock):
    return Meter([PutsSec(), Compressibility()], clock, forget=100)


def ratio(meter, path):
    row = values(meter, meter.changed()).get(path)
    return row and row["COMPRESSIBILITY"] / row["COMPRESSIBILITY:weight"]


def test_amounts_and_weights_are_levels_of_their_own(meter):
    assert meter.names == ("PUTS_SEC", "COMPRESSIBILITY", "COMPRESSIBILITY:weight")
    assert meter.gauges == ("COMPRESSIBILITY", "COMPRESSIBILITY:weight")


@pytest.mark.parametrize(("data", "low", "high"), [(TEXT, 20, 10_000), (NOISE, 1, 1), (TEXT[:32768] + NOISE, 1.9, 2.1)])
def test_what_compresses_has_a_high_ratio_and_noise_has_one(meter, data, low, high):
    assert upload(meter.begin("acme", "logs", "o"), data[:5000], data[5000:])
    for path in ("acme", "acme/logs"):
        assert low <= ratio(meter, path) <= high


def test_only_the_beginning_of_an_upload_is_looked_at(meter):
    upload(meter.begin("acme", "logs"), TEXT[: 1 << 16], NOISE)
    assert ratio(meter, "acme") > 20


def test_the_first_upload_of_a_container_is_looked_into_and_then_one_in_several(meter, clock):
    looked = []
    for _ in range(3 * ONE_IN):
        clock.now += 1
        looked.append(upload(meter.begin("acme", "logs"), NOISE))
    assert looked == [number % ONE_IN == 0 for number in range(3 * ONE_IN)]
    assert upload(meter.begin("acme", "other"), NOISE)


def test_no_more_are_looked_into_than_so_many_each_second(meter, clock):
    first = sum(upload(meter.begin("acme", f"c{number}"), NOISE) for number in range(100))
    clock.now += 1
    second = sum(upload(meter.begin("acme", f"d{number}"), NOISE) for number in range(100))
    assert first == second == PER_SECOND


def test_tiny_uploads_tell_nothing(meter):
    upload(meter.begin("acme", "logs"), TEXT[: MIN_SAMPLE - 1])
    assert values(meter, meter.changed())["acme"]["COMPRESSIBILITY"] == 0


def test_older_samples_fade(meter, clock):
    upload(meter.begin("acme", "text"), TEXT)
    high = ratio(meter, "acme")
    for number in range(30):
        clock.now += 1
        upload(meter.begin("acme", f"noise-{number}"), NOISE)
    assert ratio(meter, "acme") < 1.01 < high
    assert ratio(meter, "acme/text") == high


def test_a_value_stands_for_a_while_and_then_there_is_none(meter, clock):
    upload(meter.begin("acme", "logs"), TEXT)
    meter.delivered(meter.changed())
    clock.now += VALUE_LIFETIME - 20
    assert meter.changed() == []
    clock.now += 21
    row = values(meter, meter.changed())["acme"]
    assert (row["COMPRESSIBILITY"], row["COMPRESSIBILITY:weight"], row["PUTS_SEC"]) == (0, 0, 1)
    clock.now += 1
    assert upload(meter.begin("acme", "logs"), NOISE), "and the next upload is looked into at once"
    assert ratio(meter, "acme") == 1


class Broken(Metric):
    info = MetricInfo("BROKEN", "ratio", "raises, or answers nonsense", granularities=("tenant",))
    sample_size = 2048

    def __init__(self, answer):
        self.answer = answer

    def sampled(self, data):
        if self.answer is None:
            raise OSError("no codec")
        return self.answer


@pytest.mark.parametrize("answer", [None, (1, 0), (-1, 1), (float("inf"), 1), (1, float("nan")), (1,), 5])
def test_a_metric_that_fails_is_switched_off_and_the_others_go_on(clock, caplog, answer):
    meter = Meter([Broken(answer), Compressibility()], clock)
    with caplog.at_level(logging.ERROR):
        for number in range(3):
            upload(meter.begin("acme", f"c{number}"), TEXT)
    assert meter.failures == {"BROKEN.sampled": 1}
    row = values(meter, meter.changed())["acme"]
    assert row["BROKEN"] == row["BROKEN:weight"] == 0
    assert row["COMPRESSIBILITY"] > 0


def test_without_such_metrics_nothing_is_collected(clock):
    assert not upload(Meter([PutsSec()], clock).begin("acme", "logs"), TEXT)
