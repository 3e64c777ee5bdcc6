"""A konnector as the controller finds and calls it: by its agent's report, over TLS, with a token of Keystone's."""

import http.client
import json
import shutil
import ssl
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from sluice_aio.base.layout import Layout
from sluice_aio.base.setup import KEYSTONE, Setup
from sluice_aio.cluster.cluster import Cluster
from sluice_aio.keystone import seed
from sluice_aio.keystone.http import KeystoneHttp
from sluice_core.store.store import Store


@pytest.fixture(scope="module")
def cluster():
    folder = Path(tempfile.mkdtemp(prefix="sluice-"))
    services = {"keystone", "redis", "rabbit", "agent", "konnector"}
    try:
        with Cluster(Layout.free(folder), services, setup=Setup(auth=KEYSTONE)) as running:
            yield running
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def reported(store):
    return next((one.konnector for one in store.nodes() if one.konnector), "")


def call(layout, url, user, password, project):
    """Status and answer."""
    token = KeystoneHttp(layout.keystone_url).login(user, password, project).id if user else ""
    address = urlsplit(url)
    trusting = ssl.create_default_context(cafile=layout.konnector_certificate)
    connection = http.client.HTTPSConnection(address.netloc, timeout=30, context=trusting)
    try:
        connection.request("GET", address.path, headers={"X-Auth-Token": token} if token else {})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


@pytest.fixture
def store(cluster):
    found = Store(cluster.redis_url)
    yield found
    found.close()


def test_the_url_that_the_agent_reports_answers_to_services_and_administrators_only(cluster, store, eventually):
    layout = cluster.layout
    url = eventually(lambda: reported(store), limit=30)
    service = "sluice", seed.password(layout, "sluice"), seed.SERVICE_PROJECT
    ada, alice = ((name, *seed.PEOPLE[name][:2]) for name in ("ada", "alice"))
    status, found = call(layout, f"{url}/connector", *service)
    assert (status, found["ip"]) == (200, "127.0.0.1")
    assert call(layout, f"{url}/volumes", *ada) == (200, {"volumes": []})
    status, found = call(layout, f"{url}/volumes", *alice)
    assert (status, found["error"]) == (403, "the user of this token has no role `service` or `admin`")
    assert call(layout, f"{url}/volumes", "", "", "")[0] == 401
    cluster.kill("konnector")
    eventually(lambda: not reported(store), limit=30)
