"""The real server: gunicorn with two workers, called by Sluice's client and command line."""

import json
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest
import requests
from tests.support.controller.api_server import ApiServer

from sluice_aio.base.ports import free_port
from sluice_client import ApiError, Client, Unreachable
from sluice_client.cli import main
from sluice_core.messages.registry import Metric
from sluice_core.store.records import Draft
from sluice_core.store.store import Store

SENTENCE = "FOR TENANT AUTH_live DO SET compression"


@pytest.fixture(scope="module")
def server(tmp_path_factory, redis_server, token_file):
    with ApiServer(tmp_path_factory.mktemp("api"), redis_server.url, token_file) as running:
        yield running


@pytest.fixture
def client(server, token_file, redis_server):
    store = Store(redis_server.url, "live")
    store.client.flushdb()
    store.close()
    with Client(server.url, token_file.read_text().strip()) as made:
        yield made


def test_the_client_does_everything_a_policy_needs(client):
    (checked,) = client.check_policy(SENTENCE)
    assert checked["policy"] == SENTENCE
    made = client.create_policy(SENTENCE, wait=0.05)
    assert client.policy(made["id"])["enforced"]["total"] == 0
    assert [one["id"] for one in client.policies(tenant="AUTH_live", state="active")] == [made["id"]]
    with pytest.raises(ApiError) as caught:
        client.delete_policy(made["id"], version=made["version"] + 1)
    assert caught.value.status == 412
    assert client.delete_policy(made["id"], version=made["version"]) is None
    assert list(client.policies()) == []


def test_a_change_by_one_worker_is_visible_to_the_other(client, server, token_file):
    made = client.create_policies("; ".join(f"FOR TENANT AUTH_{number} DO SET noop" for number in range(5)))
    for number in range(20):
        with Client(server.url, token_file.read_text().strip()) as other:
            assert len(list(other.policies(page=2))) == 5 - number // 4
        if number % 4 == 3:
            client.delete_policy(made.pop()["id"])
    assert list(client.policies()) == []


def test_the_client_carries_the_carets_of_a_bad_sentence(client):
    with pytest.raises(ApiError) as caught:
        client.create_policy("FOR TENANT a DO SET compresion")
    (problem,) = caught.value.problems
    assert problem["near_miss"] == "compression"
    assert "^^^^" in str(caught.value)
    assert caught.value.request_id.startswith("req-")


def test_the_client_reads_nodes_filters_metrics_and_terms(client):
    assert client.nodes() == []
    assert "compression" in [one["keyword"] for one in client.filters()]
    assert "bandwidth" in [one["keyword"] for one in client.known_filters()]
    assert "PUTS_SEC" in [one["name"] for one in client.metrics()]
    assert "DOCS" in [one["term"] for one in client.terms()]
    for call in (lambda: client.forget_node("n"), lambda: client.node("n")):
        with pytest.raises(ApiError) as caught:
            call()
        assert caught.value.status == 404


def test_a_wrong_token_is_401(client, server):
    with Client(server.url, "wrong") as other, pytest.raises(ApiError) as caught:
        other.nodes()
    assert caught.value.status == 401


def test_the_command_line_creates_lists_shows_and_deletes(client, server, token_file, capsys):
    start = ["--url", server.url, "--token-file", str(token_file)]

    def run(*words, status=0):
        assert main([*start, *words]) == status
        return capsys.readouterr()

    (made,) = json.loads(run("--json", "policy", "create", SENTENCE).out)
    assert made["id"] in run("policy", "list").out
    assert "0/0" in run("policy", "show", made["id"]).out
    assert "static" in run("policy", "check", "FOR TENANT AUTH_x DO SET noop").out
    assert "did you mean `compression`" in run("policy", "create", "FOR TENANT a DO SET compresion", status=1).err
    assert "deleted" in run("policy", "delete", made["id"]).out
    assert "404" in run("policy", "show", made["id"], status=1).err
    for words in (("node", "list"), ("filter", "list"), ("metric", "list"), ("health", "show"), ("history", "adopt")):
        assert "".join(run(*words))  # an empty list says so on standard error


def test_a_body_without_length_is_refused_on_the_wire(server, token_file):
    """With gunicorn instead of the test client: a chunked body must not reach a view as an empty one."""
    with socket.create_connection(("127.0.0.1", server.port), 5) as connection:
        connection.sendall(
            b"POST /policies HTTP/1.1\r\nHost: x\r\nX-Auth-Token: " + token_file.read_bytes().strip() + b"\r\n"
            b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
            b"2\r\n{}\r\n0\r\n\r\n"
        )
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 411")
    assert b'"code": 411' in answer


def test_what_a_client_says_of_a_proxy_is_not_believed_by_default(server):
    said = {"X-Forwarded-Host": "example.org", "X-Forwarded-Proto": "https", "X-Forwarded-Prefix": "/x"}
    (version,) = requests.get(f"{server.url}/", headers=said, timeout=10).json()["versions"]
    assert version["links"] == [{"rel": "self", "href": f"{server.url}/"}]


def children(pid):
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_workers_see_no_arguments_and_leave_no_socket_behind(server):
    assert not list(server.folder.glob(".gunicorn/*")), "a control socket would lie here"
    assert len(children(server.pid)) >= 2


def test_a_killed_worker_is_replaced(client, server):
    before = children(server.pid)
    os.kill(before[0], signal.SIGKILL)
    deadline = time.monotonic() + 20
    while len(set(children(server.pid)) - set(before)) < 1:
        assert time.monotonic() < deadline
        assert client.health()["dependencies"]["redis"] == "ok"


def test_sigterm_stops_the_server_and_all_workers(tmp_path, redis_server, token_file):
    server = ApiServer(tmp_path, redis_server.url, token_file)
    with server:
        workers = children(server.pid)
        begun = time.monotonic()
        server.stop()
        assert time.monotonic() - begun < 8
        assert server._child._process.returncode == 0
        assert not any(Path(f"/proc/{worker}").exists() for worker in workers)
    assert "Traceback" not in server.log.read_text()


def test_a_server_that_starts_says_which_registered_names_are_built_in_by_now(tmp_path, redis_server, token_file):
    store = Store(redis_server.url, "older")
    store.commit(Draft("admin", entries=(Metric("ERRORS", unit="count", granularities=("tenant",)).entry(1, "admin"),)))
    with ApiServer(tmp_path, redis_server.url, token_file, "older") as server:
        with Client(server.url, token_file.read_text().strip()) as client:
            (event,) = client.events()
        assert (event["kind"], event["subject"]) == ("name_taken_over", "metric/ERRORS")
        assert "metric `ERRORS` is built in" in server.log.read_text()
    store.close()


def test_a_readable_token_file_prevents_the_start(tmp_path, redis_server):
    token = tmp_path / "token"
    token.write_text("x" * 32)
    token.chmod(0o644)
    server = ApiServer(tmp_path, redis_server.url, token)
    done = subprocess.run(server.argv(), env=server.env(), capture_output=True, text=True, timeout=30)
    assert done.returncode == 1
    assert "mode 0644, expected 0600" in done.stderr


def test_a_missing_server_raises_unreachable(tmp_path):
    with Client(f"http://127.0.0.1:{free_port()}", timeout=1.0) as client, pytest.raises(Unreachable):
        client.create_policy(SENTENCE)
