"""All tests of the tempest plugin, two at a time, on a cloud with other data, which they do not change."""

import shutil
import tempfile
from pathlib import Path

import pytest
from tests.support.tempest_run import FEATURES, PLUGIN, SKIPPED, SUCCESS, Tempest

from sluice_aio.base.layout import Layout
from sluice_aio.base.setup import KEYSTONE, Setup
from sluice_aio.cluster.cluster import Cluster
from sluice_aio.keystone import seed
from sluice_aio.keystone.http import KeystoneHttp
from sluice_client import Client

#: Settings of another user.
OTHERS = ("FOR TENANT acme DO SET noop", "FOR GROUP umbrellas WHEN PUTS_SEC > 100 DO SET compression TRANSIENT")


@pytest.fixture(scope="module")
def cluster():
    folder = Path(tempfile.mkdtemp(prefix="sluice-"))
    setup = Setup(auth=KEYSTONE, api_options={"self_service": "compression", "workers": "1"})
    try:
        with Cluster(Layout.free(folder), setup=setup) as running:
            yield running
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def keystone(cluster):
    found = KeystoneHttp(cluster.keystone_url)
    found.token = found.login(seed.ADMIN, seed.password(cluster.layout, seed.ADMIN), "admin").id
    return found


@pytest.fixture(scope="module")
def api(cluster, keystone):
    with Client(cluster.api_url, keystone.token) as made:
        made.collection("/registry/gtenants").create({"name": "umbrellas", "tenants": ["umbrella"]})
        for sentence in OTHERS:
            made.create_policy(sentence)
        yield made


@pytest.fixture
def what_there_is(api, keystone):
    """A function that returns the whole configuration, and the names of all projects and users."""

    def look():
        names = {
            kind: {one["name"] for one in keystone.call("GET", f"/{kind}")[kind]} for kind in ("projects", "users")
        }
        return api.export(), names

    return look


def test_every_test_passes_and_leaves_the_cloud_as_it_was(cluster, what_there_is, tmp_path):
    before = what_there_is()
    tempest = Tempest(cluster, tmp_path, dict.fromkeys(FEATURES, "true"))
    assert PLUGIN in tempest.plugins()
    outcomes, said = tempest.run()
    assert {one.status for one in outcomes} == {SUCCESS}, said
    assert len(outcomes) > 30, said
    assert what_there_is() == before


def test_what_a_cloud_does_not_have_is_skipped(cluster, tmp_path):
    tempest = Tempest(cluster, tmp_path, dict.fromkeys(FEATURES, "false"))
    outcomes, said = tempest.run(
        rf"{PLUGIN}\.tests\.(api\.test_self_service|scenario\.test_(compressed_object|uploaded_filter))"
    )
    assert {one.status for one in outcomes} == {SKIPPED}, said
