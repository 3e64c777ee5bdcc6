"""``/spaces/metrics``: the limit, usage and cost of spaces, for Prometheus."""

import pytest
from tests.support.controller.exposition import families, labelled, series

from sluice_core.messages.elasticity import WHOLE_CLUSTER
from sluice_motif_control.messages import SpaceStatus
from sluice_motif_control.spaces import write_spaces

THUMBS = SpaceStatus(
    "AUTH_a/thumbs", "container", 1000, 800, 200, items=8, contracted_items=2, hits=30, misses=10, expansions=5,
    seconds_lost=1.5, state="contracting",
)  # fmt: skip
CLUSTER = SpaceStatus(WHOLE_CLUSTER, "cluster", 10, 20, 0, state="above", reason="2 are younger than min_age")
OF_THUMBS = {"account": "AUTH_a", "container": "thumbs"}


@pytest.fixture
def report(backend):
    return lambda *found: backend.store.run(write_spaces(backend.store.keys, found))


def test_a_space_tells_bytes_objects_opens_and_expansions(api, report):
    report(THUMBS)
    found = families(api, "/spaces/metrics")
    assert {one.name: one.type for one in found if one.type != "gauge"} == {
        "sluice_space_expansions": "counter",
        "sluice_space_expansion_seconds": "counter",
    }
    of = series(found)
    assert of["sluice_space_bytes"] == {
        labelled(**OF_THUMBS, what="target"): 1000,
        labelled(**OF_THUMBS, what="used"): 800,
        labelled(**OF_THUMBS, what="contracted"): 200,
    }
    assert of["sluice_space_objects"] == {
        labelled(**OF_THUMBS, what="used"): 8,
        labelled(**OF_THUMBS, what="contracted"): 2,
    }
    assert of["sluice_space_opens"] == {
        labelled(**OF_THUMBS, result="hit"): 30,
        labelled(**OF_THUMBS, result="miss"): 10,
    }
    assert of["sluice_space_expansions"] == {labelled(**OF_THUMBS): 5}
    assert of["sluice_space_expansion_seconds"] == {labelled(**OF_THUMBS): 1.5}
    assert of["sluice_space_state"] == {labelled(**OF_THUMBS, state="contracting"): 1}


def test_spaces_of_an_account_and_of_the_cluster_have_empty_labels(api, report):
    report(SpaceStatus("AUTH_b", "tenant", 1, 0, 0), CLUSTER)
    assert series(families(api, "/spaces/metrics"))["sluice_space_state"] == {
        labelled(account="AUTH_b", container="", state="kept"): 1,
        labelled(account="", container="", state="above"): 1,
    }


def test_without_a_daemon_there_is_no_space(api):
    assert not any(series(families(api, "/spaces/metrics")).values())
