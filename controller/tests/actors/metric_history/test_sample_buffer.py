"""Seconds become points."""

import math

import numpy as np
import pytest

from sluice_actors.metric_history.sample_buffer import SampleBuffer
from sluice_metric_history.resolutions import RESOLUTIONS

SECONDS, TENS, MINUTES = RESOLUTIONS
START = 1_200_000_000


def put(buffer, second, value, period=1.0, column=0):
    buffer.put(second, period, np.array([column]), np.array([value]))


def points(buffer, resolution, at=START):
    return [next(resolution.unpack(raw)) for raw in buffer.points(resolution, at)]


def test_a_summary_has_mean_ends_and_95_of_100_values():
    buffer = SampleBuffer(1)
    for second in range(60):
        put(buffer, START + second, float(second))
    (point,) = points(buffer, MINUTES)
    assert (point.low, point.high) == (0.0, 59.0)
    assert point.mean == pytest.approx(29.5, rel=1e-4)
    assert point.p95 == pytest.approx(56.0, rel=1e-4)


def test_seconds_without_a_value_do_not_count_and_a_step_without_any_is_a_gap():
    buffer = SampleBuffer(3)
    put(buffer, START, 4.0)
    put(buffer, START + 7, 8.0)
    put(buffer, START, math.nan, column=1)
    point, *others = points(buffer, TENS)
    assert (point.mean, point.low, point.high) == (pytest.approx(6.0, rel=1e-4), 4.0, 8.0)
    assert others == [None, None]


def test_a_window_of_a_minute_fills_its_minute():
    buffer = SampleBuffer(1)
    for second in range(62):
        buffer.finish_second(START + second)
    put(buffer, START, 3.0, period=60.0)
    (point,) = points(buffer, MINUTES)
    assert (point.low, point.high) == (3.0, 3.0)
    assert points(buffer, SECONDS, START + 60) == [None]


def test_a_window_of_minutes_holds_until_the_next_one():
    buffer = SampleBuffer(1)
    put(buffer, START - 300, 5.0, period=300.0)
    for second in range(301):
        buffer.finish_second(START + second)
    assert points(buffer, MINUTES, START + 240)[0].mean == 5.0
    for second in range(301, 480):
        buffer.finish_second(START + second)
    assert points(buffer, MINUTES, START + 420) == [None]


def test_a_second_is_cleared_before_its_row_is_used_again():
    buffer = SampleBuffer(1)
    put(buffer, START, 9.0)
    for second in range(180):
        buffer.finish_second(START + second)
    assert points(buffer, SECONDS, START + 180) == [None]


def test_what_no_float_of_32_bits_holds_becomes_the_largest():
    buffer = SampleBuffer(1)
    put(buffer, START, 1e300)
    (point,) = points(buffer, SECONDS)
    assert 1e38 < point.mean < math.inf
