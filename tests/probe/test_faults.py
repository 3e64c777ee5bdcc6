"""Processes are killed under load: Swift continues, and all services resume by themselves."""

import contextlib
import hashlib
import http.client
import resource
import shutil
import signal
import threading
import time
from urllib.parse import urlsplit

import pytest
import redis
from swift.obj.diskfile import read_metadata, write_metadata

from sluice_aio.base.swift_http import SwiftHttp
from sluice_aio.cluster.disks import data_files, stored_sizes
from sluice_core.errors import PeerError
from sluice_middleware.wsgi.sysmeta import CHAIN

TEXT = b"".join(b"%d: a line that compresses\n" % n for n in range(5000))


class Traffic:
    """Continuous uploads and reads; records every failure and every wrong byte."""

    def __init__(self, swift, container, rate=12):
        self._swift, self._container, self._pause = swift, container, 1 / rate
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.wrong = []
        self.count = 0

    def _run(self):
        while not self._over.wait(self._pause):
            name = f"{self._container}/traffic-{self.count % 20}"
            body = TEXT[self.count % 1000 :]
            put = self._swift.request("PUT", name, body)
            got = self._swift.request("GET", name)
            if (put.status, got.status) != (201, 200) or got.body != body:
                self.wrong.append((self.count, put.status, got.status, len(got.body)))
            self.count += 1

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()
        assert self.count
        assert not self.wrong


@pytest.fixture
def container(swift):
    swift.request("PUT", "probe")
    return "probe"


def compressed(cluster, swift, name):
    assert swift.request("PUT", f"probe/{name}", TEXT).status == 201
    sizes = stored_sizes(cluster.device_folders, "AUTH_test/probe")[name]
    return len(sizes) == 3 and max(sizes) < len(TEXT) / 2


def state(api, policy_id):
    shown = api.policy(policy_id)
    whole = shown["enforced"]["nodes"] == shown["enforced"]["total"] and not shown["enforced"]["away"]
    return shown["state"] if whole else "not everywhere"


@pytest.mark.parametrize("victim", ["redis", "rabbit", "agent", "actors", "api"])
def test_a_part_of_the_control_plane_dies_under_load(cluster, api, swift, container, policies, eventually, victim):
    policy = policies("FOR TENANT AUTH_test WHEN PUTS_SEC > 3 DO SET compression TRANSIENT")
    with Traffic(swift, container) as traffic:
        eventually(lambda: state(api, policy["id"]) == "active")
        cluster.kill(victim, signal.SIGKILL)
        before = traffic.count
        for turn in range(5):  # the last good policy stays in force while it is down
            assert compressed(cluster, swift, f"{victim}-away-{turn}")
            time.sleep(0.7)  # longer than the windows after which a TRANSIENT would be reverted
        assert traffic.count > before
        cluster.restart(victim)
        eventually(lambda: state(api, policy["id"]) == "active", 30)
        assert compressed(cluster, swift, f"{victim}-back")
    eventually(lambda: state(api, policy["id"]) == "waiting", 20)  # its action does not stay set
    assert not compressed(cluster, swift, f"{victim}-quiet")
    assert [shown["id"] for shown in api.policies()].count(policy["id"]) == 1
    with Traffic(swift, container):  # and it can fire again
        eventually(lambda: state(api, policy["id"]) == "active", 20)
    eventually(lambda: state(api, policy["id"]) == "waiting", 20)


def test_a_proxy_worker_dies_during_a_compressed_upload(cluster, swift, container, policies, eventually):
    policies("FOR TENANT AUTH_test DO SET compression")
    swift.request("PUT", "probe/whole", TEXT)
    address = urlsplit(cluster.proxy_url).netloc
    connection = http.client.HTTPConnection(address, timeout=10)
    body = TEXT * 40
    connection.putrequest("PUT", f"{swift.account}/probe/half")
    connection.putheader("X-Auth-Token", swift.token)
    connection.putheader("Content-Length", str(len(body)))
    connection.endheaders()
    connection.send(body[: len(body) // 2])
    workers = cluster.workers("proxy")
    assert len(workers) == 2
    for worker in workers:
        worker.signal(signal.SIGKILL)
    with contextlib.suppress(OSError):
        connection.send(body[len(body) // 2 :])
    with pytest.raises((OSError, http.client.HTTPException)):
        connection.getresponse()
    connection.close()
    swift.close()  # its connection ended with the worker
    eventually(lambda: len(cluster.workers("proxy")) == 2)
    fresh = eventually(lambda: reachable(cluster))
    assert fresh.request("GET", "probe/half").status == 404
    assert "half" not in [row["name"] for row in fresh.listing("probe")]
    assert "half" not in stored_sizes(cluster.device_folders, "AUTH_test/probe")
    assert fresh.request("GET", "probe/whole").body == TEXT


def reachable(cluster):
    try:
        return SwiftHttp(cluster.proxy_url).login("test:tester", "testing")
    except PeerError:
        return None


def test_a_damaged_frame_cuts_the_transfer(cluster, swift, container, policies):
    policies("FOR TENANT AUTH_test DO SET compression")
    body = TEXT * 20
    swift.request("PUT", "probe/damaged", body)
    assert swift.request("GET", "probe/damaged").body == body
    files = [file for file in data_files(cluster.device_folders) if b"damaged" in name_of(file)]
    assert len(files) == 3
    for file in files:
        with open(file, "r+b") as opened:
            opened.seek(file.stat().st_size // 2)
            byte = opened.read(1)
            opened.seek(-1, 1)
            opened.write(bytes([byte[0] ^ 0xFF]))
    address = urlsplit(cluster.proxy_url).netloc
    connection = http.client.HTTPConnection(address, timeout=20)
    connection.request("GET", f"{swift.account}/probe/damaged", headers={"X-Auth-Token": swift.token})
    response = connection.getresponse()
    taken = b""
    cut = response.status != 200
    try:
        while not cut:
            piece = response.read1(65536)
            if not piece:
                break
            taken += piece
    except (OSError, http.client.HTTPException):
        cut = True
    finally:
        connection.close()
    assert cut or len(taken) < len(body)
    assert body.startswith(taken) or response.status != 200
    assert hashlib.md5(taken).digest() != hashlib.md5(body).digest()


def name_of(file):
    return read_metadata(str(file))["name"].encode()


def test_a_wiped_redis_is_not_obeyed_until_it_is_adopted(cluster, api, swift, container, eventually):
    created = api.create_policy("FOR TENANT AUTH_test DO SET compression", wait=10)
    assert compressed(cluster, swift, "before-wipe")
    connection = redis.Redis.from_url(cluster.redis_url)
    connection.flushall()
    connection.close()
    eventually(lambda: api.nodes() and api.nodes()[0]["state"] == "stale_history", 20)
    assert compressed(cluster, swift, "wiped")
    api.adopt()
    eventually(lambda: api.nodes()[0]["state"] == "ok", 20)
    assert not compressed(cluster, swift, "adopted")
    assert created["id"] not in [shown["id"] for shown in api.policies()]


def test_an_object_whose_filter_this_node_lacks_is_refused_with_the_reason(cluster, swift, container, policies):
    policies("FOR TENANT AUTH_test DO SET compression")
    swift.request("PUT", "probe/foreign", TEXT)
    for file in (file for file in data_files(cluster.device_folders) if b"foreign" in name_of(file)):
        stored = read_metadata(str(file))
        stored[CHAIN] = stored[CHAIN].replace("compression", "frobnicate")
        write_metadata(str(file), stored)
    for headers in ({}, {"Range": "bytes=0-9"}):
        answer = swift.request("GET", "probe/foreign", **headers)
        assert answer.status == 503
        assert b"`frobnicate`" in answer.body
    assert swift.request("HEAD", "probe/foreign").headers["content-length"] == str(len(TEXT))


def test_a_node_whose_disk_is_full_says_so_and_swift_goes_on(cluster, api, swift, container, policies, eventually):
    policies("FOR TENANT AUTH_test DO SET compression")
    agent = cluster.process("agent").pid
    data = cluster.layout.snapshots / "current" / "data.mdb"
    before = resource.prlimit(agent, resource.RLIMIT_FSIZE)
    resource.prlimit(agent, resource.RLIMIT_FSIZE, (data.stat().st_size, before[1]))  # as if the disk were full
    made = []
    try:
        for number in range(60):
            text = "; ".join(f"FOR CONTAINER AUTH_full/c{number}-{one} DO SET noop" for one in range(40))
            made += [one["id"] for one in api.create_policies(text)]
            if api.nodes()[0]["state"] == "failed":
                break
        shown = eventually(lambda: next((one for one in api.nodes() if one["state"] == "failed"), None))
        assert "snapshot" in shown["detail"]
        assert compressed(cluster, swift, "disk-full")  # the last good policies stay in force
        assert swift.request("GET", "probe/disk-full").body == TEXT
    finally:
        resource.prlimit(agent, resource.RLIMIT_FSIZE, before)
    eventually(lambda: api.nodes()[0]["state"] == "ok", 30)
    for policy_id in made:
        api.delete_policy(policy_id)


def test_an_unreadable_snapshot_is_rebuilt_and_swift_goes_on(cluster, api, swift, container, policies, eventually):
    policies("FOR TENANT AUTH_test DO SET compression")
    assert compressed(cluster, swift, "snapshot-before")  # the workers have opened it
    cluster.kill("agent", signal.SIGKILL)
    generation = (cluster.layout.snapshots / "current").resolve()
    damaged = generation.with_name(generation.name + "-damaged")
    shutil.copytree(generation, damaged)
    with open(damaged / "data.mdb", "r+b") as file:
        file.truncate(5000)
    link = cluster.layout.snapshots / "next"
    link.symlink_to(damaged.name)
    link.rename(cluster.layout.snapshots / "current")  # never in place: workers have the old one mapped
    assert compressed(cluster, swift, "snapshot-damaged")
    assert swift.request("GET", "probe/snapshot-damaged").body == TEXT
    cluster.restart("agent")
    eventually(lambda: api.nodes()[0]["state"] == "ok", 20)
    eventually(lambda: compressed(cluster, swift, "snapshot-rebuilt"))
