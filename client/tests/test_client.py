"""The client against a controller that answers what the test says."""

import contextlib
import hashlib
import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from sluice_client import ApiError, Client, ClientError, Unreachable

ERROR = {"error": {"code": 400, "title": "Bad Request", "message": "no", "problems": []}}


class Stub(ThreadingHTTPServer):
    """Answers from ``script``, one ``(status, body)`` per request, and keeps what was asked."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.script, self.asked = [], []
        self.url = f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        length = int(self.headers.get("Content-Length") or 0)
        raw = self.rfile.read(length)
        body = json.loads(raw) if raw and self.headers["Content-Type"] == "application/json" else raw or None
        self.server.asked.append((self.command, self.path, body, dict(self.headers)))
        status, found = self.server.script.pop(0)
        raw = found if isinstance(found, bytes) else json.dumps(found).encode() if found is not None else b""
        self.send_response(status)
        self.send_header("Content-Length", str(len(raw)))
        self.send_header("X-Request-Id", "req-1")
        if status == 503:
            self.send_header("Retry-After", "2")
        if status in (301, 302):
            self.send_header("Location", "http://127.0.0.1:1/")
        self.end_headers()
        self.wfile.write(raw)

    do_GET = do_POST = do_PUT = do_DELETE = answer

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture
def stub():
    server = Stub()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def client(stub):
    with Client(stub.url + "/", "secret", timeout=5.0) as made:
        yield made


CALLS = {
    "create": (lambda c: c.create_policy("FOR x", wait=2), "POST", "/policies?wait=2", {"policy": "FOR x"}),
    "check": (lambda c: c.check_policy("FOR x"), "POST", "/policies/check", {"policy": "FOR x"}),
    "show": (lambda c: c.policy("a/b?c"), "GET", "/policies/a%2Fb%3Fc", None),
    "delete": (lambda c: c.delete_policy("a"), "DELETE", "/policies/a", None),
    "keep": (lambda c: c.delete_policy("a", keep=True), "DELETE", "/policies/a?keep=true", None),
    "nodes": (lambda c: c.nodes(), "GET", "/nodes", None),
    "node": (lambda c: c.node("rack 1"), "GET", "/nodes/rack%201", None),
    "forget": (lambda c: c.forget_node("n"), "DELETE", "/nodes/n", None),
    "adopt": (lambda c: c.adopt(), "POST", "/nodes/adopt", None),
    "filters": (lambda c: c.filters(), "GET", "/filters", None),
    "filter": (lambda c: c.filter("scramble"), "GET", "/filters/scramble", None),
    "register": (lambda c: c.register_filter({"keyword": "x"}), "POST", "/filters", {"keyword": "x"}),
    "unregister": (lambda c: c.unregister_filter("x", force=True), "DELETE", "/filters/x?force=true", None),
    "known filters": (lambda c: c.known_filters(), "GET", "/registry/filters", None),
    "metrics": (lambda c: c.metrics(), "GET", "/registry/metrics", None),
    "terms": (lambda c: c.terms(), "GET", "/registry/terms", None),
    "health": (lambda c: c.health(), "GET", "/health", None),
}
ANYTHING = {"policies": [], "nodes": [], "filters": [], "metrics": [], "terms": []}


@pytest.mark.parametrize("name", CALLS)
def test_each_method_asks_for_its_resource_with_the_token(client, stub, name):
    call, method, path, body = CALLS[name]
    stub.script.append((200, ANYTHING))
    call(client)
    ((asked_method, asked_path, asked_body, headers),) = stub.asked
    assert (asked_method, asked_path, asked_body) == (method, path, body)
    assert headers["X-Auth-Token"] == "secret"


def test_code_goes_with_its_digest(client, stub):
    stub.script.append((200, ANYTHING))
    client.upload_filter("shout", b"\0asm", wait=3)
    ((method, path, body, headers),) = stub.asked
    assert (method, path, body) == ("PUT", "/filters/shout/data?wait=3", b"\0asm")
    assert headers["X-Content-Sha256"] == hashlib.sha256(b"\0asm").hexdigest()


def test_policies_go_through_all_pages(client, stub):
    stub.script += [
        (200, {"policies": [{"id": 1}, {"id": 2}], "next_marker": "m&1"}),
        (200, {"policies": [{"id": 3}], "next_marker": None}),
    ]
    assert [one["id"] for one in client.policies(tenant="t", page=2)] == [1, 2, 3]
    assert [path for _, path, _, _ in stub.asked] == [
        "/policies?tenant=t&limit=2",
        "/policies?tenant=t&limit=2&marker=m%261",
    ]


def test_one_or_several_created_policies_are_a_list(client, stub):
    stub.script += [(201, {"id": "a"}), (201, {"policies": [{"id": "a"}, {"id": "b"}]})]
    assert [one["id"] for one in client.create_policies("x")] == ["a"]
    assert [one["id"] for one in client.create_policies("x; y")] == ["a", "b"]


def test_an_expected_version_is_sent(client, stub):
    stub.script.append((204, None))
    assert client.delete_policy("a", version=7) is None
    assert stub.asked[0][3]["If-Match"] == '"7"'


def test_a_degraded_health_is_an_answer(client, stub):
    stub.script.append((503, {"status": "degraded", "dependencies": {"redis": "degraded"}}))
    assert client.health()["status"] == "degraded"


@pytest.mark.parametrize("call", ["nodes", "adopt"])
def test_a_busy_controller_is_the_callers_to_wait_for(client, stub, call):
    stub.script.append((503, {"error": {**ERROR["error"], "code": 503, "message": "redis is away"}}))
    with pytest.raises(ApiError, match="redis is away"):
        getattr(client, call)()


def test_an_unreachable_controller_is_named_in_few_words():
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    with Client(url, timeout=1.0) as client, pytest.raises(Unreachable) as caught:
        client.adopt()
    assert str(caught.value) == f"`{url}` cannot be reached: [Errno 111] Connection refused"


def test_a_refusal_is_an_api_error(client, stub):
    problem = {"severity": "error", "line": 1, "column": 3, "message": "bad", "caret": "x y\n  ^"}
    error = {"error": {**ERROR["error"], "problems": [problem]}}
    stub.script.append((400, error))
    with pytest.raises(ApiError) as caught:
        client.create_policy("x y")
    assert (caught.value.status, caught.value.message, caught.value.request_id) == (400, "no", "req-1")
    assert caught.value.problems == (problem,)
    assert str(caught.value) == "no (HTTP 400)\nerror: line 1, column 3: bad\n  x y\n    ^"


@pytest.mark.parametrize(
    "answer",
    [(502, b"<html>"), (200, b"<html>"), (500, {"detail": "x"}), (500, [1]), (302, b""), (404, {"error": "x"})],
)
def test_an_answer_that_is_not_the_controllers_is_unreachable(client, stub, answer):
    stub.script.append(answer)
    with pytest.raises(Unreachable):
        client.nodes()


def test_both_kinds_of_errors_have_one_root():
    assert issubclass(ApiError, ClientError)
    assert issubclass(Unreachable, ClientError)


class Refusing:
    """Listens, and closes the first ``times`` connections before it answers."""

    def __init__(self):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        self.accepted = 0
        self.thread = threading.Thread(target=self.run)

    def run(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.socket.accept()
                self.accepted += 1
                connection.close()

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.socket.close()


@pytest.mark.parametrize("call", ["nodes", "adopt"])
def test_a_connection_that_breaks_after_it_was_made_is_not_tried_again(call):
    with Refusing() as peer:
        with Client(peer.url, timeout=2.0) as client, pytest.raises(Unreachable):
            getattr(client, call)()
        assert peer.accepted == 1


@pytest.mark.parametrize(("call", "tries"), [("nodes", 4), ("adopt", 1)])
def test_only_a_get_is_tried_again_when_nobody_is_there(monkeypatch, call, tries):
    made = []

    def refuse(*_args, **_more):
        made.append(1)
        raise ConnectionRefusedError

    monkeypatch.setattr("urllib3.util.connection.create_connection", refuse)
    with Client("http://127.0.0.1:9", timeout=1.0) as client, pytest.raises(Unreachable):
        getattr(client, call)()
    assert len(made) == tries
