"""Activation URLs: completed, checked, and called over HTTP at allowed addresses."""

import asyncio
import json
import socket
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.cluster.certificates import Authority

from sluice_core import activation
from sluice_core.activation import ActivationCall, activate, activation_call, check_url, fill_url
from sluice_core.connections.url_allowlist import BadUrl, UrlAllowlist
from sluice_core.messages.registry import Activation
from sluice_core.process.logs import log_fields

HERE = UrlAllowlist(["127.0.0.1", "::1"])


class Service(BaseHTTPRequestHandler):
    """Answers as configured, and keeps the requests."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_PUT(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.asked.append((self.path, dict(self.headers), json.loads(body)))
        status = self.server.answers.pop(0) if self.server.answers else 204
        if status == "close":
            self.close_connection = True
            return
        if status == "nonsense":
            self.wfile.write(b"220 smtp.example ready\r\n")
            self.close_connection = True
            return
        if status == "interim":
            self.send_response_only(103)
            self.end_headers()
            status = 200
        self.send_response(status)
        if status == 302:
            self.send_header("Location", f"http://127.0.0.1:{self.server.server_port}/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()


@pytest.fixture
def service():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
    server.asked, server.answers = [], []
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def secured(service, tmp_path):
    """The same service behind TLS, and the certificates that a client needs."""
    authority = Authority(tmp_path)
    mine = authority.issue("service", "localhost")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(mine.certificate, mine.key)
    service.handle_error = lambda request, address: None
    service.socket = context.wrap_socket(service.socket, server_side=True, do_handshake_on_connect=False)
    return ssl.create_default_context(cafile=str(authority.ca))


def call_to(service, path="/x", **more):
    return ActivationCall(f"http://127.0.0.1:{service.server_port}{path}", **more)


def run(call, allowlist=HERE, **more):
    return asyncio.run(activate(call, allowlist, pause=0.0, **more))


def test_a_call_says_target_filter_and_parameters(service):
    url = f"http://127.0.0.1:{service.server_port}/v1/{{target}}/filters/{{filter}}?deep=1"
    one = Activation("scan fast", url, url.replace("filters", "off"), 2.0)
    outcome = run(activation_call(one, "AUTH_a/my box/ü?#", {"level": 3, "strict": True}, "proxy"))
    assert (outcome.done, outcome.status, outcome.attempts) == (True, 204, 1)
    ((path, headers, body),) = service.asked
    assert path == "/v1/AUTH_a/my%20box/%C3%BC%3F%23/filters/scan%20fast?deep=1"
    assert body == {"params": {"level": 3, "strict": True}, "place": "proxy"}
    assert headers["Host"] == f"127.0.0.1:{service.server_port}"
    undo = activation_call(one, "AUTH_a", {}, undo=True)
    assert undo.url.endswith("/v1/AUTH_a/off/scan%20fast?deep=1")
    assert activation_call(Activation("x", url), "AUTH_a", {}, undo=True) is None


@pytest.mark.parametrize(
    ("answers", "done", "status", "attempts"),
    [
        ([200], True, 200, 1),
        (["interim"], True, 200, 1),
        ([503, 204], True, 204, 2),
        (["close", "nonsense", 201], True, 201, 3),
        ([500, 502, 503, 200], False, 503, 3),
        ([429, 200], True, 200, 2),
        ([404, 200], False, 404, 1),
        ([302, 200], False, 302, 1),
    ],
)
def test_it_is_tried_again_where_that_may_help_and_never_elsewhere(service, answers, done, status, attempts):
    service.answers = list(answers)
    outcome = run(call_to(service))
    assert (outcome.done, outcome.status, outcome.attempts) == (done, status, attempts)
    assert len(service.asked) == attempts
    assert {path for path, _, _ in service.asked} == {"/x"}, "a redirect is not followed"
    assert bool(outcome.reason) is not done


def test_a_service_that_never_answers_is_given_up():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        outcome = run(ActivationCall(f"http://127.0.0.1:{silent.getsockname()[1]}/", timeout=0.05), attempts=2)
    assert (outcome.done, outcome.status, outcome.attempts) == (False, 0, 2)
    assert "no answer within" in outcome.reason


def test_nobody_there_is_a_failure_without_an_exception():
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    outcome = run(ActivationCall(f"http://127.0.0.1:{port}/"), attempts=2)
    assert (outcome.done, outcome.attempts) == (False, 2)


def test_an_address_that_takes_no_connection_leaves_the_next_one(service, monkeypatch):
    async def two_addresses(loop, host, port, **more):
        kind = (socket.AF_INET, socket.SOCK_STREAM, 6, "")
        return [(*kind, (address, port)) for address in ("127.0.0.2", "127.0.0.1")]

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", two_addresses)
    call = ActivationCall(f"http://service.example:{service.server_port}/x")
    assert run(call, UrlAllowlist(["127.0.0.0/8"]), attempts=1).done
    refused = run(call, UrlAllowlist(["service.example", "10.0.0.0/8"]), attempts=1)
    assert "`127.0.0.2`, which is no global address" in refused.reason


def test_tls_is_verified_for_the_name_that_was_called(service, secured):
    by_name, by_address = (
        ActivationCall(f"https://{host}:{service.server_port}/x") for host in ("localhost", "127.0.0.1")
    )
    assert run(by_name, context=secured).done
    assert "certificate" in run(by_name, attempts=1).reason, "nobody vouches for it"
    assert "certificate" in run(by_address, attempts=1, context=secured).reason, "it is another's name"
    assert [path for path, _, _ in service.asked] == ["/x"]


def test_a_host_that_is_not_listed_is_not_called(service):
    for allowlist in (UrlAllowlist(), UrlAllowlist(["example.org"]), UrlAllowlist(["10.0.0.0/8"])):
        outcome = run(call_to(service), allowlist)
        assert (outcome.done, outcome.attempts) == (False, 1)
        assert "not among those" in outcome.reason
    assert service.asked == []


def test_a_listed_name_does_not_open_the_loopback(service):
    url = f"http://localhost:{service.server_port}/"
    refused = run(ActivationCall(url), UrlAllowlist(["localhost"]))
    assert "no global address" in refused.reason
    assert service.asked == []
    assert run(ActivationCall(url), UrlAllowlist(["localhost", "127.0.0.0/8"])).done, (
        "unless its address is listed, too"
    )


@pytest.mark.parametrize(
    ("address", "allowed"),
    [
        ("93.184.216.34", True),
        ("2606:2800:220:1::1", True),
        ("127.0.0.1", False),
        ("10.1.2.3", False),
        ("169.254.169.254", False),
        ("192.168.0.1", False),
        ("100.64.0.1", False),
        ("0.0.0.0", False),
        ("224.0.0.1", False),
        ("255.255.255.255", False),
        ("::1", False),
        ("::", False),
        ("fe80::1%eth0", False),
        ("fd00::1", False),
        ("ff02::1", False),
        ("::ffff:127.0.0.1", False),
        ("::ffff:10.0.0.1", False),
        ("2002:7f00:1::", False),
        ("64:ff9b::7f00:1", False),
    ],
)
def test_what_counts_is_the_address_that_a_name_resolves_to(address, allowed):
    refusal = UrlAllowlist(["service.example"]).refusal("service.example", address)
    assert (refusal == "") is allowed, refusal


def test_listed_networks_and_names():
    allowlist = UrlAllowlist.from_option("10.0.0.0/8, *.example.org , [::1]".replace("[", "").replace("]", ""))
    assert allowlist.refusal("anything", "10.9.9.9") == ""
    assert allowlist.refusal("anything", "::ffff:10.9.9.9") == ""
    assert allowlist.refusal("anything", "11.9.9.9")
    assert allowlist.refusal("A.B.Example.org.", "8.8.8.8") == ""
    assert allowlist.refusal("example.org", "8.8.8.8"), "the star stands for something"
    assert allowlist.refusal("evil-example.org", "8.8.8.8")
    for wrong in ("http://a", "a b", "-x", "a/33"):
        with pytest.raises(BadUrl):
            UrlAllowlist([wrong])


@pytest.mark.parametrize(
    "url",
    [
        "", "x", "//a/b", "file:///etc/passwd", "http://", "http:///x", "http://u@a.example/", "http://:p@a.example/",
        "http://a.example/#f", "http://a.example/{x}", "http://{target}.example/", "http://a.example/a b",
        "http://a.example/\r\n", "http://a.example:99999/", "http://a.example/é",
    ],
)  # fmt: skip
def test_what_is_no_activation_url_is_refused(url):
    with pytest.raises(BadUrl):
        check_url(url)


@given(st.text(), st.text())
def test_whatever_stands_in_a_hole_stays_inside_the_path(target, keyword):
    target, keyword = (one.encode("utf-8", "replace").decode() for one in (target, keyword))
    url = fill_url("https://a.example/{target}/f/{filter}", target, keyword)
    assert check_url(url, 1 << 20) == "a.example"


def test_the_body_is_that_of_our_own_deploy_call():
    assert activation.call_body({"b": 1, "a": "x"}) == b'{"params":{"a":"x","b":1},"place":"proxy"}'


def test_the_request_that_a_call_is_made_for_is_named(service):
    assert run(call_to(service)).done
    with log_fields(request="req-1"):
        assert run(call_to(service)).done
    assert [headers.get("X-Openstack-Request-Id") for _, headers, _ in service.asked] == [None, "req-1"]
