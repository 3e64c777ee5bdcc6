"""``sluice-api`` as a child process, with a static token, and a reverse proxy that puts it below a prefix."""

from __future__ import annotations

import http.client
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from sluice_aio.base.ports import HOST, free_port
from sluice_aio.base.server import Server
from sluice_client import Client, Unreachable

ROOT = Path(__file__).resolve().parents[3]
#: A proxy's headers about the request that it received.
_FORWARDED = "X-Forwarded-"


class ApiServer(Server):
    """The API on a Redis; ``options`` are further ones, and ``needs_redis`` whether it waits for that."""

    name = "sluice-api"

    def __init__(self, folder, redis_url, token_file, prefix="live", needs_redis=True, **options):
        super().__init__(free_port(), folder, tied=True)
        self._needs_redis = needs_redis
        self.config = folder / "api.conf"
        given = {
            "bind": f"{HOST}:{self.port}",
            "redis_url": redis_url,
            "redis_prefix": prefix,
            "auth": "token",
            "token_file": token_file,
            **options,
        }
        self.config.write_text("[api]\n" + "".join(f"{name} = {value}\n" for name, value in given.items()))

    @property
    def url(self):
        return f"http://{HOST}:{self.port}"

    def argv(self):
        return [sys.executable, "-m", "sluice_controller", "--config", str(self.config)]

    def env(self):
        rooms = ("core", "dsl", "filters", "metrics", "controller")
        path = os.pathsep.join(str(ROOT / room) for room in rooms)
        return {**os.environ, "PYTHONPATH": path, "HOME": str(self.folder), "GUNICORN_CMD_ARGS": "--workers=nonsense"}

    def answers(self):
        try:
            with Client(self.url, timeout=1.0) as client:
                return client.health()["dependencies"]["redis"] == "ok" or not self._needs_redis
        except Unreachable:
            return False


@contextmanager
def prefix_proxy(port: int, prefix: str, scheme: str = "http", host: str = "") -> Iterator[str]:
    """The URL of a proxy that removes ``prefix`` and forwards to the API at ``port``.

    :param scheme: the scheme in its headers, and ``host`` the address, if not that of the request
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if not self.path.startswith(f"{prefix}/"):
                self.send_response(301 if self.path == prefix else 404)
                self.send_header("Location", f"http://{self.headers['Host']}{prefix}/")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            asked = host or self.headers["Host"]
            said = {"Host": asked, "Proto": scheme, "Prefix": prefix, "For": self.client_address[0]}
            kept = {name: text for name, text in self.headers.items() if not name.startswith(_FORWARDED)}
            connection = http.client.HTTPConnection(HOST, port, timeout=10)
            try:
                forwarded = {f"{_FORWARDED}{name}": text for name, text in said.items()}
                connection.request("GET", self.path.removeprefix(prefix), headers=kept | forwarded)
                answer = connection.getresponse()
                body = answer.read()
            finally:
                connection.close()
            self.send_response(answer.status)
            for name, text in answer.getheaders():
                if name.lower() not in ("connection", "server", "date"):
                    self.send_header(name, text)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, form: str, *arguments: object) -> None:
            """Do not log."""

    with ThreadingHTTPServer((HOST, 0), Handler) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://{HOST}:{server.server_address[1]}{prefix}"
        finally:
            server.shutdown()
            thread.join()
