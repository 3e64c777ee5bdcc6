"""The part of a Swift that stores uploaded code, and copies of items."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.support.controller.swift import serving

from sluice_code.swift_code_store import SwiftCodeStore, SwiftCodeStoreSettings


class FakeCodeSwift(ThreadingHTTPServer):
    """Tokens, one account, ``objects`` in a dictionary; only the last token is valid."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.token = 0
        self.puts = 0
        self.objects: dict[str, bytes] = {}

    def code_store(self) -> SwiftCodeStore:
        """A client that stores code in it."""
        url = f"http://127.0.0.1:{self.server_port}/auth/v1.0"
        return SwiftCodeStore(SwiftCodeStoreSettings(url, "s:s", "k", "sluice-code"))


class _Handler(BaseHTTPRequestHandler):
    server: FakeCodeSwift

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 -- the base's name
        """Do not log."""

    def do_GET(self) -> None:
        if self.path == "/auth/v1.0" and self.headers["X-Auth-Key"] != "k":
            self._answer(401, b"")
        elif self.path == "/auth/v1.0":
            self.server.token += 1
            here = f"http://127.0.0.1:{self.server.server_port}/v1/AUTH_s"
            self._answer(200, b"", {"X-Auth-Token": str(self.server.token), "X-Storage-Url": here})
        elif self.headers["X-Auth-Token"] != str(self.server.token):
            self._answer(401, b"")
        else:
            found = self.server.objects.get(self.path)
            self._answer(404 if found is None else 200, found or b"", {"Etag": _etag(found or b"")})

    do_HEAD = do_GET

    def do_PUT(self) -> None:
        size = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(size)
        etag = _etag(body)
        if len(body) < size:
            self.close_connection = True
        elif self.headers.get("ETag", etag) != etag:
            self._answer(422, b"")
        else:
            self.server.objects[self.path] = body
            self.server.puts += 1
            self._answer(201, b"", {"Etag": etag})

    def _answer(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _etag(content: bytes) -> str:
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


@contextmanager
def fake_code_swift() -> Iterator[FakeCodeSwift]:
    """A server that listens until the end of the block."""
    with FakeCodeSwift() as server, serving(server):
        yield server
