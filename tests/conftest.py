"""One whole cluster for all probes that need no other, with a proxy without Sluice over the same storage.

Functional tests have the same one behind Keystone.

A fixture of the scope ``package`` ends with the last test of the package whose ``conftest.py`` brings it, below
``tests/functional`` and ``tests/probe/horizon``; elsewhere, where folders are not packages, with the session.  A
cluster that no test uses any more would take processor time from the tests that follow in its process.
"""

import time

import pytest
from tests.support.cluster.people import shared_cluster, swift_as

from sluice_aio.base.setup import TEMPAUTH
from sluice_client import Client


@pytest.fixture(scope="package")
def cluster():
    with shared_cluster(TEMPAUTH) as running:
        yield running


@pytest.fixture(scope="package")
def api(cluster):
    with Client(cluster.api_url, cluster.token) as made:
        yield made


@pytest.fixture(scope="package")
def swift(cluster):
    """The account AUTH_test behind Sluice."""
    return swift_as(cluster, "test:tester")


@pytest.fixture(scope="package")
def plain(cluster):
    """The account AUTH_test2 behind a proxy without Sluice."""
    return swift_as(cluster, "test2:tester2", cluster.plain_url)


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
    """Wait for another process: call a function every 50 ms until it returns true or the time is over."""

    def wait(question, limit=10.0):
        end = time.monotonic() + limit
        while True:
            answer = question()
            if answer:
                return answer
            assert time.monotonic() < end, f"not within {limit} s: {question}"
            time.sleep(0.05)

    return wait
