"""The usage of accounts and containers, from real databases of Swift."""

import gc
import os
import shutil
from contextlib import ExitStack

import pytest
from swift.account.backend import AccountBroker
from swift.common.utils import ShardRange, Timestamp
from swift.container.backend import ContainerBroker

from sluice_middleware.usage import databases
from sluice_middleware.usage.databases import DatabaseReader, Usage

NOW = 1_700_000_000


def at(seconds):
    return Timestamp(NOW + seconds).internal


class Device:
    """A device with databases, which stay open as long as ``opened``."""

    def __init__(self, folder, opened):
        self.path = folder
        self._opened = opened

    def _file(self, datadir, name):
        made = self.path / datadir / "7" / "abc" / f"{abs(hash(name)):032x}"
        made.mkdir(parents=True, exist_ok=True)
        return str(made / f"{made.name}.db")

    def container(self, account, name, *sizes, put=0):
        path = self._file("containers", f"{account}/{name}")
        broker = self._opened.enter_context(ContainerBroker(path, account=account, container=name))
        if not os.path.exists(broker.db_file):
            broker.initialize(at(put) if put is not None else "0", 0)
        for number, size in enumerate(sizes):
            broker.put_object(f"o{number}", at(number), size, "text/plain", "x")
        return broker

    def account(self, name, **containers):
        broker = self._opened.enter_context(AccountBroker(self._file("accounts", name), account=name))
        if not os.path.exists(broker.db_file):
            broker.initialize(at(0))
        for container, (objects, size) in containers.items():
            broker.put_container(container, at(1), "0", objects, size, 0)
        return broker


@pytest.fixture
def devices(tmp_path):
    with ExitStack() as opened:
        yield [Device(tmp_path / name, opened) for name in ("sdb1", "sdb2")]


@pytest.fixture
def device(devices):
    return devices[0]


def test_tenants_and_containers_hold_what_swift_answers_to_head(device):
    device.container("AUTH_a", "logs", 10, 20, 30)
    device.container("AUTH_a", "empty")
    device.account("AUTH_a", logs=(3, 60), other=(1, 5))
    found = DatabaseReader().read([device.path])
    assert found.containers == {"AUTH_a/logs": Usage(60, 3), "AUTH_a/empty": Usage(0, 0)}
    assert found.accounts == {"AUTH_a": Usage(65, 4)}
    assert not found.unreadable


def test_the_highest_of_several_replicas_counts(devices):
    first, second = devices
    first.container("AUTH_a", "logs", 10, 20)
    second.container("AUTH_a", "logs", 50)
    assert DatabaseReader().read([first.path, second.path]).containers == {"AUTH_a/logs": Usage(50, 2)}


def test_what_is_deleted_or_swifts_own_or_not_put_yet_is_left_out(device):
    device.container("AUTH_a", "gone").delete_db(at(10))
    device.account("AUTH_gone").delete_db(at(10))
    device.container(".shards_AUTH_a", "logs-x", 10)
    device.account(".expiring_objects", x=(1, 1))
    device.container("AUTH_a", "early", 10, put=None)
    found = DatabaseReader().read([device.path])
    assert (found.accounts, found.containers) == ({}, {})


def test_a_database_is_opened_again_only_when_it_changed(device, monkeypatch):
    opened = []

    def age(broker):
        broker.get_info()
        for path in (broker.db_file, broker.pending_file):
            os.utime(path, (NOW, NOW))

    age(device.account("AUTH_a", logs=(1, 10)))
    reader, original = DatabaseReader(), databases.read_account
    monkeypatch.setattr(databases, "read_account", lambda path: (opened.append(path), original(path))[1])
    for _ in range(3):
        assert reader.read([device.path]).accounts == {"AUTH_a": Usage(10, 1)}
    assert len(opened) == 1
    device.account("AUTH_a", logs=(2, 25))
    for _ in range(2):  # a file that changed a moment ago may still change
        assert reader.read([device.path]).accounts == {"AUTH_a": Usage(25, 2)}
    assert len(opened) == 3


def test_a_sharded_container_holds_what_its_shards_do(device):
    broker = device.container("AUTH_a", "big", 1, 1, 1)
    broker.enable_sharding(Timestamp(at(5)))
    shards = [ShardRange(f".shards_AUTH_a/big-{end}", at(6), start, end, objects, 10 * objects, state=ShardRange.ACTIVE)
              for start, end, objects in (("", "o1", 2), ("o1", "", 5))]  # fmt: skip
    broker.merge_shard_ranges(shards)
    assert broker.set_sharding_state()
    assert DatabaseReader().read([device.path]).containers == {"AUTH_a/big": Usage(3, 3)}
    assert broker.set_sharded_state()
    assert not broker.db_file.endswith(f"/{broker.db_file.split('/')[-2]}.db")
    assert DatabaseReader().read([device.path]).containers == {"AUTH_a/big": Usage(70, 7)}


# Swift leaves the connection to a database that it cannot open to the garbage collector
@pytest.mark.filterwarnings("ignore:unclosed database:ResourceWarning")
def test_a_damaged_database_is_counted_and_left_where_it_is(device):
    device.container("AUTH_a", "fine", 10)
    path = device.container("AUTH_a", "broken", 10).db_file
    with open(path, "r+b") as file:
        file.write(b"no database at all" * 100)
    reader = DatabaseReader()
    for _ in range(2):
        found = reader.read([device.path])
        assert found.containers == {"AUTH_a/fine": Usage(10, 1)}
        assert found.unreadable == 1
        assert os.path.dirname(path) in found.reason
    assert os.path.exists(path)
    shutil.rmtree(os.path.dirname(path))
    assert not reader.read([device.path]).unreadable
    gc.collect()


def test_a_device_without_databases_holds_nothing(tmp_path):
    found = DatabaseReader().read([tmp_path, tmp_path / "not-there"])
    assert (found.accounts, found.containers, found.unreadable) == ({}, {}, 0)
