"""A filter of a third party: its service is called under a live cluster's load, until it accepts."""

import configparser
import json
import queue
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from tests.functional.test_metric_policies import Steadily

# A name that is imported from `http.server` is the real one. As an attribute of `http`, `server` is eventlet's once a
# process has imported eventlet, and its green threads hang between real ones.

#: The service's first responses; a host calls three times, and starts again after 2 s.
REFUSALS = 4


class Service(ThreadingHTTPServer):
    """On loopback; ``calls`` are (path, document) of its requests, and it accepts all after ``REFUSALS``."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Answers)
        self.calls = queue.Queue()
        self.refusals = REFUSALS


class Answers(BaseHTTPRequestHandler):
    def do_PUT(self):
        document = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.refusals -= 1
        self.send_response(503 if self.server.refusals >= 0 else 204)
        self.send_header("Content-Length", "0")
        self.end_headers()
        self.server.calls.put((self.path, document))

    def log_message(self, *_):
        """Do not log."""


@pytest.fixture
def service():
    with Service() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def calling(cluster):
    """Actor hosts that may call services on loopback."""
    file = cluster.layout.configs / "actors.conf"
    before = file.read_text(encoding="utf-8")
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(before)
    parser["actors"]["activation_hosts"] = "127.0.0.1"
    with file.open("w", encoding="utf-8") as out:
        parser.write(out)
    cluster.restart("actors")
    yield
    file.write_text(before, encoding="utf-8")
    cluster.restart("actors")


@pytest.fixture
def scan(api, service, calling):
    """The word `scan`, which the service implements."""
    url = f"http://127.0.0.1:{service.server_address[1]}"
    parameters = [{"name": "depth", "type": "int", "minimum": 1, "help": "levels of archives"}]
    body = {"keyword": "scan", "url": f"{url}/on/{{target}}", "undo": f"{url}/off/{{target}}", "parameters": parameters}
    registry = api.collection("/registry/filters")
    registry.create(body)
    yield "scan"
    registry.delete("scan")


def test_a_service_is_called_while_a_tenant_uploads(api, swift, service, scan, eventually):
    swift.request("PUT", "scanned")
    # far below the rate of the test: a busy machine slows it, and the filter must not be removed in between
    made = api.create_policy("FOR TENANT AUTH_test WHEN PUTS_SEC > 0.5 DO SET scan WITH depth=3 TRANSIENT")
    try:
        with Steadily(swift, 8, lambda: swift.request("PUT", "scanned/o", b"bytes")):
            calls = [service.calls.get(timeout=30) for _ in range(REFUSALS + 1)]
            assert {path for path, _ in calls} == {"/on/AUTH_test"}
            assert all(document["params"] == {"depth": 3} for _, document in calls)
            eventually(lambda: api.policy(made["id"])["state"] == "active")
            accepted = eventually(lambda: accepting(api.policy(made["id"])["enforced"]))
            assert accepted["refused"] == []
        assert service.calls.get(timeout=30)[0] == "/off/AUTH_test"
        assert service.calls.empty()
    finally:
        api.delete_policy(made["id"])


def accepting(enforced):
    """The policy's state once all nodes and the service have accepted it; else nothing."""
    return enforced if enforced["nodes"] == enforced["total"] >= 1 else None
