"""Data that Sluice of commit df949eb wrote, before its modules were renamed: see README.md."""

import base64
import gzip
import http.client
import json
from pathlib import Path

import pytest
import redis

from sluice_aio.base.backing_servers import RedisServer
from sluice_aio.base.ports import HOST, free_port, probe
from sluice_aio.base.server import Server
from sluice_aio.cluster.components import script

RECORDED = Path(__file__).with_name("recorded")


def read(name):
    return json.loads(gzip.decompress((RECORDED / f"{name}.json.gz").read_bytes()))


def restore(client, state):
    """Write the recorded keys into an empty Redis."""
    raw = base64.b64decode
    for key, (kind, value) in state.items():
        if kind == "string":
            client.set(key, raw(value))
        elif kind == "hash":
            client.hset(key, mapping={raw(name): raw(data) for name, data in value})
        elif kind == "set":
            client.sadd(key, *map(raw, value))
        elif kind == "zset":
            client.zadd(key, {raw(member): score for member, score in value})
        elif kind == "stream":
            for entry, fields in value:
                client.xadd(key, {raw(name): raw(data) for name, data in fields}, id=entry)
        else:
            raise AssertionError(f"no way to restore a {kind}")


class ApiServer(Server):
    """``sluice-api`` with the configuration in its folder."""

    name = "api"
    patience = 60.0

    def argv(self):
        return [script("sluice-api"), "--config", str(self.folder / "api.conf")]

    def answers(self):
        return probe(self.port, b"GET /health HTTP/1.0\r\n\r\n").split(b" ")[1:2] in ([b"200"], [b"503"])


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory):
    """A Redis that holds the recorded state."""
    with RedisServer(free_port(), tmp_path_factory.mktemp("redis"), tied=True) as server:
        with redis.Redis.from_url(server.url) as client:
            restore(client, read("redis"))
        yield server.url


@pytest.fixture(scope="session")
def get(redis_url, tmp_path_factory):
    """A function that requests a path from ``sluice-api`` over the recorded state and returns the decoded response."""
    folder, port = tmp_path_factory.mktemp("api"), free_port()
    token = folder / "token"
    token.touch(mode=0o600)
    token.write_text("a-token-of-the-compatibility-tests\n")
    (folder / "api.conf").write_text(
        f"[api]\nbind = {HOST}:{port}\nredis_url = {redis_url}\ntoken_file = {token}\nauth = token\n"
    )

    def ask_api(path):
        connection = http.client.HTTPConnection(HOST, port, timeout=60)
        try:
            connection.request("GET", path, headers={"X-Auth-Token": token.read_text().strip()})
            response = connection.getresponse()
            body = response.read()
            assert response.status == 200, (path, response.status, body)
            return (
                json.loads(body) if response.getheader("Content-Type").startswith("application/json") else body.decode()
            )
        finally:
            connection.close()

    with ApiServer(port, folder, tied=True):
        yield ask_api
