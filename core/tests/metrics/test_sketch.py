"""Quantiles from buckets: their accuracy, and that merging and subtracting lose no counts."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sluice_core.messages.nodes import LARGEST_BUCKET
from sluice_core.metrics.sketch import (
    ERROR,
    LARGEST,
    SMALLEST,
    SketchGrowth,
    estimate_quantile,
    find_bucket,
    merge,
    pack,
    unpack,
)

SECONDS = st.lists(st.floats(SMALLEST, LARGEST), min_size=1, max_size=50)
QUANTILES = st.sampled_from([0.01, 0.5, 0.95, 0.99])


def sketch_of(values):
    made = {}
    merge(made, ((find_bucket(value), 1) for value in values))
    return made


def exact(values, quantile):
    return sorted(values)[math.ceil(quantile * len(values) - 1e-9) - 1]


@given(SECONDS, QUANTILES)
@example([SMALLEST, LARGEST], 0.5)
def test_a_quantile_is_as_exact_as_is_said(values, quantile):
    found = estimate_quantile(sketch_of(values), quantile)
    assert found == pytest.approx(exact(values, quantile), rel=ERROR + 6e-4)


@given(SECONDS, SECONDS, QUANTILES)
def test_merged_sketches_are_the_sketch_of_all_values(some, others, quantile):
    merged = sketch_of(some)
    merge(merged, unpack(pack(sketch_of(others))).items())
    assert merged == sketch_of([*some, *others])


@pytest.mark.parametrize("value", [-1.0, 0.0, SMALLEST / 10, LARGEST * 10, math.inf])
def test_what_is_out_of_range_counts_at_its_end(value):
    assert find_bucket(value) == find_bucket(SMALLEST if value < 1 else LARGEST)
    assert abs(find_bucket(value)) < LARGEST_BUCKET


def test_counts_of_several_seconds_are_spread_and_give_the_same_quantile():
    growth = SketchGrowth()
    values = [0.01, 0.02, 0.5]
    growth.add("acme", {}, {"S": sketch_of(values)})
    (spread,) = growth.close(3.0)["S"].values()
    assert sum(spread.values()) == pytest.approx(1.0)
    for quantile in (0.3, 0.6, 0.9):
        assert estimate_quantile(spread, quantile) == estimate_quantile(sketch_of(values), quantile)


def test_only_what_grew_counts_and_each_window_begins_anew():
    growth = SketchGrowth()
    growth.add("acme", {"S": {1: 5, 2: 7}}, {"S": {1: 5, 2: 9, 3: 1}})
    growth.add("acme", {"S": {2: 9}}, {"S": {2: 8}})
    assert growth.close(1.0) == {"S": {"acme": {2: 2, 3: 1}}}
    assert growth.close(1.0) == {}
