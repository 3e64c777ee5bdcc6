"""Swift's replicators and reconstructors over objects that only some servers have contracted, or expanded again.

Contracted objects are plain Swift objects of no bytes, so that a stock server keeps them, too.
"""

import shutil
import time
from contextlib import contextmanager

import pytest
from tests.support.cluster.daemons import run_round
from tests.support.cluster.motifs import WHOLE, contract, expand, motif_daemon, put, request_contraction, sources
from tests.support.cluster.object_files import file_metadata, object_files, quarantined
from tests.support.cluster.proxy_options import set_proxy_option

from sluice_aio.base.layout import OBJECT_DEVICES, Layout
from sluice_aio.base.setup import ALL_PARTS, DISKFILE, EC21, GOLD, OBJECT, STORAGE, Setup
from sluice_aio.base.swift_http import SwiftHttp
from sluice_aio.cluster.cluster import Cluster
from sluice_aio.conf.common import USERS
from sluice_aio.conf.swift import write_swift
from sluice_middleware.wsgi.sysmeta import CONTRACTED

#: Stock object servers behind proxies with Sluice.
STOCK = Setup(parts=ALL_PARTS - {STORAGE, OBJECT, DISKFILE})
RSYNC = ("object-replicator", {"sync_method": "rsync"}, GOLD)
SSYNC = ("object-replicator", {"sync_method": "ssync"}, GOLD)
FRAGMENTS = ("object-reconstructor", {}, EC21)
#: Objects, by the number of servers without their last write, and whether they are read before replicators run.
LATE = ("one", "two", "one-read", "two-read")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    layout = Layout.free(tmp_path_factory.mktemp("c"))
    with Cluster(layout, setup=Setup()) as found:
        # a server that was down is written to as soon as it is back
        for conf in (layout.swift_dir / "proxy.conf", layout.configs / "motifs.conf"):
            set_proxy_option(conf, "error_suppression_limit", "1000000")
        found.restart("proxy")
        with motif_daemon(found):
            yield found


@pytest.fixture
def swift(cluster):
    found = SwiftHttp(cluster.proxy_url).login("test:tester", USERS["test:tester"][0])
    yield found
    found.close()


@pytest.fixture
def receiver(cluster, request):
    """The third server, with Sluice or a stock one."""
    if request.param == "stock":
        write_swift(cluster.layout, STOCK)
        cluster.restart("object3")
        write_swift(cluster.layout, cluster.setup)
    yield request.param
    if request.param == "stock":
        cluster.restart("object3")


def states(devices, path):
    """Of each replica or fragment of an object: its time, and whether it is contracted."""
    files = object_files(devices, f"AUTH_test/{path}")
    return [(file.stem.partition("#")[0], CONTRACTED in file_metadata(file)) for file in files]


def folder(cluster, server, path):
    """The folder of an object's files on a server."""
    (file,) = object_files([cluster.layout.device(server)], f"AUTH_test/{path}")
    return file.parent


@contextmanager
def put_back(cluster, tmp_path, misses):
    """The server in ``misses`` (object → server) has its files of before: as if it had been down."""
    saved = {}
    for number, (path, server) in enumerate(misses.items()):
        before = folder(cluster, server, path)
        saved[before] = tmp_path / str(number)
        shutil.copytree(before, saved[before])  # with the extended attributes
    yield
    for before, copy in saved.items():
        shutil.rmtree(before)
        shutil.copytree(copy, before)


def write(cluster, goals, running):
    """Contract or expand objects, and wait until all ``running`` servers have the result.

    :param goals: object → whether it is to be contracted
    """
    for path, contracted in goals.items():
        (request_contraction if contracted else expand)(cluster, path)
    devices = [cluster.layout.device(server) for server in running]
    end = time.monotonic() + 10
    for path, contracted in goals.items():
        while {state for _, state in states(devices, path)} != {contracted}:
            assert time.monotonic() < end, f"`{path}` is not written"
            time.sleep(0.02)


def objects(cluster, swift, container, names, policy):
    """Objects with motifs and posted metadata, half of them contracted; object → whether it will be."""
    made = sources(swift, f"{container}-sources")
    put(swift, container, x_storage_policy=policy)
    goals = {
        f"{container}/{goal}-{name}": goal == "contracted" for name in names for goal in ("contracted", "expanded")
    }
    for path, contracted in goals.items():
        put(swift, path, WHOLE, x_object_motif=made)
        assert swift.request("POST", path, x_object_meta_colour="red").status == 202
        if not contracted:
            contract(cluster, path)
    return goals


def assert_whole(swift, path):
    answer = swift.request("GET", path)
    assert (answer.status, answer.body == WHOLE) == (200, True), answer.body[:300]
    assert answer.headers["x-object-meta-colour"] == "red"


@pytest.mark.parametrize("kind", [RSYNC, SSYNC], ids=["rsync", "ssync"])
def test_what_only_some_replicas_got_reaches_all(cluster, swift, tmp_path, kind):
    daemon, options, policy = kind
    goals = objects(cluster, swift, options["sync_method"], LATE, policy)
    before = {path: states(cluster.device_folders, path)[0] for path in goals}
    with put_back(cluster, tmp_path, {path: "object2" for path in goals if "two" in path}):
        cluster.kill("object3")
        write(cluster, goals, ["object1", "object2"])
    cluster.restart("object3")
    new = {path: states(cluster.device_folders, path)[0] for path in goals}
    for path in goals:
        late = 2 if "two" in path else 1
        assert states(cluster.device_folders, path) == [new[path]] * (3 - late) + [before[path]] * late
        assert new[path] > before[path]
    for path in goals:
        for _ in range(6 if "read" in path else 0):  # from any replica; a contracted one is expanded
            assert_whole(swift, path)
    for server in reversed(OBJECT_DEVICES):  # the older state is sent first
        run_round(cluster, daemon, options=options, servers=[server])
        for path in goals:
            assert states(cluster.device_folders, path)[0] >= new[path]
    for path in goals:
        found = states(cluster.device_folders, path)
        assert (len(found), len(set(found))) == (3, 1)
        assert found[0] == new[path] or "read" in path
        assert_whole(swift, path)
    assert quarantined(cluster.device_folders) == []


@pytest.mark.parametrize(
    ("receiver", "kind"),
    [("stock", SSYNC), ("ours", FRAGMENTS), ("stock", FRAGMENTS)],
    ids=["stock-ssync", "ours-fragments", "stock-fragments"],
    indirect=["receiver"],
)
def test_what_a_server_lost_or_missed_is_sent_to_it(cluster, swift, tmp_path, receiver, kind):
    daemon, options, policy = kind
    goals = objects(cluster, swift, f"{receiver}-{policy}", ["late", "lost"], policy)
    with put_back(cluster, tmp_path, {path: "object3" for path in goals if "late" in path}):
        write(cluster, goals, OBJECT_DEVICES)
    new = {path: states(cluster.device_folders, path)[0] for path in goals}
    for path in goals:
        if "late" in path:
            assert states(cluster.device_folders, path)[2] < new[path]
        else:
            shutil.rmtree(folder(cluster, "object3", path).parents[1])  # its partition, with its hashes
    for path, contracted in goals.items():
        if not contracted:  # else it would be expanded
            assert_whole(swift, path)
    for server in reversed(OBJECT_DEVICES):
        run_round(cluster, daemon, options=options, servers=[server])
    for path in goals:
        assert states(cluster.device_folders, path) == [new[path]] * 3
        for server in ["object1", "object2"][: 2 if policy == GOLD else 1]:  # the sent replicas are needed now
            shutil.rmtree(folder(cluster, server, path))
        assert_whole(swift, path)
        assert swift.request("DELETE", path).status in (204, 404)  # most servers may have none
    assert quarantined(cluster.device_folders) == []
