"""The controller finds a konnector by its agent's report, and calls it over TLS, with a token of Keystone's."""

import http.client
import json
import ssl
from urllib.parse import urlsplit

import pytest

from sluice_aio.keystone import seed
from sluice_aio.keystone.http import KeystoneHttp
from sluice_core.store.store import Store


def reported(store):
    return next((one.konnector for one in store.nodes() if one.konnector), "")


def call(layout, url, user, password, project):
    """Status and body of a call."""
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
def store(volumes_cluster):
    found = Store(volumes_cluster.redis_url)
    yield found
    found.close()


def test_the_url_that_the_agent_reports_answers_to_services_and_administrators_only(volumes_cluster, store, eventually):
    layout = volumes_cluster.layout
    url = eventually(lambda: reported(store), limit=30)
    service = "sluice", seed.password(layout, "sluice"), seed.SERVICE_PROJECT
    ada, alice = ((name, *seed.PEOPLE[name][:2]) for name in ("ada", "alice"))
    status, found = call(layout, f"{url}/connector", *service)
    assert (status, found["ip"]) == (200, "127.0.0.1")
    assert call(layout, f"{url}/volumes", *ada) == (200, {"volumes": []})
    status, found = call(layout, f"{url}/volumes", *alice)
    assert (status, found["error"]) == (403, "the user of this token has no role `service` or `admin`")
    assert call(layout, f"{url}/volumes", "", "", "")[0] == 401
    volumes_cluster.kill("konnector")
    try:
        eventually(lambda: not reported(store), limit=30)
    finally:
        volumes_cluster.restart("konnector")
