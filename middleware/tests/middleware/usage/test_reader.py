"""The usage reader as the agent starts it: a process that reads devices and writes batches."""

import select
import subprocess
import sys
import time

import pytest
from swift.account.backend import AccountBroker
from swift.common.ring import RingBuilder
from swift.common.utils import Timestamp
from swift.container.backend import ContainerBroker

from sluice_core.messages.nodes import MetricBatch
from sluice_core.metrics.merge import MergedBatches
from sluice_core.metrics.usage_metrics import ACCOUNTS, HEAD, decode_head
from sluice_middleware.usage import __main__ as usage_batches
from sluice_middleware.usage.__main__ import UsageBatches
from sluice_middleware.usage.databases import Pass, Usage
from sluice_middleware.usage.space import Space, StorageConf, all_devices, measure_space
from sluice_rewrites.accounts import AccountsFound

pytestmark = pytest.mark.service

SWIFT_CONF = """
[swift-hash]
swift_hash_path_suffix = x
[storage-policy:0]
name = gold
default = yes
[storage-policy:1]
name = elsewhere
"""
LIMIT = 30.0


class Node:
    """A storage node with one device, its rings and its configuration."""

    def __init__(self, folder):
        self.folder = folder
        self.devices = folder / "devices"
        (self.devices / "sdb1").mkdir(parents=True)
        (folder / "swift.conf").write_text(SWIFT_CONF)
        self._ring("account", "127.0.0.1", "sdb1")
        self._ring("object", "127.0.0.1", "sdb1")
        self._ring("object-1", "203.0.113.7", "sdb1")
        self.conf = folder / "object-server.conf"
        self.conf.write_text(
            f"[DEFAULT]\ndevices = {self.devices}\nmount_check = false\nswift_dir = {folder}\nbind_ip = 127.0.0.1\n"
        )

    def _ring(self, name, ip, device):
        builder = RingBuilder(2, 1, 1)
        builder.add_dev({"id": 0, "region": 1, "zone": 1, "weight": 1.0, "device": device, "ip": ip, "port": 6200})
        builder.rebalance()
        builder.get_ring().save(str(self.folder / f"{name}.ring.gz"))

    def put(self, name, size):
        folder = self.devices / "sdb1" / "containers" / "1" / "abc" / "0123abc"
        folder.mkdir(parents=True, exist_ok=True)
        with ContainerBroker(str(folder / "0123abc.db"), account="AUTH_a", container="logs") as broker:
            if not (folder / "0123abc.db").exists():
                broker.initialize(Timestamp.now().internal, 0)
            broker.put_object(name, Timestamp.now().internal, size, "text/plain", "x")


class Reader:
    def __init__(self, *arguments):
        command = [sys.executable, "-m", "sluice_middleware.usage", *map(str, arguments)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def batch(self, metric):
        """The next batch of ``metric``; others are skipped."""
        return MetricBatch.decode(self.frame(metric))

    def frame(self, metric):
        while True:
            ready, _, _ = select.select([self.process.stdout], [], [], LIMIT)
            assert ready, "it writes nothing"
            name, size = decode_head(self.process.stdout.read(HEAD.size))
            found = self.process.stdout.read(name).decode(), self.process.stdout.read(size)
            if found[0] == metric:
                return found[1]

    def accounts(self):
        """The reader's answer to a byte."""
        self.process.stdin.write(b".")
        self.process.stdin.flush()
        return AccountsFound.decode(self.frame(ACCOUNTS))

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.kill()
        self.process.communicate()


def test_each_window_says_what_is_stored_and_the_space_for_it(tmp_path):
    node = Node(tmp_path)
    node.put("a", 10)
    with Reader("n1", 1, node.conf) as reader:
        capacity, free = reader.batch("NODE_CAPACITY"), reader.batch("NODE_FREE")
        of_policies, free_there = reader.batch("STORAGE_POLICY_CAPACITY"), reader.batch("STORAGE_POLICY_FREE")
        stored = reader.batch("STORED")
        assert stored.values["container"] == {"AUTH_a/logs": 10.0}
        assert (stored.node, stored.period, stored.merge, stored.seq) == ("n1", 1.0, "highest", 1)
        assert -1 < time.time() - (stored.window + 1) < LIMIT
        assert reader.batch("OBJECTS").values["container"] == {"AUTH_a/logs": 1.0}
        size = capacity.values["node"]["n1"]
        assert size > 0
        assert of_policies.values == {"storage_policy": {"gold": size}}
        assert 0 < free.values["node"]["n1"] < 1
        assert free.merge == free_there.merge == "lowest"
        assert free_there.weights == of_policies.values
        node.put("b", 32)
        end = time.monotonic() + LIMIT
        while reader.batch("STORED").values["container"] != {"AUTH_a/logs": 42.0}:
            assert time.monotonic() < end


def test_it_answers_each_byte_with_the_accounts_of_that_moment(tmp_path):
    node = Node(tmp_path)
    with Reader("n1", 60, node.conf) as reader:
        assert reader.accounts() == AccountsFound((), ("127.0.0.1:6200/sdb1",), ("127.0.0.1:6200/sdb1",))
        folder = node.devices / "sdb1" / "accounts" / "1" / "abc" / "0123abc"
        folder.mkdir(parents=True)
        with AccountBroker(str(folder / "0123abc.db"), account="AUTH_a") as broker:
            broker.initialize(Timestamp.now().internal)
        assert reader.accounts().accounts == ("AUTH_a",)


def test_it_ends_with_whoever_started_it(tmp_path):
    with Reader("n1", 1, Node(tmp_path).conf) as reader:
        reader.batch("STORED")
        reader.process.communicate(timeout=LIMIT)  # closes its input
        assert reader.process.returncode == 0


def test_a_configuration_that_cannot_be_read_is_named(tmp_path):
    with Reader("n1", 1, tmp_path / "none.conf") as reader:
        assert reader.process.wait(LIMIT) == 1
        assert b"option `storage_confs`" in reader.process.stderr.read()


def test_two_nodes_with_replicas_hold_as_much_as_one():
    found = Pass({"AUTH_a": Usage(100, 4), "AUTH_b": Usage(1, 1)}, {"AUTH_a/c": Usage(100, 4)})
    behind = Pass({"AUTH_a": Usage(90, 3)}, {"AUTH_a/c": Usage(90, 3)})
    for number, (cluster, value) in enumerate(((101.0, 100.0), (5.0, 4.0))):
        merged = MergedBatches()
        for name, one in (("n1", found), ("n2", behind)):
            merged.add(MetricBatch.decode(list(UsageBatches(name, 60).stored(0, one))[number].encode()))
        levels = merged.values()
        assert levels["tenant"]["AUTH_a"] == levels["container"]["AUTH_a/c"] == value
        assert levels["cluster"] == {"": cluster}


def test_free_space_of_a_storage_policy_is_weighed_and_the_cluster_has_the_least():
    parts = {"n1": {"gold": Space(100, 10), "ssd": Space(10, 9)}, "n2": {"gold": Space(300, 90)}}
    free, nodes = MergedBatches(), MergedBatches()
    for name, policies in parts.items():
        for batch in UsageBatches(name, 60).space(0, policies["gold"], policies):
            if batch.metric == "STORAGE_POLICY_FREE":
                free.add(batch)
            if batch.metric == "NODE_FREE":
                nodes.add(batch)
    assert free.values() == {"storage_policy": {"gold": 0.25, "ssd": 0.9}, "cluster": {"": 0.25}}
    assert nodes.values() == {"node": {"n1": 0.1, "n2": 0.3}, "cluster": {"": 0.1}}


def test_a_node_without_devices_says_nothing_of_space():
    assert list(UsageBatches("n1", 60).space(0, Space(0, 0), {})) == []


def test_the_containers_that_hold_most_are_published(monkeypatch):
    monkeypatch.setattr(usage_batches, "MOST_ROWS", 2)
    found = Pass(containers={f"A/c{size}": Usage(size, 1) for size in (5, 1, 9)})
    stored, _ = UsageBatches("n1", 60).stored(0, found)
    assert stored.values["container"] == {"A/c9": 9.0, "A/c5": 5.0}


def test_a_file_system_counts_once_and_only_mounted_devices_count(tmp_path):
    for name in ("sdb1", "sdb2"):
        (tmp_path / name).mkdir()
    both = all_devices([StorageConf(str(tmp_path), mount_check=False)] * 2)
    assert [one.name for one in both] == ["sdb1", "sdb2"]
    assert measure_space(both).size == measure_space(both[:1]).size > 0
    assert all_devices([StorageConf(str(tmp_path), mount_check=True)]) == []
    assert all_devices([StorageConf(str(tmp_path / "none"))]) == []
