"""Transformed disk files in a real cluster: clients, every daemon, lost disks, missing keys, removal of Sluice."""

import json
import os
import shutil
import tempfile
import time
from pathlib import Path

import pytest
from tests.support.cluster import object_files
from tests.support.cluster.daemons import run_daemon

from sluice_agent.snapshot.storage_daemons import STATE_FILE
from sluice_aio.base.layout import OBJECT_DEVICES, Layout
from sluice_aio.base.setup import EC21, GOLD, KEYS, PROXY, READS, Setup
from sluice_aio.base.swift_http import SwiftHttp
from sluice_aio.cluster.cluster import Cluster
from sluice_aio.conf.swift import write_swift
from sluice_client import Client
from sluice_core.messages.nodes import STORAGE_STATE_SUFFIX, StorageState
from sluice_middleware.object_server.diskfile.cli import main
from sluice_middleware.object_server.diskfile.rewrite import data_files
from sluice_middleware.object_server.diskfile.stored_metadata import ENTRY
from sluice_middleware.swift.diskfile_api import read_metadata

BODY = b"a line of text that compresses well\n" * 40_000
#: Stock storage nodes behind proxies with Sluice.
STOCK = Setup(parts=frozenset({PROXY, READS, KEYS}))
SENTENCE = "FOR TENANT AUTH_test DO SET compression ON STORAGE_NODE, SET encryption ON STORAGE_NODE"


@pytest.fixture(scope="module")
def disk_cluster():
    folder = Path(tempfile.mkdtemp(prefix="sluice-"))
    try:
        with Cluster(Layout.free(folder)) as running:
            yield running
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def client(disk_cluster):
    return SwiftHttp(disk_cluster.proxy_url).login("test:tester", "testing")


@pytest.fixture
def stranger(disk_cluster):
    """Another tenant, without policies."""
    return SwiftHttp(disk_cluster.proxy_url).login("test2:tester2", "testing2")


@pytest.fixture(scope="module")
def control(disk_cluster):
    """The API."""
    with Client(disk_cluster.api_url, disk_cluster.token) as made:
        yield made


@pytest.fixture(scope="module")
def transformed(disk_cluster, control):
    """The policy holds, and one object is in each storage policy."""
    made = control.create_policy(SENTENCE, wait=20)
    assert made["enforced"]["nodes"] == made["enforced"]["total"] == 1, made
    client = SwiftHttp(disk_cluster.proxy_url).login("test:tester", "testing")
    for container in (GOLD, EC21):
        assert client.request("PUT", container, x_storage_policy=container).status in (201, 202)
        assert client.request("PUT", f"{container}/o", BODY, content_type="text/plain").status == 201
    yield made["id"]
    control.delete_policy(made["id"])


def devices(cluster):
    return sorted(one for name in OBJECT_DEVICES for one in (cluster.layout.devices / name).iterdir() if one.is_dir())


def files(cluster, policy=""):
    """Current data files → whether they are transformed."""
    found = {}
    for device in devices(cluster):
        for path in data_files(device):
            if not policy or path.parents[3].name == {GOLD: "objects", EC21: "objects-1"}[policy]:
                found[path] = ENTRY in read_metadata(str(path))
    return found


def quarantined(cluster):
    return object_files.quarantined(devices(cluster))


def audit(cluster):
    run_daemon(cluster, "object-auditor")


def readable(cluster):
    client = SwiftHttp(cluster.proxy_url).login("test:tester", "testing")
    for container in (GOLD, EC21):
        found = client.request("GET", f"{container}/o")
        assert (found.status, found.body == BODY) == (200, True)
        part = client.request("GET", f"{container}/o", range="bytes=700000-700009")
        assert (part.status, part.body) == (206, BODY[700_000:700_010])


def test_clients_see_plain_objects_and_disks_hold_others(disk_cluster, client, transformed):
    readable(disk_cluster)
    for container, count in ((GOLD, 3), (EC21, 3)):
        found = files(disk_cluster, container)
        assert list(found.values()) == [True] * count
        assert all(path.stat().st_size < len(BODY) // 20 for path in found)
        head = client.request("HEAD", f"{container}/o")
        assert head.headers["content-length"] == str(len(BODY))
        assert not [name for name in head.headers if "sluice" in name]
        (row,) = client.listing(container)
        assert (row["bytes"], row["hash"]) == (len(BODY), head.headers["etag"].strip('"'))
    assert quarantined(disk_cluster) == []


def test_daemons_find_nothing_wrong_and_all_that_is_damaged(disk_cluster, transformed):
    for name in ("object-auditor", "object-replicator", "object-reconstructor", "object-updater"):
        run_daemon(disk_cluster, name)
    assert quarantined(disk_cluster) == []
    memory = StorageState.decode((disk_cluster.layout.snapshots / STATE_FILE).read_bytes())
    assert set(memory.daemons) == {"object-server", "object-auditor", "object-replicator", "object-reconstructor"}
    victims = [next(iter(files(disk_cluster, policy))) for policy in (GOLD, EC21)]
    for path in victims:
        with open(path, "r+b") as file:
            file.seek(path.stat().st_size // 2)
            byte = file.read(1)[0]
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte ^ 1]))
    audit(disk_cluster)
    assert sorted(one.name for one in quarantined(disk_cluster)) == sorted(path.parent.name for path in victims)
    readable(disk_cluster)
    healed(disk_cluster, {})
    for one in quarantined(disk_cluster):
        shutil.rmtree(one)


def healed(cluster, options):
    """Replicator and reconstructor restore missing files, encoded as before."""
    run_daemon(cluster, "object-replicator", options=options)
    run_daemon(cluster, "object-reconstructor")
    for policy in (GOLD, EC21):
        assert list(files(cluster, policy).values()) == [True] * 3
    readable(cluster)


@pytest.mark.parametrize("method", ["rsync", "ssync"])
def test_a_lost_disk_is_rebuilt(disk_cluster, transformed, method):
    lost = disk_cluster.layout.devices / next(iter(OBJECT_DEVICES))
    for device in [one for one in devices(disk_cluster) if one.parent == lost]:
        for objects in device.glob("objects*"):
            shutil.rmtree(objects)
    readable(disk_cluster)
    healed(disk_cluster, {"sync_method": method})
    audit(disk_cluster)
    assert quarantined(disk_cluster) == []


def test_a_refusal_is_a_503_with_the_reason_and_hurts_nobody_else(disk_cluster, client, stranger, transformed):
    verdict = Path(f"{disk_cluster.layout.agent_socket}{STORAGE_STATE_SUFFIX}")
    before = verdict.read_bytes()
    stranger.request("PUT", "theirs")
    verdict.with_suffix(".new").write_bytes(StorageState({}, ("object-auditor",)).encode())
    verdict.with_suffix(".new").replace(verdict)
    try:
        for number in range(15):
            answer = client.request("PUT", f"{GOLD}/refused", BODY, content_type="text/plain")
            assert answer.status == 503
            assert b"object-auditor" in answer.body
            assert client.request("PUT", f"{EC21}/refused", BODY, content_type="text/plain").status == 503
            assert stranger.request("PUT", f"theirs/o{number}", b"text").status == 201
        for container in (GOLD, EC21):
            assert client.request("GET", f"{container}/refused").status == 404
        readable(disk_cluster)
    finally:
        verdict.with_suffix(".new").write_bytes(before)
        verdict.with_suffix(".new").replace(verdict)
    assert client.request("PUT", f"{GOLD}/refused", BODY, content_type="text/plain").status == 201
    assert client.request("DELETE", f"{GOLD}/refused").status == 204


def test_a_missing_key_is_one_tenants_trouble(disk_cluster, client, stranger, transformed):
    keys = disk_cluster.layout.key_file
    before = keys.read_bytes()
    stranger.request("PUT", "theirs")
    assert stranger.request("PUT", "theirs/o", b"text").status == 201
    write_private(keys, json.dumps({"active": "", "keys": {}}).encode())
    for name in OBJECT_DEVICES:
        disk_cluster.restart(name)  # a ring that was read stays in memory, whatever happens to its file
    try:
        for _ in range(100):
            assert client.request("GET", f"{GOLD}/o").status == 503
            assert stranger.request("GET", "theirs/o").body == b"text"
        answer = client.request("GET", f"{GOLD}/o")
        assert b"no key" in answer.body
        assert client.request("GET", f"{EC21}/o").status == 503
        assert client.request("HEAD", f"{GOLD}/o").status == 200
        audit(disk_cluster)
        assert quarantined(disk_cluster) == []
    finally:
        write_private(keys, before)
    time.sleep(1.1)  # a key file is read once a second
    readable(disk_cluster)


def write_private(path, content):
    fresh = path.with_name("keys.new")
    fresh.write_bytes(content)
    fresh.chmod(0o600)
    fresh.replace(path)


def read_name(path):
    return read_metadata(str(path))["name"].encode()


def become(cluster, setup):
    """The object servers with another configuration."""
    write_swift(cluster.layout, setup)
    for name in OBJECT_DEVICES:
        cluster.restart(name)


def test_after_unwinding_a_stock_node_reads_everything(disk_cluster, client, transformed):
    conf = disk_cluster.layout.swift_dir / f"{next(iter(OBJECT_DEVICES))}.conf"
    paths = [str(one) for one in devices(disk_cluster)]
    assert main(["--config", str(conf), "unwind", *paths]) == 0
    assert not any(files(disk_cluster).values())
    readable(disk_cluster)
    audit(disk_cluster)
    become(disk_cluster, STOCK)
    readable(disk_cluster)
    run_daemon(disk_cluster, "object-auditor")
    run_daemon(disk_cluster, "object-replicator")
    assert quarantined(disk_cluster) == []
    readable(disk_cluster)


def test_a_policy_waits_until_every_node_has_our_disk_files(disk_cluster, client, control, transformed, eventually):
    """The way in, for nodes without transformed objects."""
    become(disk_cluster, STOCK)
    (disk_cluster.layout.snapshots / STATE_FILE).unlink()
    disk_cluster.restart("agent")
    refused = eventually(lambda: control.policy(transformed)["enforced"]["refused"], 30.0)
    assert "object-server (restart them" in json.dumps(refused)
    assert client.request("PUT", f"{GOLD}/waiting", BODY, content_type="text/plain").status == 201
    before = files(disk_cluster, GOLD)
    assert [found for path, found in before.items() if b"waiting" in read_name(path)] == [False] * 3
    become(disk_cluster, Setup())
    eventually(lambda: not control.policy(transformed)["enforced"]["refused"], 30.0)
    assert client.request("PUT", f"{GOLD}/after", BODY, content_type="text/plain").status == 201
    after = {path: found for path, found in files(disk_cluster, GOLD).items() if path not in before}
    assert list(after.values()) == [True] * 3
    assert client.request("GET", f"{GOLD}/after").body == client.request("GET", f"{GOLD}/waiting").body == BODY
