"""The client of konnectors against a small HTTP server."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from keystoneauth1 import token_endpoint
from keystoneauth1.session import Session

from sluice_core.errors import CallerError, Conflict, NotFound, PeerError
from sluice_core.messages.nodes import NodeReport
from sluice_core.process.logs import log_fields
from sluice_volumes.konnector_client import Konnector, KonnectorAway, NodeKonnectors, konnector_urls
from sluice_volumes.messages import OsdShare

GIVEN = "req-01234567-89ab-cdef-0123-456789abcdef"


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *args):
        """Do not log."""

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.request_ids.append(self.headers["X-Openstack-Request-Id"])
        self.server.asked.append((self.command, self.path, self.headers["X-Auth-Token"], json.loads(body or b"null")))
        status, content = self.server.answers.pop(0)
        content = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_PUT = do_POST = do_DELETE = answer


@pytest.fixture
def server():
    made = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.asked, made.answers, made.request_ids = [], [], []
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


@pytest.fixture
def session():
    return Session(auth=token_endpoint.Token("http://unused", "t0ken"), timeout=5)


@pytest.fixture
def konnector(server, session):
    return Konnector(session, f"http://127.0.0.1:{server.server_port}/", "n1")


def test_each_call_has_its_route_and_our_token(server, konnector):
    server.answers += [(200, {"host": "h"}), (200, {"state": "attached"}), (201, {"device": "/dev/loop1"})]
    server.answers += [(200, {"size": 1, "reattach": False}), (200, {"size": 1, "reattach": True}), (204, b"")]
    server.answers += [(200, {"state": "waiting"}), (200, {"forgotten": False})]
    server.answers += [(202, {"state": "running"}), (200, {"state": "measured"})]
    osd = {"id": 0, "host": "left", "share": 1.0, "primary": 0.5}
    server.answers += [(200, {"rbd": None}), (200, {"rbd": {"pool": "p", "objects": 4, "sampled": 2, "osds": [osd]}})]
    assert konnector.connector("block", ["a b", "c"]) == {"host": "h"}
    assert konnector.volume("v 1") == {"state": "attached"}
    assert konnector.attach("v1", {"secret": "s"}) == {"device": "/dev/loop1"}
    assert konnector.resize("v1")
    assert not konnector.resize("v1", 512)
    konnector.detach("v1")
    konnector.confirm("v1", "a1")
    konnector.revoke("v1", "a1")
    assert konnector.measure("v1", 5) == {"state": "running"}
    assert konnector.measurement("v1") == {"state": "measured"}
    assert konnector.locality("v1") is None
    assert konnector.locality("v1").osds == (OsdShare(0, "left", 1.0, 0.5),)
    assert server.asked == [
        ("GET", "/connector?export=block&filter=a+b&filter=c", "t0ken", None),
        ("GET", "/volumes/v%201", "t0ken", None),
        ("PUT", "/volumes/v1", "t0ken", {"secret": "s"}),
        ("PUT", "/volumes/v1/size", "t0ken", None),
        ("PUT", "/volumes/v1/size", "t0ken", {"size": 512}),
        ("DELETE", "/volumes/v1", "t0ken", None),
        ("PUT", "/volumes/v1/confirmed", "t0ken", {"attachment": "a1"}),
        ("PUT", "/volumes/v1/revoked", "t0ken", {"attachment": "a1"}),
        ("POST", "/volumes/v1/measure", "t0ken", {"seconds": 5}),
        ("GET", "/volumes/v1/measure", "t0ken", None),
        *[("GET", "/volumes/v1/locality", "t0ken", None)] * 2,
    ]


def test_the_id_of_the_request_that_is_served_goes_along(server, konnector):
    server.answers += [(204, b"")] * 2
    konnector.detach("v1")
    with log_fields(request=GIVEN):
        konnector.detach("v1")
    assert server.request_ids == [None, GIVEN]


@pytest.mark.parametrize(
    ("status", "kind"), [(404, NotFound), (409, Conflict), (400, CallerError), (401, PeerError), (500, PeerError)]
)
def test_a_refusal_has_the_konnectors_reason(server, konnector, status, kind):
    server.answers.append((status, {"error": "held by process 7"}))
    with pytest.raises(kind, match=r"konnector of node `n1`.* held by process 7"):
        konnector.detach("v1")


def test_an_answer_that_is_no_json_is_a_fault_of_the_konnector(server, konnector):
    server.answers.append((502, b"<html>"))
    with pytest.raises(PeerError, match="answers 502"):
        konnector.attach("v1", {"secret": "s3cret"})
    server.answers.append((200, b"[1]"))
    with pytest.raises(PeerError, match="names no `host`"):
        konnector.connector("block", ())


def test_a_konnector_that_is_not_there_is_away_and_no_secret_is_said(session):
    with pytest.raises(KonnectorAway, match="cannot be asked") as caught:
        Konnector(session, "http://127.0.0.1:9", "n1").attach("v1", {"secret": "s3cret"})
    assert "s3cret" not in str(caught.value)


def test_a_node_without_a_konnector_is_told_with_the_near_miss(session):
    urls = konnector_urls([NodeReport("node1", "h", 1, konnector="http://x"), NodeReport("node2", "h", 1)])
    assert urls == {"node1": "http://x"}
    with pytest.raises(KonnectorAway, match="`nod1` has no konnector now, did you mean `node1`"):
        NodeKonnectors(session, lambda: urls)("nod1")
