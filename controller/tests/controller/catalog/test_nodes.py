"""``/nodes``, and the enforcement of a policy on them."""

import time

import pytest

from sluice_controller.catalog.nodes import Cluster, enforcement
from sluice_core.messages.nodes import NodeReport
from sluice_core.store.records import Head

NOW = 1000.0


def report(node, epoch=5, history="h", state="ok", at=NOW, **more):
    return NodeReport(node, history, epoch, state, at=at, **more)


CASES = {
    "enforces": (report("n"), (1, [], [], [])),
    "is ahead": (report("n", 9), (1, [], [], [])),
    "has not acknowledged": (report("n", 4), (0, [], ["n"], [])),
    "stands in another history": (report("n", history="other"), (0, [], ["n"], [])),
    "is away": (report("n", at=NOW - 15.1), (0, [], [], ["n"])),
    "reported just in time": (report("n", at=NOW - 15.0), (1, [], [], [])),
    "cannot write": (report("n", state="failed", detail="disk full"), (0, ["failed: disk full"], [], [])),
    "refuses": (report("n", refused={"p.0": "not here", "p.1@a.b": "not here"}), (0, ["not here"], [], [])),
    "refuses for two reasons": (report("n", refused={"p.0": "a", "p.1": "b"}), (0, ["a; b"], [], [])),
    "refuses another policy": (report("n", refused={"pp.0": "not here", "q.0": "p.0"}), (1, [], [], [])),
    "refused before it was away": (report("n", at=0, refused={"p.0": "not here"}), (0, [], [], ["n"])),
    "refuses an older change": (report("n", 4, refused={"p.0": "not here"}), (0, [], ["n"], [])),
}


@pytest.mark.parametrize("name", CASES)
def test_a_node_is_counted_or_named_once(name):
    node, (count, reasons, waiting, away) = CASES[name]
    found = enforcement("p", 5, Cluster(Head("h", 9), (node,), NOW, 15.0))
    assert (found.nodes, [one["reason"] for one in found.refused], found.waiting, found.away) == (
        count,
        reasons,
        waiting,
        away,
    )
    assert found.total == 1 == found.nodes + len(found.refused) + len(found.waiting) + len(found.away)


def test_nodes_are_listed_with_the_newest_change(api, backend, create):
    made = create("FOR TENANT AUTH_a DO SET compression")
    head = backend.store.head()
    reason = "filter `compression` is not installed"
    refusing = NodeReport("n2", head.history, 1, at=time.time(), refused={f"{made['id']}.0": reason}, workers=2)
    backend.store.report(refusing)
    backend.store.report(NodeReport("n1", head.history, 0, "stale_history", "saw h2", at=time.time()))
    answer = api.get("/nodes").json()
    assert answer["head"] == {"history": head.history, "epoch": 1}
    assert [(one["node"], one["state"]) for one in answer["nodes"]] == [("n1", "stale_history"), ("n2", "ok")]
    assert answer["nodes"][1]["refused"] == [{"assignment": f"{made['id']}.0", "policy": made["id"], "reason": reason}]
    shown = api.get(f"/policies/{made['id']}").json()["enforced"]
    assert (shown["nodes"], shown["total"]) == (0, 2)
    assert shown["refused"] == [
        {"node": "n1", "reason": "stale_history: saw h2"},
        {"node": "n2", "reason": reason},
    ]


def test_a_node_is_shown_and_forgotten(api, backend):
    backend.store.report(NodeReport("rack 1/ä", "h", 3, at=time.time() - 100))
    backend.store.report(NodeReport("n1", "h", 3, at=time.time() - 100))
    assert api.get("/nodes/n1").json()["state"] == "away"
    assert api.delete("/nodes/n1").status_code == 204
    assert api.get("/nodes/n1").status_code == 404
    assert api.delete("/nodes/n1").status_code == 404


def test_adopting_names_the_current_history(api, backend, create):
    create("FOR TENANT AUTH_a DO SET compression")
    head = backend.store.head()
    answer = api.post("/nodes/adopt")
    assert answer.json() == {"history": head.history, "epoch": 1}
    assert backend.store.head_and_adopted() == (head, head)


def test_adopting_takes_no_body(api, create):
    create("FOR TENANT AUTH_a DO SET compression")
    assert api.post("/nodes/adopt", {}, format="json").status_code == 200
    assert api.post("/nodes/adopt", {"force": True}, format="json").status_code == 400
