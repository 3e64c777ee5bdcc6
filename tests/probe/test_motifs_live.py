"""Objects with motifs under load: every byte of every answer is one that may be read, whatever is contracted or killed.

``SLUICE_LIVE_SECONDS`` says for how long; ten minutes before a release.
"""

import os
import random
import time

import pytest
from tests.support.cluster.motif_traffic import WITH_MOTIFS, MotifTraffic
from tests.support.cluster.motifs import motif_daemon

SECONDS = float(os.environ.get("SLUICE_LIVE_SECONDS", "40"))
#: What is killed, with all its workers where it has some.
VICTIMS = ("motifs", "proxy", "object1", "redis")


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
    """Each object can be read in the end, and is what it must be."""
    for name in WITH_MOTIFS:
        end = time.monotonic() + 30
        while (found := traffic.read(name)) is None or found.status != 200 or not found.whole:
            assert time.monotonic() < end, (name, found and (found.status, found.body[:300]))
            time.sleep(0.2)
    print(dict(sorted(traffic.counts.items())))
    assert traffic.wrong == []
    for name in WITH_MOTIFS:
        assert traffic.counts.get(f"contracted {name}"), f"`{name}` was never contracted: {traffic.counts}"


@pytest.mark.probe
@pytest.mark.parametrize("kills", [False, True], ids=["calm", "kills"])
def test_no_answer_is_old_wrong_or_lost(motifs, traffic, kills):
    draws, end = random.Random(7), time.monotonic() + SECONDS
    while time.monotonic() < end:
        time.sleep(min(6.0, max(0.0, end - time.monotonic())))
        if kills and time.monotonic() < end:
            victim = draws.choice(VICTIMS)
            if victim == "proxy":
                draws.choice(motifs.workers(victim)).signal(9)  # its parent forks another one
            else:
                motifs.kill(victim)
                motifs.restart(victim)
    traffic.stop()
    everything_is_there(traffic)
