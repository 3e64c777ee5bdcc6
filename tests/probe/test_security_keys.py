"""Missing or different keys: 503 with the reason for their tenant, and no effect for other tenants."""

import re
import secrets
import time

import pytest
from tests.support.cluster.object_files import file_metadata, object_files

from sluice_aio.base.setup import EC21, GOLD
from sluice_aio.base.swift_http import SwiftHttp
from sluice_filters.encryption.keys.key_file import SECRET_SIZE, parse_ring, render_ring
from sluice_filters.encryption.keys.ring import Ring

BODY = b"".join(b"%d: what nobody else may read\n" % number for number in range(20_000))
#: Swift's proxy logs this when it will not use a device for a while.
SUPPRESSED = re.compile("error limited")


@pytest.fixture
def ring(cluster):
    """Write the key file of all nodes, and restore it afterwards."""
    path = cluster.layout.key_file
    before = path.read_bytes()

    def write(keys):
        known = parse_ring(before)
        content = render_ring(Ring(known.active, {**known.secrets, **keys}))
        put_in_place(path, content)

    yield write
    put_in_place(path, before)


def put_in_place(path, content):
    fresh = path.with_name("keys.new")
    fresh.write_bytes(content)
    fresh.chmod(0o600)
    fresh.replace(path)


@pytest.fixture
def theirs(cluster):
    """Another tenant behind the same proxy."""
    return SwiftHttp(cluster.proxy_url).login("test2:tester2", "testing2")


@pytest.fixture(params=["PROXY", "STORAGE_NODE"])
def two_tenants(request, cluster, ring, policies, swift, theirs):
    """Each tenant has a key of its own, with names never used before, and an object in every storage policy."""
    keys = {f"{word}-{secrets.token_hex(4)}": secrets.token_bytes(SECRET_SIZE) for word in ("ours", "theirs")}
    ring(keys)
    for account, key in zip(("AUTH_test", "AUTH_test2"), keys, strict=True):
        policies(f"FOR TENANT {account} DO SET compression, SET encryption WITH key={key} ON {request.param}")
    for client in (swift, theirs):
        for container in (GOLD, EC21):
            name = f"keys-{container}"
            assert client.request("PUT", name, x_storage_policy=container).status in (201, 202)
            put_until_known(client, f"{name}/o", cluster.device_folders)
            assert client.request("GET", f"{name}/o").body == BODY
    return keys


def put_until_known(client, path, devices, limit=75.0):
    """A key file is read once a second, by each process for itself.

    A proxy does not use a device for a minute that failed for an earlier test; each device must get its file.
    """
    name = f"{client.account.removeprefix('/v1/')}/{path}"
    end = time.monotonic() + limit
    while True:
        answer = client.request("PUT", path, BODY, content_type="text/plain")
        times = [file_metadata(file)["X-Timestamp"] for file in object_files(devices, name)]
        if answer.status == 201 and len(times) == len(devices) and len(set(times)) == 1:
            return
        assert answer.status in (201, 503)
        assert time.monotonic() < end, answer.body
        time.sleep(0.1)


def get(client, path, **headers):
    return client.request("GET", f"keys-{path}", **headers)


def reached(client, said, eventually):
    """Every process has read the key file again."""
    answers = []

    def asked():
        answers.append(get(client, f"{GOLD}/o"))
        return len(answers) >= 40 and all(said in one.body for one in answers[-40:])

    try:
        eventually(asked, 60)
    except AssertionError as error:
        last = answers[-1]
        raise AssertionError(f"{len(answers)} answers, the last {last.status} {last.body[:300]!r}") from error


def test_a_missing_key_is_503_with_the_reason_for_its_tenant_and_nothing_for_others(
    cluster, swift, theirs, ring, two_tenants, eventually
):
    logs = {name: len(cluster.log(name)) for name in ("proxy", "object1", "object2", "object3")}
    mine, other = two_tenants
    reason = f"no key `{mine}`".encode()
    ring({other: two_tenants[other]})
    reached(swift, reason, eventually)
    for turn in range(100):
        refused = get(swift, f"{GOLD}/o")
        assert (refused.status, reason in refused.body) == (503, True), turn
        assert get(theirs, f"{GOLD}/o").body == BODY, turn
    for turn in range(12):  # more than Swift takes from a device before it stops asking it
        for path in (f"{EC21}/o", f"{GOLD}/o"):
            assert get(swift, path).status == 503, turn
            assert get(swift, path, range="bytes=5-9").status == 503
            assert swift.request("HEAD", f"keys-{path}").headers["content-length"] == str(len(BODY))
            assert swift.request("PUT", f"keys-{path}-new", BODY, content_type="text/plain").status == 503
            assert get(theirs, path, range="bytes=5-9").body == BODY[5:10]
            assert theirs.request("PUT", f"keys-{path}-new", BODY, content_type="text/plain").status == 201
    for container in (GOLD, EC21):
        assert object_files(cluster.device_folders, f"AUTH_test/keys-{container}/o-new") == []
        assert [row["name"] for row in swift.listing(f"keys-{container}")] == ["o"]
        assert len(object_files(cluster.device_folders, f"AUTH_test/keys-{container}/o")) == 3
    for name, length in logs.items():
        assert not SUPPRESSED.search(cluster.log(name)[length:]), name
    ring(two_tenants)
    eventually(lambda: get(swift, f"{GOLD}/o").status == 200, 30)


def test_another_key_of_the_same_name_is_no_damage(cluster, swift, theirs, ring, two_tenants, eventually):
    ring({**two_tenants, next(iter(two_tenants)): secrets.token_bytes(SECRET_SIZE)})
    reached(swift, b"is not the one of this name", eventually)
    for container in (GOLD, EC21):
        answers = [get(swift, f"{container}/o", **given) for given in ({}, {"range": "bytes=0-9"}) for _ in range(6)]
        assert {answer.status for answer in answers} == {503}
        assert not [answer for answer in answers if BODY[:10] in answer.body]
        assert get(theirs, f"{container}/o").body == BODY
        assert len(object_files(cluster.device_folders, f"AUTH_test/keys-{container}/o")) == 3
    ring(two_tenants)

    def both():
        return [get(swift, f"{container}/o").status for container in (GOLD, EC21)] == [200, 200]

    eventually(both, 30)


def test_an_object_that_was_re_keyed_does_not_miss_its_old_key(cluster, swift, ring, policies, eventually):
    old, new = (f"{word}-{secrets.token_hex(4)}" for word in ("old", "new"))
    keys = {name: secrets.token_bytes(SECRET_SIZE) for name in (old, new)}
    ring(keys)
    path = f"keys-{GOLD}/re-keyed"
    for key, target in ((old, "TENANT AUTH_test"), (new, f"CONTAINER AUTH_test/keys-{GOLD}")):
        policies(f"FOR {target} DO SET encryption WITH key={key} ON PROXY")
        assert swift.request("PUT", f"keys-{GOLD}").status in (201, 202)
        if key == old:
            put_until_known(swift, path, cluster.device_folders)
        else:
            eventually(lambda: swift.request("COPY", path, destination=path).status == 201)
        for _ in range(20):  # so that each worker of the proxy knows where ranges are
            assert swift.request("GET", path, range="bytes=5-9").body == BODY[5:10]
    ring({new: keys[new]})
    end = time.monotonic() + 2  # all have read the file
    while time.monotonic() < end:
        assert swift.request("GET", path, range="bytes=5-9").body == BODY[5:10]
        assert swift.request("GET", path).body == BODY
