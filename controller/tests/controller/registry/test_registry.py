"""``/filters`` and ``/registry``, ``/health`` and ``/schema``."""

import json
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from drf_spectacular.validation import validate_schema

from sluice_controller.api.openapi import SENTENCES
from sluice_controller.api.operations.cluster import service
from sluice_core.messages.nodes import NodeReport
from sluice_filters.registry import descriptions


def test_filters_are_the_installed_ones(api):
    found = api.get("/filters").json()["filters"]
    assert [one["keyword"] for one in found] == sorted(descriptions())
    compression = next(one for one in found if one["keyword"] == "compression")
    engine = next(one for one in compression["parameters"] if one["name"] == "engine")
    assert engine["default"] == "zstd"
    assert set(engine["choices"]) == {"gzip", "lz4", "zstd"}


def test_the_registry_knows_words_that_come_later(api):
    found = {one["keyword"]: one["available"] for one in api.get("/registry/filters").json()["filters"]}
    assert found["compression"]
    assert found["bandwidth"]
    assert not found["elasticity"]


def test_metrics_and_terms_are_listed(api):
    metrics = {one["name"]: one for one in api.get("/registry/metrics").json()["metrics"]}
    assert {"GETS_SEC", "PUTS_SEC", "GET_BW", "PUT_BW", "THROUGHPUT", "ACTIVE_REQUESTS"} <= set(metrics)
    assert metrics["PUTS_SEC"]["period"] == 1.0
    terms = {one["term"]: one["patterns"] for one in api.get("/registry/terms").json()["terms"]}
    assert "pdf" in terms["DOCS"]


def test_health_needs_no_token_and_says_how_things_fare(api, backend):
    api.credentials()
    del api.defaults["HTTP_X_AUTH_TOKEN"]
    found = api.get("/health")
    assert found.status_code == 200
    assert found.json() == {
        "status": "degraded",
        "dependencies": {"redis": "ok", "actors": "degraded", "broker": "degraded", "nodes": "degraded"},
    }
    backend.store.report(NodeReport("n1", "h", 1, at=time.time()))
    backend.store.host_report("host", {"at": time.time(), "bus": False})
    assert api.get("/health").json()["dependencies"] == {
        "redis": "ok",
        "actors": "ok",
        "broker": "degraded",
        "nodes": "ok",
    }
    backend.store.host_report("host", {"at": time.time(), "bus": True})
    assert api.get("/health").json()["status"] == "ok"
    backend.store.host_report("host", {"at": time.time() - 60})
    assert api.get("/health").json()["dependencies"]["actors"] == "degraded"


def with_shared_responses(schema):
    """The same document, in which each response is written once, in the components, and referenced everywhere else.

    Nearly all operations have the same error responses; validating each of a thousand copies takes 15 seconds.
    """
    names, paths = {}, {}
    for path, methods in schema["paths"].items():
        paths[path] = {}
        for method, operation in methods.items():
            responses = {}
            for status, response in operation["responses"].items():
                name = names.setdefault(json.dumps(response, sort_keys=True), f"Response{len(names)}")
                responses[status] = {"$ref": f"#/components/responses/{name}"}
            paths[path][method] = {**operation, "responses": responses}
    components = {**schema["components"], "responses": {name: json.loads(text) for text, name in names.items()}}
    return {**schema, "paths": paths, "components": components}


def test_who_asks_for_the_schema_while_it_is_made_waits_for_it(monkeypatch):
    made, begun, goes_on = [], threading.Event(), threading.Event()

    class Generator:
        def get_schema(self, **_):
            made.append(threading.get_ident())
            begun.set()
            assert goes_on.wait(10)
            return {"openapi": "3.1.0"}

    service._schema.cache_clear()
    monkeypatch.setattr(service, "SchemaGenerator", Generator)
    with ThreadPoolExecutor(4) as pool:
        answers = [pool.submit(service.schema, None, None)]
        assert begun.wait(10)
        answers += [pool.submit(service.schema, None, None) for _ in range(3)]
        assert not any(one.done() for one in answers)
        goes_on.set()
        assert [one.result(10).data for one in answers] == [{"openapi": "3.1.0"}] * 4
    service._schema.cache_clear()
    assert len(made) == 1


def test_the_schema_is_valid_and_describes_every_path(api):
    from sluice_controller.app.urls import urlpatterns

    schema = api.get("/schema").json()
    validate_schema(with_shared_responses(schema))
    assert schema["openapi"].startswith("3.1")
    templates = {re.sub(r"<\w+:(\w+)>", r"{\1}", f"/{one.pattern}") for one in urlpatterns}
    assert set(schema["paths"]) == templates
    for methods in schema["paths"].values():
        for operation in methods.values():
            assert {"406", "500"} <= set(operation["responses"])
            assert operation["summary"]
            assert all("X-Request-Id" in answer["headers"] for answer in operation["responses"].values())


def test_the_schema_is_made_without_a_warning(api, capsys):
    api.get("/schema")
    assert "Warning" not in capsys.readouterr().err


def test_the_examples_of_the_schema_are_accepted(api):
    schema = api.get("/schema").json()
    seen = []
    for path in ("/policies/check", "/policies"):
        body = schema["paths"][path]["post"]["requestBody"]["content"]["application/json"]
        for example in body["examples"].values():
            answer = api.post(path, example["value"], format="json")
            assert answer.status_code in (200, 201), answer.json()
            seen.append(example["value"]["policy"])
    assert seen == [one.value["policy"] for one in SENTENCES] * 2
    created = ("/filters", "/filters/dependencies", "/stereotypes")
    registry = ("gtenants", "gcontainers", "terms", "aliases", "metrics", "filters")
    for path in (*created, *(f"/registry/{one}" for one in registry)):
        examples = schema["paths"][path]["post"]["requestBody"]["content"]["application/json"]["examples"]
        for example in examples.values():
            answer = api.post(path, example["value"], format="json")
            assert answer.status_code == 201, (path, answer.json())
            assert api.get(answer.headers["Location"]).headers["ETag"] == answer.headers["ETag"]
    deploy = schema["paths"]["/filters/{target}/deploy/{keyword}"]["put"]
    for example in deploy["requestBody"]["content"]["application/json"]["examples"].values():
        answer = api.put("/filters/AUTH_other/deploy/compression", example["value"], format="json")
        assert answer.status_code == 200, answer.json()


# Entries other than members of groups: terms and metrics with their clashes.


def test_a_term_is_coined_used_and_kept_while_it_is_in_use(api, create):
    made = api.post("/registry/terms", {"term": "sheets", "patterns": [".ODS", "text/csv", "ods"]}, format="json")
    assert made.status_code == 201, made.content
    assert (made.json()["term"], made.json()["patterns"]) == ("SHEETS", ["ods", "text/csv"])
    policy = create("FOR AUTH_a WHEN OBJECT_TYPE = sheets DO SET compression")
    (action,) = policy["actions"]
    assert policy["condition"] == "OBJECT_TYPE = sheets"
    assert action["keyword"] == "compression"
    for refused in (
        api.delete("/registry/terms/SHEETS"),
        api.put("/registry/terms/sheets", {"patterns": ["xls"]}, format="json"),
    ):
        assert refused.status_code == 409
        assert policy["id"] in refused.json()["error"]["message"]
    same = api.put("/registry/terms/sheets", {"patterns": ["ods", "text/csv"]}, format="json")
    assert same.headers["ETag"] == made.headers["ETag"]
    forced = api.put("/registry/terms/sheets?force=true", {"patterns": ["xls"]}, format="json")
    assert forced.json()["patterns"] == ["xls"]
    stale = api.delete("/registry/terms/sheets?force=true", headers={"If-Match": made.headers["ETag"]})
    assert stale.status_code == 412
    assert api.delete("/registry/terms/sheets?force=true").status_code == 204
    assert api.get("/registry/terms/sheets").status_code == 404


def test_a_builtin_term_is_listed_and_cannot_be_changed(api):
    shown = api.get("/registry/terms/docs")
    assert (shown.json()["builtin"], shown.headers["ETag"]) == (True, '"0"')
    assert api.put("/registry/terms/DOCS", {"patterns": ["pdf"]}, format="json").status_code == 409
    assert api.delete("/registry/terms/DOCS?force=true").status_code == 409
    listed = api.get("/registry/terms?prefix=D").json()
    assert [one["term"] for one in listed["terms"]] == ["DOCS"]


@pytest.mark.parametrize(
    ("body", "status", "word"),
    [
        ({"term": "DOCS", "patterns": ["x"]}, 409, "term"),
        ({"term": "puts_sec", "patterns": ["x"]}, 409, "metric"),
        ({"term": "method", "patterns": ["x"]}, 409, "attribute"),
        ({"term": "pdf", "patterns": ["x"]}, 409, "DOCS"),
        ({"term": "FOR", "patterns": ["x"]}, 400, "language"),
        ({"term": "T", "patterns": []}, 400, "patterns"),
        ({"term": "T"}, 400, "patterns"),
        ({"term": "T", "patterns": ["a b"]}, 400, "a b"),
        ({"term": "T", "patterns": "pdf"}, 400, "list"),
        ({"patterns": ["x"]}, 400, "term"),
        ({"term": "T", "patterns": ["x"], "pattern": 1}, 400, "pattern"),
    ],
)
def test_terms_that_cannot_be_ones_are_refused(api, body, status, word):
    before = api.get("/registry/terms").json()
    refused = api.post("/registry/terms", body, format="json")
    assert refused.status_code == status, refused.content
    assert word in refused.json()["error"]["message"]
    assert api.get("/registry/terms").json() == before


#: The fields about code for a metric that an external program publishes.
NO_CODE = {
    **{"uploaded": False, "running": True, "main": "", "sha256": "", "size": 0, "revision": 0},
    **{"uploaded_at": None, "uploaded_by": "", "revisions": []},
}
CPU = {"name": "cpu_busy", "unit": "fraction", "granularities": ["tenant", "node"], "help": "of all cores"}


def test_a_metric_is_registered_watched_and_kept_while_it_is_watched(api, create):
    made = api.post("/registry/metrics", CPU, format="json")
    assert made.status_code == 201, made.content
    assert made.json() == {
        **CPU,
        **NO_CODE,
        "name": "CPU_BUSY",
        "type": "gauge",
        "period": 1.0,
        "aliases": [],
        "location": "sluice.metrics/metric.CPU_BUSY.*",
        "registered": True,
    }
    policy = create("FOR AUTH_a WHEN CPU_BUSY > 50% DO SET compression TRANSIENT")
    assert policy["dynamic"]
    assert api.put("/registry/metrics/CPU_BUSY", {"unit": "count"}, format="json").status_code == 409
    assert api.delete("/registry/metrics/CPU_BUSY").status_code == 409
    renamed = api.put("/registry/metrics/cpu_busy", {"help": "x"}, format="json")
    assert (renamed.json()["help"], renamed.json()["unit"]) == ("x", "fraction")
    stale = api.put("/registry/metrics/cpu_busy", {"help": "y"}, format="json", headers={"If-Match": made["ETag"]})
    assert stale.status_code == 412
    api.delete(f"/policies/{policy['id']}")
    assert api.delete("/registry/metrics/CPU_BUSY").status_code == 204


def test_a_plugins_metric_cannot_be_changed(api):
    assert api.get("/registry/metrics/puts_sec").json()["type"] == "rate"
    assert api.put("/registry/metrics/PUTS_SEC", {"help": "x"}, format="json").status_code == 409
    assert api.delete("/registry/metrics/PUTS_SEC").status_code == 409
    assert api.get("/registry/metrics/NOTHING").status_code == 404
    assert api.delete("/registry/metrics/NOTHING").status_code == 404


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"name": "PUTS_SEC"}, 409),
        ({"name": "DOCS"}, 409),
        ({"name": "OBJECT_SIZE"}, 409),
        ({"name": "a.b"}, 400),
        ({"name": "*"}, 400),
        ({"unit": "parsec"}, 400),
        ({"type": 1}, 400),
        ({"granularities": []}, 400),
        ({"granularities": ["rack"]}, 400),
        ({"period": 0}, 400),
        ({"period": True}, 400),
        ({"period": "1"}, 400),
        ({"colour": "red"}, 400),
    ],
)
def test_metrics_that_cannot_be_ones_are_refused(api, change, status):
    refused = api.post("/registry/metrics", {**CPU, **change}, format="json")
    assert refused.status_code == status, refused.content
    assert api.get("/registry/metrics/CPU_BUSY").status_code == 404
