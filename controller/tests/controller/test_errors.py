"""Refusals: one JSON form for every status, an id on every answer."""

import re
import time

import pytest

from sluice_aio.base.backing_servers import RedisServer
from sluice_aio.base.ports import free_port
from sluice_controller.catalog.backend import open_backend
from sluice_controller.config import Config
from sluice_core.messages.nodes import NodeReport

STATIC = {"policy": "FOR TENANT AUTH_test DO SET compression"}
PATHS = ("/policies", "/nodes", "/filters", "/registry/terms", "/schema", "/policies/x")


def assert_error(answer, status):
    assert answer.status_code == status
    assert answer.headers["Content-Type"] == "application/json"
    error = answer.json()["error"]
    assert error["code"] == status
    assert error["title"]
    assert error["message"]
    assert isinstance(error["problems"], list)
    assert re.fullmatch(r"req-[0-9a-f-]{36}", answer.headers["X-Request-Id"])
    assert answer.headers["X-Openstack-Request-Id"] == answer.headers["X-Request-Id"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("token", [None, "", "wrong", "an-admin-token-for-test", "an-admin-token-for-tests2", "ä"])
def test_without_a_token_requests_are_401(api, path, token):
    del api.defaults["HTTP_X_AUTH_TOKEN"]
    answer = api.get(path, headers={} if token is None else {"X-Auth-Token": token})
    assert_error(answer, 401)
    assert answer.headers["WWW-Authenticate"] == 'X-Auth-Token realm="sluice"'


def test_a_body_is_not_read_without_a_token(api, backend):
    del api.defaults["HTTP_X_AUTH_TOKEN"]
    assert_error(api.post("/policies", STATIC, format="json"), 401)
    assert backend.store.head().history == ""


@pytest.mark.parametrize("path", ["/nothing", "/policies/", "/policies/a/b", "/policies/zz", "/registry/x"])
def test_an_unknown_path_is_404(api, path):
    assert_error(api.get(path), 404)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("put", "/policies"),
        ("delete", "/policies"),
        ("post", "/health"),
        ("options", "/policies"),
        ("get", "/policies/check"),
    ],
)
def test_an_unsupported_method_is_405(api, method, path):
    answer = getattr(api, method)(path)
    assert_error(answer, 405)
    assert answer.headers["Allow"]
    assert method.upper() not in answer.headers["Allow"]


@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "text/plain", "multipart/form-data; boundary=x"])
def test_another_media_type_is_415(api, kind):
    assert_error(api.post("/policies", "policy=x", content_type=kind), 415)


def test_an_answer_that_is_not_accepted_is_406(api):
    assert_error(api.get("/policies", headers={"Accept": "text/html"}), 406)


def test_a_body_over_the_limit_is_413(api, config):
    body = b'{"policy": "' + b"x" * config.body_limit + b'"}'
    assert_error(api.post("/policies", body, content_type="application/json"), 413)


def test_a_body_of_unknown_length_is_411(api):
    answer = api.post("/policies", b"", content_type="application/json", headers={"Transfer-Encoding": "chunked"})
    assert_error(answer, 411)


def test_a_bug_answers_with_an_id_and_is_logged(api, monkeypatch, caplog):
    def broken(*_):
        raise ZeroDivisionError("secret detail")

    monkeypatch.setattr("sluice_controller.policies.checking.check_text", broken)
    answer = api.post("/policies/check", STATIC, format="json")
    assert_error(answer, 500)
    assert "secret" not in answer.content.decode()
    assert "Traceback" not in answer.content.decode()
    (record,) = [one for one in caplog.records if one.levelname == "ERROR"]
    assert answer.headers["X-Request-Id"] in record.getMessage()
    assert "secret detail" in str(record.exc_info[1])


def test_a_bug_outside_of_a_view_looks_the_same(api, monkeypatch):
    def broken(*_):
        raise ZeroDivisionError("secret detail")

    monkeypatch.setattr("sluice_controller.app.middleware.BodyLimitMiddleware.__call__", broken)
    api.raise_request_exception = False
    answer = api.get("/policies")
    assert_error(answer, 500)
    assert "secret" not in answer.content.decode()


def test_redis_that_is_away_is_503_until_it_is_back(api, tmp_path, token_file):
    from django.test import override_settings

    with RedisServer(free_port(), tmp_path, tied=True) as server:
        config = Config(auth="token", redis_url=server.url, token_file=str(token_file))
        with override_settings(SLUICE=config):
            made = api.post("/policies", STATIC, format="json").json()
            server.kill()
            for answer in (
                api.get("/policies"),
                api.get("/nodes"),
                api.get("/filters"),
                api.post("/policies", STATIC, format="json"),
                api.delete(f"/policies/{made['id']}"),
            ):
                assert_error(answer, 503)
                assert answer.headers["Retry-After"]
            health = api.get("/health")
            assert (health.status_code, health.json()["dependencies"]["redis"]) == (503, "degraded")
            assert api.get("/schema").status_code == 200, "what needs no Redis goes on"
            server.restart()
            assert [one["id"] for one in api.get("/policies").json()["policies"]] == [made["id"]]
            open_backend(config).store.close()


def test_head_is_get_without_its_body(api):
    got, head = api.get("/nodes"), api.head("/nodes")
    assert head.content == b""
    assert head.headers["Content-Length"] == got.headers["Content-Length"] == str(len(got.content))


def test_answers_forbid_caching(api):
    assert api.get("/policies").headers["Cache-Control"] == "no-store"


def test_a_line_break_in_a_path_does_not_forge_a_log_line(api, caplog):
    api.get("/policies/x%0AINFO%20forged")
    assert not any("\n" in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize(
    ("method", "path", "error"),
    [
        ("get", "/registry/gtenants/god", "there is no group of tenants `god`, did you mean `gold`"),
        ("get", "/registry/gtenants/zzz", "there is no group of tenants `zzz`"),
        ("get", "/nodes/storgae-1", "there is no node `storgae-1`, did you mean `storage-1`"),
        ("delete", "/nodes/storgae-1", "there is no node `storgae-1`, did you mean `storage-1`"),
        ("get", "/registry/filters/compresion", "there is no filter `compresion`, did you mean `compression`"),
        ("put", "/filters/acme/deploy/compresion", "there is no filter `compresion`, did you mean `compression`"),
    ],
)
def test_an_unknown_name_is_404_with_its_near_miss(api, backend, method, path, error):
    api.post("/registry/gtenants", {"name": "gold", "tenants": ["acme"]}, format="json")
    backend.store.report(NodeReport("storage-1", "h", 1, at=time.time()))
    answer = getattr(api, method)(path, format="json")
    assert_error(answer, 404)
    assert answer.json()["error"]["message"] == error
