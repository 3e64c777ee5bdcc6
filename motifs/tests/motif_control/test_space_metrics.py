"""The contents of spaces as metrics, merged as policies see them."""

import pytest

from sluice_core.messages.elasticity import WHOLE_CLUSTER
from sluice_core.messages.nodes import MetricBatch
from sluice_core.metrics.merge import MergedBatches
from sluice_motif_control.messages import SpaceStatus
from sluice_motif_control.spaces import space_batches


def space(path, level, target, used, contracted=0, rate=0.0, seconds=0.0):
    return SpaceStatus(path, level, target, used, contracted, expansions_per_second=rate, expansion_time=seconds)


def values(*spaces):
    found = {}
    for batch in space_batches(spaces, 100, 1):
        merged = MergedBatches()
        merged.add(MetricBatch.decode(batch.encode()))
        found[batch.metric] = merged.values()
    return found


def test_each_space_has_its_values_and_tenants_the_sums_of_theirs():
    found = values(
        space("AUTH_a/c", "container", 100, 75, 10, 2.0, 0.5),
        space("AUTH_a/d", "container", 0, 0, 5),
        space("AUTH_b", "tenant", 200, 100, 20, 1.0, 2.0),
    )
    assert found["FREE_SPACE"]["container"] == {"AUTH_a/c": 0.25, "AUTH_a/d": 0.0}
    assert found["FREE_SPACE"]["tenant"] == {"AUTH_b": 0.5}
    assert found["CONTRACTED"]["tenant"] == {"AUTH_a": 15.0, "AUTH_b": 20.0}
    assert found["CONTRACTED"]["cluster"] == {"": 35.0}
    assert found["EXPANSIONS_SEC"]["container"] == {"AUTH_a/c": 2.0, "AUTH_a/d": 0.0}
    assert found["EXPANSION_TIME"]["container"] == {"AUTH_a/c": 0.5}


def test_the_space_of_the_whole_cluster_is_the_clusters():
    found = values(space(WHOLE_CLUSTER, "cluster", 100, 150, 7))
    assert (found["FREE_SPACE"]["cluster"], found["CONTRACTED"]["cluster"]) == ({"": 0.0}, {"": 7.0})


@pytest.mark.parametrize("metric", ["FREE_SPACE", "EXPANSION_TIME"])
def test_nothing_is_said_where_there_is_nothing(metric):
    assert not any(values()[metric].values())
