"""An agent's checks of its node's isolated environments."""

import asyncio
import json
import socket
import socketserver
import threading
from http.server import BaseHTTPRequestHandler

import pytest

from sluice_agent.code.sandboxes import (
    CachedCheck,
    Sandboxes,
    check_docker,
    check_supervisor,
    check_wasm,
    sandbox_checks,
)
from sluice_code.native_trial import Interpreter


def serving(server):
    """``server`` in a thread, until the end of the block."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    return thread


class Supervisor(socketserver.StreamRequestHandler):
    """Answers an unknown operation as ``sluice_sandbox.process.supervisor`` does."""

    def handle(self):
        told = json.loads(self.rfile.readline())
        if self.server.answers:
            self.wfile.write(json.dumps({"error": f"`{told['op']}` is not known"}).encode() + b"\n")


@pytest.mark.parametrize(("answers", "wrong"), [(True, ""), (False, "hung up")])
def test_a_supervisor_works_when_it_answers(tmp_path, answers, wrong):
    with socketserver.UnixStreamServer(str(tmp_path / "control"), Supervisor) as server:
        server.answers = answers
        thread = serving(server)
        assert wrong in check_supervisor(tmp_path)
        assert bool(check_supervisor(tmp_path)) == bool(wrong)
        server.shutdown()
        thread.join()


def test_a_supervisor_that_is_not_there_is_said(tmp_path):
    assert check_supervisor(tmp_path) == f"no sandbox supervisor at `{tmp_path}`: No such file or directory"


class Engine(BaseHTTPRequestHandler):
    """Answers a ping with the status that the server was given."""

    def do_GET(self):
        self.send_response(self.server.status if self.path == "/_ping" else 404)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args):
        pass

    def address_string(self):
        return "local"


class UnixServer(socketserver.UnixStreamServer):
    """HTTP over a Unix socket."""


@pytest.mark.parametrize(("status", "wrong"), [(200, ""), (500, "the docker engine answers 500")])
@pytest.mark.parametrize("local", [True, False])
def test_an_engine_works_when_it_answers_a_ping(tmp_path, local, status, wrong):
    path = str(tmp_path / "docker.sock")
    made = UnixServer(path, Engine) if local else socketserver.TCPServer(("127.0.0.1", 0), Engine)
    with made as server:
        server.status = status
        thread = serving(server)
        url = f"unix://{path}" if local else f"tcp://127.0.0.1:{server.server_address[1]}"
        assert check_docker(url) == wrong
        server.shutdown()
        thread.join()


def test_an_engine_that_is_not_there_is_said(tmp_path):
    assert "no docker engine at" in check_docker(f"unix://{tmp_path}/nothing.sock")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, but not listening
        assert "no docker engine at `127.0.0.1`" in check_docker(f"tcp://127.0.0.1:{taken.getsockname()[1]}")


def test_webassembly_works_when_swifts_python_can_import_its_run_time(tmp_path):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexit 0\n")
    python.chmod(0o755)
    assert check_wasm(Interpreter(str(python))) == ""
    python.write_text("#!/bin/sh\necho \"No module named '${3#import }'\" >&2\nexit 1\n")
    assert "No module named 'wasmtime'" in check_wasm(Interpreter(str(python)))
    assert "cannot start" in check_wasm(Interpreter(str(tmp_path / "nothing")))


def test_only_configured_environments_are_checked(tmp_path):
    assert sandbox_checks("", "", False, Interpreter()) == {}
    assert set(sandbox_checks(str(tmp_path), "unix:///x", True, Interpreter())) == {"process", "storlet", "wasm"}


def test_only_changed_states_are_reported(caplog):
    answers = {"process": "", "wasm": "it is not installed"}
    told = []
    made = Sandboxes({name: lambda name=name: answers[name] for name in answers}, lambda: told.append(True))
    asyncio.run(made.check_all())
    asyncio.run(made.check_all())
    assert made.states == {"process": "ok", "wasm": "it is not installed"}
    answers["process"] = "nobody is there"
    asyncio.run(made.check_all())
    assert made.states["process"] == "nobody is there"
    assert told == [True, True]
    assert "environment `process`: nobody is there" in caplog.text


def test_an_expensive_check_is_cached():
    asked, now = [], [100.0]

    def check():
        asked.append(True)
        return "no"

    seldom = CachedCheck(check, 60.0, lambda: now[0])
    assert [seldom(), seldom()] == ["no", "no"]
    now[0] = 159.0
    seldom()
    assert len(asked) == 1
    now[0] = 160.0
    seldom()
    assert len(asked) == 2


def test_without_environments_the_task_ends():
    asyncio.run(Sandboxes({}).run())
