"""A proxy's responses for a contracted object, before a storage in memory and a daemon that is one function."""

import hashlib
import socket
import threading

import pytest
from tests.support.recordings.environs import environ

from sluice_middleware.motifs.daemon_protocol import OPEN, WorkerCall, WorkerReply, receive_frame, send_frame
from sluice_middleware.motifs.rights import identity_of
from sluice_middleware.proxy import object_handler
from sluice_middleware.swift.proxy_api import Response
from sluice_middleware.testing import FakeObject, ProxyStack
from sluice_middleware.wsgi import sysmeta
from sluice_motifs.storage.records import Motif, Record

PATH = "/v1/AUTH_a/c/o"
PLAIN = b"0123456789" * 100
ETAG = hashlib.md5(PLAIN).hexdigest()
WRITTEN = "1700000000.00000_0000000100000000"
#: External: no other object has to be viewed.
RECORD = Record((Motif("url", {"source": "http://example.org/o"}),)).encode()


#: The keys of an environ that identify the client.
SAYS_WHO = {"REMOTE_USER", "keystone.identity", "swift_owner", "swift.access_logging", "swift.authorize_override"}


def contracted():
    headers = {
        sysmeta.MOTIF: RECORD,
        sysmeta.CONTRACTED: sysmeta.encode_contracted(len(PLAIN)),
        sysmeta.ETAG: ETAG,
        "X-Backend-Data-Timestamp": WRITTEN,
        "X-Backend-Timestamp": WRITTEN,
        "X-Object-Meta-Colour": "blue",
        "Content-Type": "text/plain",
    }
    return FakeObject(b"", headers, hashlib.md5(b"").hexdigest())


class Daemon:
    """Answers every call by ``answer``, which returns a reply and the frames behind it."""

    def __init__(self, path):
        self.calls = []
        self.answer = lambda call: (WorkerReply(503, "not today"), ())
        self.listening = socket.socket(socket.AF_UNIX)
        self.listening.bind(path)
        self.listening.listen()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while True:
            connection, _ = self.listening.accept()
            with connection:
                raw = receive_frame(connection)
                if raw is None:
                    return
                self.calls.append(WorkerCall.decode(raw))
                reply, frames = self.answer(self.calls[-1])
                send_frame(connection, reply.encode())
                for frame in frames:
                    send_frame(connection, frame)

    def close(self):
        with socket.socket(socket.AF_UNIX) as last:
            last.connect(self.listening.getsockname())
        self.thread.join(10)
        self.listening.close()


@pytest.fixture
def daemon(tmp_path):
    found = Daemon(str(tmp_path / "motifs.sock"))
    yield found
    found.close()


@pytest.fixture
def stack(tmp_path, daemon):
    found = ProxyStack(tmp_path, motif_socket=str(tmp_path / "motifs.sock"))
    found.swift.objects[PATH] = contracted()
    return found


def making(call):
    """A daemon that makes the requested bytes."""
    assert call.kind == OPEN
    return WorkerReply(200), (PLAIN[call.start : call.stop], b"")


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("HEAD", {}, 200),
        ("GET", {"If_None_Match": ETAG}, 304),
        ("GET", {"If_Match": "no"}, 412),
    ],
)
def test_what_needs_no_bytes_asks_no_daemon(stack, daemon, method, headers, status):
    answer = stack(method, PATH, **headers)
    assert (answer.status_int, answer.headers["Etag"].strip('"')) == (status, ETAG)
    if status == 200:
        assert answer.headers["Content-Length"] == str(len(PLAIN))
    assert answer.headers["X-Object-Meta-Colour"] == "blue"
    assert not any("sluice" in name.lower() for name in answer.headers)
    assert daemon.calls == []
    assert stack.all_closed()


SAID = "`owner:AUTH_b,p:u`, who attached the motif, may not read `AUTH_b/c/source`"


@pytest.mark.parametrize("method", ["GET", "PUT"])
@pytest.mark.parametrize(
    ("who", "knows"),
    [
        ("keystone owner", True),
        ("keystone administrator", True),
        ("keystone reseller", True),
        ("keystone reader", False),
        ("keystone stranger reads what is public", False),
        ("keystone nobody reads what is public", False),
        ("keystone tempurl", False),
        ("tempauth owner", True),
        ("tempauth stranger in the access list", False),
        ("tempauth nobody who claims to be somebody", False),
    ],
)
def test_why_an_object_cannot_be_made_is_told_to_its_owner_alone(stack, daemon, caplog, method, who, knows):
    daemon.answer = lambda call: (WorkerReply(503, SAID), ())
    client = environ(who)
    path = f"/v1/{client['PATH_INFO'].split('/')[2]}/c/o"
    stack.swift.objects[path] = contracted()
    asked = {name: client[name] for name in SAYS_WHO & client.keys()}
    asked |= {"swift.authorize": lambda request: None, "swift.infocache": {}}
    extra = {"X_Object_Motif": "url; source=http://example.org/o"} if method == "PUT" else {}
    answer = stack(method, path, body=b"" if method == "GET" else PLAIN, env=asked, **extra)
    assert (answer.status_int, answer.headers["Retry-After"]) == (503, "5")
    assert (SAID.encode() in answer.body) == knows
    assert knows or not any(name in answer.body for name in (b"AUTH_b", b"p:u", b"source"))
    assert SAID in caplog.text


@pytest.mark.parametrize(
    ("headers", "status", "content"),
    [
        ({}, 200, PLAIN),
        ({"Range": "bytes=5-14"}, 206, PLAIN[5:15]),
        ({"Range": "bytes=-3"}, 206, PLAIN[-3:]),
        ({"Range": "bytes=99999-"}, 416, None),
        ({"Range": "nonsense"}, 200, PLAIN),
    ],
    ids=["whole", "range", "last bytes", "beyond the end", "no range"],
)
def test_the_daemon_makes_the_bytes_that_are_asked_for(stack, daemon, headers, status, content):
    daemon.answer = making
    answer = stack("GET", PATH, **headers)
    assert answer.status_int == status
    if content is not None:
        assert (answer.body, answer.headers["Etag"].strip('"')) == (content, ETAG)
        assert answer.headers["Content-Length"] == str(len(content))
        assert sum((one.stop or len(PLAIN)) - one.start for one in daemon.calls) == len(content)
    assert stack.all_closed()


def test_the_daemon_is_told_what_the_object_is_made_from(stack, daemon):
    motif = Motif("concat", {"of": "AUTH_a/c/one,AUTH_a/c/two"})
    stack.swift.objects[PATH].headers[sysmeta.MOTIF] = Record((motif,)).encode()
    daemon.answer = making
    assert stack("GET", PATH).body == PLAIN
    assert [one.sources for one in daemon.calls] == [("AUTH_a/c/one", "AUTH_a/c/two")]


def test_the_daemon_is_told_the_id_of_the_request(stack, daemon):
    daemon.answer = making
    stack("GET", PATH, env={"swift.trans_id": "tx0123"})
    assert [one.request for one in daemon.calls] == ["tx0123"]


def test_bytes_that_are_not_proven_end_in_an_error(stack, daemon):
    daemon.answer = lambda call: (WorkerReply(200), (PLAIN[:10],))
    with pytest.raises(Exception, match="not those of the object"):
        stack("GET", PATH)


@pytest.mark.parametrize("headers", [{}, {"Range": "bytes=0-4"}, {"Range": "nonsense"}], ids=["whole", "range", "bad"])
def test_a_daemon_says_why_and_when_to_ask_again(stack, daemon, headers):
    answer = stack("GET", PATH, env={"swift_owner": True}, **headers)
    assert (answer.status_int, answer.headers["Retry-After"]) == (503, "5")
    assert b"not today" in answer.body
    assert stack.all_closed()


@pytest.mark.parametrize("headers", [{}, {"Range": "bytes=0-4"}], ids=["whole", "range"])
def test_bytes_of_which_not_one_comes_are_refused_and_not_cut(stack, daemon, headers):
    """After a 200 a response can only be cut off."""
    daemon.answer = lambda call: (WorkerReply(200), ())
    answer = stack("GET", PATH, env={"swift_owner": True}, **headers)
    assert (answer.status_int, answer.headers["Retry-After"]) == (503, "5")
    assert b"not those of the object" in answer.body
    assert stack.all_closed()


def test_an_object_that_got_its_bytes_meanwhile_is_asked_for_again(stack, daemon):
    def in_place(call):
        expanded = {name: value for name, value in contracted().headers.items() if name != sysmeta.CONTRACTED}
        stack.swift.objects[PATH] = FakeObject(PLAIN, expanded, ETAG)
        return WorkerReply(204), ()

    daemon.answer = in_place
    answer = stack("GET", PATH)
    assert (answer.status_int, answer.body) == (200, PLAIN)
    assert stack.swift.headers[-1].get("X-Newest") == "true"
    assert stack.all_closed()


@pytest.mark.parametrize(
    ("failures", "seconds", "status"),
    [(7, 0, 200), (8, 0, 503), (1, 70, 200), (2, 40, 503)],
    ids=["often", "too often", "slowly", "too slowly"],
)
def test_an_object_that_changes_is_asked_for_a_limited_time(stack, daemon, monkeypatch, failures, seconds, status):
    """A client writes one of its sources: many calls end without bytes, each after this many seconds."""
    now = 1000.0
    monkeypatch.setattr(object_handler, "monotonic", lambda: now)

    def answer(call):
        nonlocal now
        now += seconds
        return (WorkerReply(200), ()) if len(daemon.calls) <= failures else making(call)

    daemon.answer = answer
    assert stack("GET", PATH).status_int == status
    assert len(daemon.calls) == failures + (status == 200)
    assert stack.all_closed()


def test_new_content_has_neither_length_nor_etag(stack, daemon):
    daemon.answer = lambda call: (WorkerReply(200, same=False), (b"new content", b""))
    answer = stack("GET", PATH)
    assert (answer.status_int, answer.body) == (200, b"new content")
    assert "Etag" not in answer.headers
    assert "Last-Modified" not in answer.headers


def test_without_a_daemon_a_contracted_object_is_not_an_empty_one(tmp_path):
    stack = ProxyStack(tmp_path)
    stack.swift.objects[PATH] = contracted()
    answer = stack("GET", PATH, env={"swift_owner": True})
    assert (answer.status_int, b"motif_socket" in answer.body) == (503, True)
    assert stack("HEAD", PATH).headers["Content-Length"] == str(len(PLAIN))


def test_nobody_else_writes_metadata_of_motifs(stack):
    forged = {
        "X_Object_Sysmeta_Sluice_Motif": RECORD,
        "X_Object_Sysmeta_Sluice_Contracted": sysmeta.encode_contracted(9),
        "X_Object_Transient_Sysmeta_Sluice_Motif": f"{WRITTEN} {RECORD}",
        "X_Object_Sysmeta_Sluice_Copied": "{}",
    }
    assert stack("PUT", "/v1/AUTH_a/c/forged", body=b"x", **forged).status_int == 201
    stored = stack.swift.objects["/v1/AUTH_a/c/forged"].headers
    assert not any("sluice" in name.lower() for name in stored)


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_the_client_of_a_write_is_known_to_requests_that_swift_makes_for_it(stack, method):
    """Swift writes and copies versions in its own name, which has no rights to read."""
    found = []
    stack.reads.app = lambda env, start_response: (
        found.append(identity_of({**environ("tempauth formpost"), "swift.infocache": env["swift.infocache"]}, "AUTH_a"))
        or Response(status=201)(env, start_response)
    )
    client = environ("tempauth owner")
    stack(method, PATH, body=PLAIN, env={"REMOTE_USER": client["REMOTE_USER"], "swift.infocache": {}})
    assert found == [client["REMOTE_USER"]]
