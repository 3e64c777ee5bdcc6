"""For tests of the client and of its users: a controller with scripted replies."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


@dataclass(frozen=True)
class Reply:
    """One reply; ``body`` is JSON unless it is bytes.  With ``cut`` the connection ends without a reply."""

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: bool = False

    @property
    def raw(self) -> bytes:
        """The body as it is sent."""
        if isinstance(self.body, bytes):
            return self.body
        return b"" if self.body is None else json.dumps(self.body).encode()


@dataclass(frozen=True)
class ReceivedRequest:
    """One request."""

    method: str
    path: str
    body: Any
    headers: Mapping[str, str]


class StubController(ThreadingHTTPServer):
    """Answers from ``script``, one reply per request, and keeps the ``requests``; a context manager."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script: list[Reply] = []
        self.requests: list[ReceivedRequest] = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01})

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()

    def enqueue(self, status: int = 200, body: Any = None, cut: bool = False, **headers: str) -> Self:
        """Append a reply to the script; underscores in names of headers stand for dashes."""
        self.script.append(Reply(status, body, {name.replace("_", "-"): value for name, value in headers.items()}, cut))
        return self

    @property
    def paths(self) -> list[str]:
        """The paths of the requests."""
        return [one.path for one in self.requests]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: StubController

    def answer(self) -> None:
        """Called for each request."""
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = json.loads(raw) if raw and self.headers["Content-Type"] == "application/json" else raw or None
        self.server.requests.append(ReceivedRequest(self.command, self.path, body, dict(self.headers)))
        reply = self.server.script.pop(0)
        if reply.cut:
            self.close_connection = True
            return
        self.send_response(reply.status)
        known = {"Content-Type": "application/json", "Content-Length": str(len(reply.raw)), "X-Request-Id": "req-1"}
        for name, value in {**known, **reply.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(reply.raw)

    do_GET = do_POST = do_PUT = do_DELETE = answer

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def catalogue(url: str) -> dict[str, Any]:
    """Return Keystone's response to a request for a token, with the controller at ``url`` in the catalogue."""
    default = {"id": "default", "name": "Default"}
    endpoint = {"id": "e", "interface": "public", "region": "R", "region_id": "R", "url": url}
    token = {
        "methods": ["password"],
        "expires_at": "2999-01-01T00:00:00.000000Z",
        "issued_at": "2026-01-01T00:00:00.000000Z",
        "user": {"id": "u", "name": "me", "domain": default},
        "project": {"id": "p", "name": "acme", "domain": default},
        "roles": [{"id": "r", "name": "admin"}],
        "catalog": [{"id": "s", "type": "sluice", "name": "sluice", "endpoints": [endpoint]}],
    }
    return {"token": token}
