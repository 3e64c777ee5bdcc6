"""One API with a real Cinder and a konnector for tests of volumes, which may send it any requests."""

import shutil
import tempfile
from pathlib import Path

import pytest
import redis
from tests.support.controller.lone_api import LIMITS, LoneApi

from sluice_aio.base.layout import Layout
from sluice_aio.base.setup import KEYSTONE, Setup
from sluice_aio.cluster.cluster import Cluster
from sluice_aio.keystone import seed
from sluice_aio.keystone.http import KeystoneHttp


@pytest.fixture(scope="package")
def volumes_cluster():
    folder = Path(tempfile.mkdtemp(prefix="sluice-"))
    setup = Setup(parts=frozenset(), auth=KEYSTONE, api_options={"workers": "1", **LIMITS})
    services = {"redis", "rabbit", "agent", "actors", "api", "cinder", "konnector"}
    try:
        with Cluster(Layout.free(folder), services, setup=setup) as running:
            yield running
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def volumes_api(volumes_cluster, eventually):
    """The API for an administrator of Keystone's, once an actor host has found Cinder's pools."""
    layout = volumes_cluster.layout
    passwords = seed.password(layout, seed.ADMIN), seed.password(layout, "sluice")
    token = KeystoneHttp(layout.keystone_url).login(seed.ADMIN, passwords[0], seed.ADMIN).id
    log = layout.logs / "api.log"
    with redis.Redis.from_url(volumes_cluster.redis_url) as client:
        api = LoneApi(layout.ports["api"], token, client, log, (token, *passwords))
        eventually(lambda: api.ask("GET", "/volumes/pools").json()["pools"], 30)
        yield api
        api.hang_up()


@pytest.fixture
def unlogged(volumes_api):
    """The API's log lines of a test contain no secret and no traceback."""
    with volumes_api.log_checked():
        yield
