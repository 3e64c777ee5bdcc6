"""``/registry/aliases``: further names for filters, metrics and targets."""

import pytest

TIGHT = {"name": "tight", "of": "filter", "text": "compression", "params": {"engine": "gzip", "level": 3}}
GETS = {"name": "get_sec_tenant", "of": "metric", "text": "GETS_SEC", "level": "tenant"}
LOGS = {"name": "C1", "of": "target", "text": "AUTH_acme/logs"}


@pytest.fixture
def made(api):
    found = {}
    for body in (TIGHT, GETS, LOGS):
        answer = api.post("/registry/aliases", body, format="json")
        assert answer.status_code == 201, answer.content
        found[answer.json()["name"]] = answer
    return found


def test_they_are_shown_and_listed(api, made):
    assert set(made) == {"tight", "GET_SEC_TENANT", "C1"}
    listed = api.get("/registry/aliases").json()
    assert [one["name"] for one in listed["aliases"]] == ["C1", "GET_SEC_TENANT", "tight"]
    shown = api.get("/registry/aliases/tight")
    assert (shown.json(), shown.headers["ETag"]) == (made["tight"].json(), made["tight"].headers["ETag"])


def test_a_filters_alias_brings_parameters_that_a_sentence_may_override(api, made, create):
    policy = create("FOR AUTH_a DO SET Tight")
    assert policy["policy"] == "FOR AUTH_a DO SET tight"
    assert policy["actions"][0]["keyword"] == "compression"
    assert policy["actions"][0]["params"] == {"engine": "gzip", "level": 3}
    other = create("FOR AUTH_b DO SET tight WITH level=1")
    assert other["actions"][0]["params"] == {"engine": "gzip", "level": 1}
    taken_back = create("FOR CONTAINER AUTH_b/c DO DELETE tight")
    assert taken_back["actions"][0]["keyword"] == "compression"


def test_an_alias_is_the_same_filter_to_its_neighbours(api, made, create):
    first = create("FOR AUTH_a DO SET compression")
    refused = api.post("/policies", {"policy": "FOR AUTH_a DO SET tight"}, format="json")
    assert refused.status_code == 409
    assert first["id"] in refused.json()["error"]["message"]
    twice = api.post("/policies/check", {"policy": "FOR AUTH_b DO SET tight, SET compression"}, format="json")
    assert twice.status_code == 400


def test_a_metrics_alias_holds_for_targets_of_its_level(api, made, create):
    policy = create("FOR TENANT AUTH_a WHEN GET_SEC_TENANT > 5 DO SET noop TRANSIENT")
    plan = api.post("/policies/check", {"policy": "FOR AUTH_b WHEN GET_SEC_TENANT > 5 DO SET noop"}, format="json")
    assert plan.json()["policies"][0]["plan"]["metrics"] == ["GETS_SEC"]
    assert policy["condition"] == "GET_SEC_TENANT > 5"
    refused = api.post("/policies", {"policy": "FOR CLUSTER WHEN GET_SEC_TENANT > 5 DO SET noop"}, format="json")
    assert refused.status_code == 400
    assert "of a tenant" in refused.json()["error"]["message"]


def test_a_targets_alias_stands_for_it_and_for_what_is_in_it(api, made, create):
    policy = create("FOR C1 DO SET compression")
    assert policy["target"] == {"level": "container", "select": "name", "name": "AUTH_acme/logs", "label": "C1"}
    inside = create("FOR OBJECT C1/a DO SET noop")
    assert inside["target"]["name"] == "AUTH_acme/logs/a"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("tight", "FOR AUTH_a DO SET noop, tight"),
        ("GET_SEC_TENANT", "FOR AUTH_a WHEN METHOD = PUT AND NOT (GET_SEC_TENANT > 5 OR PUTS_SEC > 1) DO SET noop"),
        ("C1", "FOR C1 DO SET noop"),
        ("C1", "FOR OBJECT C1/x DO SET noop"),
    ],
)
def test_one_that_a_policy_uses_is_neither_deleted_nor_changed(api, made, create, name, sentence):
    policy = create(sentence)
    other = {"tight": {"text": "noop"}, "GET_SEC_TENANT": {"text": "PUTS_SEC"}, "C1": {"text": "AUTH_b"}}[name]
    for answer in (api.delete(f"/registry/aliases/{name}"), api.put(f"/registry/aliases/{name}", other, format="json")):
        assert answer.status_code == 409, answer.content
        assert policy["id"] in answer.json()["error"]["message"]
    assert api.delete(f"/registry/aliases/{name}?force=true").status_code == 204
    assert api.get(f"/registry/aliases/{name}").status_code == 404


def test_a_name_inside_another_word_is_no_use_of_it(api, made, create):
    create('FOR "C1x" DO SET compression')
    create("FOR AUTH_C1 WHEN OBJECT_TAG = C1 DO SET noop")
    assert api.delete("/registry/aliases/C1").status_code == 204


def test_an_update_honours_if_match_and_keeps_name_and_sort(api, made):
    changed = api.put("/registry/aliases/C1", {"text": "AUTH_acme/new"}, format="json")
    assert changed.json()["text"] == "AUTH_acme/new"
    stale = {"If-Match": made["C1"].headers["ETag"]}
    assert api.put("/registry/aliases/C1", {"text": "AUTH_b"}, format="json", headers=stale).status_code == 412
    assert api.delete("/registry/aliases/C1", headers=stale).status_code == 412
    for body in ({"name": "C2", "text": "AUTH_b"}, {"of": "metric", "text": "PUTS_SEC"}, {}):
        assert api.put("/registry/aliases/C1", body, format="json").status_code == 400


@pytest.mark.parametrize(
    ("base", "change", "status", "word"),
    [
        (TIGHT, {"name": "compression"}, 409, "keyword"),
        (TIGHT, {"name": "Bandwidth"}, 409, "keyword"),
        (TIGHT, {"text": "compresion"}, 400, "compression"),
        (TIGHT, {"text": "namespace"}, 400, "not available"),
        (TIGHT, {"params": {"engin": "gzip"}}, 400, "engine"),
        (TIGHT, {"params": {"level": "high"}}, 400, "level"),
        (TIGHT, {"params": {"engine": []}}, 400, "engine"),
        (TIGHT, {"params": {"engine": None}}, 400, "engine"),
        (TIGHT, {"params": {"engine": "gzip", "level": 99}}, 400, "level"),
        (TIGHT, {"params": "x"}, 400, "params"),
        (TIGHT, {"level": "tenant"}, 400, "level"),
        (TIGHT, {"of": "thing"}, 400, "thing"),
        (GETS, {"name": "PUTS_SEC"}, 409, "metric"),
        (GETS, {"name": "METHOD"}, 409, "attribute"),
        (GETS, {"name": "docs"}, 409, "term"),
        (GETS, {"text": "GETZ_SEC"}, 400, "GETS_SEC"),
        (GETS, {"level": "node"}, 400, "level"),
        (GETS, {"params": {"a": 1}}, 400, "params"),
        (LOGS, {"text": "AUTH_a//b"}, 400, "AUTH_a//b"),
        (LOGS, {"text": ""}, 400, "text"),
        (LOGS, {"name": "tenant"}, 400, "language"),
        (LOGS, {"name": "a/b"}, 400, "/"),
        (LOGS, {"colour": 1}, 400, "colour"),
    ],
)
def test_aliases_that_cannot_be_ones_are_refused(api, base, change, status, word):
    refused = api.post("/registry/aliases", {**base, **change}, format="json")
    assert refused.status_code == status, refused.content
    assert word in refused.json()["error"]["message"]
    assert api.get("/registry/aliases").json()["aliases"] == []


def test_an_alias_and_a_registered_filter_do_not_share_a_name(api, made):
    body = {"keyword": "tight", "environment": "wasm", "language": "wasm"}
    assert api.post("/filters", body, format="json").status_code == 409
    assert api.post("/registry/gtenants", {"name": "C1"}, format="json").status_code == 409
    assert api.post("/registry/terms", {"term": "get_sec_tenant", "patterns": ["x"]}, format="json").status_code == 409
