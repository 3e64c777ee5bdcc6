"""Servers that truncate, garble and stall: error texts, retries, and that no connection is left open."""

import gc
import json
import socket
import struct
import sys
import threading
import time
import weakref

import pytest
from keystoneauth1 import session, token_endpoint

from sluice_client import ApiError, Client, Retries, Unreachable

PAGE = b'{"nodes": [1]}'
BUSY = json.dumps({"error": {"code": 503, "title": "x", "message": "busy", "problems": []}}).encode()
RESET = object()
SILENT = object()


def answer(body=PAGE, status="200 OK", **headers):
    known = {"Content-Type": "application/json", "Content-Length": len(body), **headers}
    lines = [f"HTTP/1.1 {status}", *(f"{name.replace('_', '-')}: {value}" for name, value in known.items())]
    return "\r\n".join([*lines, "", ""]).encode() + body


class RawServer:
    """Answers each request with the next bytes of ``script``, valid or not; the last ones are repeated."""

    def __init__(self, *script, keep=False):
        self._script, self._keep = list(script), keep
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open, self._threads = [], []
        self.request_count = 0
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self):
        self._start(self._accept)
        return self

    def _start(self, target, *args):
        thread = threading.Thread(target=target, args=args)
        self._threads.append(thread)
        thread.start()

    def _accept(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._open.append(connection)
            self._start(self._serve, connection)

    def _serve(self, connection):
        try:
            while self._read(connection):
                self.request_count += 1
                said = self._script.pop(0) if len(self._script) > 1 else self._script[0]
                if said is RESET:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    break
                if said is not SILENT:
                    connection.sendall(said)
                    if not self._keep:
                        break
        except OSError:
            pass
        connection.close()

    @staticmethod
    def _read(connection):
        """Whether a request arrived; all of it is read, or closing would reset the connection."""
        head = b""
        while b"\r\n\r\n" not in head:
            piece = connection.recv(1 << 16)
            if not piece:
                return False
            head += piece
        head, _, body = head.partition(b"\r\n\r\n")
        lines = [line.partition(b":") for line in head.lower().split(b"\r\n")]
        left = next((int(value) for name, _, value in lines if name == b"content-length"), 0) - len(body)
        while left > 0 and (piece := connection.recv(1 << 16)):
            left -= len(piece)
        return True

    def __exit__(self, *_):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._open:
            if connection.fileno() >= 0:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    connection.close()
        for thread in self._threads:
            thread.join()


@pytest.fixture
def left_open(monkeypatch):
    """The interpreter's warnings of unclosed objects; only objects of the test are searched for garbage."""
    complaints = []
    monkeypatch.setattr(sys, "unraisablehook", lambda one: complaints.append(str(one.exc_value)))
    gc.freeze()
    yield complaints
    gc.collect()
    gc.unfreeze()
    assert complaints == []


@pytest.fixture(params=["token", "session"])
def connect(request, left_open):
    """A function that returns a client of one of both sorts; it is closed, with all its parts."""
    made = []

    def go(url, **more):
        known = {"timeout": 5.0, "retries": Retries(pause=lambda _: None), **more}
        if request.param == "token":
            made.append(Client(url, "t", **known))
            return made[-1]
        owner = session.Session(auth=token_endpoint.Token(url, "t"))
        made.extend((Client.from_session(owner, **known), owner.session))
        return made[-2]

    yield go
    for one in made:
        one.close()
    made.clear()


BROKEN = {
    "nothing": (b"", "Remote end closed connection without response"),
    "half a status": (b"HTTP/1.1 2", "what it answers is no HTTP"),
    "no http": (b"\0\1garbage\r\n\r\n", "what it answers is no HTTP"),
    "a status": (b"HTTP/1.1 200 OK\r\n", "cut its answer, or did not say how long it is"),
    "half of the headers": (b"HTTP/1.1 200 OK\r\nContent-Len", "cut its answer, or did not say how long it is"),
    "a header of half a number": (b"HTTP/1.1 200 OK\r\nContent-Length: 1", "IncompleteRead(0 bytes read, 1 more"),
    "headers": (answer()[: -len(PAGE)], "IncompleteRead(0 bytes read, 14 more expected"),
    "half a body": (answer()[:-4], "IncompleteRead(10 bytes read, 4 more expected"),
    "half a chunk": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n{", "IncompleteRead("),
    "chunks of no size": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nz\r\n{", "InvalidChunkLength("),
    "a reset": (RESET, "Connection reset by peer"),
    "a refusal in half": (answer(BUSY, "503 Busy", Retry_After=1)[:-9], "more expected"),
    "endless headers": (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 1000 + b"\r\n", "got more than"),
}
FINAL = {
    "another encoding": (answer(b"none", Content_Encoding="gzip"), "incorrect header check"),
    "two lengths": (answer(Content_length=3), "Content-Length contained multiple unmatching values"),
    "nowhere": (answer(b"", "302 Found", Location="http://[::1/"), "Invalid IPv6 URL"),
    "elsewhere": (answer(b"", "302 Found", Location="http://127.0.0.1:1/"), "answered 302 without JSON"),
    "no json": (answer(b"{"), "answered 200 without JSON"),
    "nothing of a page": (b"HTTP/1.1 204 No Content\r\n\r\n", "answered 204 without JSON"),
    "another page": (answer(b'{"policies": []}'), "is answered without `nodes`"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_truncated_response_is_retried(connect, name):
    said, reason = BROKEN[name]
    with RawServer(said, answer()) as server:
        client = connect(server.url)
        assert client.nodes() == [1]
        assert server.request_count == 2
    with RawServer(said) as server:
        client = connect(server.url)
        with pytest.raises(Unreachable) as caught:
            client.nodes()
        with pytest.raises(Unreachable):
            client.adopt()
        assert server.request_count == 5
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", FINAL)
def test_a_foreign_response_is_not_retried(connect, name):
    said, reason = FINAL[name]
    with RawServer(said, keep=True) as server:
        client = connect(server.url)
        with pytest.raises(Unreachable) as caught:
            client.nodes()
        assert server.request_count == 1
    assert reason in str(caught.value)


def test_a_busy_controller_is_retried_and_its_refusal_is_readable(connect):
    busy = answer(BUSY, "503 Busy", Retry_After=1)
    with RawServer(busy, busy, answer(), keep=True) as server:
        assert connect(server.url).nodes() == [1]
        assert server.request_count == 3
    with RawServer(busy, keep=True) as server:
        client = connect(server.url)
        with pytest.raises(ApiError, match="busy"):
            client.nodes()
        with pytest.raises(ApiError, match="busy"):
            client.upload_filter("x", b"code" * 100_000)


@pytest.mark.parametrize("said", [SILENT, answer()[:-4], answer()[: -len(PAGE)]], ids=["all", "half", "body"])
def test_a_late_response_is_not_retried(connect, said):
    with RawServer(said, keep=True) as server:
        client = connect(server.url, timeout=0.3)
        with pytest.raises(Unreachable, match=r"does not answer within 0\.3 s"):
            client.nodes()
        end = time.monotonic() + 10
        while not server.request_count and time.monotonic() < end:  # its thread may be slow
            time.sleep(0.01)
        assert server.request_count == 1


def test_an_interim_continue_is_skipped(connect):
    with RawServer(b"HTTP/1.1 100 Continue\r\n\r\n" + answer(), keep=True) as server:
        assert connect(server.url).nodes() == [1]


@pytest.mark.parametrize("status", ["101 Switching Protocols", "102 Processing", "103 Early Hints"])
def test_after_an_interim_response_the_connection_is_closed(connect, status):
    early = f"HTTP/1.1 {status}\r\n\r\n".encode()
    with RawServer(early, answer(b'{"nodes": [2]}'), keep=True) as server:
        client = connect(server.url)
        with pytest.raises(Unreachable, match=f"answered {status[:3]} and not what came of it"):
            client.nodes()
        assert client.nodes() == [2]
        assert len(server._open) == 2


def test_a_truncated_export_is_refused(connect):
    with RawServer(b"HTTP/1.1 200 OK\r\nContent-Type: application/yaml\r\n\r\nsluice: 1\n") as server:
        client = connect(server.url, retries=Retries(tries=1))
        with pytest.raises(Unreachable, match="cut its answer"):
            client.export()
    with RawServer(answer(b"sluice: 1\n", Content_Type="application/yaml")) as server:
        assert connect(server.url).export() == "sluice: 1\n"


def test_a_server_that_dies_and_comes_back_costs_one_more_connection(connect):
    with RawServer(answer(), RESET, RESET, answer(), keep=True) as server:
        client = connect(server.url)
        assert [client.nodes(), client.nodes()] == [[1], [1]]
        assert server.request_count == 4


def test_a_client_that_is_forgotten_leaves_nothing_open(left_open):
    with RawServer(answer(), answer()[:-4], keep=True) as server:
        client = Client(server.url, timeout=0.05)
        assert client.nodes() == [1]
        with pytest.raises(Unreachable) as caught:
            client.nodes()
        gone = weakref.ref(client)
        del client, caught
        gc.collect()
        assert gone() is None


def test_an_unclosed_socket_is_detected(left_open):
    forgotten = socket.socket()
    del forgotten
    gc.collect()
    assert [one for one in left_open if "unclosed <socket" in one]
    left_open.clear()
