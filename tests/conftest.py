"""One whole cluster for all probes that need no other, with a proxy without Sluice over the same storage.

Functional tests have the same one behind Keystone.

Tests of the dashboard share one with Keystone and Horizon, or Horizon before an API whose answers they write.
"""

import os
import shutil
import tempfile
import time
from pathlib import Path

import pytest
from tests.support.cluster.people import shared_cluster, swift_as

from sluice_aio.base.layout import Layout
from sluice_aio.base.setup import KEYSTONE, TEMPAUTH, Setup
from sluice_aio.cluster.cluster import Cluster
from sluice_aio.cluster.components import DEFAULT
from sluice_client import Client


@pytest.fixture(scope="session")
def cluster():
    with shared_cluster(TEMPAUTH) as running:
        yield running


@pytest.fixture(scope="session")
def api(cluster):
    with Client(cluster.api_url, cluster.token) as made:
        yield made


@pytest.fixture(scope="session")
def swift(cluster):
    """The account AUTH_test behind Sluice."""
    return swift_as(cluster, "test:tester")


@pytest.fixture(scope="session")
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


@pytest.fixture(scope="session")
def horizon_cluster():
    """A cluster with Keystone and Horizon; `dashboard` is a browser on it."""
    folder = Path(tempfile.mkdtemp(prefix="sluice-"))
    # its nodes hear what a CollectD would send
    listens = {"agent": {"collectd": "true"}}
    setup = Setup(auth=KEYSTONE, api_options={"self_service": "compression, noop"}, agent_options=listens)
    try:
        with Cluster(Layout.free(folder), DEFAULT | {"horizon"}, setup=setup) as running:
            yield running
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def horizon_alone():
    """Keystone and Horizon, and an API whose answers a test writes; `fake_dashboard` is a browser on it."""
    from tests.support.browser.dashboard import add_to_catalogue
    from tests.support.browser.fake_api import FakeApi

    layout = Layout.free(Path(tempfile.mkdtemp(prefix="sluice-")))
    setup = Setup(auth=KEYSTONE, parts=frozenset())
    try:
        with FakeApi(layout.ports["api"]) as api, Cluster(layout, {"keystone", "horizon"}, setup=setup):
            add_to_catalogue(layout, "volumev3")
            yield layout, api
    finally:
        shutil.rmtree(layout.folder, ignore_errors=True)


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    """A browser for the tests of a module: its event loop must not meet those of other modules."""
    from tests.support.browser.browser import browser

    with browser(tmp_path_factory.mktemp("chromium")) as context:
        yield context


@pytest.fixture(scope="session")
def pictures(tmp_path_factory):
    """Where screenshots go: `$SLUICE_PICTURES`, else the run's folder."""
    chosen = os.environ.get("SLUICE_PICTURES")
    return Path(chosen) if chosen else tmp_path_factory.mktemp("pictures")


@pytest.fixture
def dashboard(horizon_cluster, chromium, pictures):
    """A new tab on the cluster's Horizon."""
    from tests.support.browser.dashboard import Dashboard

    tab = Dashboard(chromium, horizon_cluster.layout, pictures)
    yield tab
    tab.page.close()


@pytest.fixture
def fake_api(horizon_alone):
    """The API behind `fake_dashboard`; at first its cluster is well."""
    from tests.support.browser.answers import well

    api = horizon_alone[1]
    api.reset()
    well(api)
    return api


@pytest.fixture
def fake_dashboard(horizon_alone, fake_api, chromium, pictures):
    """A new tab on a Horizon whose API answers what `fake_api` is told."""
    from tests.support.browser.dashboard import Dashboard

    tab = Dashboard(chromium, horizon_alone[0], pictures)
    yield tab
    tab.page.close()
