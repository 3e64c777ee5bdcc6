"""``/filters`` and ``/registry``, ``/health`` and ``/schema``."""

import time

from drf_spectacular.validation import validate_schema

from sluice_controller.openapi import SENTENCES
from sluice_core.messages import NodeReport
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
    assert not found["bandwidth"]


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


def test_the_schema_is_valid_and_describes_every_path(api):
    schema = api.get("/schema").json()
    validate_schema(schema)
    assert schema["openapi"].startswith("3.1")
    assert set(schema["paths"]) == {
        "/policies",
        "/policies/check",
        "/policies/{policy_id}",
        "/nodes",
        "/nodes/adopt",
        "/nodes/{node}",
        "/filters",
        "/filters/{keyword}",
        "/filters/{keyword}/data",
        "/registry/filters",
        "/registry/metrics",
        "/registry/terms",
        "/health",
        "/schema",
    }
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
    assert seen == [text for _, text in SENTENCES] * 2
    for example in schema["paths"]["/filters"]["post"]["requestBody"]["content"]["application/json"][
        "examples"
    ].values():
        assert api.post("/filters", example["value"], format="json").status_code == 201
