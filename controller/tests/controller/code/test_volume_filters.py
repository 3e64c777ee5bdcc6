"""Uploaded filters of volumes: shared objects, described by their registration, for administrators."""

from __future__ import annotations

import hashlib
import time

import pytest
from tests.support.shared_objects import AARCH64, shared_object

from sluice_core.messages.nodes import NodeReport

ROT = {
    "keyword": "rot",
    "environment": "nbdkit",
    "reverse": True,
    "parameters": [{"name": "rot-by", "type": "int", "help": "how much", "default": 13, "minimum": 1, "maximum": 255}],
    "help": "adds a number to each byte",
}
PATH = "/filters/rot/data"
CODE = shared_object()


@pytest.fixture
def registered(api, code_swift):
    answer = api.post("/filters", ROT, format="json")
    assert answer.status_code == 201, answer.content
    return answer.json()


def test_its_registration_says_what_it_is_and_its_code_is_kept_by_digest(api, registered, send_code, code_swift):
    made = send_code(PATH, CODE).json()
    digest = hashlib.sha256(CODE).hexdigest()
    assert (made["sha256"], made["environment"], made["revision"]) == (digest, "nbdkit", 1)
    assert code_swift.objects[f"/v1/AUTH_s/sluice-code/{digest}"] == CODE
    (listed,) = [one for one in api.get("/filters").json()["filters"] if one["keyword"] == "rot"]
    assert (listed["changes_content"], listed["reversible"], listed["places"]) == (True, True, ["konnector"])


@pytest.mark.parametrize(
    ("code", "status", "reason"),
    [
        (b"import os\n", 400, "no ELF file"),
        (shared_object(machine=AARCH64), 400, "for machines of type `aarch64`"),
        (shared_object("plugin_init"), 400, "does not export `filter_init`"),
        (CODE + bytes(8 << 20), 413, "expected at most 8388608"),
    ],
)
def test_code_that_no_konnector_could_load_is_refused(api, registered, send_code, monkeypatch, code, status, reason):
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    assert reason in send_code(PATH, code, status).json()["error"]["message"]
    assert api.get("/filters/rot").json()["sha256"] == ""


@pytest.mark.parametrize(
    ("wrong", "status"),
    [
        ({"keyword": "xor"}, 409),
        ({"reverse": False, "capabilities": {"changes_content": True}}, 400),
        ({"capabilities": {"on_request": True}}, 400),
    ],
)
def test_a_registration_that_cannot_be_is_refused(api, code_swift, wrong, status):
    assert api.post("/filters", {**ROT, **wrong}, format="json").status_code == status


def test_it_is_rolled_out_to_nodes_with_a_konnector_and_no_others(api, registered, send_code, backend):
    send_code(PATH, CODE)
    head = backend.store.head()
    refused = {"upload/rot": "revision 1: it does not end"}
    for node, more in (
        ("n1", {}),
        ("n2", {"konnector": "https://n2", "refused": refused}),
        ("n3", {"konnector": "https://n3", "code": {"rot": 1}}),
    ):
        backend.store.report(NodeReport(node, head.history, head.epoch, at=time.time(), **more))
    rollout = api.get("/filters/rot").json()["rollout"]
    assert (rollout["total"], rollout["nodes"]) == (2, 1)
    assert rollout["refused"] == [{"node": "n2", "reason": "revision 1: it does not end", "revision": 0}]
