"""Batches of several nodes merged: rates are summed, means are weighted."""

import pytest

from sluice_core.errors import DecodeError
from sluice_core.messages.nodes import MetricBatch
from sluice_core.metrics.merge import MergedBatches
from sluice_core.metrics.sketch import find_bucket


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


def quantile_batch(quantile, sketches, node="n1"):
    return MetricBatch.decode(MetricBatch(node, "M", 100, 1, quantile=quantile, sketches=sketches).encode())


def test_a_quantile_is_that_of_all_nodes_together():
    fast, slow = find_bucket(0.01), find_bucket(2.0)
    one = quantile_batch(0.5, {"tenant": {"a": [fast, 90]}, "container": {"a/c": [fast, 90]}})
    other = quantile_batch(0.5, {"tenant": {"a": [fast, 1, slow, 9], "b": [slow, 200]}, "container": {"a/c": []}})
    found = merged(one, other)
    assert found["tenant"] == {"a": pytest.approx(0.01, rel=0.05), "b": pytest.approx(2.0, rel=0.05)}
    assert found["container"] == {"a/c": pytest.approx(0.01, rel=0.05)}
    assert found["cluster"] == {"": pytest.approx(2.0, rel=0.05)}
    tail = [quantile_batch(0.95, batch.sketches) for batch in (one, other)]
    assert merged(*tail)["tenant"]["a"] == pytest.approx(2.0, rel=0.05)


def test_a_quantile_of_nothing_is_no_value():
    assert merged(quantile_batch(0.5, {}), quantile_batch(0.5, {"tenant": {}})) in ({}, {"tenant": {}})


def test_a_batch_with_a_bad_sketch_is_refused():
    with pytest.raises(DecodeError, match="is no sketch"):
        quantile_batch(0.5, {"tenant": {"a": [1, 2, 3]}})


def test_the_cluster_has_the_highest_value_of_its_nodes():
    found = merged(batch({"node": {"n1": 0.5}}), batch({"node": {"n2": 0.9}}, node="n2"))
    assert found == {"node": {"n1": 0.5, "n2": 0.9}, "cluster": {"": 0.9}}


def test_what_is_said_of_the_cluster_itself_stays():
    found = merged(batch({"node": {"n1": 0.5}, "tenant": {"a": 2.0}}), batch({"tenant": {"a": 3.0}}))
    assert found["cluster"] == {"": 5.0}
