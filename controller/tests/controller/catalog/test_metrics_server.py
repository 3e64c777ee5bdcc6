"""The real server: several workers count together, and every line of the log is a JSON object."""

import json
import os
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.request import urlopen

import pytest

from sluice_aio.base.ports import free_port
from sluice_aio.base.server import Server

REQUESTS = 12


class JsonApi(Server):
    """``sluice-api`` with three workers that log JSON."""

    name = "sluice-api"

    def __init__(self, folder, redis_url, token_file):
        super().__init__(free_port(), folder, tied=True)
        self.config = folder / "api.conf"
        self.config.write_text(
            f"[api]\nbind = 127.0.0.1:{self.port}\nredis_url = {redis_url}\nauth = token\ntoken_file = {token_file}\n"
            "workers = 3\nlog_format = json\n"
        )

    def argv(self):
        return [sys.executable, "-m", "sluice_controller", "--config", str(self.config)]

    def env(self):
        return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "TMPDIR": str(self.folder)}

    def get(self, path):
        with urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as answer:
            return answer.read().decode()

    def answers(self):
        try:
            return bool(self.get("/health"))
        except OSError:
            return False

    def counted(self):
        """The number of answers to ``/health``, of all workers together."""
        wanted = 'sluice_api_requests_total{method="GET",route="/health",status="200"} '
        lines = [line for line in self.get("/metrics").splitlines() if line.startswith(wanted)]
        return float(lines[0].removeprefix(wanted)) if lines else 0.0

    def workers(self):
        return [int(word) for word in Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()]


@pytest.fixture
def server(tmp_path, redis_server, token_file):
    with JsonApi(tmp_path, redis_server.url, token_file) as running:
        yield running


def answered(server):
    """The log records of ``/health``; each line of the log is an object."""
    lines = [json.loads(line) for line in server.log.read_text().splitlines()]
    return [one for one in lines if one.get("route") == "/health"]


def ask_until_two_have_answered(server):
    """The number of requests until then; the kernel chooses the worker of a connection."""
    sent, deadline = 0, time.monotonic() + 30
    with ThreadPoolExecutor(REQUESTS) as pool:
        while len({one["process"] for one in answered(server)}) < 2:
            assert time.monotonic() < deadline
            list(pool.map(server.get, ["/health"] * REQUESTS))
            sent += REQUESTS
    return sent


def test_counters_are_shared_by_all_workers_and_survive_them(server):
    ask_until_two_have_answered(server)
    counted = server.counted()
    assert counted == len(answered(server))
    assert {server.counted() for _ in range(6)} == {counted}, "whichever worker is asked"
    killed = server.workers()
    os.kill(killed[0], signal.SIGKILL)
    deadline = time.monotonic() + 20
    while not set(server.workers()) - set(killed):
        assert time.monotonic() < deadline
    assert server.counted() == counted
    assert len(list(server.folder.glob("sluice-api-*"))) == 1
    server.stop()
    assert not list(server.folder.glob("sluice-api-*")), "what was shared is gone"
    lines = [json.loads(line) for line in server.log.read_text().splitlines()]
    assert any(one["logger"] == "gunicorn.error" for one in lines)
