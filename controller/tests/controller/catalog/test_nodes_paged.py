"""``/nodes`` in pages and filtered, for clusters of hundreds."""

import time

import pytest

from sluice_core.messages.nodes import NodeReport


@pytest.fixture
def nodes(backend):
    now = time.time()
    backend.store.report(NodeReport("n3", "h", 1, "failed", at=now))
    backend.store.report(NodeReport("n1", "h", 1, at=now, refused={"p.0": "no"}, software="1.2", dropped=4))
    backend.store.report(NodeReport("n2", "h", 1, at=1.0))


@pytest.mark.parametrize(
    ("query", "names", "marker"),
    [
        ("", ["n1", "n2", "n3"], None),
        ("limit=2", ["n1", "n2"], "n2"),
        ("limit=2&marker=n2", ["n3"], None),
        ("state=away", ["n2"], None),
        ("state=failed", ["n3"], None),
        ("refusing=true", ["n1"], None),
        ("limit=1&state=ok", ["n1"], None),
    ],
)
def test_nodes_are_listed_by_name(api, nodes, query, names, marker):
    page = api.get(f"/nodes?{query}").json()
    assert ([one["node"] for one in page["nodes"]], page["next_marker"]) == (names, marker)


def test_a_node_tells_its_version_epoch_refusals_and_losses(api, nodes):
    found = api.get("/nodes/n1").json()
    assert (found["software"], found["epoch"], found["dropped"]) == ("1.2", 1, 4)
    assert found["refused"] == [{"assignment": "p.0", "policy": "p", "reason": "no"}]


@pytest.mark.parametrize("query", ["limit=0", "state=well", "refusing=x", "stat=ok"])
def test_invalid_parameters_are_refused(api, query):
    assert api.get(f"/nodes?{query}").status_code == 400
