"""``/metrics`` for Prometheus, which contain no name of a tenant."""

import time
from dataclasses import replace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from sluice_aio.base.backing_servers import RedisServer
from sluice_aio.base.ports import free_port
from sluice_controller.catalog.backend import open_backend
from sluice_core.messages.nodes import NodeReport


@pytest.fixture
def read(api):
    def get():
        answer = api.get("/metrics")
        assert answer.status_code == 200
        assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        families = text_string_to_metric_families(answer.content.decode())
        return {(one.name, *sorted(one.labels.values())): one.value for each in families for one in each.samples}

    return get


def test_requests_are_counted_by_call_and_status_not_by_path(api, read):
    labels = ("sluice_api_requests_total", "/policies/{policy_id}", "404", "GET")
    key = (labels[0], *sorted(labels[1:]))
    before = read().get(key, 0)
    for name in ("a", "b", "c"):
        api.get(f"/policies/{name}")
    api.get("/nothing/here")
    found = read()
    assert found[key] == before + 3
    assert found["sluice_api_requests_total", *sorted(("unknown", "404", "GET"))] >= 1
    count = found["sluice_api_request_seconds_count", *sorted(("/policies/{policy_id}", "GET"))]
    assert count >= 3


def test_an_unknown_method_adds_no_series(api, read):
    api.generic("BREW", "/policies")
    found = read()
    assert any("other" in key for key in found)
    assert not any("BREW" in key for key in found)


def test_cluster_metrics_need_no_token(api, create, read, backend):
    create("FOR TENANT AUTH_secret DO SET compression")
    made = create("FOR TENANT AUTH_secret WHEN PUTS_SEC > 3 DO SET noop")
    off = create("FOR TENANT AUTH_other DO SET noop")
    api.put(f"/policies/{off['id']}", {"enabled": False}, format="json")
    head = backend.store.head()
    backend.store.report(NodeReport("n1", head.history, 3, refused={"p.0": "no"}, dropped=7, at=time.time()))
    backend.store.report(NodeReport("n2", head.history, 1, at=1.0))
    backend.store.host_report("h1", {"at": time.time(), "actors": 5, "failures": 2, "bus": True})
    del api.defaults["HTTP_X_AUTH_TOKEN"]
    found = read()
    expected = {
        ("sluice_redis_up",): 1,
        ("sluice_epoch",): 4,
        ("sluice_policies", "static"): 1,
        ("sluice_policies", "dynamic"): 1,
        ("sluice_policies", "disabled"): 1,
        ("sluice_nodes", "ok"): 1,
        ("sluice_nodes", "away"): 1,
        ("sluice_nodes", "failed"): 0,
        ("sluice_node_epoch", "n1"): 3,
        ("sluice_node_refused", "n1"): 1,
        ("sluice_node_dropped_total", "n1"): 7,
        ("sluice_actor_host_actors", "h1"): 5,
        ("sluice_actor_host_bus", "h1"): 1,
        ("sluice_actor_host_failures_total", "h1"): 2,
    }
    assert {key: found[key] for key in expected} == expected
    text = api.get("/metrics").content.decode()
    assert "AUTH_secret" not in text
    assert made["id"] not in text


def test_without_redis_sluice_redis_up_is_0(api, config, tmp_path):
    from django.test import override_settings

    with RedisServer(free_port(), tmp_path, tied=True) as server:
        other = replace(config, redis_url=server.url)
        with override_settings(SLUICE=other):
            before = error_count(api)
            server.kill()
            assert (answer := api.get("/policies")).status_code == 503, answer.content
            answer = api.get("/metrics")
            assert answer.status_code == 200
            assert "sluice_redis_up 0.0" in answer.content.decode()
            assert error_count(api) > before
            open_backend(other).store.close()


def error_count(api):
    lines = api.get("/metrics").content.decode().splitlines()
    (line,) = [one for one in lines if one.startswith("sluice_redis_errors_total ")]
    return float(line.split()[1])


def test_errors_of_metrics_are_json(api):
    answer = api.get("/metrics?x=1")
    assert (answer.status_code, answer.headers["Content-Type"]) == (400, "application/json")


@pytest.mark.parametrize("accept", ["text/plain", "text/plain;version=0.0.4;q=0.5,*/*;q=0.1", "*/*"])
def test_what_prometheus_accepts_is_given(api, accept):
    assert api.get("/metrics", headers={"Accept": accept}).status_code == 200
