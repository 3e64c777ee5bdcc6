"""A policy over a konnector's metric, on a live cluster: sentence, counters, limit in the snapshot, revert.

The konnector is a process that sends the node's agent its hello and then its counters, as the real one does.
"""

import contextlib
import socket
import threading
import time

import pytest

from sluice_client.errors import ApiError
from sluice_core.describe import KONNECTOR
from sluice_core.messages.nodes import Counters, Hello
from sluice_core.metrics.totals import birth
from sluice_core.snapshot.reader import SnapshotReader
from sluice_core.store.operation import write_documents
from sluice_core.store.store import Store
from sluice_volumes.messages import VolumeRecord
from sluice_volumes.metrics import VOLUME_QUEUE, VOLUME_READ_IOPS

ACCOUNT, VOLUME = "AUTH_test", "0b6f2a5e-0000-4000-8000-000000000001"
OTHER = "0b6f2a5e-0000-4000-8000-000000000002"


class FakeKonnector:
    """Reads of volumes at a rate, as the agent of a node receives them."""

    def __init__(self, path, **rates):
        self.rates = rates
        self._path = path
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self):
        born, totals = birth(), dict.fromkeys(self.rates, 0.0)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
            connection.connect(str(self._path))
            metrics = (VOLUME_READ_IOPS, VOLUME_QUEUE)
            actions = {"nop": 1, "throttling": 1}
            hello = Hello("k", KONNECTOR, 1, actions, metrics, (VOLUME_QUEUE,), url="https://127.0.0.1:1")
            connection.send(hello.encode())
            while not self._over.wait(0.2):
                totals = {volume: total + self.rates[volume] / 5 for volume, total in totals.items()}
                rows = tuple((f"{ACCOUNT}/{volume}", born, (total, 1.0)) for volume, total in totals.items())
                connection.send(Counters("k", time.time(), rows).encode())

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()


@pytest.fixture(scope="module")
def volumes(cluster):
    """Two volumes with records in Sluice."""
    store = Store(cluster.redis_url)
    found = [VolumeRecord(VOLUME, "test", ACCOUNT, "data1"), VolumeRecord(OTHER, "test", ACCOUNT, "data2")]
    store.run(write_documents(store.keys.volumes, {one.id: {"v": 1, **one.to_data()} for one in found}))
    yield
    store.client.hdel(store.keys.volumes, VOLUME, OTHER)
    store.close()


@pytest.fixture
def limits(cluster):
    """The limits of a volume in the node's snapshot."""
    reader = SnapshotReader(cluster.layout.snapshots)

    def read(volume):
        reader.refresh()
        found = reader.find_volume(ACCOUNT, volume).constant.get("throttle", ())
        return [dict(one.params) for one in found]

    yield read
    reader.close()


@pytest.fixture
def create(api, volumes, eventually):
    """Creates policies once the API knows the volumes, and deletes them afterwards."""
    made = []

    def available():
        with contextlib.suppress(ApiError):
            return api.check_policy("FOR VOLUME data1 DO SET nop")

    eventually(available)

    def post(sentence):
        made.append(api.create_policy(sentence, wait=10)["id"])
        return made[-1]

    yield post
    for policy in made:
        api.delete_policy(policy)


def test_a_limit_follows_the_reads_of_its_volume_and_is_taken_back(cluster, api, create, limits, eventually):
    each = create("FOR ALL VOLUMES WHEN VOLUME_READ_IOPS > 500 DO SET throttling WITH max_bw=3MBps TRANSIENT")
    with FakeKonnector(cluster.layout.agent_socket, **{VOLUME: 2000.0, OTHER: 100.0}) as konnector:
        eventually(lambda: limits(VOLUME) == [{"max_bw": 3e6}])
        assert limits(OTHER) == []
        create("FOR VOLUME data1 DO SET throttling WITH read_iops=1k")
        eventually(lambda: limits(VOLUME) == [{"read_iops": 1000.0}])
        konnector.rates[VOLUME] = 10.0
        konnector.rates[OTHER] = 900.0
        eventually(lambda: limits(OTHER) == [{"max_bw": 3e6}])
        seen = eventually(lambda: (api.policy(each)["observed"] or {}).get("members"))
        assert seen[f"{ACCOUNT}/{OTHER}"]["VOLUME_READ_IOPS"] > 500
    eventually(lambda: limits(OTHER) == [], 20)
    assert limits(VOLUME) == [{"read_iops": 1000.0}]
