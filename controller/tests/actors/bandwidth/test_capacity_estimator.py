"""Estimates of capacities: they must follow the real capacity, and never lock themselves in."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.actors.bandwidth import MB

from sluice_actors.bandwidth.capacity_estimator import (
    CONFIGURED,
    ESTIMATED,
    UNKNOWN,
    CapacityEstimate,
    FloorViolations,
    NodeCapacities,
)
from sluice_core.describe import PROXY
from sluice_core.messages.bandwidth import GET, Flow

A = Flow("a", GET)


def fed(estimate, seconds, moved, violated=False):
    for _ in range(seconds):
        estimate.update(min(moved, estimate.value), violated)
    return estimate.value


def test_capacity_is_unknown_while_no_floor_is_violated():
    assert fed(CapacityEstimate(), 100, 50 * MB) == math.inf


def test_a_violated_floor_sets_the_estimate_to_what_was_moved():
    estimate = CapacityEstimate()
    fed(estimate, 20, 50 * MB)
    assert fed(estimate, 1, 50 * MB, violated=True) == pytest.approx(50 * MB, rel=0.02)
    assert fed(estimate, 10, 50 * MB, violated=True) == pytest.approx(45 * MB, rel=0.03)
    assert fed(estimate, 500, 50 * MB, violated=True) == pytest.approx(25 * MB, rel=0.02)


def test_a_used_up_estimate_grows_by_five_per_cent_a_second():
    estimate = CapacityEstimate()
    fed(estimate, 20, 50 * MB)
    fed(estimate, 1, 50 * MB, violated=True)
    assert fed(estimate, 10, math.inf) > 50 * MB * 1.05**8


def test_an_estimate_that_is_not_used_up_is_forgotten_after_a_minute():
    estimate = CapacityEstimate()
    fed(estimate, 20, 50 * MB)
    known = fed(estimate, 1, 50 * MB, violated=True)
    assert fed(estimate, 50, 5 * MB) == pytest.approx(known, rel=0.3)
    assert fed(estimate, 20, 5 * MB) == math.inf


@given(st.lists(st.tuples(st.floats(0, 1e9), st.booleans()), max_size=60), st.floats(1e6, 1e9))
def test_an_estimate_never_locks_itself_in(past, asked):
    """After any past, a demanded rate is reached within some minutes if no floor is violated."""
    estimate = CapacityEstimate()
    for moved, violated in past:
        estimate.update(min(moved, estimate.value), violated)
    fed(estimate, 300, asked)
    assert estimate.value >= asked


def test_a_floor_is_violated_when_its_flow_moves_less_than_it_may_and_does_not_wait():
    violations = FloorViolations()
    assert [violations.is_violated(A, 30.0, 10.0, 2.0, 0.0, now) for now in range(6)] == [False] * 4 + [True] * 2
    assert not violations.is_violated(A, 30.0, 10.0, 2.0, 1.0, 7.0)
    assert not violations.is_violated(A, 30.0, 29.0, 2.0, 0.0, 8.0)
    assert not violations.is_violated(A, 30.0, 10.0, 0.5, 0.0, 9.0)


def test_a_flow_that_is_slow_by_itself_is_let_alone_for_a_minute():
    violations = FloorViolations()
    found = [violations.is_violated(A, 30.0, 10.0, 2.0, 0.0, float(now)) for now in range(100)]
    assert sum(found[:22]) == 17
    assert not any(found[22:81])
    assert any(found[81:])
    better = [violations.is_violated(Flow("b", GET), 30.0, 10.0 + now, 2.0, 0.0, float(now)) for now in range(16)]
    assert all(better[4:])


def test_a_configured_capacity_needs_no_estimate():
    capacities = NodeCapacities(PROXY, GET)
    assert capacities.capacity("n", {PROXY: {GET: 5.0}}) == (5.0, CONFIGURED)
    assert capacities.capacity("n", {}) == (math.inf, UNKNOWN)
    capacities.update({"n": 50 * MB, "m": 9 * MB}, {"n"}, 1.0)
    assert {capacities.capacity(node, {})[1] for node in ("n", "m")} == {ESTIMATED}
    capacities.update({"m": 9 * MB}, (), 1.0)
    assert capacities.capacity("n", {}) == (math.inf, UNKNOWN)
