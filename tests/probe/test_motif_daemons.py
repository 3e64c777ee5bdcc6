"""Swift's auditors, expirer and reconciler over contracted objects: they keep, delete and move them like any other."""

import hashlib
import time
from contextlib import suppress

import pytest
from swift.container.backend import ContainerBroker
from tests.support.cluster.container_databases import container_databases
from tests.support.cluster.daemons import run_daemon, run_round
from tests.support.cluster.motifs import (
    WHOLE,
    contract,
    is_contracted,
    motif,
    motif_daemon,
    put,
    sources,
    stored_copies,
)
from tests.support.cluster.object_files import object_files, quarantined

from sluice_aio.base.layout import Layout
from sluice_aio.base.setup import EC21, GOLD, POLICIES, Setup
from sluice_aio.base.swift_http import SwiftHttp
from sluice_aio.cluster.cluster import Cluster
from sluice_aio.conf.common import USERS
from sluice_core.errors import PeerError

ETAG = hashlib.md5(WHOLE).hexdigest()
#: Seconds for which an unneeded hidden copy stays.
GRACE = 12


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    layout = Layout.free(tmp_path_factory.mktemp("c"))
    options = {"copy_sweep": "0.5", "copy_grace": str(GRACE)}
    with Cluster(layout, setup=Setup(motif_options=options)) as found, motif_daemon(found):
        yield found


@pytest.fixture
def swift(cluster):
    found = SwiftHttp(cluster.proxy_url).login("test:tester", USERS["test:tester"][0])
    yield found
    found.close()


def logged_in(swift):
    with suppress(PeerError):
        return swift.login("test:tester", USERS["test:tester"][0])


def assert_whole(swift, path):
    answer = swift.request("GET", path)
    assert (answer.status, answer.body == WHOLE) == (200, True), answer.body[:300]


def test_auditors_put_away_only_what_is_damaged(cluster, swift):
    damaged = []
    for policy, repairer in ((GOLD, "object-replicator"), (EC21, "object-reconstructor")):
        container = f"audited-{policy}"
        made = sources(swift, f"{container}-sources")
        put(swift, container, x_storage_policy=policy)
        for name in ("sound", "longer"):
            put(swift, f"{container}/{name}", WHOLE, x_object_motif=made)
            contract(cluster, f"{container}/{name}")
        damaged.append((f"AUTH_test/{container}/longer", repairer))
    for daemon in ("object-auditor", "container-auditor"):
        run_round(cluster, daemon)
    assert quarantined(cluster.device_folders) == []
    victims = [object_files(cluster.device_folders, name)[0] for name, _ in damaged]
    for victim in victims:
        victim.write_bytes(b"x")
    run_daemon(cluster, "object-auditor", servers=["object1"])
    names = {path.name for path in quarantined(cluster.device_folders)}
    assert names == {victim.parent.name for victim in victims}
    for name, repairer in damaged:
        assert len(object_files(cluster.device_folders, name)) == 2
        run_daemon(cluster, repairer, servers=["object2"])
        assert [path.stat().st_size for path in object_files(cluster.device_folders, name)] == [0] * 3
        for path in ("sound", "longer"):
            assert_whole(swift, f"{name.split('/')[1]}/{path}")


def test_the_expirer_deletes_what_is_contracted(cluster, swift, eventually):
    made = sources(swift, "expiring-sources")
    before = stored_copies(cluster)
    paths = ["expiring/o", "expiring-ec/o", "expiring/cold"]
    put(swift, "expiring")
    put(swift, "expiring-ec", x_storage_policy=EC21)
    for path in paths:
        put(swift, path, WHOLE, x_object_motif=motif("tier", policy=EC21) if "cold" in path else made)
        contract(cluster, path)
    (copy,) = stored_copies(cluster) - before
    due = str(int(time.time()) + 5)
    for path in paths:
        assert swift.request("POST", path, x_delete_at=due).status == 202
        assert is_contracted(cluster, path)
    for path in paths:
        eventually(lambda path=path: swift.request("GET", path).status == 404, 30)
        assert len(object_files(cluster.device_folders, f"AUTH_test/{path}")) == 3
    run_round(cluster, "object-updater")
    run_round(cluster, "container-updater")  # only then does the account list the expirer's queue
    log = run_round(cluster, "object-expirer", options={"dequeue_from_legacy": "true"})
    for path in paths:
        assert object_files(cluster.device_folders, f"AUTH_test/{path}") == [], log
    assert swift.listing("expiring") == swift.listing("expiring-ec") == []
    eventually(lambda: copy not in stored_copies(cluster), GRACE + 20)


def test_a_copy_stays_as_long_as_its_object(cluster, swift, eventually):
    put(swift, "cold")
    before = stored_copies(cluster)
    for name in ("kept", "replaced"):
        put(swift, f"cold/{name}", WHOLE + name.encode(), x_object_motif=motif("tier", policy=EC21))
        contract(cluster, f"cold/{name}")
    both = stored_copies(cluster) - before
    put(swift, "cold/replaced", b"other")
    # which shows that there was a sweep after it
    eventually(lambda: len(both & stored_copies(cluster)) == 1, GRACE + 20)
    assert is_contracted(cluster, "cold/kept")
    assert swift.request("GET", "cold/kept").body == WHOLE + b"kept"


def move_container(cluster, container, policy):
    """Give a container another storage policy, as replicators do when a container was made twice."""
    for path in container_databases(cluster, container):
        ContainerBroker(str(path)).set_storage_policy_index(POLICIES.index(policy))


def test_the_reconciler_moves_what_is_contracted(cluster, swift, eventually):
    made = sources(swift, "moved-sources")
    put(swift, "moved", x_storage_policy=EC21)
    put(swift, "moved-duplicates")
    for name in ("contracted", "expanded", "posted"):
        put(swift, f"moved/{name}", WHOLE, x_object_motif=made, x_object_meta_colour="blue")
    put(swift, "moved/source", WHOLE, x_object_meta_colour="blue")
    put(swift, "moved-duplicates/o", WHOLE, x_object_motif="duplicate_of; source=AUTH_test/moved/source")
    for path in ("moved/contracted", "moved/posted", "moved-duplicates/o"):
        contract(cluster, path)
    put(swift, "moved/attached", WHOLE, x_object_meta_colour="blue")
    assert swift.request("POST", "moved/attached", x_object_motif=made, x_object_meta_colour="red").status == 202
    for name in ("posted", "source"):
        assert swift.request("POST", f"moved/{name}", x_object_meta_colour="red").status == 202
    rows = swift.listing("moved")
    move_container(cluster, "moved", GOLD)
    for daemon in ("container-replicator", "container-updater", "container-reconciler"):
        log = run_daemon(cluster, daemon)
    cluster.restart("memcached")  # where proxies cache the container's policy, and tokens
    eventually(lambda: logged_in(swift), 30)  # a proxy does not use a memcached for a moment that was down
    for name, contracted in (("contracted", True), ("posted", True), ("expanded", False), ("source", True)):
        files = object_files(cluster.device_folders, f"AUTH_test/moved/{name}")
        assert {file.parents[3].name for file in files} == {"objects"}, log
        assert len(files) == 3
        assert is_contracted(cluster, f"moved/{name}") == contracted, "the source shares the copy of its duplicate"
    assert [(row["name"], row["bytes"], row["hash"]) for row in swift.listing("moved")] == [
        (row["name"], len(WHOLE), ETAG) for row in rows
    ]
    assert_whole(swift, "moved-duplicates/o")
    for name, colour in (("contracted", "blue"), ("expanded", "blue"), ("posted", "red"), ("attached", "red")):
        head = swift.request("HEAD", f"moved/{name}").headers
        assert (head["content-length"], head["etag"], head["x-object-meta-colour"]) == (str(len(WHOLE)), ETAG, colour)
        for _ in range(2):
            assert_whole(swift, f"moved/{name}")
            contract(cluster, f"moved/{name}")
    assert swift.listing("moved")[0]["last_modified"] == rows[0]["last_modified"]
