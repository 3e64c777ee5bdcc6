"""Invalid input that once caused errors: each is answered by 4xx with a reason, or works."""

import itertools
import json
import ssl

import pytest
from gunicorn.http import errors

from sluice_controller.app.gunicorn_worker import describe_error, error_response
from sluice_controller.app.server import LONGEST_LINE
from sluice_controller.policies import services
from sluice_dsl.diagnostics import PolicyConflict

SENTENCE = "FOR TENANT AUTH_x DO SET compression WITH engine="


@pytest.mark.parametrize("path", ["/policies", "/export", "/metrics", "/filters"])
def test_format_is_an_unknown_parameter(api, path):
    assert api.get(f"{path}?format=json").status_code == 400


@pytest.mark.parametrize("marker", ["0", "-1", "00", "x", "9" * 30])
def test_an_invalid_marker_is_refused(api, marker):
    assert api.get(f"/changes?marker={marker}").status_code == 400


@pytest.mark.parametrize("path", ["/policies?state=", "/nodes?state=", "/effective?target=AUTH_a&method="])
def test_an_empty_value_is_not_among_the_choices(api, path):
    assert api.get(path).status_code == 400


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"label": "x"}', b"null"])
@pytest.mark.parametrize("group", ["gtenants/mine/tenants/AUTH_a", "gcontainers/mine/containers/AUTH_a/c"])
def test_a_member_is_added_without_a_body(api, group, body):
    kind, _, _ = group.partition("/")
    members = {"gtenants": {"tenants": []}, "gcontainers": {"containers": []}}[kind]
    assert api.post(f"/registry/{kind}", {"name": "mine", **members}, format="json").status_code == 201
    put = api.put(f"/registry/{group}", body, content_type="application/json")
    assert put.status_code == 400, put.content
    assert api.put(f"/registry/{group}").status_code == 200


def test_parameters_of_a_filter_are_a_list_or_left_out(api):
    body = {"keyword": "mine", "environment": "wasm", "language": "wasm"}
    assert api.post("/filters", {**body, "parameters": None}, format="json").status_code == 400
    assert api.post("/filters", body, format="json").status_code == 201


def test_of_two_contradicting_policies_that_were_checked_at_once_the_second_is_refused(backend, monkeypatch):
    created = services._commit_new

    def overtaken(*given):
        monkeypatch.setattr(services, "_commit_new", created)
        services.create_policies(backend, f"{SENTENCE}zstd", "first")
        return created(*given)

    monkeypatch.setattr(services, "_commit_new", overtaken)
    with pytest.raises(PolicyConflict):
        services.create_policies(backend, f"{SENTENCE}lz4", "second")
    assert [one.policy.created_by for one in backend.policy_cache.contents().ordered] == ["first"]
    assert {one.params["engine"] for one in backend.store.assignments()} == {"zstd"}
    assert backend.store.head().epoch == 1  # and it was never in force


def test_of_two_policies_about_different_tenants_both_stand(backend, monkeypatch):
    created = services._commit_new

    def overtaken(*given):
        monkeypatch.setattr(services, "_commit_new", created)
        services.create_policies(backend, "FOR TENANT AUTH_y DO SET compression", "first")
        return created(*given)

    monkeypatch.setattr(services, "_commit_new", overtaken)
    seconds = itertools.count(1.0)  # policies of one millisecond are ordered by their names
    object.__setattr__(backend, "now", lambda: next(seconds))
    services.create_policies(backend, f"{SENTENCE}lz4", "second")
    assert [one.policy.created_by for one in backend.policy_cache.contents().ordered] == ["first", "second"]


@pytest.mark.parametrize(
    ("raised", "status"),
    [
        (errors.LimitRequestLine(9000, LONGEST_LINE), 414),
        (errors.LimitRequestHeaders("limit"), 431),
        (errors.InvalidRequestLine("GET /?secret"), 400),
        (errors.InvalidRequestMethod("secret"), 400),
        (errors.InvalidHTTPVersion("secret"), 400),
        (errors.InvalidHeader("X-Auth-Token secret"), 400),
        (errors.InvalidHeaderName("secret"), 400),
        (errors.ObsoleteFolding("secret"), 400),
        (errors.InvalidChunkSize(b"secret"), 400),
        (errors.UnsupportedTransferCoding("secret"), 501),
        (errors.ExpectationFailed("secret"), 417),
        (errors.InvalidResponseHeader("secret"), 500),
        (ssl.SSLError("secret"), 400),
        (ZeroDivisionError("secret"), 500),
    ],
)
def test_errors_of_gunicorn_have_the_error_shape_and_repeat_no_input(raised, status):
    head, _, body = error_response(*describe_error(raised), "req-1").partition(b"\r\n\r\n")
    assert head.startswith(f"HTTP/1.1 {status} ".encode())
    assert b"Content-Type: application/json" in head
    assert f"Content-Length: {len(body)}".encode() in head
    error = json.loads(body)["error"]
    assert (error["code"], error["problems"]) == (status, [])
    assert b"secret" not in head + body
