"""Rewrites under load, with rewriters and Redis killed; removal of Sluice; every byte is compared."""

import hashlib
import itertools
import os
import random
import shutil
import threading
import time

import pytest
from tests.support.cluster.daemons import run_daemon
from tests.support.cluster.object_files import file_metadata, object_files
from tests.support.cluster.rewrites import rewrite, wait_rewrite
from tests.support.cluster.s3_differential import client_of

from sluice_aio.base.layout import Layout
from sluice_aio.base.setup import EC21, GOLD
from sluice_aio.base.swift_http import SwiftHttp
from sluice_aio.cluster.cluster import Cluster
from sluice_aio.cluster.components import DEFAULT, SECOND_NODE
from sluice_aio.conf.common import USERS
from sluice_client import Client
from sluice_middleware.wsgi.sysmeta import CHAIN

#: Seconds for which objects are written and rewritten at once; a release is tested with `SLUICE_REWRITE_SECONDS=600`.
SECONDS = float(os.environ.get("SLUICE_REWRITE_SECONDS", "40"))
NAMES, WRITERS = 8, 4
REWRITERS = ("rewriter", "rewriter2")
#: A killed rewriter's unit is claimed again after its lease.
LIMIT = 150.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    layout = Layout.free(tmp_path_factory.mktemp("c"))
    with Cluster(layout, DEFAULT | SECOND_NODE | frozenset(REWRITERS)) as found:
        yield found


@pytest.fixture(scope="module")
def api(cluster):
    with Client(cluster.api_url, cluster.token) as found:
        yield found


@pytest.fixture
def swift(cluster):
    found = SwiftHttp(cluster.proxy_url).login("test:tester", USERS["test:tester"][0])
    yield found
    found.close()


class Writer(threading.Thread):
    """Puts, posts, deletes and reads objects of its own, whose expected state it knows at any moment."""

    def __init__(self, cluster, containers, number, until):
        super().__init__(name=f"writer {number}")
        self.swift = SwiftHttp(cluster.proxy_url).login("test:tester", USERS["test:tester"][0])
        self.random = random.Random(number)
        self.until = until
        self.paths = [f"{container}/w{number}-{name}" for container in containers for name in range(NAMES)]
        self.known = dict.fromkeys(self.paths)
        self.reads = self.writes = 0
        self.faults = []

    def run(self):
        try:
            while time.monotonic() < self.until and len(self.faults) < 5:
                path = self.random.choice(self.paths)
                self.random.choices((self.read, self.put, self.post, self.delete), (8, 3, 2, 1))[0](path)
        except Exception as error:  # noqa: BLE001 -- whatever it is, it is a fault
            self.faults.append(repr(error))
        finally:
            self.swift.close()

    def body(self):
        size = self.random.choice((1, 5_000, 100_000, 300_000, 1_500_000))
        text = b"".join(b"%d the quick brown fox\n" % self.random.getrandbits(16) for _ in range(200))
        return (text * (size // len(text) + 1))[:size]

    def put(self, path):
        body, colour = self.body(), str(self.random.getrandbits(32))
        answer = self.swift.request("PUT", path, body, x_object_meta_colour=colour)
        self.expect(path, "PUT", answer.status, 201)
        self.known[path] = (body, colour)
        self.writes += 1

    def post(self, path):
        if self.known[path] is not None:
            colour = str(self.random.getrandbits(32))
            self.expect(path, "POST", self.swift.request("POST", path, x_object_meta_colour=colour).status, 202)
            self.known[path] = (self.known[path][0], colour)
            self.writes += 1

    def delete(self, path):
        if self.known[path] is not None:
            self.expect(path, "DELETE", self.swift.request("DELETE", path).status, 204)
            self.known[path] = None
            self.writes += 1

    def read(self, path):
        known = self.known[path]
        first = self.random.randrange(len(known[0])) if known and self.random.random() < 0.3 else None
        answer = self.swift.request("GET", path, **({} if first is None else {"range": f"bytes={first}-"}))
        self.reads += 1
        if known is None:
            self.expect(path, "GET of what was deleted", answer.status, 404)
            return
        body, colour = known
        self.expect(path, "GET", answer.status, 200 if first is None else 206)
        wanted = body if first is None else body[first:]
        if answer.body != wanted or answer.headers.get("x-object-meta-colour") != colour:
            got = answer.headers.get("x-object-meta-colour")
            self.faults.append(f"{path}: {len(answer.body)} of {len(wanted)} bytes, {got} instead of {colour}")
        if answer.headers.get("etag") != hashlib.md5(body).hexdigest():
            self.faults.append(f"{path}: ETag {answer.headers.get('etag')}")

    def expect(self, path, what, status, wanted):
        if status != wanted:
            self.faults.append(f"{what} {path}: {status}, expected {wanted}")


def same_bytes_under_one_time(cluster):
    """Names with one timestamp and different bytes on two replicas, which replication would never detect."""
    found = {}
    for folder in cluster.device_folders:
        for path in folder.rglob("*.data"):
            known = file_metadata(path)
            if known and "#" not in path.name:
                found.setdefault((known["name"], path.name), set()).add(known["ETag"])
    return [key for key, etags in found.items() if len(etags) > 1]


def test_clients_see_their_own_writes_while_objects_are_rewritten_and_rewriters_die(cluster, api, swift):
    containers = ("load", "load-ec")
    for container, policy in zip(containers, (GOLD, EC21), strict=True):
        assert swift.request("PUT", container, x_storage_policy=policy).status == 201
    sentences = (
        "FOR CONTAINER AUTH_test/load DO SET compression",
        "FOR CONTAINER AUTH_test/load-ec DO SET compression, SET encryption",
    )
    policies = [api.create_policy(one, wait=10) for one in sentences]
    until = time.monotonic() + SECONDS
    writers = [Writer(cluster, containers, number, until) for number in range(WRITERS)]
    for one in writers:
        one.start()
    goals, killed, jobs, rewritten = itertools.cycle(("policies", "plain")), 0, 0, 0
    while time.monotonic() < until:
        job = api.create_rewrite("AUTH_test", next(goals))["id"]
        time.sleep(1.5)
        if jobs % 3 == 1:
            cluster.kill(REWRITERS[killed % 2])
            cluster.restart(REWRITERS[killed % 2])
            killed += 1
        if jobs % 6 == 5:
            cluster.restart("redis")
        rewritten += wait_rewrite(api, job, LIMIT)["rewritten"]
        jobs += 1
    for one in writers:
        one.join()
    print(f"{jobs} jobs, {rewritten} rewritten, {killed} rewriters killed,", end=" ")
    print(f"{sum(one.reads for one in writers)} reads, {sum(one.writes for one in writers)} writes")
    assert [fault for one in writers for fault in one.faults] == []
    assert rewritten > 0
    assert killed > 0
    for one in writers:
        one.swift.login("test:tester", USERS["test:tester"][0])
        for path in one.paths:
            one.read(path)
    assert [fault for one in writers for fault in one.faults] == []
    assert same_bytes_under_one_time(cluster) == []
    for one in policies:
        api.delete_policy(one["id"], wait=10)


def files(cluster, container, name):
    """Device → name and stored metadata of the newest file of an object."""
    found = {}
    for folder in cluster.device_folders:
        paths = object_files([folder], f"AUTH_test/{container}/{name}")
        if paths:
            newest = max(paths, key=lambda path: path.name)
            found[folder.name] = (newest.name.partition("#")[0].removesuffix(".data"), CHAIN in file_metadata(newest))
    return found


@pytest.mark.parametrize(
    ("policy", "daemon", "method"),
    [(GOLD, "object-replicator", "rsync"), (GOLD, "object-replicator", "ssync"), (EC21, "object-reconstructor", "")],
)
def test_a_server_that_was_away_gets_what_was_rewritten(cluster, api, swift, policy, daemon, method):
    container = f"away-{policy}-{method}"
    assert swift.request("PUT", container, x_storage_policy=policy).status == 201
    text = b"a line that compresses\n" * 30_000
    assert swift.request("PUT", f"{container}/o", text).status == 201
    before = swift.request("HEAD", f"{container}/o").headers
    made = api.create_policy(f"FOR CONTAINER AUTH_test/{container} DO SET compression ON PROXY", wait=10)
    if policy == EC21:  # with one parity fragment Swift accepts no upload while a server is down
        assert rewrite(api, f"AUTH_test/{container}", "policies", LIMIT)["rewritten"] == 1
        (lost,) = object_files([cluster.layout.device("object2")], f"AUTH_test/{container}/o")
        shutil.rmtree(lost.parent)
    else:
        cluster.kill("object2")
        assert rewrite(api, f"AUTH_test/{container}", "policies", LIMIT)["rewritten"] == 1
        cluster.restart("object2")
        assert len(set(files(cluster, container, "o").values())) == 2, "one server has what was there before"
    options = {"sync_method": method} if method else {}
    for _ in range(2):
        run_daemon(cluster, daemon, options=options)
    known = files(cluster, container, "o")
    assert (len(known), len(set(known.values()))) == (3, 1), known
    assert {encoded for _, encoded in files(cluster, container, "o").values()} == {True}
    run_daemon(cluster, "object-auditor")
    assert [one for device in cluster.device_folders for one in device.glob("quarantined/*/*")] == []
    answer = swift.request("GET", f"{container}/o")
    assert (answer.body, answer.headers["etag"], answer.headers["last-modified"]) == (
        text, before["etag"], before["last-modified"],
    )  # fmt: skip
    api.delete_policy(made["id"])


def test_what_s3_clients_see_stays(cluster, api):
    s3, bucket = client_of(cluster.proxy_url, "test:tester", USERS["test:tester"][0]), {"Bucket": "rw-s3"}
    s3.create_bucket(**bucket)
    s3.put_bucket_versioning(**bucket, VersioningConfiguration={"Status": "Enabled"})
    text = b"a line that compresses\n" * 250_000
    for size in (1000, len(text)):
        s3.put_object(**bucket, Key="o", Body=text[:size], Metadata={"colour": "blue"}, ContentType="text/plain")
    upload = {**bucket, "Key": "parts", "UploadId": s3.create_multipart_upload(**bucket, Key="parts")["UploadId"]}
    parts = [
        {"PartNumber": number, "ETag": s3.upload_part(**upload, PartNumber=number, Body=text)["ETag"]}
        for number in (1, 2)
    ]
    s3.complete_multipart_upload(**upload, MultipartUpload={"Parts": parts})

    def seen():
        versions = s3.list_object_versions(**bucket)["Versions"]
        found = [s3.list_objects_v2(**bucket)["Contents"], versions]
        for one in versions:
            got = s3.get_object(**bucket, Key=one["Key"], VersionId=one["VersionId"])
            found.append([got["Body"].read(), got["ETag"], got["LastModified"], got["Metadata"], got["ContentType"]])
        return found

    before = seen()
    policy = api.create_policy("FOR CONTAINER AUTH_test/rw-s3 DO SET compression ON PROXY", wait=10)
    done = rewrite(api, "AUTH_test/rw-s3", "policies", LIMIT)
    assert (done["rewritten"], done["failed"]) == (3, {}), "a version that is not too small, and two parts"
    assert seen() == before
    api.delete_policy(policy["id"], wait=10)
    assert rewrite(api, "AUTH_test/rw-s3", "plain", LIMIT)["rewritten"] == 3
    assert seen() == before
    s3.close()


def test_nothing_of_ours_is_left_after_all_was_made_plain(cluster, api, swift):
    for policy in api.policies():
        api.delete_policy(policy["id"])
    done = rewrite(api, "AUTH_test", "plain", LIMIT)
    assert (done["failed"], done["skipped"]) == ({}, {})
    known = [file_metadata(path) for folder in cluster.device_folders for path in folder.rglob("*.data")]
    assert known
    assert [one["name"] for one in known if CHAIN in one] == []
