"""Objects with motifs under load: every byte of every response is allowed, whatever is contracted or killed, and
whatever Redis loses.

``SLUICE_LIVE_SECONDS`` is the duration; ten minutes before a release.
"""

import os
import random
import time

import pytest
import redis
from tests.support.cluster.motif_traffic import WITH_MOTIFS, MotifTraffic
from tests.support.cluster.motifs import FIRST, contract, is_contracted, motif, motif_daemon, put
from tests.support.cluster.people import shared_cluster, swift_as

from sluice_aio.base.setup import TEMPAUTH

SECONDS = float(os.environ.get("SLUICE_LIVE_SECONDS", "40"))
#: The services to kill, with all their workers if they have some.
VICTIMS = ("motifs", "proxy", "object1", "redis")
FAULTS = {"calm": (), "kills": VICTIMS, "wiped": ("wiped",), "all": (*VICTIMS, "wiped")}
#: Seconds between two faults: a Redis that has lost its leases grants none for ten.
PAUSES = {"calm": 6.0, "kills": 6.0, "wiped": 14.0, "all": 10.0}


@pytest.fixture(scope="module")
def cluster():
    """A cluster of its own: nodes refuse the policies of a wiped Redis until an administrator lets them adopt these."""
    with shared_cluster(TEMPAUTH) as running:
        yield running


@pytest.fixture(scope="module")
def swift(cluster):
    return swift_as(cluster, "test:tester")


@pytest.fixture(scope="module")
def motifs(cluster):
    with motif_daemon(cluster):
        yield cluster


@pytest.fixture
def traffic(motifs, swift, request):
    traffic = MotifTraffic(swift, str(motifs.layout.motif_socket), f"live-{request.node.callspec.id}")
    traffic.prepare()
    traffic.start()
    yield traffic
    traffic.stop()


def everything_is_there(traffic):
    """Each object can be read in the end, and has the expected bytes."""
    for name in WITH_MOTIFS:
        end = time.monotonic() + 30
        while (found := traffic.read(name)) is None or found.status != 200 or not found.whole:
            assert time.monotonic() < end, (name, found and (found.status, found.body[:300]))
            time.sleep(0.2)
    print(dict(sorted(traffic.counts.items())))
    assert traffic.wrong == []
    for name in WITH_MOTIFS:
        assert traffic.counts.get(f"contracted {name}"), f"`{name}` was never contracted: {traffic.counts}"


def wipe_redis(cluster):
    """Redis loses all data, and continues to run."""
    with redis.Redis.from_url(cluster.redis_url) as client:
        client.flushall()


@pytest.mark.probe
@pytest.mark.parametrize("faults", FAULTS)
def test_no_answer_is_old_wrong_or_lost(motifs, traffic, faults):
    draws, end = random.Random(7), time.monotonic() + SECONDS
    while time.monotonic() < end:
        time.sleep(min(PAUSES[faults], max(0.0, end - time.monotonic())))
        if FAULTS[faults] and time.monotonic() < end:
            victim = draws.choice(FAULTS[faults])
            if victim == "wiped":
                wipe_redis(motifs)
            elif victim == "proxy":
                draws.choice(motifs.workers(victim)).signal(9)  # its parent forks another one
            else:
                motifs.kill(victim)
                motifs.restart(victim)
    traffic.stop()
    everything_is_there(traffic)


@pytest.mark.probe
@pytest.mark.parametrize("method", ["DELETE", "PUT"])
def test_a_source_is_changed_at_once_after_redis_was_wiped_and_its_duplicate_keeps_its_bytes(motifs, swift, method):
    container = f"wiped-{method.lower()}"
    put(swift, container)
    put(swift, f"{container}/source", FIRST)
    twin = motif("duplicate_of", source=f"AUTH_test/{container}/source")
    put(swift, f"{container}/twin", FIRST, x_object_motif=twin)
    contract(motifs, f"{container}/twin")
    wipe_redis(motifs)
    assert swift.request(method, f"{container}/source").status in (201, 204)
    assert is_contracted(motifs, f"{container}/twin")
    assert swift.request("GET", f"{container}/twin").body == FIRST
