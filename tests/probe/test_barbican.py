"""The keys of encryption in a real Barbican behind Keystone: rotated, unreachable, and refused."""

import base64
import shutil
import signal
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from castellan import key_manager
from castellan.common.utils import credential_factory
from oslo_config import cfg
from tests.support.cluster.object_files import file_metadata, object_files

from sluice_aio.base.layout import OBJECT_DEVICES, Layout
from sluice_aio.base.setup import ALL_PARTS, KEYS, KEYSTONE, Setup
from sluice_aio.cluster import components
from sluice_aio.cluster.cluster import Cluster
from sluice_aio.keystone import barbican, seed
from sluice_aio.keystone.http import KeystoneHttp, swift_client
from sluice_client import Client

BODY = b"".join(b"%d: what only Barbican's users may read\n" % number for number in range(10_000))
PLACES = ("PROXY", "STORAGE_NODE")
#: All services of Swift that need keys.
WITH_KEYS = ("proxy", *OBJECT_DEVICES)
#: Seconds in which all processes have requested the key manager again.
AGAIN = 40
#: Concurrent requests, more than there are processes to answer.
AT_ONCE = 8


class Keys:
    """The castellan configuration that all of Swift reads, and the contents of Barbican."""

    def __init__(self, layout):
        self.layout = layout
        self.path = layout.root / "castellan.conf"
        self.known = {}
        self.write("")

    def write(self, active, names=None, **login):
        """Name all keys, or those called ``names``."""
        keys = {name: self.known[name] for name in (self.known if names is None else names)}
        fresh = self.path.with_suffix(".new")
        fresh.touch(mode=0o600)
        fresh.write_text(barbican.key_manager_conf(self.layout, active, keys, **login))
        fresh.replace(self.path)

    def make(self, name):
        """Create a key in Barbican."""
        manager, context = self._barbican()
        self.known[name] = manager.create_key(context, "aes", 256, name=name)

    def secrets(self):
        """The keys themselves in all usual encodings."""
        manager, context = self._barbican()
        found = [manager.get(context, one).get_encoded() for one in self.known.values()]
        return [text for one in found for text in (one.hex(), base64.b64encode(one).decode(), repr(one))]

    def _barbican(self):
        conf = cfg.ConfigOpts()
        conf(args=[], default_config_files=[str(self.path)], default_config_dirs=[])
        return key_manager.API(conf), credential_factory(conf)


@pytest.fixture(scope="module")
def cluster():
    folder = Path(tempfile.mkdtemp(prefix="sluice-"))
    conf = str(folder / "castellan.conf")
    setup = Setup(
        auth=KEYSTONE,
        parts=ALL_PARTS - {KEYS},
        proxy_options={"key_manager_conf": conf},
        storage_options={"sluice_key_manager_conf": conf},
    )
    try:
        with Cluster(Layout.free(folder), components.DEFAULT | {"barbican"}, setup=setup) as running:
            yield running
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def keys(cluster):
    """Barbican with one key, which is active."""
    found = Keys(cluster.layout)
    found.make("first")
    found.write("first")
    return found


@pytest.fixture(scope="module")
def swift(cluster, keys, eventually):
    """The account of acme, where one container is encrypted by proxies and one by storage nodes."""
    keystone = KeystoneHttp(cluster.keystone_url)
    admin = keystone.login("admin", seed.password(cluster.layout, "admin"), "admin")
    with Client(cluster.api_url, admin.id) as api:
        for place in PLACES:
            made = api.create_policy(f"FOR CONTAINER acme/{place.lower()} DO SET encryption ON {place}", wait=20)
            assert made["enforced"]["nodes"] == made["enforced"]["total"] == 1
    password, project, _ = seed.PEOPLE["alice"]
    client = swift_client(cluster.proxy_url, keystone.login("alice", password, project))
    for place in PLACES:
        assert client.request("PUT", place.lower()).status in (201, 202)
    settled(cluster, client, eventually)
    return client


def put(client, place, name):
    client.close()  # the next connection is for any of the workers
    return client.request("PUT", f"{place.lower()}/{name}", BODY, content_type="text/plain")


def get(client, place, name="old", **headers):
    client.close()
    return client.request("GET", f"{place.lower()}/{name}", **headers)


def settled(cluster, client, eventually):
    """All processes of the proxy and of storage nodes have the first key, which is active."""

    def written(place, number):
        name = f"old{number}"
        stored = put(client, place, name).status == 201
        return stored and keys_on_disk(cluster, client, place, name)[1] == {"first"}

    def at_once(place):
        """An idle process gets nearly all connections; so all must be busy."""
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return all(pool.map(lambda number: written(place, number), range(4 * AT_ONCE)))

    for place in PLACES:
        eventually(lambda place=place: at_once(place), AGAIN)
        in_a_row(eventually, lambda place=place: put(client, place, "old").status == 201)
        in_a_row(eventually, lambda place=place: get(client, place).status == 200)


def in_a_row(eventually, question):
    """True more often in a row than there are workers to answer."""

    def asked():
        return all(question() for _ in range(20))

    eventually(asked, AGAIN)


def refused(client, eventually, place, *said):
    """Every response for an object of ``place`` becomes a 503 that contains all of ``said``, and HEAD works."""

    def asked():
        answer = get(client, place)
        return answer.status == 503 and all(one.encode() in answer.body for one in said)

    in_a_row(eventually, asked)
    assert put(client, place, "new").status == 503
    head = client.request("HEAD", f"{place.lower()}/old")
    assert (head.status, head.headers["content-length"]) == (200, str(len(BODY)))


def keys_on_disk(cluster, client, place, name):
    """The files of an object, and which of the keys they name."""
    account = client.account.rpartition("/")[2]
    files = object_files(cluster.device_folders, f"{account}/{place.lower()}/{name}")
    said = [repr(file_metadata(path)) for path in files]
    return files, {key for key in ("first", "second") if any(f'"{key}"' in one for one in said)}


def anew(cluster):
    for name in WITH_KEYS:
        cluster.restart(name)


@pytest.mark.parametrize("place", PLACES)
def test_what_is_stored_is_encrypted_under_the_key_in_barbican(cluster, swift, place):
    assert put(swift, place, "o").status == 201
    assert get(swift, place, "o").body == BODY
    assert get(swift, place, "o", range="bytes=70000-70009").body == BODY[70000:70010]
    files, named = keys_on_disk(cluster, swift, place, "o")
    assert (len(files), named) == (3, {"first"})
    assert not [path for path in files if BODY[:40] in path.read_bytes()]


def test_new_objects_get_a_key_that_was_added_and_old_ones_keep_theirs(cluster, swift, keys, eventually):
    keys.make("second")
    keys.write("second")
    try:
        for place in PLACES:

            def with_second(place=place):
                assert put(swift, place, "rotated").status == 201  # at all times
                return keys_on_disk(cluster, swift, place, "rotated")[1] == {"second"}

            in_a_row(eventually, with_second)
            assert get(swift, place, "rotated").body == get(swift, place).body == BODY
            assert keys_on_disk(cluster, swift, place, "old")[1] == {"first"}
        keys.write("second", ["second"])
        for place in PLACES:
            in_a_row(eventually, lambda place=place: b"no key `first`" in get(swift, place).body)
            assert get(swift, place, "rotated").body == BODY
    finally:
        keys.write("first")
    settled(cluster, swift, eventually)


def test_barbican_away_stops_only_those_that_start_anew_until_it_is_back(cluster, swift, keys, eventually):
    cluster.kill("barbican")
    try:
        for place in PLACES:
            for turn in range(12):
                assert get(swift, place).body == BODY, turn
                assert put(swift, place, "meanwhile").status == 201, turn
        anew(cluster)
        for place in PLACES:
            refused(
                swift,
                eventually,
                place,
                "key `first`",
                "Unable to establish connection",
                cluster.layout.url("barbican"),
            )
    finally:
        cluster.restart("barbican")
    settled(cluster, swift, eventually)
    for place in PLACES:
        assert get(swift, place, "meanwhile").body == BODY


def test_a_barbican_that_says_nothing_keeps_no_proxy_from_starting(cluster, swift, eventually):
    cluster.kill("barbican", signal.SIGSTOP)
    try:
        cluster.restart("proxy")
        refused(swift, eventually, "PROXY", "no answer within 5 s")
        assert get(swift, "STORAGE_NODE").body == BODY
    finally:
        cluster.kill("barbican", signal.SIGCONT)
    settled(cluster, swift, eventually)


LOGINS = [
    ({"password": "not-the-password"}, "HTTP 401"),
    ({"user": barbican.SERVICE}, "Secret retrieval attempt not allowed"),
]


@pytest.mark.parametrize(("login", "said"), LOGINS)
def test_a_login_that_barbican_refuses_is_a_reason_and_no_secret_is_told(cluster, swift, keys, eventually, login, said):
    keys.write("first", **login)
    try:
        for place in PLACES:
            for turn in range(12):  # cached keys are still valid
                assert get(swift, place).body == BODY, turn
        anew(cluster)
        answers = []
        for place in PLACES:
            refused(swift, eventually, place, "key `first`", said)
            answers.append(get(swift, place).body.decode())
    finally:
        keys.write("first")
    settled(cluster, swift, eventually)
    passwords = [seed.password(cluster.layout, one) for one in (barbican.READER, barbican.SERVICE)]
    told = [*answers, *(cluster.log(name) for name in (*WITH_KEYS, "agent", "api", "actors"))]
    for secret in (*passwords, *keys.secrets(), "not-the-password"):
        assert not any(secret in one for one in told)
