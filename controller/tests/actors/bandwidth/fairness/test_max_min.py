"""The guarantees of the allocation, on tables and on clusters with known exact results."""

import dataclasses
import functools

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.simulation.random_clusters import (
    capacity_limits,
    exact_shares,
    max_rates,
    overloaded_nodes,
    random_problem,
    random_sizes,
    shuffle,
)

from sluice_actors.bandwidth.fairness.max_min import allocate_max_min
from sluice_actors.bandwidth.fairness.problem import AllocationProblem, Side

INF = np.inf
SEEDS = range(60)
STEADY = settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


def side(capacity, *rows, copies=1.0):
    """Rows of (flow, node, weight)."""
    flow, node, weight = (np.array(column) for column in zip(*rows, strict=True))
    count = int(flow.max()) + 1
    return Side(np.array(capacity, float), flow, node, weight.astype(float), np.full(count, copies))


def spread(capacity, flows, copies=1.0):
    """Every flow on every node equally."""
    return side(capacity, *((flow, node, 1) for flow in range(flows) for node in range(len(capacity))), copies=copies)


def problem(floor, proxies, storage, ceiling=None, demand=None, tenant=None, bound=None, transfers=None):
    count = len(floor)
    tenant = np.arange(count) if tenant is None else np.array(tenant)
    bound = np.full(int(tenant.max()) + 1, INF) if bound is None else np.array(bound, float)

    def filled(given, value):
        return np.full(count, value) if given is None else np.array(given, float)

    floors = np.array(floor, float)
    ends = filled(ceiling, INF), filled(demand, INF)
    return AllocationProblem(floors, *ends, tenant, bound, filled(transfers, 10.0), proxies, storage)


def on_90(floor, **others):
    """Two proxies with 45 each, three storage nodes with more."""
    count = len(floor)
    return problem(floor, spread([45, 45], count), spread([50, 50, 50], count), **others)


def any_problem(seed):
    random = np.random.default_rng(seed)
    return random_problem(random, random_sizes(random))


@functools.cache
def solved(seed):
    """A random problem and its allocation; a fresh one for each seed, the same for all tests."""
    given = any_problem(seed)
    return given, allocate_max_min(given)


def feasible(given, limit):
    return limit.allows(np.minimum(given.floor, max_rates(given)))


@pytest.mark.parametrize(
    ("given", "share"),
    [
        ({"floor": [30, 20, 10]}, [40, 30, 20]),
        ({"floor": [30, 20, 10, 0]}, [37.5, 27.5, 17.5, 7.5]),
        ({"floor": [0, 0, 0]}, [30, 30, 30]),
        ({"floor": [30, 20, 10], "demand": [5, INF, INF]}, [5, 47.5, 37.5]),
        ({"floor": [30, 20, 10], "ceiling": [INF, 25, INF]}, [42.5, 25, 22.5]),
        ({"floor": [30, 0, 0], "ceiling": [20, INF, INF]}, [20, 35, 35]),
        ({"floor": [60, 60, 60]}, [30, 30, 30]),
        ({"floor": [90, 60, 30]}, [45, 30, 15]),
        ({"floor": [0, 0, 0], "tenant": [0, 0, 1]}, [22.5, 22.5, 45]),
        ({"floor": [0, 0, 0], "tenant": [0, 0, 1], "demand": [5, INF, INF]}, [5, 40, 45]),
        ({"floor": [0, 0, 0], "tenant": [0, 0, 1], "bound": [30, INF]}, [15, 15, 60]),
        ({"floor": [40, 0, 0], "tenant": [0, 0, 1], "bound": [30, INF]}, [30, 0, 60]),
        ({"floor": [10, 0], "demand": [0, 0]}, [0, 0]),
        ({"floor": [10, 0], "demand": [20, 30], "ceiling": [INF, 3]}, [20, 3]),
    ],
)
def test_floors_come_first_and_the_spare_is_shared_equally(given, share):
    assert allocate_max_min(on_90(**given)).share == pytest.approx(share, rel=2e-3, abs=1e-6)


def test_three_copies_are_carried_by_the_storage_nodes():
    given = problem([15, 10, 5], spread([45, 45], 3), spread([45, 45, 45], 3, copies=3.0))
    found = allocate_max_min(given)
    assert found.share == pytest.approx([20, 15, 10], rel=1e-3)
    assert np.bincount(given.storage.flow, found.storage.rates) == pytest.approx(3 * found.share)
    assert found.proxies.spare.sum() == pytest.approx(45)
    assert found.storage.spare.sum() == pytest.approx(0, abs=0.1)


def test_floors_that_cannot_be_carried_are_reduced_in_proportion_and_the_shortfall_is_said():
    found = allocate_max_min(on_90([90, 60, 30]))
    assert found.met == pytest.approx([45, 30, 15], rel=2e-3)
    assert found.short == pytest.approx([45, 30, 15], rel=2e-3)


def test_a_flow_with_less_demand_than_is_met_is_not_short():
    found = allocate_max_min(on_90([90, 60, 30], demand=[1, INF, INF]))
    assert found.share == pytest.approx([0.99, 59.3, 29.7], rel=1e-2)
    assert found.short[0] == 0


def test_a_floor_above_the_ceiling_or_the_tenants_bound_is_met_up_to_that():
    assert allocate_max_min(on_90([50, 0], ceiling=[20, INF])).met == pytest.approx([20, 0])
    assert allocate_max_min(on_90([50, 50], tenant=[0, 0], bound=[40])).met == pytest.approx([20, 20])


def test_what_a_full_node_cannot_carry_moves_to_the_flows_other_nodes():
    proxies = spread([1000], 3)
    storage = side([40, 100], (0, 0, 1), (0, 1, 1), (1, 0, 1), (2, 1, 1))
    found = allocate_max_min(problem([60, 30, 0], proxies, storage, demand=[60, 30, INF]))
    assert found.share == pytest.approx([60, 30, 50], rel=5e-3)
    assert found.storage.rates == pytest.approx([10, 50, 30, 50], rel=2e-2)


def test_rates_lie_where_the_bytes_are_as_long_as_nodes_can_carry_them():
    proxies = side([100, 100], (0, 0, 3), (0, 1, 1), (1, 0, 1), (1, 1, 1))
    found = allocate_max_min(problem([0, 0], proxies, spread([1000], 2), demand=[40, 20]))
    assert found.proxies.rates == pytest.approx([30, 10, 10, 10])


def test_a_part_that_weighs_almost_nothing_keeps_a_little():
    proxies = side([100, 100], (0, 0, 1), (0, 1, 1e-12))
    found = allocate_max_min(problem([0], proxies, spread([60], 1)))
    assert 0.1 < found.proxies.rates[1] < 1


def test_without_known_capacities_only_ceilings_hold_back():
    nodes = spread([INF, INF], 2)
    found = allocate_max_min(problem([0, 0], nodes, nodes, ceiling=[30, INF]))
    assert found.share[0] == pytest.approx(30)
    assert np.isinf(found.share[1])
    assert found.proxies.rates[:2] == pytest.approx([15, 15])


def test_a_side_without_reports_of_a_flow_does_not_hold_it_back():
    storage = Side(np.array([50.0]), np.array([0]), np.array([0]), np.array([1.0]), np.ones(2))
    found = allocate_max_min(problem([0, 0], spread([90], 2), storage))
    assert found.share == pytest.approx([45, 45], rel=1e-2)


def test_a_problem_without_flows_has_a_solution():
    nobody = Side(np.array([5.0]), np.array([], int), np.array([], int), np.array([]), np.array([]))
    none = np.array([])
    found = allocate_max_min(AllocationProblem(none, none, none, np.array([], int), none, none, nobody, nobody))
    assert len(found.share) == 0
    assert found.proxies.spare == pytest.approx([5])


def test_a_node_without_capacity_carries_nothing():
    found = allocate_max_min(problem([10, 0], spread([0, 50], 2), spread([100], 2)))
    assert found.share == pytest.approx([30, 20], rel=1e-2)
    assert found.proxies.rates[[0, 2]] == pytest.approx([0, 0])


@pytest.mark.parametrize("seed", SEEDS)
def test_no_node_carries_more_than_it_can_and_the_parts_add_up(seed):
    given, found = solved(seed)
    for one, rates in ((given.proxies, found.proxies.rates), (given.storage, found.storage.rates)):
        assert not overloaded_nodes(one, rates)
        assert np.all(rates >= 0)
        assert np.bincount(one.flow, rates) == pytest.approx(found.share * one.copies, rel=1e-6, abs=1)
    assert np.all(found.share <= max_rates(given) * (1 + 1e-9))
    assert np.bincount(given.proxies.flow, found.proxies.floors) == pytest.approx(found.met, rel=1e-6, abs=1)


@pytest.mark.parametrize("seed", SEEDS)
def test_floors_are_met_whenever_that_is_feasible(seed):
    given, found = solved(seed)
    if feasible(given, capacity_limits(given)):
        assert np.all(found.share >= 0.99 * np.minimum(given.floor, max_rates(given)))


@pytest.mark.parametrize("seed", SEEDS)
def test_no_flow_with_unmet_demand_has_free_capacity_on_all_of_its_path(seed):
    given, found = solved(seed)
    wants = found.share < 0.99 * max_rates(given)
    full = np.zeros(len(wants), bool)
    for one, spare in ((given.proxies, found.proxies.spare), (given.storage, found.storage.spare)):
        has_room = (spare > 0.01 * one.capacity)[one.node]
        full |= np.bincount(one.flow, has_room) == 0
    assert np.all(full | ~wants)


def test_hardly_any_rate_could_grow_by_shifting_others():
    could = wants = 0
    for seed in SEEDS:
        given, found = solved(seed)
        limit = capacity_limits(given)
        for flow in np.flatnonzero(found.share < 0.99 * max_rates(given)):
            more = found.share.copy()
            more[flow] += 0.01 * given.proxies.capacity.sum() / len(more)
            wants += 1
            could += limit.allows(more)
    assert could <= 0.01 * wants


def test_the_spare_is_shared_equally_as_far_as_nodes_allow():
    errors = []
    for seed in SEEDS:
        given, found = solved(seed)
        limit = capacity_limits(given)
        if feasible(given, limit):
            errors.append(np.abs(found.share / exact_shares(given, limit) - 1))
    everyone = np.concatenate(errors)
    assert len(errors) > 40
    assert everyone.mean() < 0.005
    assert np.quantile(everyone, 0.99) < 0.1


@STEADY
@given(st.integers(0, 1_000_000))
def test_the_order_of_flows_and_nodes_does_not_matter(seed):
    given = any_problem(seed)
    other, place = shuffle(given, np.random.default_rng(seed))
    first = allocate_max_min(given).share
    assert allocate_max_min(given).share.tolist() == first.tolist()
    assert allocate_max_min(other).share[place] == pytest.approx(first, rel=2e-2)


@pytest.mark.parametrize("seed", SEEDS)
def test_more_capacity_everywhere_gives_no_tenant_less(seed):
    given, found = solved(seed)
    factor = np.random.default_rng(seed).uniform(1.02, 3.0)
    more = dataclasses.replace(
        given,
        proxies=dataclasses.replace(given.proxies, capacity=given.proxies.capacity * factor),
        storage=dataclasses.replace(given.storage, capacity=given.storage.capacity * factor),
    )
    limit = capacity_limits(given)
    if feasible(given, limit):
        least = np.minimum(found.share, exact_shares(given, limit)).min()
        assert allocate_max_min(more).share.min() >= 0.98 * least


@pytest.mark.parametrize("seed", SEEDS[:40])
def test_a_greater_floor_or_demand_gives_no_less(seed):
    """A greater floor that can be met leaves less spare, but the flow never loses more of it than it gains."""
    given, found = solved(seed)
    limit = capacity_limits(given)
    if not feasible(given, limit):
        return
    random = np.random.default_rng(seed)
    one, factor = random.integers(len(found.share)), random.uniform(1.01, 2.0)
    for name in ("floor", "demand"):
        column = getattr(given, name).copy()
        column[one] = column[one] * factor + 1e6
        more = dataclasses.replace(given, **{name: column})
        if feasible(more, limit):
            assert allocate_max_min(more).share[one] >= found.share[one] * (1 - 1e-3)


def test_a_little_change_changes_little():
    changes = []
    for seed in SEEDS[:40]:
        given, found = solved(seed)
        weight = given.storage.weight * np.random.default_rng(seed).uniform(0.99, 1.01, len(given.storage.weight))
        other = dataclasses.replace(given, storage=dataclasses.replace(given.storage, weight=weight))
        changes.append(np.abs(allocate_max_min(other).share / found.share - 1))
    everyone = np.concatenate(changes)
    assert everyone.mean() < 0.003
    assert np.quantile(everyone, 0.99) < 0.05


@pytest.mark.parametrize("seed", SEEDS)
def test_bounds_of_tenants_with_several_flows_hold(seed):
    given = any_problem(seed)
    random = np.random.default_rng(seed)
    count = len(given.floor)
    tenant = random.integers(0, max(count // 3, 1), count)
    bound = np.where(random.random(count) < 0.5, random.uniform(1e6, 5e8, count), INF)
    found = allocate_max_min(dataclasses.replace(given, tenant=tenant, bound=bound))
    sums = np.bincount(tenant, found.share, minlength=count)
    assert np.all(sums <= bound * (1 + 1e-6))
    assert np.all(found.share <= max_rates(given) * (1 + 1e-9))


@STEADY
@given(
    st.lists(st.tuples(*[st.sampled_from([0.0, 1.0, 1e-6, 1e9, 1e18, INF])] * 3), min_size=1, max_size=5),
    st.lists(st.sampled_from([0.0, 1.0, 1e9, 1e18, INF]), min_size=1, max_size=3),
)
def test_extreme_values_give_rates(rows, capacity):
    floor, ceiling, demand = (list(column) for column in zip(*rows, strict=True))
    floor = [min(one, 1e18) for one in floor]
    nodes = spread(capacity, len(rows))
    found = allocate_max_min(problem(floor, nodes, nodes, ceiling=ceiling, demand=demand))
    for values in (found.share, found.met, found.short, found.proxies.rates, found.storage.rates, found.proxies.spare):
        assert not np.isnan(values).any()
        assert np.all(values >= 0)
