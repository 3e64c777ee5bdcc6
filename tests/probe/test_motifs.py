"""Many readers of one contracted object, and processes that are killed while it is made."""

import hashlib
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from tests.support.cluster.motifs import contract, expand, is_contracted
from tests.support.cluster.object_files import download

from sluice_aio.base.layout import Layout
from sluice_aio.base.setup import Setup
from sluice_aio.base.swift_http import SwiftHttp
from sluice_aio.cluster.cluster import Cluster
from sluice_aio.cluster.components import DEFAULT, SECOND_NODE
from sluice_aio.conf.common import USERS
from sluice_core.errors import PeerError

READERS = 1000
AT_ONCE = 200
PART = b"".join(b"%d: some line of a part\n" % n for n in range(200_000))
SHORT = PART[:250_000]
PARTS = 4
WHOLE = PART * PARTS


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    layout = Layout.free(tmp_path_factory.mktemp("c"))
    # object servers log requests of daemons in debug messages
    setup = Setup(storage_options={"log_level": "DEBUG"})
    with Cluster(layout, DEFAULT | SECOND_NODE | {"motifs", "motifs2"}, setup=setup) as found:
        yield found


def client(cluster, server="proxy"):
    return SwiftHttp(cluster.layout.url(server), timeout=300.0).login("test:tester", USERS["test:tester"][0])


@pytest.fixture
def swift(cluster):
    found = client(cluster)
    yield found
    found.close()


def expansions(cluster):
    """The number of PUTs of the object in the object servers' logs."""
    lines = [line for name in ("object1", "object2", "object3") for line in cluster.log(name).splitlines()]
    return sum('"PUT /' in line and '/AUTH_test/many/o"' in line for line in lines)


def put_whole(swift, container, part=PART):
    for name in range(PARTS):
        assert swift.request("PUT", f"{container}/part{name}", part).status == 201
    sources = ",".join(f"AUTH_test/{container}/part{name}" for name in range(PARTS))
    end = time.monotonic() + 60
    while True:
        made = swift.request("PUT", f"{container}/o", part * PARTS, x_object_motif=f"concat; of={sources}")
        if made.status == 201:
            return
        # a daemon that was just started scans the storage first
        assert (made.status, b"a scan of the storage has not ended" in made.body) == (503, True), made
        assert time.monotonic() < end, made
        time.sleep(0.5)


def test_a_thousand_readers_over_two_proxies_share_one_expansion(cluster, swift):
    assert swift.request("PUT", "many").status in (201, 202)
    put_whole(swift, "many", SHORT)
    contract(cluster, "many/o")
    before = expansions(cluster)
    clients = threading.local()
    digest = hashlib.md5(SHORT * PARTS).digest()

    def read(number):
        if not hasattr(clients, "both"):
            clients.both = [client(cluster), client(cluster, "proxy2")]
        answer = clients.both[number % 2].request("GET", "many/o")
        return answer.status, hashlib.md5(answer.body).digest()

    with ThreadPoolExecutor(AT_ONCE) as pool:
        answers = set(pool.map(read, range(READERS)))
    assert answers == {(200, digest)}
    expand(cluster, "many/o")
    assert not is_contracted(cluster, "many/o")
    assert expansions(cluster) - before == 3, "one PUT on each of three object servers"


def test_a_daemon_that_starts_without_redis_makes_objects_again(cluster, swift):
    assert swift.request("PUT", "alone").status in (201, 202)
    put_whole(swift, "alone", SHORT)
    contract(cluster, "alone/o")
    cluster.kill("redis")
    try:
        cluster.kill("motifs")
        cluster.restart("motifs")
        answer = download(swift, "alone/o")
        assert (answer.status, answer.whole, answer.body == SHORT * PARTS) == (200, True, True), answer.body[:300]
    finally:
        cluster.restart("redis")
    contract(cluster, "alone/o")


# the last test: proxies write to no object server that was down a moment ago, and replicas differ then
@pytest.mark.parametrize("killed", ["motifs", "proxy worker", "redis", "object1"])
def test_what_is_killed_in_the_middle_leaves_an_object_that_is_whole_or_contracted(cluster, swift, killed):
    container = f"kill-{killed.replace(' ', '-')}"
    assert swift.request("PUT", container).status in (201, 202)
    put_whole(swift, container)
    contract(cluster, f"{container}/o")
    reading = threading.Event()

    def kill():
        reading.wait(30)
        if killed == "proxy worker":
            cluster.workers("proxy")[0].signal(signal.SIGKILL)
        else:
            cluster.kill(killed)

    killer = threading.Thread(target=kill)
    killer.start()
    reading.set()
    with suppress(OSError):  # a worker that was killed before it answered
        first = download(swift, f"{container}/o")
        assert not first.whole or first.status != 200 or first.body == WHOLE
    killer.join()
    if killed != "proxy worker":
        cluster.restart(killed)
    end = time.monotonic() + 60
    while True:
        try:
            answer = download(client(cluster), f"{container}/o")
            if answer.status == 200 and answer.whole:
                break
        except (OSError, PeerError):  # the connection was of the killed worker
            answer = None
        assert time.monotonic() < end, answer
        time.sleep(0.5)
    assert answer.body == WHOLE
    rows = {row["name"]: row for row in client(cluster).listing(container)}  # `swift` may be of the killed worker
    assert (rows["o"]["bytes"], rows["o"]["hash"]) == (len(WHOLE), hashlib.md5(WHOLE).hexdigest())
