"""``/health`` has Keystone if it authenticates callers; requests to Keystone are rare, however often it is called."""

from __future__ import annotations

import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from sluice_aio.base.ports import free_port
from sluice_controller.identity.keystone_probe import PATIENCE, REMEMBERED, KeystoneProbe, probe_for, reachable

# modules of the standard library that keystonemiddleware imports
pytestmark = pytest.mark.filterwarnings("ignore:'cgi' is deprecated:DeprecationWarning")

CONF = """\
[keystone_authtoken]
auth_type = password
auth_url = http://127.0.0.1:{port}/v3
username = sluice
password = very-secret
user_domain_id = default
project_name = service
project_domain_id = default
"""


class Answering(BaseHTTPRequestHandler):
    """Answers with the server's status, and records its requests."""

    def do_GET(self):
        self.server.asked.append((self.path, dict(self.headers)))
        self.send_response(self.server.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args):
        """Log nothing."""


@pytest.fixture
def keystone():
    with ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        server.status, server.asked = 200, []
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def conf(tmp_path):
    def write(port):
        path = tmp_path / f"keystone-{port}.conf"
        path.write_text(CONF.format(port=port))
        path.chmod(0o600)
        return str(path)

    return write


@pytest.mark.parametrize(("status", "good"), [(200, True), (300, True), (401, True), (500, False), (503, False)])
def test_any_answer_of_a_keystone_that_works_will_do(keystone, conf, status, good):
    keystone.status = status
    assert reachable(conf(keystone.server_port)) is good
    ((path, headers),) = keystone.asked
    assert path == "/v3"
    assert not {"X-Auth-Token", "Authorization"} & set(headers)


def test_a_keystone_that_is_away_is_told_without_its_options(conf, caplog):
    assert reachable(conf(free_port())) is False
    assert "health: keystone" in caplog.text
    assert "very-secret" not in caplog.text


def test_a_file_that_cannot_be_read_is_no_keystone(tmp_path):
    assert reachable(str(tmp_path / "none.conf")) is False


def test_the_answer_of_a_probe_is_cached():
    said, now = [True, False], [100.0]
    probe = KeystoneProbe(lambda: said.pop(0), lambda: now[0])
    assert probe.is_up() is True
    now[0] += REMEMBERED - 0.1
    assert probe.is_up() is True
    now[0] += 0.2
    assert probe.is_up() is False
    assert said == []


def test_requests_do_not_wait_for_a_running_probe():
    asked, go, now = threading.Event(), threading.Event(), [0.0]
    answers = iter((True, False))

    def ask():
        if now[0]:
            asked.set()
            assert go.wait(10)
        return next(answers)

    probe = KeystoneProbe(ask, lambda: now[0])
    assert probe.is_up() is True
    now[0] = REMEMBERED + 1
    other = threading.Thread(target=probe.is_up)
    other.start()
    assert asked.wait(10)
    assert probe.is_up() is True, "the answer before"
    go.set()
    other.join()
    assert probe.is_up() is False


def test_health_names_keystone_where_it_says_who_asks(api, backend, config, keystone, conf):
    from django.test import override_settings

    assert "keystone" not in api.get("/health").json()["dependencies"]
    probe_for.cache_clear()
    here, away = conf(keystone.server_port), conf(free_port())
    for path, word in ((here, "ok"), (away, "degraded")):
        with override_settings(SLUICE=replace(config, auth="keystone", keystone_file=path)):
            answer = api.get("/health")
        assert (answer.status_code, answer.json()["dependencies"]["keystone"]) == (200, word)
    assert PATIENCE < REMEMBERED
