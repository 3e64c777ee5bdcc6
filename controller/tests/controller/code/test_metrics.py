"""Uploaded workload metrics: stopped at first, words of the language once they are started."""

from __future__ import annotations

import time

import pytest

from sluice_core.messages.nodes import NodeReport

DELETES = """
from sluice_core.describe import MetricInfo
from sluice_metrics.api import Metric


class Deletes(Metric):
    info = MetricInfo("DELETES_SEC", "per_second", "objects deleted per second")

    def admitted(self, method):
        return 1 if method == "DELETE" else 0
"""
PATH = "/registry/metrics/DELETES_SEC"
SENTENCE = {"policy": "FOR TENANT AUTH_a WHEN DELETES_SEC > 3 DO SET noop"}


@pytest.fixture
def uploaded(send_code):
    return send_code(f"{PATH}/data", DELETES, 201)


def post(api, call, status=200, body=None, **headers):
    answer = api.post(f"{PATH}/{call}", body or {}, format="json", headers=headers)
    assert answer.status_code == status, answer.content
    return answer.json()


def test_a_metric_comes_stopped_and_is_a_word_once_it_is_started(api, uploaded):
    assert uploaded.headers["Location"] == PATH
    made = uploaded.json()
    assert (made["unit"], made["main"], made["revision"]) == ("per_second", "Deletes", 1)
    assert (made["uploaded"], made["running"], made["registered"]) == (True, False, False)
    assert api.get(PATH).json() == made
    assert api.get(PATH).headers["ETag"] == uploaded.headers["ETag"]
    assert api.post("/policies", SENTENCE, format="json").status_code == 400
    assert post(api, "start")["running"] is True
    assert api.post("/policies", SENTENCE, format="json").status_code == 201
    listed = {one["name"]: one for one in api.get("/registry/metrics").json()["metrics"]}
    assert listed["DELETES_SEC"]["running"] is True
    assert (listed["PUTS_SEC"]["uploaded"], listed["PUTS_SEC"]["running"]) == (False, True)
    assert b"".join(api.get(f"{PATH}/data").streaming_content) == DELETES.encode()


def test_a_watched_metric_is_not_stopped_or_deleted(api, uploaded):
    post(api, "start")
    policy = api.post("/policies", SENTENCE, format="json").json()["id"]
    assert policy in post(api, "stop", 409)["error"]["message"]
    refused = api.delete(PATH)
    assert refused.status_code == 409
    assert policy in refused.json()["error"]["message"]
    assert post(api, "stop?force=true")["running"] is False
    assert api.delete(f"{PATH}?force=true").status_code == 204
    assert api.get(PATH).status_code == 404


def test_a_revision_that_counts_something_else_is_refused_while_it_is_watched(api, uploaded, send_code):
    post(api, "start")
    other = DELETES.replace('"per_second"', '"count"')
    policy = api.post("/policies", SENTENCE, format="json").json()["id"]
    assert policy in send_code(f"{PATH}/data", other, 409).json()["error"]["message"]
    api.delete(f"/policies/{policy}")
    changed = send_code(f"{PATH}/data", other).json()
    assert (changed["unit"], changed["revision"], changed["running"]) == ("count", 2, True)
    assert post(api, "rollback")["unit"] == "per_second"
    assert [one["revision"] for one in api.get(PATH).json()["revisions"]] == [2, 1]


@pytest.mark.parametrize(
    ("name", "code", "status", "word"),
    [
        ("PUTS_SEC", DELETES, 409, "a metric"),
        ("WHEN", DELETES, 400, "word of the language"),
        ("OBJECT_SIZE", DELETES, 409, "request attribute"),
        ("DOCS", DELETES, 409, "coined term"),
        ("BUSY", DELETES, 409, "alias"),
        ("LOAD", DELETES, 409, "a metric"),
        ("9LIVES", DELETES, 400, "routing key"),
        ("OTHER", DELETES, 400, "`DELETES_SEC`, expected `OTHER`"),
        ("DELETES_SEC", "import requests", 400, "line 1 imports `requests`"),
        ("DELETES_SEC", DELETES.replace("return 1", "return 'many'"), 400, ""),
        ("DELETES_SEC", DELETES.replace('"per_second"', '"furlongs"'), 400, "furlongs"),
        ("DELETES_SEC", "", 400, "empty"),
    ],
)
def test_invalid_metric_code_is_refused(api, send_code, code_swift, name, code, status, word):
    alias = {"name": "BUSY", "of": "metric", "text": "GETS_SEC"}
    assert api.post("/registry/aliases", alias, format="json").status_code == 201
    assert api.post("/registry/metrics", {"name": "LOAD"}, format="json").status_code == 201
    refused = send_code(f"/registry/metrics/{name}/data", code, status).json()["error"]["message"]
    assert word in refused
    assert code_swift.objects == {}


def test_its_name_may_have_been_given_away_while_it_was_stopped(api, uploaded):
    term = {"term": "DELETES_SEC", "patterns": ["x"]}
    assert api.post("/registry/terms", term, format="json").status_code == 201
    assert "coined term" in post(api, "start", 409)["error"]["message"]


def test_names_of_other_metrics_are_refused(api, uploaded):
    refused = api.post("/registry/metrics", {"name": "DELETES_SEC"}, format="json")
    assert refused.status_code == 409
    assert api.put(PATH, {"unit": "bytes"}, format="json").status_code == 409
    for call in ("start", "stop", "rollback"):
        assert api.post(f"/registry/metrics/PUTS_SEC/{call}", {}, format="json").status_code == 404
        assert api.post(f"/registry/metrics/NOTHING/{call}", {}, format="json").status_code == 404
    assert api.get("/registry/metrics/PUTS_SEC/data").status_code == 404
    assert api.get("/registry/metrics/NOTHING/instances").status_code == 404


def test_versions_guard_every_call(api, uploaded, send_code):
    stale = {"If-Match": '"999"'}
    for call in ("start", "stop", "rollback"):
        post(api, call, 412, **stale)
    send_code(f"{PATH}/data", DELETES + "#", 412, **stale)
    assert api.delete(PATH, headers=stale).status_code == 412
    good = {"If-Match": uploaded.headers["ETag"]}
    assert post(api, "start", **good)["running"] is True
    post(api, "stop", 412, **good)


def test_starting_and_stopping_twice_changes_nothing(api, backend, uploaded):
    post(api, "stop")
    assert backend.store.head().epoch == 1
    post(api, "start")
    post(api, "start")
    assert backend.store.head().epoch == 2
    assert post(api, "start", 400, {"now": True})["error"]["code"] == 400


def test_instances_say_what_each_node_has(api, backend, uploaded):
    head = backend.store.head()
    key = "metric/DELETES_SEC"

    def report(node, epoch=head.epoch, at=None, **more):
        backend.store.report(NodeReport(node, head.history, epoch, at=at or time.time(), **more))

    def seen():
        found = api.get(f"{PATH}/instances").json()["instances"]
        return [(one["node"], one["state"], one["reason"], one["revision"]) for one in found]

    report("n1", code={key: 1})
    report("n2", refused={f"upload/{key}": "no room"})
    report("n3", at=1.0)
    assert seen() == [("n1", "stopped", "", 1), ("n2", "stopped", "no room", 0), ("n3", "away", "", 0)]
    post(api, "start")
    assert [state for _, state, _, _ in seen()] == ["waiting", "waiting", "away"]
    head = backend.store.head()
    report("n1", head.epoch, code={key: 1})
    report("n2", head.epoch, refused={f"upload/{key}": "no room"})
    assert seen()[:2] == [("n1", "running", "", 1), ("n2", "refused", "no room", 0)]
    page = api.get(f"{PATH}/instances?limit=1&marker=n1").json()
    assert ([one["node"] for one in page["instances"]], page["next_marker"]) == (["n2"], "n2")
