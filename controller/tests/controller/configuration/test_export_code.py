"""Uploaded code in the configuration: exported with its revisions, imported, rolled back to."""

from __future__ import annotations

from dataclasses import replace

import pytest
import yaml

from sluice_controller.configuration.configuration import Configuration
from sluice_core.messages.uploads import Revision, Upload
from sluice_core.store.records import Draft
from sluice_core.testing import assignment

FIRST = Revision(1, "1" * 64, 10, "Invert", {"help": "first", "reversible": True, "changes_content": True})
INVERT = Upload(
    "invert",
    "native",
    "python",
    "Invert",
    "a" * 64,
    11,
    revision=2,
    reverse=True,
    info={"help": "second", "reversible": True, "changes_content": True},
    earlier=(FIRST.sha256,),
    created=7,
    created_by="eve",
    revisions=(FIRST,),
)
METRIC = Upload(
    "DELETES_SEC", "native", "python", "Deletes", "b" * 64, 12, info={"unit": "per_second", "help": "x"}, kind="metric"
)
CONTROLLER = Upload(
    "busy",
    "native",
    "python",
    "Busy",
    "c" * 64,
    13,
    info={"metrics": ["PUTS_SEC"], "period": 2.0, "help": "x"},
    created=9,
    kind="controller",
)
CODE = (INVERT, METRIC, CONTROLLER)


@pytest.fixture
def put(api):
    def send(document, query="", status=200):
        text = document if isinstance(document, bytes) else yaml.safe_dump(document)
        answer = api.put(f"/import?{query}", text, content_type="application/yaml")
        assert answer.status_code == status, answer.content
        return answer.json()

    return send


@pytest.fixture
def full(backend):
    backend.store.commit(Draft("eve", uploads=CODE))
    return Configuration.now(backend)


def back(api, epoch, query="", status=200):
    answer = api.post(f"/changes/{epoch}/rollback?{query}", headers={})
    assert answer.status_code == status, answer.content
    return answer.json()


def test_the_round_trip_is_identity_also_on_an_empty_cluster(api, backend, full, put):
    text = api.get("/export").content
    assert put(text)["changes"] == []
    backend.store.client.flushdb()
    assert put(text)["create"] == len(CODE)
    assert Configuration.now(backend) == full
    assert api.get("/export").content == text


def test_each_kind_has_a_section_of_its_own(api, backend, full):
    backend.store.commit(Draft("eve", uploads=(replace(CONTROLLER, running=False),)))
    found = yaml.safe_load(api.get("/export").content)
    assert [len(found[section]) for section in ("filters", "metrics", "controllers")] == [1, 1, 1]
    (controller,) = found["controllers"]
    assert (controller["keyword"], controller["running"]) == ("busy", False)
    assert "kind" not in controller
    assert found["filters"][0]["revisions"][0]["sha256"] == FIRST.sha256


def test_a_controller_that_is_not_in_a_document_goes_with_what_it_set(api, backend, full, put):
    backend.store.commit(Draft("actors@h", puts=(assignment("controller:busy.01", "AUTH_a"),)))
    document = yaml.safe_load(api.get("/export").content)
    document["controllers"] = []
    (planned,) = put(document, "plan=true")["changes"]
    assert (planned["what"], planned["name"], planned["how"]) == ("controller", "busy", "delete")
    assert put(document)["delete"] == 1
    assert backend.store.assignments() == []
    assert backend.store.upload("controller/busy") is None


def test_one_that_a_document_stops_loses_what_it_set_and_one_that_goes_on_keeps_it(api, backend, full, put):
    set_by_it = assignment("controller:busy.01", "AUTH_a")
    backend.store.commit(Draft("actors@h", puts=(set_by_it,)))
    document = yaml.safe_load(api.get("/export").content)
    document["controllers"][0]["info"]["period"] = 5
    put(document)
    assert backend.store.assignments() == [set_by_it]
    document["controllers"][0]["running"] = False
    put(document)
    assert backend.store.assignments() == []


def test_going_back_to_a_change_counts_revisions_on(api, backend, full):
    newer = replace(METRIC, sha256="d" * 64, revision=2, revisions=(METRIC.current,))
    backend.store.commit(Draft("eve", uploads=(newer,)))
    back(api, 1)
    found = backend.store.upload(METRIC.key)
    assert (found.sha256, found.revision) == (METRIC.sha256, 3)
    assert [one.number for one in found.revisions] == [2, 1]
    assert back(api, 1)["changes"] == [], "the same code is the same revision"


def test_going_back_behind_a_start_stops_it(api, backend):
    backend.store.commit(Draft("eve", uploads=(replace(CONTROLLER, running=False),)))
    backend.store.commit(Draft("eve", uploads=(CONTROLLER,)))
    backend.store.commit(Draft("actors@h", puts=(assignment("controller:busy.01", "AUTH_a"),)))
    back(api, 1)
    assert backend.store.upload(CONTROLLER.key).running is False
    assert backend.store.assignments() == []


def test_changes_name_code_by_its_kind(api, backend, full):
    backend.store.commit(Draft("eve", upload_drops=(METRIC.key, CONTROLLER.key)))
    first, second = (api.get(f"/changes/{epoch}").json() for epoch in (1, 2))
    assert (first["filters"], first["metrics"], first["controllers"]) == (["invert"], ["DELETES_SEC"], ["busy"])
    assert (second["filters"], second["metrics"], second["controllers"]) == ([], ["DELETES_SEC"], ["busy"])
    assert [(one["what"], one["name"]) for one in second["differences"]] == [
        ("metric", "DELETES_SEC"),
        ("controller", "busy"),
    ]


def code(upload, **more):
    data = {**upload.to_data(), **more}
    plain = {name: list(one) if isinstance(one, tuple) else one for name, one in data.items()}
    return {name: one for name, one in plain.items() if name not in ("kind", "created", "created_by")}


BAD = {
    "a metric without code": ("metrics", code(METRIC, sha256=""), "no native code"),
    "an isolated metric": ("metrics", code(METRIC, environment="wasm"), "no native code"),
    "a metric in lower case": ("metrics", code(METRIC, keyword="deletes"), "upper case"),
    "a metric called like ours": ("metrics", code(METRIC, keyword="PUTS_SEC"), "keyword of the language"),
    "a metric that says nothing": ("metrics", code(METRIC, info={}), "description of metric"),
    "a controller with a slash": ("controllers", code(CONTROLLER, keyword="a/b"), "lower case"),
    "a controller in a hurry": ("controllers", code(CONTROLLER, info={"period": 0.1}), "at least 1 second"),
    "a controller of other words": ("controllers", code(CONTROLLER, info={"colour": 1}), "`colour`"),
    "a controller that sees numbers": ("controllers", code(CONTROLLER, info={"metrics": [1]}), "list of texts"),
    "a filter that says other things": ("filters", code(INVERT, reverse=False), "`reverse`"),
    "a kind of its own": ("filters", {**code(INVERT), "kind": "metric"}, "unknown field `kind`"),
    "a revision of no code": ("filters", code(INVERT, revisions=[{"number": 1, "sha256": "x", "size": 1}]), "SHA-256"),
    "a revision of no number": (
        "filters",
        code(INVERT, revisions=[{"number": "x", "sha256": "1" * 64, "size": 1}]),
        "`number`",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_document_with_wrong_code_is_refused(backend, put, name):
    section, one, word = BAD[name]
    assert word in put({"sluice": 1, section: [one]}, "", 400)["error"]["message"]
    assert backend.store.head().epoch == 0
