"""A real API with a real Redis and a small Swift for the code of filters, one for all tests of this package."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.support.cluster import redis_fixtures

from sluice_aio.base.ports import free_port
from sluice_aio.base.server import Server
from sluice_client import Client, Retries, Unreachable
from sluice_client.cli import main
from sluice_client.testing import StubController
from sluice_core.messages.nodes import NodeReport
from sluice_core.store.store import Store

redis_server = redis_fixtures.redis_server

ROOT = Path(__file__).resolve().parents[3]
TOKEN = "never-to-be-printed-8c41d7"
PREFIX = "client"


class ApiServer(Server):
    """``sluice-api`` as a child process."""

    name = "sluice-api"

    def __init__(self, folder, redis_url, swift_port):
        super().__init__(free_port(), folder, tied=True)
        self.config = folder / "api.conf"
        self.token = folder / "token"
        key = folder / "key"
        for path, text in ((self.token, TOKEN), (key, "k")):
            path.touch(mode=0o600)
            path.write_text(text + "\n")
        self.config.write_text(
            f"[api]\nbind = 127.0.0.1:{self.port}\nredis_url = {redis_url}\nredis_prefix = {PREFIX}\n"
            f"auth = token\ntoken_file = {self.token}\nworkers = 1\ncode_auth_url = http://127.0.0.1:{swift_port}/auth/v1.0\n"
            f"code_user = s:s\ncode_key_file = {key}\n"
            f"swift_url = http://127.0.0.1:{swift_port}\nswift_user = s:s\nswift_key_file = {key}\n"
        )

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def argv(self):
        return [sys.executable, "-m", "sluice_controller", "--config", str(self.config)]

    def env(self):
        return {**os.environ, "HOME": str(self.folder)}

    def answers(self):
        try:
            with Client(self.url, timeout=1.0, retries=Retries(tries=1)) as client:
                return client.health()["dependencies"]["redis"] == "ok"
        except Unreachable:
            return False


class FakeCodeSwift(BaseHTTPRequestHandler):
    """Issues tokens to every user, stores objects in a dictionary; it has two storage policies, and one place of each
    object.
    """

    def log_message(self, *args):
        pass

    def do_GET(self):
        if self.path == "/auth/v1.0":
            here = f"http://127.0.0.1:{self.server.server_port}/v1/AUTH_s"
            self.answer(200, b"", {"X-Auth-Token": "t", "X-Storage-Url": here})
        elif self.path == "/info":
            self.answer(200, b'{"swift": {"policies": [{"name": "gold"}, {"name": "Policy-0"}]}}')
        elif self.path.startswith("/endpoints/v2/"):
            self.answer(200, b'{"endpoints": ["http://127.0.0.1:6010/sdb1/7/a/c/o"], "headers": {}}')
        else:
            found = self.server.objects.get(self.path)
            self.answer(404 if found is None else 200, found or b"")

    def do_PUT(self):
        self.server.objects[self.path] = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.answer(201, b"")

    def answer(self, status, body, headers=None):
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture(scope="session")
def swift():
    server = ThreadingHTTPServer(("127.0.0.1", 0), FakeCodeSwift)
    server.objects = {}
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="session")
def api(tmp_path_factory, redis_server, swift):
    with ApiServer(tmp_path_factory.mktemp("api"), redis_server.url, swift.server_port) as running:
        yield running


@pytest.fixture
def store(redis_server):
    """The store behind the API, empty for each test."""
    made = Store(redis_server.url, PREFIX)
    made.client.flushdb()
    yield made
    made.close()


@pytest.fixture
def client(api, store):
    with Client(api.url, TOKEN) as made:
        yield made


@pytest.fixture
def node(store):
    """A function that lets an agent of a node report that it applied everything, or the given report."""

    def report(name="n1", **more):
        head = store.head()
        known = {"history": head.history, "epoch": head.epoch, "at": time.time(), "started": time.time()}
        store.report(NodeReport(name, **known | more))

    return report


@pytest.fixture
def sluice(api, store, capsys):
    """A function that runs ``sluice`` with these words and returns its output, which never has the token."""

    def run(*words, status=0, start=None):
        begin = ["--url", api.url, "--token-file", str(api.token)] if start is None else start
        try:
            ended = main([*begin, *words])
        except SystemExit as end:
            ended = end.code or 0
        said = capsys.readouterr()
        assert ended == status, said
        assert TOKEN not in said.out + said.err
        return said

    return run


@pytest.fixture(scope="session")
def plugin_folder(tmp_path_factory):
    """The metadata of a distribution that declares the plugin as setup.cfg does, for any installation."""
    from docs.generated.commands import entry_points

    folder = tmp_path_factory.mktemp("plugin")
    metadata = folder / "sluice-0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: sluice\nVersion: 0\n")
    text = "".join(f"[{group}]\n" + "\n".join(lines) + "\n" for group, lines in entry_points().items())
    (metadata / "entry_points.txt").write_text(text)
    return folder


@pytest.fixture
def openstack(api, store, plugin_folder):
    """A function that runs ``openstack sluice`` in a process of its own; its output never has a token."""

    def run(*words, status=0, env=None):
        bare = {name: value for name, value in os.environ.items() if not name.startswith(("OS_", "SLUICE_"))}
        known = {"PYTHONPATH": str(plugin_folder), "HOME": str(plugin_folder), "XDG_CACHE_HOME": str(plugin_folder)}
        done = subprocess.run(
            [sys.executable, "-m", "openstackclient.shell", *words],
            cwd=plugin_folder,
            env={**bare, **known, **(env or {})},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == status, done
        assert TOKEN not in done.stdout + done.stderr
        return done

    return run


@pytest.fixture
def stub():
    with StubController() as server:
        yield server


@pytest.fixture
def nobody():
    """The address of a controller that does not exist."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return f"http://127.0.0.1:{free.getsockname()[1]}"
