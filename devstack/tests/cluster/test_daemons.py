"""Storage policies, twins and background daemons of a real Swift in a folder."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

import pytest
from tests.support.cluster.daemons import run_daemon

from sluice_aio.base.layout import Layout
from sluice_aio.base.swift_http import SwiftHttp
from sluice_aio.cluster import components, disks
from sluice_aio.cluster.cluster import Cluster
from sluice_aio.cluster.records import Records
from sluice_aio.conf.storage import DAEMONS
from sluice_aio.errors import LaunchError

pytestmark = pytest.mark.functional
BODY = b"fragments and replicas " * 4000


@pytest.fixture(scope="module")
def cluster():
    folder = Path(tempfile.mkdtemp(prefix="sluice-"))
    with Cluster(Layout.free(folder), components.PLAIN_SWIFT) as running:
        yield running
    shutil.rmtree(folder)


@pytest.fixture
def swift(cluster):
    client = SwiftHttp(cluster.plain_url).login("test:tester", "testing")
    for container, policy in (("copies", "gold"), ("pieces", "ec21")):
        assert client.request("PUT", container, x_storage_policy=policy).status in (201, 202)
        assert client.request("PUT", f"{container}/o", BODY).status == 201
    yield client
    client.close()


def sizes(cluster, container):
    return disks.stored_sizes(cluster.device_folders, f"AUTH_test/{container}").get("o", [])


def test_both_storage_policies_are_there_although_nothing_is_in_etc(swift):
    policies = json.loads(swift.raw("GET", "/info", {}).body)["swift"]["policies"]
    assert [one["name"] for one in policies] == ["gold", "ec21"]
    assert [one.get("default", False) for one in policies] == [True, False]


def test_an_object_lies_as_three_copies_or_as_three_fragments_of_which_two_suffice(cluster, swift):
    assert sizes(cluster, "copies") == [len(BODY)] * 3
    fragments = sizes(cluster, "pieces")
    assert len(fragments) == 3
    assert sum(fragments) < 2 * len(BODY)
    for container in ("copies", "pieces"):
        assert swift.request("GET", f"{container}/o").body == BODY


@pytest.mark.parametrize(
    ("daemon", "options", "container"),
    [
        ("object-replicator", {"sync_method": "rsync"}, "copies"),
        ("object-replicator", {"sync_method": "ssync"}, "copies"),
        ("object-reconstructor", {}, "pieces"),
    ],
    ids=["rsync", "ssync", "fragments"],
)
def test_a_lost_disk_is_rebuilt(cluster, swift, daemon, options, container):
    before = sorted(sizes(cluster, container))
    lost = cluster.device_folders[1]
    shutil.rmtree(lost)
    lost.mkdir()
    assert len(sizes(cluster, container)) == 2
    run_daemon(cluster, daemon, options=options, servers=["object1", "object3"])
    assert sorted(sizes(cluster, container)) == before
    assert swift.request("GET", f"{container}/o").body == BODY


@pytest.mark.probe
@pytest.mark.parametrize("daemon", sorted(DAEMONS))
def test_every_daemon_can_do_its_round(cluster, daemon):
    logs = run_daemon(cluster, daemon)
    assert set(logs) == set(DAEMONS[daemon])
    assert not [line for log in logs.values() for line in log.splitlines() if "Traceback" in line]


def test_a_daemon_can_stay_as_a_service(cluster):
    run_daemon(cluster, "object-updater", once=False)
    names = [f"object-updater@object{number}" for number in (1, 2, 3)]
    assert all(cluster.process(name).alive() for name in names)
    processes = [cluster.process(name) for name in names]
    for name in names:
        cluster.remove(name)
    assert not any(process.alive() for process in processes)
    assert not Records(cluster.layout.run).load().keys() & set(names)


def test_a_twin_with_swifts_own_encryption_can_be_added(cluster, swift):
    cluster.add({"encrypted"})
    twin = SwiftHttp(cluster.layout.url("encrypted")).login("test2:tester2", "testing2")
    twin.request("PUT", "hidden")
    assert twin.request("PUT", "hidden/o", BODY).status == 201
    assert twin.request("GET", "hidden/o").body == BODY
    plain = SwiftHttp(cluster.plain_url).login("test2:tester2", "testing2")
    stored = plain.request("GET", "hidden/o").body
    assert len(stored) == len(BODY)
    assert stored != BODY


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"name": "object-eraser"}, "no daemon `object-eraser`, expected one of account-auditor"),
        ({"name": "object-auditor", "servers": ["account"]}, "no object-auditor on `account`"),
        ({"name": "object-expirer", "arguments": ["--no-such-option"]}, r"ended with status 2: [\s\S]*no-such-option"),
    ],
)
def test_a_daemon_that_cannot_run_is_refused_with_a_sentence(cluster, arguments, said):
    with pytest.raises(LaunchError, match=said):
        run_daemon(cluster, **arguments)
