"""Fixtures of the dashboard's tests: Horizon on a whole cluster, or before an API whose answers a test writes."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from sluice_aio.base.layout import Layout
from sluice_aio.base.setup import KEYSTONE, Setup
from sluice_aio.cluster.cluster import Cluster
from sluice_aio.cluster.components import DEFAULT


@pytest.fixture(scope="package")
def horizon_cluster():
    """A cluster with Keystone and Horizon; `dashboard` is a browser on it."""
    folder = Path(tempfile.mkdtemp(prefix="sluice-"))
    # its nodes receive the messages that a CollectD would send
    listens = {"agent": {"collectd": "true"}}
    setup = Setup(auth=KEYSTONE, api_options={"self_service": "compression, noop"}, agent_options=listens)
    try:
        with Cluster(Layout.free(folder), DEFAULT | {"horizon"}, setup=setup) as running:
            yield running
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="package")
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
    """A new tab on a Horizon whose API returns the responses of `fake_api`."""
    from tests.support.browser.dashboard import Dashboard

    tab = Dashboard(chromium, horizon_alone[0], pictures)
    yield tab
    tab.page.close()
