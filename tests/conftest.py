"""One whole cluster for all functional tests, with a proxy without Sluice over the same storage."""

import shutil
import tempfile
import time
from pathlib import Path

import pytest

from sluice_aio.base.layout import Layout
from sluice_aio.base.setup import Setup
from sluice_aio.base.swift_http import SwiftHttp
from sluice_aio.cluster.cluster import Cluster
from sluice_client import Client


@pytest.fixture(scope="session")
def cluster():
    folder = Path(tempfile.mkdtemp(prefix="sluice-"))
    try:
        # its nodes hear what a CollectD would send
        setup = Setup(agent_options={"agent": {"collectd": "true"}})
        with Cluster(Layout.free(folder), plain=True, setup=setup) as running:
            yield running
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def api(cluster):
    with Client(cluster.api_url, cluster.token) as made:
        yield made


@pytest.fixture(scope="session")
def swift(cluster):
    """The account AUTH_test behind Sluice."""
    return SwiftHttp(cluster.proxy_url).login("test:tester", "testing")


@pytest.fixture(scope="session")
def plain(cluster):
    """The account AUTH_test2 behind a proxy without Sluice."""
    return SwiftHttp(cluster.plain_url).login("test2:tester2", "testing2")


@pytest.fixture
def policies(api):
    """Creates policies, waits until they are enforced, and deletes them afterwards."""
    made = []

    def create(sentence):
        created = api.create_policy(sentence, wait=10)
        made.append(created["id"])
        assert created["enforced"]["nodes"] == created["enforced"]["total"] >= 1, created
        return created

    yield create
    for policy_id in made:
        api.delete_policy(policy_id)


@pytest.fixture(scope="session")
def eventually():
    """Waits for something that another process does: asks every 50 ms until true or too late."""

    def wait(question, limit=10.0):
        end = time.monotonic() + limit
        while True:
            answer = question()
            if answer:
                return answer
            assert time.monotonic() < end, f"not within {limit} s: {question}"
            time.sleep(0.05)

    return wait
