"""Rewrites while the disks fill up: objects without space stay unchanged, and are rewritten once there is space."""

import hashlib
import os
import time
from dataclasses import replace

import pytest
from tests.support.cluster import slow_disk
from tests.support.cluster.object_files import file_metadata, object_files
from tests.support.cluster.rewrites import rewrite

from sluice_aio.base.layout import Layout
from sluice_aio.base.swift_http import SwiftHttp
from sluice_aio.cluster.cluster import Cluster
from sluice_aio.cluster.components import DEFAULT
from sluice_aio.conf.common import USERS
from sluice_client import Client
from sluice_middleware.wsgi.sysmeta import CHAIN

pytestmark = pytest.mark.skipif(bool(slow_disk.missing()), reason=slow_disk.missing())

#: Three replicas of an object fit into the free space, but not those of all objects.
DISK, ROOM, COUNT = 400 << 20, 40 << 20, 10
BODY = b"".join(b"%d: a line that compresses\n" % number for number in range(200_000))
TARGET = "AUTH_test/c"
#: Seconds for which a proxy application does not use a device that was full, and some more.
SUPPRESSED = 90.0


@pytest.fixture(scope="module")
def disk(tmp_path_factory):
    with slow_disk.disk(tmp_path_factory.mktemp("d"), size=DISK) as found:
        yield found.folder


@pytest.fixture(scope="module")
def cluster(disk, tmp_path_factory):
    layout = replace(Layout.free(tmp_path_factory.mktemp("c")), disks=disk)
    with Cluster(layout, DEFAULT | {"rewriter"}) as found:
        yield found


@pytest.fixture
def swift(cluster):
    found = SwiftHttp(cluster.proxy_url).login("test:tester", USERS["test:tester"][0])
    yield found
    found.close()


def occupy(disk):
    """Leave :data:`ROOM` bytes on the disk; the path of the file that takes the rest."""
    path, left = disk / "ballast", os.statvfs(disk)
    with path.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, left.f_bavail * left.f_frsize - ROOM)
    return path


def plain(cluster):
    """Names of the objects of which two of the newest files at least exist, and are plain.

    A device that was full for one replica, and not for two, keeps an older file until a replicator runs.
    """
    files = {name: object_files(cluster.device_folders, f"{TARGET}/{name}") for name in map(str, range(COUNT))}
    newest = {name: max(path.name for path in paths) for name, paths in files.items()}
    found = set()
    for name, paths in files.items():
        written = [path for path in paths if path.name == newest[name]]
        if len(written) >= 2 and not any(CHAIN in file_metadata(path) for path in written):
            found.add(name)
    return found


def test_what_finds_no_room_stays_and_is_rewritten_later(cluster, disk, swift):
    with Client(cluster.api_url, cluster.token) as api:
        policy = api.create_policy(f"FOR CONTAINER {TARGET} DO SET compression ON PROXY", wait=10)
        assert swift.request("PUT", "c").status == 201
        for number in range(COUNT):
            assert swift.request("PUT", f"c/{number}", BODY).status == 201
        api.delete_policy(policy["id"], wait=10)
        assert plain(cluster) == set()

        ballast = occupy(disk)
        done = rewrite(api, TARGET, "plain", limit=180)
        assert 0 < done["rewritten"] < COUNT
        assert sum(done["failed"].values()) == COUNT - done["rewritten"]
        assert {one["reason"][-23:] for one in done["examples"]} == {"503 Service Unavailable"}, done["examples"]
        for number in range(COUNT):
            answer = swift.request("GET", f"c/{number}")
            assert (answer.status, answer.headers["etag"]) == (200, hashlib.md5(BODY).hexdigest())
            assert answer.body == BODY

        ballast.unlink()
        end = time.monotonic() + SUPPRESSED
        while rewrite(api, TARGET, "plain", limit=180)["failed"]:
            assert time.monotonic() < end
            time.sleep(1)
        assert plain(cluster) == set(map(str, range(COUNT)))
        assert all(swift.request("GET", f"c/{number}").body == BODY for number in range(COUNT))
