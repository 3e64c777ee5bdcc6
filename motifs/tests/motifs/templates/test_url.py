"""The template `url` against servers on the loopback with the behaviours of real ones."""

import socket
import ssl
import time

import pytest
from tests.support.cluster.certificates import Authority
from tests.support.http_source import chunked, endless, http_source, page, redirect, silent

from sluice_core.connections.url_allowlist import BadUrl, UrlAllowlist
from sluice_filters.api import BadParameter
from sluice_motifs.api import ExpansionError, NotContractible, TemplateContext
from sluice_motifs.contraction.contractor import CONTRACTED
from sluice_motifs.contraction.preparation import EXPAND, TRUST
from sluice_motifs.runtime import Runtime
from sluice_motifs.storage.leases import LocalLeases
from sluice_motifs.storage.records import Record
from sluice_motifs.templates import http_fetch
from sluice_motifs.templates.http_fetch import Timeouts, open_url
from sluice_motifs.templates.registry import load_templates
from sluice_motifs.testing.memory_shim import MemoryShim

PAGE = b"what the Web has\n" * 4000
LOOPBACK = UrlAllowlist(["127.0.0.0/8"])
TIMEOUTS = Timeouts(total=10)


@pytest.fixture
def server():
    with http_source() as server:
        server.answers["page"] = page(PAGE)
        yield server


def fetch(url, hosts=LOOPBACK, timeouts=TIMEOUTS, check=lambda: None):
    with open_url("GET", url, hosts, timeouts, check) as answer:
        return b"".join(answer.pieces)


class Mirror:
    """One item with a motif of the template, in a storage in memory."""

    def __init__(self, hosts=LOOPBACK):
        self.shim = MemoryShim(None)
        templates = load_templates(context=TemplateContext(hosts))
        self.runtime = Runtime(self.shim, LocalLeases(), templates)
        self.shim.put("item", PAGE)

    def attach(self, url, **params):
        self.runtime.attach_motif("item", self.runtime.create_motif("url", {"source": url, **params}))

    def read(self):
        opened = self.runtime.notify_open("item")
        try:
            if opened.expansion is None:
                return b"".join(self.shim.own_bytes(opened.view))
            return b"".join(opened.read())
        finally:
            self.runtime.notify_close(opened)


@pytest.fixture
def mirror():
    return Mirror()


def test_an_item_is_contracted_after_a_proof_then_after_a_head_and_comes_back_by_a_get(server, mirror):
    mirror.attach(server.url("page"))
    assert mirror.runtime.contract("item") == CONTRACTED
    assert server.methods() == ["GET"]
    assert mirror.read() == PAGE
    mirror.runtime.expand("item")
    assert mirror.runtime.contract("item") == CONTRACTED
    assert server.methods() == ["GET", "GET", "HEAD"]
    assert not [one for one in server.requests if "cookie" in one.lower() or "authorization" in one.lower()]


@pytest.mark.parametrize("status", ["404 Not Found", "403 Forbidden", "500 Oops", "204 No Content"])
def test_an_item_that_the_source_refuses_is_not_contracted(server, mirror, status):
    server.answers["gone"] = page(b"", status=status)
    mirror.attach(server.url("gone?signature=secret"))
    with pytest.raises(NotContractible, match=rf"`{server.url('gone')}` answered {status[:3]}"):
        mirror.runtime.contract("item")


@pytest.mark.parametrize("status", ["404 Not Found", "403 Forbidden", "500 Oops"])
def test_a_source_that_refuses_later_leaves_the_item_contracted(server, mirror, status):
    mirror.attach(server.url("page"))
    mirror.runtime.contract("item")
    server.answers["page"] = page(b"sorry", status=status)
    with pytest.raises(ExpansionError, match=f"answered {status[:3]}"):
        mirror.read()
    server.answers["page"] = page(PAGE)
    assert mirror.read() == PAGE


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (page(PAGE[:-1]), f"has {len(PAGE) - 1} bytes, expected {len(PAGE)}"),
        (page(PAGE[:100], length=len(PAGE)), "closed connection without sending complete message body"),
        (page(PAGE[::-1]), "other bytes than it had"),
        (chunked([PAGE, b"and more"]), f"more than the {len(PAGE)} bytes"),
        (chunked([PAGE[:10], PAGE[10:]]), "incomplete chunked read"),
        (lambda connection, method: connection.close(), "disconnected without sending a response"),
        (lambda connection, method: connection.sendall(b"SSH-2.0-OpenSSH_9\r\n" * 50), "cannot be read"),
        (page(b"", more="Content-Length: 7\r\n"), "Content-Length"),
    ],
    ids=["short", "lies", "other", "more", "unfinished", "hangs up", "no http", "two lengths"],
)
def test_what_is_not_the_item_is_an_error_with_a_reason(server, mirror, answer, reason):
    mirror.attach(server.url("page"))
    assert mirror.runtime.contract("item", TRUST) == CONTRACTED
    server.answers["page"] = answer
    with pytest.raises(ExpansionError, match=reason):
        mirror.read()
    assert mirror.shim.view("item").contracted


def test_an_endless_source_is_cut_at_the_size_of_the_item(server, mirror):
    mirror.attach(server.url("page"))
    mirror.runtime.contract("item", TRUST)
    server.answers["page"] = endless(server)
    with pytest.raises(ExpansionError, match=f"more than the {len(PAGE)} bytes"):
        mirror.read()


@pytest.mark.parametrize("begun", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"])
def test_a_silent_source_is_given_up_and_its_lease_is_kept_until_then(server, begun, monkeypatch):
    monkeypatch.setattr(http_fetch, "_CHECK_INTERVAL", 0.02)
    server.answers["slow"] = silent(server, begun)
    checks = []
    timeouts = Timeouts(total=10, idle=0.2)
    with pytest.raises(ExpansionError, match="gave no byte for too long"):
        fetch(server.url("slow"), timeouts=timeouts, check=lambda: checks.append(1))
    assert len(checks) > 3


def test_headers_that_never_end_take_no_longer_than_the_whole_may(server):
    def dribbling(connection, method):
        connection.sendall(b"HTTP/1.1 200 OK\r\n")
        while not server.stopped.wait(0.01):
            connection.sendall(b"a")

    server.answers["slow"] = dribbling
    began = time.monotonic()
    with pytest.raises(ExpansionError, match="gave no byte for too long"):
        fetch(server.url("slow"), timeouts=Timeouts(total=0.3))
    assert time.monotonic() - began < 5


def test_whoever_gives_the_expansion_up_ends_a_request_that_waits(server):
    server.answers["slow"] = silent(server)

    def give_up():
        if server.requests:
            raise ExpansionError("it was given up")

    with pytest.raises(ExpansionError, match="it was given up"):
        fetch(server.url("slow"), check=give_up)


def test_redirects_are_followed_to_allowed_hosts_alone(server, mirror):
    server.answers["moved"] = redirect("/page")
    mirror.attach(server.url("moved"))
    assert mirror.runtime.contract("item", EXPAND) == CONTRACTED
    assert mirror.read() == PAGE
    for target, reason in (
        (server.url("page").replace("127.0.0.1", "[::1]"), "host `::1` is not among those"),
        ("file:///etc/passwd", "is no URL of a service"),
        ("/moved", "redirects more than 5 times"),
    ):
        server.answers["moved"] = redirect(target)
        with pytest.raises(ExpansionError, match=reason):
            fetch(server.url("moved"))


def test_a_listed_name_leads_to_no_special_address_whatever_it_resolves_to(server, monkeypatch):
    asked = []

    def resolved(host, port, **more):
        asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, port)) for one in ("127.0.0.1", "169.254.169.254")]

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    url = server.url("page").replace("127.0.0.1", "mirror.example")
    with pytest.raises(ExpansionError, match=r"`127\.0\.0\.1`, which is no global address"):
        fetch(url, UrlAllowlist(["mirror.example"]))
    assert (server.requests, asked) == ([], ["mirror.example"])


def test_the_connection_goes_to_the_address_that_was_allowed(server, monkeypatch):
    """A name that resolves to another address the second time (DNS rebinding) is not looked up again."""
    real, answers = socket.getaddrinfo, iter(["127.0.0.1"])

    def resolved(host, port, *more, **named):
        if host == "mirror.example":
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (next(answers), port))]
        return real(host, port, *more, **named)

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    url = server.url("page").replace("127.0.0.1", "mirror.example")
    assert fetch(url) == PAGE
    assert f"Host: mirror.example:{server.server_address[1]}" in server.requests[0]


def test_a_certificate_is_verified_for_the_name_that_was_called(server, tmp_path, monkeypatch):
    authority = Authority(tmp_path)
    mine = authority.issue("mirror", "mirror.example")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(mine.certificate, mine.key)
    server.handle_error = lambda request, address: None
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    real = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, *more, **named: real("127.0.0.1", *more, **named))
    urls = [server.url("page").replace("http://127.0.0.1", f"https://{name}.example") for name in ("mirror", "other")]
    with pytest.raises(ExpansionError, match="certificate verify failed"):
        fetch(urls[0])
    monkeypatch.setattr(http_fetch, "_tls", lambda: ssl.create_default_context(cafile=str(authority.ca)))
    assert fetch(urls[0]) == PAGE
    with pytest.raises(ExpansionError, match="Hostname mismatch"):
        fetch(urls[1])
    server.answers["page"] = redirect(server.url("page"))
    with pytest.raises(ExpansionError, match=r"redirects to `http://.*` without encryption"):
        fetch(urls[0])


@pytest.mark.parametrize(
    ("source", "error", "reason"),
    [
        ("meta:origin", BadParameter, "`meta:origin` was not replaced by the URL"),
        ("ftp://127.0.0.1/x", BadUrl, "is no URL of a service"),
        ("http://10.0.0.1/x", BadUrl, "host `10.0.0.1` is not among those"),
        ("http://user:secret@127.0.0.1/x", BadUrl, "expected neither"),
    ],
)
def test_a_source_that_cannot_work_is_not_attached(mirror, source, error, reason):
    with pytest.raises(error, match=reason) as raised:
        mirror.attach(source)
    assert "secret" not in str(raised.value)


def test_without_an_allow_list_nothing_is_called(server):
    with pytest.raises(BadUrl, match="not among those"):
        Mirror(UrlAllowlist()).attach(server.url("page"))
    assert server.requests == []


def test_an_item_with_an_age_takes_what_the_source_has(server, mirror):
    mirror.attach(server.url("page"), max_age=3600)
    assert mirror.read() == PAGE
    assert server.requests == [], "it is young"
    server.answers["page"] = page(b"news")
    mirror.runtime.contract("item")
    assert mirror.read() == b"news"
    mirror.runtime.expand("item")
    view = mirror.shim.view("item")
    ((source, since),) = view.record.made_from.items()
    assert source == server.url("page")
    server.answers["page"] = page(b"newer")
    assert mirror.read() == b"news"
    mirror.shim.annotate(view, Record(view.record.motifs, {source: str(int(since) - 3601)}))
    assert mirror.read() == b"newer"
