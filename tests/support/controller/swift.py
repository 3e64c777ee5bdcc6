"""The part of a Swift proxy that the API uses, on a real socket."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote


class FakeSwift:
    """``containers`` maps a path to its storage policy; ``seen`` are method, path and headers of all requests."""

    def __init__(self) -> None:
        self.policies = ["Policy-0", "ec42"]
        self.containers: dict[str, str] = {}
        self.seen: list[tuple[str, str, dict[str, str]]] = []
        #: Path → status and body, in place of the usual response.
        self.instead: dict[str, tuple[int, bytes]] = {}
        self.tokens = {"a-token"}
        self.url = ""

    def answer(self, method: str, path: str, headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        """The response of a proxy."""
        for begin, (status, body) in self.instead.items():
            if path.startswith(begin):
                return status, {}, body
        if path == "/info":
            policies = [{"name": name, "aliases": f"{name}, {name}-alias"} for name in self.policies]
            return 200, {}, json.dumps({"swift": {"policies": policies}}).encode()
        if path == "/auth/v1.0":
            good = (headers.get("x-auth-user"), headers.get("x-auth-key")) == ("admin:admin", "secret-key")
            return (200, {"X-Auth-Token": "a-token"}, b"") if good else (401, {}, b"")
        if path.startswith("/endpoints/v2/"):
            name = path.removeprefix("/endpoints/v2/")
            found = [f"http://10.0.0.{node}:6010/sd{node}/77/{name}" for node in (1, 2, 3)]
            told = {"endpoints": found, "headers": {"X-Backend-Storage-Policy-Index": "1"}}
            return 200, {}, json.dumps(told).encode()
        return self._container(unquote(path), headers)

    def _container(self, path: str, headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        if headers.get("x-auth-token") not in self.tokens:
            return 401, {}, b""
        wanted = headers["x-storage-policy"]
        found = self.containers.setdefault(path, "")
        if found and found != wanted:
            return 409, {}, b""
        self.containers[path] = wanted
        return (202 if found else 201), {}, b""


@contextmanager
def serving(server: ThreadingHTTPServer) -> Iterator[None]:
    """Answer requests in a thread until the end of the block."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()


@contextmanager
def fake_swift() -> Iterator[FakeSwift]:
    """A server that listens until the end of the block."""
    fake = FakeSwift()

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            fake.seen.append((self.command, self.path, headers))
            status, more, body = fake.answer(self.command, self.path, headers)
            self.send_response(status)
            for name, value in {**more, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_PUT = _answer

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 -- the base's name
            """Do not log."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server, serving(server):
        fake.url = f"http://127.0.0.1:{server.server_address[1]}"
        yield fake
