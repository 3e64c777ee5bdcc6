"""One controller API for tests: every response is checked for the rules of all responses."""

import contextlib
import http.client
import json
import re
import socket
from dataclasses import dataclass, field
from pathlib import Path

import redis

from sluice_aio.base.ports import HOST

#: Low limits, so that larger input is soon sent; debug level, since no secret may be logged there either.
LIMITS = {"body_limit": "65536", "import_limit": "131072", "code_limit": "131072", "log_level": "debug"}
JSON = "application/json"


@dataclass
class Answer:
    """A checked response: :meth:`LoneApi.ask`."""

    status: int
    headers: dict
    body: bytes

    def json(self):
        return json.loads(self.body)


@dataclass
class LoneApi:
    """The API's address, its credentials, its log, and its stored data; ``secrets`` must appear nowhere."""

    port: int
    token: str
    redis: redis.Redis
    log_file: Path
    secrets: tuple
    _line: list = field(default_factory=list)

    @property
    def url(self):
        return f"http://{HOST}:{self.port}"

    def ask(self, method, path, body=None, kind=JSON, **headers):
        """Send a request; return the response, which has no secret and no traceback, and Sluice's form of an error.

        ``body`` may be bytes, or data for JSON; a header's ``_`` is ``-``, and None leaves one out.
        """
        raw = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        sent = {"X-Auth-Token": self.token, "Content-Type": kind}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        sent = {name: value for name, value in sent.items() if value is not None}
        answer = self._answer(method, path, raw, sent)
        self.look_at(answer, f"{method} {path}")
        return answer

    def look_at(self, answer, what):
        """Check the rules of every response."""
        text = answer.body.decode("utf-8", "replace")
        assert not any(secret in text for secret in self.secrets), f"{what}: a secret"
        assert "Traceback" not in text, what
        if answer.status >= 400:
            assert answer.headers["content-type"] == JSON, what
            assert re.fullmatch(r"req-[0-9a-f-]{36}", answer.headers["x-request-id"]), what
            if answer.body:
                error = answer.json()["error"]
                assert (error["code"], bool(error["message"])) == (answer.status, True), what
                assert isinstance(error["problems"], list), what

    def speak(self, raw):
        """The response to bytes after which the input ends."""
        with socket.create_connection((HOST, self.port), 30) as line:
            line.sendall(raw)
            line.shutdown(socket.SHUT_WR)
            found = b"".join(iter(lambda: line.recv(65536), b""))
        head, _, body = found.partition(b"\r\n\r\n")
        first, *others = head.decode("latin-1").split("\r\n")
        headers = dict(one.split(": ", 1) for one in others)
        return Answer(int(first.split(" ")[1]), {name.lower(): value for name, value in headers.items()}, body)

    def dump(self):
        """Every key with its value, in Redis' dump format."""
        return {key: self.redis.dump(key) for key in self.redis.scan_iter(count=1000)}

    def log(self):
        return self.log_file.read_text(encoding="utf-8", errors="replace")

    @contextlib.contextmanager
    def log_checked(self):
        """Context in which it logs no secret, and no traceback except those of libraries at debug."""
        begin = len(self.log())
        yield
        logged = self.log()[begin:]
        assert not any(secret in logged for secret in self.secrets)
        records = re.split(r"\n(?=\d{4}-\d\d-\d\d )", logged)
        faults = [one for one in records if "Traceback" in one and " DEBUG " not in one.partition("\n")[0]]
        assert not faults, faults[0][:4000]

    def hang_up(self):
        """Close the client's connection; the next call opens another."""
        while self._line:
            self._line.pop().close()

    def _answer(self, method, path, raw, headers):
        for last in (False, True):
            if not self._line:
                self._line.append(http.client.HTTPConnection(HOST, self.port, timeout=60))
            try:
                self._line[0].request(method, path, raw, headers)
                found = self._line[0].getresponse()
                body = found.read()
            except (http.client.HTTPException, ConnectionError):  # the server closed an idle connection
                self.hang_up()
                if last:
                    raise
                continue
            if found.getheader("Connection", "").lower() == "close":
                self.hang_up()
            return Answer(found.status, {name.lower(): value for name, value in found.getheaders()}, body)
        raise AssertionError("unreachable")
