"""An API of Sluice's shape whose responses a test defines, for pages of the dashboard without a cluster.

It has no rules and no state: every user gets the responses that a test puts into :attr:`FakeApi.answers`.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

from sluice_aio.base.ports import HOST


@dataclass(slots=True)
class Answer:
    """The JSON ``body`` of a response with ``status``, or a function of the query's parameters that returns one."""

    body: Any
    status: int = 200


@dataclass(frozen=True, slots=True)
class Received:
    """One request; ``path`` with its query."""

    method: str
    path: str
    body: bytes
    token: str = field(repr=False)


class FakeApi(ThreadingHTTPServer):
    """Answers ``METHOD /path`` (without query) from ``answers``, 404 to the rest; a context manager.

    ``requests`` are the received ones; while ``away`` is set it answers 503, as an API without Redis; ``alter`` changes
    the body of each response.
    """

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, port: int) -> None:
        super().__init__((HOST, port), _Handler)
        self.answers: dict[str, Answer] = {}
        self.requests: list[Received] = []
        self.away = False
        self.alter: Callable[[Any], Any] = lambda body: body
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05})

    def reset(self) -> None:
        """Restore the initial state."""
        self.answers.clear()
        self.requests.clear()
        self.away = False
        self.alter = lambda body: body

    def say(self, call: str, body: Any, status: int = 200) -> None:
        """Set the response of ``call``, as ``GET /nodes``, from now on."""
        self.answers[call] = Answer(body, status)

    def answer_to(self, call: str) -> Answer:
        """The response to the next request of this call."""
        if self.away:
            return Answer(error_body(503, "redis does not answer"), 503)
        return self.answers.get(call, Answer(error_body(404, f"`{call}` is not known"), 404))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()


def error_body(status: int, message: str, problems: tuple[Any, ...] = ()) -> dict[str, Any]:
    """The body of every response of the API from 400 on."""
    return {"error": {"code": status, "title": "", "message": message, "problems": list(problems)}}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FakeApi

    def answer(self) -> None:
        """Called for each request."""
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.requests.append(Received(self.command, self.path, body, self.headers.get("X-Auth-Token", "")))
        found = self.server.answer_to(f"{self.command} {urlsplit(self.path).path}")
        asked = dict(parse_qsl(urlsplit(self.path).query))
        data = found.body(asked) if callable(found.body) else found.body
        raw = b"" if found.status == 204 else json.dumps(self.server.alter(data)).encode()
        self.send_response(found.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    do_GET = do_POST = do_PUT = do_DELETE = answer

    def log_message(self, *_: object) -> None:
        """Do not log."""
