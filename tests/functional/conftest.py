"""The cluster behind Keystone, and its additions: a motif daemon, isolated filters, an API of its own.

That API has the same Swift and code, and a Redis database that no other process writes. Tests may send it any requests,
so other tests must not depend on its state.
"""

import configparser
import contextlib
from pathlib import Path

import pytest
import redis
from tests.support.cluster.motifs import motif_daemon
from tests.support.cluster.people import shared_cluster
from tests.support.controller.lone_api import LIMITS, LoneApi

from sluice_aio.base.ports import HOST, free_port, probe
from sluice_aio.base.server import Server
from sluice_aio.base.setup import KEYSTONE
from sluice_aio.cluster.components import script
from sluice_aio.conf.sluice import ensure_token
from sluice_controller.config import STATIC
from sluice_core.store.store import Store

#: A Redis has sixteen; the cluster uses the first.
DATABASE = 7


class ApiServer(Server):
    """``sluice-api`` with the configuration in its folder."""

    name = "api"
    patience = 90.0

    def argv(self):
        return [script("sluice-api"), "--config", str(self.folder / "api.conf")]

    def answers(self):
        return probe(self.port, b"GET /health HTTP/1.0\r\n\r\n").split(b" ")[1:2] in ([b"200"], [b"503"])


def write_options(source, target, changes):
    """The API's options in ``source`` with ``changes``, readable by their owner only."""
    parser = configparser.ConfigParser(interpolation=None)
    parser.read(source, encoding="utf-8")
    for name, value in changes.items():
        parser.set("api", name, value)
    target.touch(mode=0o600)
    with target.open("w", encoding="utf-8") as file:
        parser.write(file)
    key_file = parser.get("api", "swift_key_file", fallback="")
    return Path(key_file).read_text(encoding="utf-8").strip() if key_file else None


@pytest.fixture(scope="package")
def cluster():
    with shared_cluster(KEYSTONE) as running:
        yield running


@pytest.fixture(scope="package")
def lone_api(cluster, tmp_path_factory):
    folder, port = tmp_path_factory.mktemp("lone-api"), free_port()
    database = f"{cluster.redis_url.rpartition('/')[0]}/{DATABASE}"
    # with a static token: behind Keystone each odd name would only be requested there, which tests nothing of Sluice
    changes = {"bind": f"{HOST}:{port}", "redis_url": database, "auth": STATIC} | LIMITS
    key = write_options(cluster.layout.configs / "api.conf", folder / "api.conf", changes)
    token = ensure_token(cluster.layout)
    secrets = tuple(filter(None, (token, key)))
    with redis.Redis.from_url(database) as client, ApiServer(port, folder, tied=True) as server:
        api = LoneApi(port, token, client, server.log, secrets)
        yield api
        api.hang_up()


@pytest.fixture
def api_with(cluster, tmp_path):
    """Starts further APIs with options of their own, which stop with the test."""
    with contextlib.ExitStack() as running:

        def start(secret, **options):
            port = free_port()
            folder = tmp_path / f"api-{port}"
            folder.mkdir()
            changes = {"bind": f"{HOST}:{port}", "log_level": "debug"} | options
            write_options(cluster.layout.configs / "api.conf", folder / "api.conf", changes)
            server = running.enter_context(ApiServer(port, folder, tied=True))
            api = LoneApi(port, cluster.token, None, server.log, (secret, cluster.token))
            running.callback(api.hang_up)
            return api

        yield start


@pytest.fixture
def unlogged(lone_api):
    """The API's log lines of a test contain no secret and no traceback."""
    with lone_api.log_checked():
        yield


@pytest.fixture(scope="module")
def store(cluster):
    """The controller's store in the cluster's Redis."""
    with contextlib.closing(Store(cluster.redis_url)) as found:
        yield found


@pytest.fixture(scope="module")
def motifs(cluster):
    """The cluster with a motif daemon."""
    with motif_daemon(cluster):
        yield cluster


@pytest.fixture(scope="module")
def sandbox(cluster):
    """The supervisor of isolated filters."""
    cluster.add(["sandbox"])
    yield
    cluster.remove("sandbox")


@pytest.fixture(scope="module")
def registered(api):
    """Registers and uploads filters, once each."""
    known = {}

    def register(description, code):
        keyword = description["keyword"]
        if keyword not in known:
            api.register_filter(description)
            known[keyword] = api.upload_filter(keyword, code, wait=10)
        return known[keyword]

    yield register
    for keyword in known:
        api.unregister_filter(keyword, force=True)
