"""Stored objects are rewritten as policies say and back to plain bytes; readers see no difference.

The jobs are those of docs/admin/rewrites.md.
"""

import contextlib
import hashlib
import json
import random
import re
import time

import pytest
from tests.support.cluster.object_files import file_metadata, object_files
from tests.support.cluster.people import swift_as
from tests.support.cluster.rewrites import rewrite, wait_rewrite

from sluice_aio.base.setup import EC21
from sluice_core.store.store import Store
from sluice_filters.encryption.keys.key_file import KeyFile, render_ring
from sluice_filters.encryption.keys.ring import Ring
from sluice_middleware.object_server.diskfile.stored_metadata import ENTRY
from sluice_middleware.wsgi.sysmeta import CHAIN, NODE
from sluice_rewrites.accounts import add_accounts

TEXT = b"".join(b"%d: the quick brown fox jumps over the lazy dog\n" % n for n in range(20_000))
BODIES = {
    "text": TEXT,
    "small": TEXT[:100_000],
    "noise": random.Random(5).randbytes(300_000),
    "tiny": b"tiny",
    "empty": b"",
}
#: Headers that differ between any two responses.
MOMENTS = {"date", "x-trans-id", "x-openstack-request-id", "connection"}
PROXY = "SET compression ON PROXY, SET encryption ON PROXY"
NODES = "SET compression ON STORAGE_NODE, SET encryption ON STORAGE_NODE"
ALONE = "SET compression ON PROXY"


@pytest.fixture(scope="module")
def rewriter(cluster):
    cluster.add({"rewriter"})
    yield cluster
    cluster.remove("rewriter")


@pytest.fixture
def policy(api):
    """Create a policy; it is deleted when the context ends, and no node has it any more."""

    @contextlib.contextmanager
    def said(sentence):
        made = api.create_policy(sentence, wait=10)
        assert made["enforced"]["nodes"] == made["enforced"]["total"], made
        try:
            yield made
        finally:
            api.delete_policy(made["id"])

    return said


def put(swift, path, body=b"", **headers):
    answer = swift.request("PUT", path, body, **headers)
    assert answer.status in (201, 202), (path, answer)
    return answer


def seen(swift, container, query=""):
    """All that a client can see of every object of a container."""
    found = {}
    for row in json.loads(swift.raw("GET", f"{swift.account}/{container}?format=json{query}", token(swift)).body):
        version = f"?version-id={row['version_id']}" if query else ""
        target = f"{swift.account}/{container}/{row['name']}{version}"
        answers = [
            swift.raw(method, target, {**token(swift), **headers})
            for method, headers in (("GET", {}), ("HEAD", {}), ("GET", {"Range": "bytes=3-70000"}))
        ]
        shown = [
            (one.status, one.body, {name: value for name, value in one.headers.items() if name not in MOMENTS})
            for one in answers
        ]
        found[row["name"], version] = (row, shown)
    return found


def token(swift):
    return {"X-Auth-Token": swift.token}


def encoded(cluster, path):
    """Whether each file of an object names filters that proxies or storage nodes ran."""
    files = object_files(cluster.device_folders, f"AUTH_test/{path}")
    assert files
    return [any(name.lower() in (CHAIN.lower(), NODE.lower()) for name in file_metadata(file)) for file in files]


@pytest.mark.parametrize("kind", ["replicated", pytest.param("erasure coded", marks=pytest.mark.probe)])
@pytest.mark.parametrize(
    ("place", "kept"), [(PROXY, 1), (NODES, 1), (ALONE, 3)], ids=["proxy", "storage node", "compression alone"]
)
def test_objects_are_encoded_and_made_plain_again(rewriter, api, swift, policy, kind, place, kept):
    """Objects in ``kept`` stay as they are: the empty one, and without encryption noise and a few bytes."""
    container = f"rw-{kind[:3]}-{(PROXY, NODES, ALONE).index(place)}"
    put(swift, container, **({"x_storage_policy": EC21} if kind == "erasure coded" else {}))
    for name, body in BODIES.items():
        put(swift, f"{container}/{name}", body, content_type="text/plain; charset=utf-8", x_object_meta_colour="blue")
    assert swift.request("POST", f"{container}/text", x_object_meta_colour="red", content_type="text/csv").status == 202
    put(swift, f"{container}/expiring", TEXT, x_delete_at=str(int(time.time()) + 86400), content_encoding="br")
    before = seen(swift, container)
    with policy(f"FOR CONTAINER AUTH_test/{container} DO {place}"):
        done = rewrite(api, f"AUTH_test/{container}", "policies")
        assert done["failed"] == done["skipped"] == {}
        assert (done["rewritten"], done["unchanged"]) == (6 - kept, kept)
        assert seen(swift, container) == before
        for name in ("text", "small", "expiring") if place is ALONE else ("text", "small", "noise", "tiny", "expiring"):
            assert all(encoded(rewriter, f"{container}/{name}")), name
        again = rewrite(api, f"AUTH_test/{container}", "policies")
        assert (again["rewritten"], again["unchanged"]) == (0, 6)
    done = rewrite(api, f"AUTH_test/{container}", "plain")
    assert (done["rewritten"], done["failed"]) == (6 - kept, {})
    assert seen(swift, container) == before
    for name in (*BODIES, "expiring"):
        assert not any(encoded(rewriter, f"{container}/{name}")), name


def test_versions_large_objects_and_links_are_rewritten_as_they_are(rewriter, api, swift, policy):
    put(swift, "rw-ver", x_versions_enabled="true")
    for number in range(3):
        put(swift, "rw-ver/o", TEXT[number:], content_type="text/plain")
    assert swift.request("DELETE", "rw-ver/o").status == 204
    put(swift, "rw-ver/last", TEXT)
    put(swift, "rw-ver/link", x_symlink_target="rw-ver/last", content_type="application/symlink")
    put(swift, "rw-seg")
    parts = [TEXT[:400_000], TEXT[400_000:]]
    for number, part in enumerate(parts):
        put(swift, f"rw-seg/part{number}", part)
    manifest = [
        {"path": f"rw-seg/part{number}", "etag": hashlib.md5(part).hexdigest()} for number, part in enumerate(parts)
    ]
    target = f"{swift.account}/rw-seg/slo?multipart-manifest=put"
    assert swift.raw("PUT", target, token(swift), json.dumps(manifest).encode()).status == 201
    put(swift, "rw-seg/dlo", x_object_manifest="rw-seg/part")

    def everything():
        return seen(swift, "rw-ver", "&versions"), seen(swift, "rw-ver"), seen(swift, "rw-seg")

    before = everything()
    with policy("FOR TENANT AUTH_test DO SET compression"):
        for container in ("rw-ver", "rw-seg"):
            assert rewrite(api, f"AUTH_test/{container}", "policies")["failed"] == {}
        assert everything() == before
        assert all(encoded(rewriter, "rw-seg/part0"))
        versions = versions_of(rewriter, "rw-ver")
        assert len(versions) == 6, versions  # three of o, its delete marker, the last one, and the link
        assert sum(versions.values()) == 4
    for container in ("rw-ver", "rw-seg"):
        assert rewrite(api, f"AUTH_test/{container}", "plain")["failed"] == {}
    assert everything() == before
    assert not any(versions_of(rewriter, "rw-ver").values())
    assert not any(encoded(rewriter, "rw-seg/part0"))


def versions_of(cluster, container):
    """Version → whether it is encoded."""
    begin = f"/AUTH_test/\0versions\0{container}/"
    known = [file_metadata(path) for folder in cluster.device_folders for path in folder.rglob("*.data")]
    return {one["name"]: CHAIN in one for one in known if str(one.get("name", "")).startswith(begin)}


def test_a_job_for_the_cluster_finds_every_account_and_brings_objects_to_the_active_key(rewriter, api, swift, policy):
    put(swift, "rw-key")
    for name in ("p", "n"):
        put(swift, f"rw-key/{name}", TEXT)
    before = seen(swift, "rw-key")
    other = swift_as(rewriter, "test2:tester2")
    put(other, "rw-key")
    with policy("FOR OBJECT AUTH_test2/rw-key/p DO SET encryption ON PROXY"):
        put(other, "rw-key/p", TEXT)
    assert "next" not in key_of(rewriter, "AUTH_test2/rw-key/p", CHAIN)
    with (
        policy("FOR OBJECT AUTH_test/rw-key/p DO SET compression ON PROXY, SET encryption ON PROXY"),
        policy("FOR OBJECT AUTH_test/rw-key/n DO SET encryption ON STORAGE_NODE"),
    ):
        assert rewrite(api, "AUTH_test/rw-key", "policies")["rewritten"] == 2
    assert rewrite(api, "AUTH_test/rw-key", "key")["rewritten"] == 1, "only the disks know the key of the other"
    keys = KeyFile(rewriter.layout.key_file).read()
    rewriter.layout.key_file.write_bytes(render_ring(Ring("next", {**keys.secrets, "next": b"k" * 32})))
    time.sleep(1.1)  # key files are read once a second
    try:
        know_one_account(rewriter, "AUTH_test")
        done = rewrite(api, "CLUSTER", "key")
        assert done["failed"] == {}
        assert done["accounts"] > 1
        assert key_of(rewriter, "AUTH_test2/rw-key/p", CHAIN) == {"next"}
        for name, entry in (("p", CHAIN), ("n", ENTRY)):
            assert key_of(rewriter, f"AUTH_test/rw-key/{name}", entry) == {"next"}
        assert seen(swift, "rw-key") == before
        assert rewrite(api, "AUTH_test/rw-key", "plain")["rewritten"] == 2
        assert seen(swift, "rw-key") == before
    finally:
        rewriter.layout.key_file.write_bytes(render_ring(Ring(keys.active, {**keys.secrets, "next": b"k" * 32})))


def key_of(cluster, path, entry):
    """The ids of the keys under which the files of an object are encrypted."""
    files = object_files(cluster.device_folders, path)
    assert files
    return {re.search('"key":"([^"]*)"', file_metadata(file)[entry])[1] for file in files}


def know_one_account(cluster, account):
    """Redis has lost its list of accounts, and one account was added since."""
    with contextlib.closing(Store(cluster.redis_url)) as store:
        store.client.delete(store.keys.accounts)
        store.run(add_accounts(store.keys, [account]))


@pytest.mark.probe
def test_a_job_for_the_cluster_fails_while_a_storage_node_says_nothing(rewriter, api, swift):
    for user in (swift, swift_as(rewriter, "test2:tester2")):
        put(user, "rw-silent")
    know_one_account(rewriter, "AUTH_test")
    rewriter.kill("agent")
    try:
        job = api.create_rewrite("CLUSTER", "key")
        end = time.monotonic() + 90
        while job["state"] == "collecting":
            assert time.monotonic() < end, job
            assert job["warning"].startswith(("collecting accounts: no storage node has", "no agent of a storage node"))
            time.sleep(0.5)
            job = api.rewrite(job["id"])
    finally:
        rewriter.restart("agent")
    assert (job["state"], job["accounts"]) == ("failed", 0)
    assert "set `storage_confs` in the agent.conf" in job["warning"]
    done = rewrite(api, "CLUSTER", "key")
    assert done["accounts"] > 1


def test_a_sentence_with_existing_rewrites_what_is_stored_once(rewriter, api, swift, policy):
    put(swift, "rw-exist")
    put(swift, "rw-exist/o", TEXT)
    before = seen(swift, "rw-exist")
    with policy("FOR CONTAINER AUTH_test/rw-exist DO SET compression ON PROXY EXISTING") as made:
        end = time.monotonic() + 30
        while not all(encoded(rewriter, "rw-exist/o")):
            assert time.monotonic() < end, list(api.rewrites())
            time.sleep(0.1)
        (job,) = (one for one in api.rewrites() if one["created_by"] == f"policy {made['id']}")
        assert wait_rewrite(api, job["id"])["rewritten"] == 1
        assert seen(swift, "rw-exist") == before
    assert all(encoded(rewriter, "rw-exist/o")), "the end of a policy rewrites nothing"
    assert [one["id"] for one in api.rewrites() if one["target"] == job["target"]] == [job["id"]]


def test_a_prefix_bounds_a_job_and_a_synchronized_container_is_skipped(rewriter, api, swift, policy):
    put(swift, "rw-pre")
    for name in ("a/1", "a/2", "b/1"):
        put(swift, f"rw-pre/{name}", TEXT)
    put(swift, "rw-sync", x_container_sync_to="//sluice/aio/AUTH_test/rw-pre", x_container_sync_key="k")
    put(swift, "rw-sync/o", TEXT)
    with policy("FOR TENANT AUTH_test DO SET compression ON PROXY"):
        done = rewrite(api, "AUTH_test/rw-pre/a/", "policies")
        assert (done["objects_done"], done["rewritten"]) == (2, 2)
        assert not any(encoded(rewriter, "rw-pre/b/1"))
        done = rewrite(api, "AUTH_test/rw-sync", "policies")
        assert (done["rewritten"], done["skipped"]) == (0, {"container is synchronized to another": 1})
        assert not any(encoded(rewriter, "rw-sync/o"))
