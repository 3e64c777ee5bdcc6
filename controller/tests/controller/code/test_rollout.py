"""The roll-out of uploaded code on the nodes, and waiting for it."""

from __future__ import annotations

import threading
import time

import pytest

from sluice_controller.catalog.nodes import Cluster
from sluice_controller.code.revisions import RegisteredCode
from sluice_controller.code.rollout import rollout
from sluice_core.messages.nodes import NodeReport
from sluice_core.messages.uploads import Upload
from sluice_core.store.records import Head

NOW = 1000.0
UPLOAD = Upload("invert", "native", "python", "Invert", "a" * 64, 5, revision=3)
#: The report of a node that has revision 2 and the reason for it.
REASON = {"upload/invert": "line 1: no such module"}


def report(epoch=5, history="h", state="ok", at=NOW, **more):
    return NodeReport("n", history, epoch, state, at=at, **more)


CASES = {
    "has it": (report(code={"invert": 3}), (1, [], [], [])),
    "has it and complained before": (report(code={"invert": 3}, refused=REASON), (1, [], [], [])),
    "goes on with another": (report(code={"invert": 2}, refused=REASON), (0, [(REASON["upload/invert"], 2)], [], [])),
    "has none": (report(refused=REASON), (0, [(REASON["upload/invert"], 0)], [], [])),
    "has not said": (report(code={"invert": 2}), (0, [], ["n"], [])),
    "complains of another": (report(refused={"upload/other": "x", "invert.0": "y"}), (0, [], ["n"], [])),
    "has not heard of it": (report(4, code={"invert": 2}, refused=REASON), (0, [], ["n"], [])),
    "stands in another history": (report(history="x", code={"invert": 3}), (0, [], ["n"], [])),
    "cannot write": (report(state="failed", detail="disk full"), (0, [("failed: disk full", 0)], [], [])),
    "is away": (report(at=NOW - 16, code={"invert": 3}), (0, [], [], ["n"])),
}


@pytest.mark.parametrize("name", CASES)
def test_a_node_is_counted_or_named_once(name):
    node, (count, refused, waiting, away) = CASES[name]
    found = rollout(RegisteredCode(UPLOAD, 1, 5), Cluster(Head("h", 9), (node,), NOW, 15.0))
    assert (found.nodes, [(one["reason"], one["revision"]) for one in found.refused]) == (count, refused)
    assert (found.waiting, found.away) == (waiting, away)
    assert found.total == 1 == found.nodes + len(found.refused) + len(found.waiting) + len(found.away)


def test_a_filter_without_code_waits_for_no_node():
    found = rollout(
        RegisteredCode(Upload("x", "native", "python", "", "", 0), 1), Cluster(Head("h", 9), (report(),), NOW, 15.0)
    )
    assert (found.total, found.nodes, found.waiting) == (1, 0, [])


SCRAMBLE = {"keyword": "scramble", "environment": "wasm", "language": "wasm"}


def test_a_refusal_of_the_revision_before_is_not_held_against_the_new_one(api, backend, send_code):
    api.post("/filters", SCRAMBLE, format="json")
    send_code("/filters/scramble/data", "\0asm one")
    head = backend.store.head()
    refused = {"upload/scramble": "no room"}
    backend.store.report(NodeReport("n1", head.history, head.epoch, at=time.time(), refused=refused))
    shown = api.get("/filters/scramble").json()["rollout"]
    assert shown["refused"] == [{"node": "n1", "reason": "no room", "revision": 0}]
    assert send_code("/filters/scramble/data", "\0asm two").json()["rollout"]["waiting"] == ["n1"]
    assert api.get("/filters/scramble").json()["rollout"]["waiting"] == ["n1"]


def test_the_list_of_filters_says_where_each_comes_from_and_how_far_its_code_has_come(api, backend, send_code):
    api.post("/filters", {**SCRAMBLE, "self_service": True}, format="json")
    send_code("/filters/scramble/data", "\0asm one")
    head = backend.store.head()
    backend.store.report(NodeReport("n1", head.history, head.epoch, at=time.time(), code={"scramble": 1}))
    listed = {one["keyword"]: one for one in api.get("/filters").json()["filters"]}
    scramble, installed = listed["scramble"], listed["compression"]
    assert scramble["rollout"] == {"total": 1, "nodes": 1, "refused": [], "waiting": [], "away": []}
    assert (scramble["installed"], scramble["self_service"], scramble["revision"]) == (False, True, 1)
    assert (installed["installed"], installed["self_service"], installed["rollout"]) == (True, False, None)


def test_waiting_ends_when_every_live_node_has_said_something(api, backend, send_code):
    api.post("/filters", SCRAMBLE, format="json")
    history = backend.store.head().history
    backend.store.report(NodeReport("n1", history, 1, at=time.time()))
    backend.store.report(NodeReport("n2", history, 1, at=1.0))

    def answer():
        while (head := backend.store.head()).epoch < 2:
            time.sleep(0.01)
        said = NodeReport("n1", history, head.epoch, at=time.time(), code={"scramble": 1})
        backend.store.report(said)

    node = threading.Thread(target=answer)
    node.start()
    shown = send_code("/filters/scramble/data?wait=30", "\0asm").json()["rollout"]
    node.join()
    assert shown == {"total": 2, "nodes": 1, "refused": [], "waiting": [], "away": ["n2"]}


def test_nodes_show_the_code_that_they_can_run_and_how_their_sandboxes_fare(api, backend):
    code = {"scramble": 2, "metric/DELETES_SEC": 1}
    sandbox = {"wasm": "ok", "storlet": "docker does not answer"}
    backend.store.report(NodeReport("n1", "h", 1, at=time.time(), code=code, sandbox=sandbox))
    shown = api.get("/nodes/n1").json()
    assert (shown["code"], shown["sandbox"]) == (code, sandbox)
