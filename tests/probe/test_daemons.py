"""Swift's background daemons over objects that were compressed and encrypted on the storage nodes.

They are stock daemons with Sluice's disk files: they do not touch good files, quarantine damaged ones, and
restore lost ones, to the same bytes for clients and as small as before on the disks.
"""

import hashlib
import json
import os
import random
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from tests.support.cluster.container_databases import container_databases
from tests.support.cluster.daemons import run_daemon, run_round
from tests.support.cluster.object_files import file_metadata, flip_bit, object_files, quarantined

from sluice_aio.base.layout import OBJECT_DEVICES, Layout
from sluice_aio.base.setup import EC21, GOLD
from sluice_aio.base.swift_http import SwiftHttp
from sluice_aio.cluster.cluster import Cluster
from sluice_aio.cluster.components import swift_command
from sluice_aio.cluster.disks import data_files
from sluice_client import Client
from sluice_middleware.object_server.diskfile.stored_metadata import ENTRY

SENTENCE = "FOR TENANT AUTH_test DO SET compression ON STORAGE_NODE, SET encryption ON STORAGE_NODE"
TEXT = b"".join(b"%d: a line that compresses\n" % number for number in range(50_000))
NOISE = random.Random(11).randbytes(300_000)
FOLDERS = {GOLD: "objects", EC21: "objects-1"}


class Box:
    """A cluster with objects of all kinds in one container per storage policy."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.client = SwiftHttp(cluster.proxy_url).login("test:tester", "testing")
        for container in FOLDERS:
            self._fill(container)
        self._before = self.seen()

    def put(self, path, body, **headers):
        assert self.client.request("PUT", path, body, **headers).status == 201

    def _fill(self, container):
        assert self.client.request("PUT", container, x_storage_policy=container).status in (201, 202)
        self.put(f"{container}/text", TEXT, content_type="text/plain")
        self.put(f"{container}/noise", NOISE)
        self.put(f"{container}/tiny", b"tiny")
        self.put(f"{container}/empty", b"")
        self.put(f"{container}/posted", TEXT[:100_000], x_object_meta_colour="blue")
        assert self.client.request("POST", f"{container}/posted", x_object_meta_colour="red").status == 202
        self.put(f"{container}/kept until tomorrow", TEXT[5000:200_000], x_delete_after="86400")
        self.put(f"{container}/gone", TEXT[:50_000])
        assert self.client.request("DELETE", f"{container}/gone").status == 204
        parts = []
        for number, part in enumerate((TEXT, NOISE)):
            self.put(f"{container}/part{number}", part)
            parts.append({"path": f"{container}/part{number}", "size_bytes": len(part)})
        target = f"{self.client.account}/{container}/large?multipart-manifest=put"
        headers = {"X-Auth-Token": self.client.token}
        assert self.client.raw("PUT", target, headers, json.dumps(parts).encode()).status == 201

    def seen(self, container=""):
        """All that a client can see of the objects (of one container)."""
        found = {}
        for box in [container] if container else FOLDERS:
            for row in self.client.listing(box):
                path = f"{box}/{row['name']}"
                answer, part = self.client.request("GET", path), self.client.request("GET", path, range="bytes=-500")
                assert self.client.request("HEAD", path).headers.get("etag") == answer.headers.get("etag"), path
                headers = {name: answer.headers.get(name) for name in ("etag", "content-length", "content-type")}
                colour = answer.headers.get("x-object-meta-colour")
                found[path] = (answer.status, answer.body, part.status, part.body, headers, colour, row["hash"])
        return found

    def unchanged(self, container=""):
        wanted = {path: what for path, what in self._before.items() if path.startswith(container)}
        now = self.seen(container)
        assert {path for path in wanted if now.get(path) != wanted[path]} == set()

    def files(self, container):
        """All current files by name → their sizes and blocks on each device."""
        found = {}
        for server, device in OBJECT_DEVICES.items():
            root = self.cluster.layout.devices / server / device / FOLDERS[container]
            for path in root.glob("*/*/*/*"):
                # fragments are named by their number
                name = f"{path.parent.name}/{path.name.partition('#')[0]}{path.suffix}"
                found.setdefault(name, {})[server] = path.stat()
        return found

    def quarantined(self):
        return sorted(path.name for path in quarantined(self.cluster.device_folders))

    def round(self, name, **given):
        return run_round(self.cluster, name, **given)


@pytest.fixture(scope="module")
def box():
    folder = Path(tempfile.mkdtemp(prefix="sluice-"))
    try:
        with Cluster(Layout.free(folder)) as cluster, Client(cluster.api_url, cluster.token) as api:
            made = api.create_policy(SENTENCE, wait=20)
            assert made["enforced"]["nodes"] == made["enforced"]["total"] == 1, made
            found = Box(cluster)
            found.api, found.policy = api, made["id"]
            yield found
    finally:
        shutil.rmtree(folder, ignore_errors=True)


ROUNDS = [
    ("object-replicator", {"options": {"sync_method": "rsync"}}),
    ("object-replicator", {"options": {"sync_method": "ssync"}}),
    ("object-reconstructor", {}),
    ("object-auditor", {}),
    ("object-auditor", {"arguments": ["-z", "1000"]}),
    ("object-updater", {}),
    ("object-expirer", {"options": {"dequeue_from_legacy": "true"}}),
    ("container-replicator", {}),
    ("container-sharder", {}),
]


def test_a_round_of_every_daemon_harms_nothing(box):
    transformed = [ENTRY in file_metadata(path) for path in data_files(box.cluster.device_folders)]
    assert transformed.count(True) >= 2 * 3 * 7
    before = {container: box.files(container).keys() for container in FOLDERS}
    for name, given in ROUNDS:
        box.round(name, **given)
    assert box.quarantined() == []
    assert {container: box.files(container).keys() for container in FOLDERS} == before
    box.unchanged()


@pytest.mark.parametrize(
    ("daemon", "options", "container"),
    [
        ("object-replicator", {"sync_method": "rsync"}, GOLD),
        ("object-replicator", {"sync_method": "ssync"}, GOLD),
        ("object-reconstructor", {}, EC21),
    ],
    ids=["rsync", "ssync", "fragments"],
)
def test_a_lost_disk_is_rebuilt_as_small_as_it_was(box, daemon, options, container):
    before = box.files(container)
    lost, *others = OBJECT_DEVICES
    for partition in folder_of(box, lost, container).iterdir():
        shutil.rmtree(partition) if partition.is_dir() else partition.unlink()
    box.unchanged(container)
    box.round(daemon, options=options, servers=others)
    after = box.files(container)
    assert after.keys() == before.keys()
    for name, places in after.items():
        assert places.keys() == before[name].keys(), name
        # another salt and other padding, but not of the plain size
        assert places[lost].st_size <= before[name][lost].st_size + 64, name
        assert places[lost].st_blocks <= before[name][lost].st_blocks + 8, name
    (text,) = (path for path in object_files([device_of(box, lost)], f"AUTH_test/{container}/text"))
    assert text.stat().st_blocks * 512 < len(TEXT) // 4
    without = [others] if container == GOLD else [[one] for one in others]  # two fragments must be left
    for servers in without:
        taken_away(box, servers, container)
    assert box.quarantined() == []


def device_of(box, server):
    return box.cluster.layout.device(server)


def folder_of(box, server, container):
    return device_of(box, server) / FOLDERS[container]


def taken_away(box, servers, container):
    """All objects can be read without the files on ``servers``."""
    for server in servers:
        folder_of(box, server, container).rename(device_of(box, server) / "away")
    try:
        box.unchanged(container)
    finally:
        for server in servers:
            shutil.rmtree(folder_of(box, server, container), ignore_errors=True)
            (device_of(box, server) / "away").rename(folder_of(box, server, container))


def cut(path):
    os.truncate(path, path.stat().st_size - 1)


def emptied(path):
    os.truncate(path, 0)


def lengthened(path):
    with open(path, "ab") as file:
        file.write(b"\0")


def other_metadata(path):
    value = os.getxattr(path, "user.swift.metadata")
    place = value.index(ENTRY.encode()) + len(ENTRY) + 20
    os.setxattr(path, "user.swift.metadata", value[:place] + bytes([value[place] ^ 1]) + value[place + 1 :])


DAMAGES = {
    "text": lambda path: flip_bit(path, 0),
    "noise": lambda path: flip_bit(path, 123_456),
    "tiny": lambda path: flip_bit(path, -1),
    "posted": cut,
    "part0": emptied,
    "part1": lengthened,
    "kept until tomorrow": other_metadata,
}


def test_every_damaged_byte_is_put_away_and_repaired(box):
    before = {container: box.files(container).keys() for container in FOLDERS}
    victims = []
    for container in FOLDERS:
        for number, (name, damage) in enumerate(DAMAGES.items()):
            victim = object_files(box.cluster.device_folders, f"AUTH_test/{container}/{name}")[number % 3]
            damage(victim)
            victims.append(victim)
    run_daemon(box.cluster, "object-auditor")
    assert box.quarantined() == sorted(victim.parent.name for victim in victims)
    assert not any(victim.exists() for victim in victims)
    box.unchanged()
    for daemon in ("object-replicator", "object-reconstructor"):
        run_daemon(box.cluster, daemon)
    assert {container: box.files(container).keys() for container in FOLDERS} == before
    assert all(len(places) == 3 for container in FOLDERS for places in box.files(container).values())
    for device in box.cluster.device_folders:
        shutil.rmtree(device / "quarantined", ignore_errors=True)
    box.round("object-auditor")
    assert box.quarantined() == []
    box.unchanged()


def test_listings_that_come_late_are_those_of_plain_objects(box):
    for container in FOLDERS:
        assert box.client.request("HEAD", container).status == 204
    box.cluster.kill("container")
    try:
        for container in FOLDERS:
            box.put(f"{container}/late", TEXT, content_type="text/plain")
    finally:
        box.cluster.restart("container")
    waiting = [one for device in box.cluster.device_folders for one in device.glob("async_pending*/*/*")]
    assert waiting
    box.round("object-updater")
    assert not any(one.exists() for one in waiting)
    for container in FOLDERS:
        (row,) = (row for row in box.client.listing(container) if row["name"] == "late")
        head = box.client.request("HEAD", f"{container}/late")
        assert (row["bytes"], row["hash"]) == (len(TEXT), head.headers["etag"])
        assert box.client.request("DELETE", f"{container}/late").status == 204


def test_a_sharded_container_lists_plain_objects(box, eventually):
    assert box.client.request("PUT", "sharded").status == 201
    names = [f"{number:03d}" for number in range(120)]
    for number, name in enumerate(names):
        box.put(f"sharded/{name}", TEXT[: 5000 + number], content_type="text/plain")
    before = {row["name"]: (row["bytes"], row["hash"], row["content_type"]) for row in box.client.listing("sharded")}
    assert [before[name][0] for name in names] == [5000 + number for number in range(120)]
    (one, *_) = container_databases(box.cluster, "sharded")
    tool = swift_command(box.cluster.layout, "swift-manage-shard-ranges", str(one), "find_and_replace", "40")
    subprocess.run([*tool, "--enable", "--force"], capture_output=True, check=True)

    def is_sharded():
        for daemon in ("container-replicator", "container-sharder"):
            run_daemon(box.cluster, daemon)
        return all("_" in path.stem for path in container_databases(box.cluster, "sharded"))  # old ones were removed

    eventually(is_sharded, 180)
    rows = box.client.listing("sharded")
    assert {row["name"]: (row["bytes"], row["hash"], row["content_type"]) for row in rows} == before
    box.put("sharded/000", TEXT[:9000], content_type="text/plain")
    assert box.client.request("DELETE", "sharded/119").status == 204
    for daemon in ("object-updater", "container-updater", "container-sharder"):
        run_daemon(box.cluster, daemon)
    rows = {row["name"]: (row["bytes"], row["hash"]) for row in box.client.listing("sharded")}
    assert rows.pop("000") == (9000, hashlib.md5(TEXT[:9000]).hexdigest())
    assert rows == {name: before[name][:2] for name in names[1:-1]}
    head = box.client.request("HEAD", "sharded").headers
    assert int(head["x-container-bytes-used"]) == 9000 + sum(before[name][0] for name in names[1:-1])
    assert box.client.request("GET", "sharded/077").body == TEXT[: 5000 + 77]


def test_what_expired_is_deleted_from_disks_and_listings(box, eventually):
    due = int(time.time()) + 2
    for container in FOLDERS:
        box.put(f"{container}/expiring", TEXT, x_delete_at=str(due))
    for container in FOLDERS:
        eventually(lambda name=container: box.client.request("GET", f"{name}/expiring").status == 404, 30)
        assert len(object_files(box.cluster.device_folders, f"AUTH_test/{container}/expiring")) == 3
    box.round("object-updater")
    box.round("container-updater")  # only then does the account list the expirer's queue
    log = box.round("object-expirer", options={"dequeue_from_legacy": "true"})
    for container in FOLDERS:
        assert object_files(box.cluster.device_folders, f"AUTH_test/{container}/expiring") == [], log
        assert "expiring" not in [row["name"] for row in box.client.listing(container)]
    box.unchanged()


def test_without_the_policy_everything_stays_readable(box):
    """The last test: it deletes the policy."""
    box.api.delete_policy(box.policy)
    box.unchanged()
    box.put(f"{GOLD}/new", TEXT)
    assert [
        ENTRY in file_metadata(path) for path in object_files(box.cluster.device_folders, f"AUTH_test/{GOLD}/new")
    ] == [False] * 3
    for name in ("object-auditor", "object-replicator", "object-reconstructor"):
        box.round(name)
    assert box.quarantined() == []
