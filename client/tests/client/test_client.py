"""The client against a controller with scripted answers."""

import hashlib
import io
import subprocess
import sys

import pytest

from sluice_client import ApiError, Client, ClientError, Unreachable

ERROR = {"error": {"code": 400, "title": "Bad Request", "message": "no", "problems": []}}
CALLS = {
    "create": (lambda c: c.create_policy("FOR x", wait=2), "POST", "/policies?wait=2", {"policy": "FOR x"}),
    "check": (lambda c: c.check_policy("FOR x"), "POST", "/policies/check", {"policy": "FOR x"}),
    "check another": (
        lambda c: c.check_policy("FOR x", "p"),
        "POST",
        "/policies/check",
        {"policy": "FOR x", "replaces": "p"},
    ),
    "complete": (
        lambda c: c.complete_policy("FOR x", 4),
        "POST",
        "/policies/complete",
        {"policy": "FOR x", "position": 4},
    ),
    "show": (lambda c: c.policy("a/b?c"), "GET", "/policies/a%2Fb%3Fc", None),
    "delete": (lambda c: c.delete_policy("a"), "DELETE", "/policies/a", None),
    "undo": (lambda c: c.undo_policy("a", plan=True), "POST", "/policies/a/undo?plan=true", None),
    "keep": (lambda c: c.delete_policy("a", keep=True), "DELETE", "/policies/a?keep=true", None),
    "nodes": (lambda c: c.nodes(), "GET", "/nodes", None),
    "node": (lambda c: c.node("rack 1"), "GET", "/nodes/rack%201", None),
    "forget": (lambda c: c.forget_node("n"), "DELETE", "/nodes/n", None),
    "adopt": (lambda c: c.adopt(), "POST", "/nodes/adopt", None),
    "filters": (lambda c: c.filters(), "GET", "/filters", None),
    "filter": (lambda c: c.filter("scramble"), "GET", "/filters/scramble", None),
    "register": (lambda c: c.register_filter({"keyword": "x"}), "POST", "/filters", {"keyword": "x"}),
    "update": (lambda c: c.update_filter("x", {"help": "y"}), "PUT", "/filters/x", {"help": "y"}),
    "unregister": (lambda c: c.unregister_filter("x", force=True), "DELETE", "/filters/x?force=true", None),
    "known filters": (lambda c: c.known_filters(), "GET", "/registry/filters", None),
    "metrics": (lambda c: c.metrics(), "GET", "/registry/metrics", None),
    "terms": (lambda c: c.terms(), "GET", "/registry/terms", None),
    "overview": (lambda c: c.overview(), "GET", "/overview", None),
    "permissions": (
        lambda c: c.permissions("GROUP gold", filter="noop"),
        "GET",
        "/permissions?target=GROUP+gold&filter=noop",
        None,
    ),
    "health": (lambda c: c.health(), "GET", "/health", None),
}
ANYTHING = {"policies": [], "nodes": [], "filters": [], "metrics": [], "terms": [], "permissions": {}}


@pytest.fixture
def client(stub):
    with Client(stub.url + "/", "secret", timeout=5.0) as made:
        yield made


@pytest.mark.parametrize("name", CALLS)
def test_each_method_asks_for_its_resource_with_the_token(client, stub, name):
    call, method, path, body = CALLS[name]
    stub.enqueue(200, ANYTHING)
    call(client)
    (asked,) = stub.requests
    assert (asked.method, asked.path, asked.body) == (method, path, body)
    assert asked.headers["X-Auth-Token"] == "secret"


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_a_name_that_would_lead_elsewhere_is_refused_without_a_request(client, stub, name):
    for call in (client.policy, client.delete_policy, client.node, client.forget_node, client.unregister_filter):
        with pytest.raises(ClientError, match="cannot be the name of anything"):
            call(name)
    assert stub.requests == []


def test_code_goes_with_its_digest(client, stub):
    stub.enqueue(200, ANYTHING)
    client.upload_filter("shout", b"\0asm", wait=3)
    (asked,) = stub.requests
    assert (asked.method, asked.path, asked.body) == ("PUT", "/filters/shout/data?wait=3", b"\0asm")
    assert asked.headers["X-Content-Sha256"] == hashlib.sha256(b"\0asm").hexdigest()


def test_a_file_is_sent_like_its_bytes(client, stub):
    stub.enqueue(200, ANYTHING)
    client.upload_filter("shout", io.BytesIO(b"\0asm" * 50_000), etag='"3"')
    (asked,) = stub.requests
    assert (asked.path, asked.body) == ("/filters/shout/data", b"\0asm" * 50_000)
    assert asked.headers["X-Content-Sha256"] == hashlib.sha256(asked.body).hexdigest()
    assert (asked.headers["If-Match"], asked.headers["Content-Length"]) == ('"3"', "200000")


def test_policies_go_through_all_pages(client, stub):
    stub.enqueue(200, {"policies": [{"id": 1}, {"id": 2}], "next_marker": "m&1"})
    stub.enqueue(200, {"policies": [{"id": 3}], "next_marker": None})
    assert [one["id"] for one in client.policies(tenant="t", page=2)] == [1, 2, 3]
    assert stub.paths == ["/policies?tenant=t&limit=2", "/policies?tenant=t&limit=2&marker=m%261"]


def test_pages_that_go_round_in_a_circle_end(client, stub):
    page = {"policies": [{"id": 1}], "next_marker": "m"}
    stub.enqueue(200, page).enqueue(200, page)
    with pytest.raises(Unreachable, match="second time"):
        list(client.policies())


def test_every_list_follows_its_pages_where_it_has_some(client, stub):
    stub.enqueue(200, {"nodes": [1], "next_marker": "n"}).enqueue(200, {"nodes": [2]})
    assert client.nodes() == [1, 2]
    assert stub.paths == ["/nodes", "/nodes?marker=n"]


def test_one_or_several_created_policies_are_a_list(client, stub):
    stub.enqueue(201, {"id": "a"}).enqueue(201, {"policies": [{"id": "a"}, {"id": "b"}]})
    assert [one["id"] for one in client.create_policies("x")] == ["a"]
    assert [one["id"] for one in client.create_policies("x; y")] == ["a", "b"]


def test_an_expected_version_is_sent(client, stub):
    stub.enqueue(204).enqueue(200, {})
    assert client.delete_policy("a", version=7) is None
    client.roll_back("12", etag='"8"')
    assert [one.headers["If-Match"] for one in stub.requests] == ['"7"', '"8"']


def test_a_degraded_health_is_an_answer(client, stub):
    stub.enqueue(503, {"status": "degraded", "dependencies": {"redis": "degraded"}}, Retry_After="2")
    assert client.health()["status"] == "degraded"
    assert stub.paths == ["/health"]


def test_a_refusal_is_an_api_error(client, stub):
    problem = {"severity": "error", "line": 1, "column": 3, "message": "bad", "caret": "x y\n  ^"}
    stub.enqueue(400, {"error": {**ERROR["error"], "problems": [problem]}})
    with pytest.raises(ApiError) as caught:
        client.create_policy("x y")
    assert (caught.value.status, caught.value.message, caught.value.request_id) == (400, "no", "req-1")
    assert caught.value.problems == (problem,)
    assert str(caught.value) == "no (HTTP 400) (Request-ID: req-1)\nerror: line 1, column 3: bad\n  x y\n    ^"


def test_a_fault_of_a_text_is_printed_once(client, stub):
    problem = {"severity": "error", "line": 1, "column": 3, "message": "unknown action `y`", "caret": "x y\n  ^"}
    message = "line 1, column 3: unknown action `y`, and 1 more in `problems`"
    later = {**problem, "message": "unknown action `z`"}
    stub.enqueue(400, {"error": {**ERROR["error"], "message": message, "problems": [problem, later]}})
    with pytest.raises(ApiError) as caught:
        client.create_policy("x y")
    assert caught.value.message == message
    shown = str(caught.value).split("\n")
    assert shown[0] == "the text is refused (HTTP 400) (Request-ID: req-1)"
    assert shown[1::3] == ["error: line 1, column 3: unknown action `y`", "error: line 1, column 3: unknown action `z`"]


@pytest.mark.parametrize(
    "answer",
    [(502, b"<html>"), (200, b"<html>"), (500, {"detail": "x"}), (500, [1]), (302, b""), (404, {"error": "x"})],
)
def test_an_answer_that_is_not_the_controllers_is_unreachable(client, stub, answer):
    stub.enqueue(*answer)
    with pytest.raises(Unreachable):
        client.nodes()


def test_both_kinds_of_errors_have_one_root():
    assert issubclass(ApiError, ClientError)
    assert issubclass(Unreachable, ClientError)


def test_a_program_that_uses_the_client_needs_requests_and_no_command_line():
    code = "import sys, sluice_client; print(*sorted({'cliff', 'keystoneauth1', 'openstackclient'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("\n", "")
