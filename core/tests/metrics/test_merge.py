"""Batches of several nodes merged: rates add up, means are weighed."""

import pytest

from sluice_core.messages.nodes import MetricBatch
from sluice_core.metrics.merge import MergedBatches


def batch(values, weights=None, node="n1"):
    return MetricBatch.decode(MetricBatch(node, "M", 100, 1, values, 1.0, weights or {}).encode())


def merged(*batches):
    found = MergedBatches()
    for one in batches:
        found.add(one)
    return found.values()


def test_rates_add_up_and_the_cluster_is_the_sum_of_its_tenants():
    one = batch({"tenant": {"a": 1.0, "b": 2.0}, "object": {"a/c/o": 1.0}})
    other = batch({"tenant": {"a": 4.0}, "object": {"a/c/o": 2.0}})
    assert merged(one, other) == {"tenant": {"a": 5.0, "b": 2.0}, "object": {"a/c/o": 3.0}, "cluster": {"": 7.0}}


def test_means_count_as_much_as_they_weigh():
    one = batch({"tenant": {"a": 4.0}}, {"tenant": {"a": 1.0}})
    other = batch({"tenant": {"a": 1.0, "b": 2.0}}, {"tenant": {"a": 3.0, "b": 4.0}})
    found = merged(one, other)
    assert found["tenant"] == pytest.approx({"a": 1.75, "b": 2.0})
    assert found["cluster"][""] == pytest.approx((4 + 3 + 8) / 8)


def test_two_nodes_that_agree_are_not_twice_as_much():
    one = batch({"container": {"a/c": 2.5}}, {"container": {"a/c": 7.0}})
    assert merged(one, one) == {"container": {"a/c": 2.5}}


def test_a_mean_without_its_weight_counts_nothing():
    assert merged(batch({"tenant": {"a": 4.0, "b": 1.0}, "container": {"a/c": 1.0}}, {"tenant": {"a": 1.0}})) == {
        "tenant": {"a": 4.0},
        "cluster": {"": 4.0},
    }


def test_nothing_is_merged_to_nothing():
    assert merged(batch({}), batch({})) == {}
