"""Objects that are contracted, or expanded, while the disks are full."""

import os
from contextlib import suppress
from dataclasses import replace

import pytest
from tests.support.cluster import slow_disk
from tests.support.cluster.motifs import concat, contract, expand, is_contracted, motif_daemon, put
from tests.support.cluster.object_files import download
from tests.support.cluster.proxy_options import set_proxy_option

from sluice_aio.base.layout import Layout
from sluice_aio.base.setup import Setup
from sluice_aio.base.swift_http import SwiftHttp
from sluice_aio.cluster.cluster import Cluster
from sluice_aio.conf.common import USERS
from sluice_middleware.motifs.daemon_client import DaemonAway

pytestmark = pytest.mark.skipif(bool(slow_disk.missing()), reason=slow_disk.missing())

#: All three object servers share a disk; its free space is too small for one replica.
DISK, ROOM = 400 << 20, 8 << 20
PART = b"".join(b"%d: some line of a part\n" % number for number in range(200_000))
PARTS = 4
WHOLE = PART * PARTS
#: Seconds for which a proxy application does not use a device that was full.
SUPPRESSED = 5


@pytest.fixture(scope="module")
def disk(tmp_path_factory):
    with slow_disk.disk(tmp_path_factory.mktemp("d"), size=DISK) as found:
        yield found.folder


@pytest.fixture(scope="module")
def cluster(disk, metadata, tmp_path_factory):
    layout = replace(Layout.free(tmp_path_factory.mktemp("c")), disks=disk)
    with Cluster(layout, setup=Setup()) as found:
        set_proxy_option(layout.configs / "motifs.conf", "error_suppression_interval", f"{SUPPRESSED}")
        with motif_daemon(found):
            yield found


@pytest.fixture
def swift(cluster):
    found = SwiftHttp(cluster.proxy_url).login("test:tester", USERS["test:tester"][0])
    yield found
    found.close()


def bytes_in_no_file(disk):
    """Used bytes, except those of files: metadata, and files that were removed.  XFS frees those in the background."""
    found, files = os.statvfs(disk), 0
    for folder, _, names in os.walk(disk):
        for name in names:
            with suppress(FileNotFoundError):
                files += os.lstat(os.path.join(folder, name)).st_blocks * 512
    return (found.f_blocks - found.f_bfree) * found.f_frsize - files


@pytest.fixture(scope="module")
def metadata(disk):
    """Bytes of an empty disk, and what folders and small files may add to them."""
    return bytes_in_no_file(disk) + (4 << 20)


@pytest.fixture
def occupy(disk, metadata, eventually):
    """Take all of the disk except some bytes, until the test ends."""
    path = disk / "ballast"

    def take(room):
        eventually(lambda: bytes_in_no_file(disk) < metadata)
        with path.open("wb", buffering=0) as file:
            left = os.statvfs(disk)
            os.posix_fallocate(file.fileno(), 0, left.f_bavail * left.f_frsize - max(room, 2 << 20))
            file.seek(0, os.SEEK_END)
            with suppress(OSError):  # the file system keeps some for itself
                while not room:
                    file.write(bytes(4096))
                    os.fsync(file.fileno())
        return path

    yield take
    path.unlink(missing_ok=True)


def put_whole(swift, container):
    put(swift, container)
    names = [f"{container}/part{number}" for number in range(PARTS)]
    for name in names:
        put(swift, name, PART)
    put(swift, f"{container}/o", WHOLE, x_object_motif=concat(*names))


def test_readers_get_what_finds_no_room(cluster, swift, occupy, eventually):
    put_whole(swift, "full")
    contract(cluster, "full/o")
    ballast = occupy(ROOM)
    for _ in range(3):  # the next ones while the full devices are not used
        found = download(swift, "full/o")
        assert (found.status, found.whole, found.body == WHOLE) == (200, True, True), found.body[:300]
        assert is_contracted(cluster, "full/o")
    assert "is not stored" in cluster.log("motifs")
    assert swift.request("HEAD", "full/o").headers["content-length"] == str(len(WHOLE))
    ballast.unlink()

    def expanded():
        expand(cluster, "full/o")
        return not is_contracted(cluster, "full/o")

    eventually(expanded, SUPPRESSED + 30)
    assert swift.request("GET", "full/o").body == WHOLE


def test_a_contraction_makes_room_on_full_disks(cluster, swift, disk, occupy, eventually):
    put_whole(swift, "freed")
    occupy(0)
    with pytest.raises(
        DaemonAway,
        match=r"swift answered `503 Service Unavailable: 0 of 3 object servers took it` to a PUT of `.*/freed/o`",
    ):
        contract(cluster, "freed/o")
    assert not is_contracted(cluster, "freed/o")
    assert download(swift, "freed/o").body == WHOLE
    ballast = occupy(ROOM)  # too little for other uploads
    before = os.statvfs(disk)

    def contracted():
        with suppress(DaemonAway):  # as long as the devices are not used
            contract(cluster, "freed/o")
            return True

    eventually(contracted, SUPPRESSED + 30)
    eventually(lambda: (os.statvfs(disk).f_bavail - before.f_bavail) * before.f_frsize > 3 * len(WHOLE) - ROOM)
    ballast.unlink()
    assert download(swift, "freed/o").body == WHOLE
    expand(cluster, "freed/o")
    assert not is_contracted(cluster, "freed/o")
