"""The accounts of a node, from real databases and rings of Swift, and the devices read for them."""

import gc
import os
from contextlib import ExitStack

import pytest
from swift.account.backend import AccountBroker
from swift.common.ring import RingBuilder
from swift.common.utils import Timestamp

from sluice_middleware.usage import accounts
from sluice_middleware.usage.accounts import AccountReader
from sluice_middleware.usage.space import StorageConf
from sluice_rewrites.accounts import copies_account

HERE, ELSEWHERE = "127.0.0.1", "203.0.113.7"


class Node:
    def __init__(self, folder, opened):
        self.folder = folder
        self._opened = opened
        self.brokers = {}
        for name in ("sdb", "sdc"):
            (folder / "devices" / name).mkdir(parents=True)
        self.ring((HERE, "sdb"), (HERE, "sdc"), (ELSEWHERE, "sdb"))

    def conf(self, name="devices"):
        return StorageConf(str(self.folder / name), False, str(self.folder), HERE)

    def ring(self, *devices):
        builder = RingBuilder(2, 1, 1)
        for number, row in enumerate(devices):
            ip, device, weight, port = (*row, *(1, 6202)[len(row) - 2 :])
            where = {"id": number, "region": 1, "zone": 1, "ip": ip, "port": port}
            builder.add_dev({**where, "device": device, "weight": float(weight)})
        builder.rebalance()
        builder.get_ring().save(str(self.folder / "account.ring.gz"))

    def account(self, name, device="sdb"):
        folder = self.folder / "devices" / device / "accounts" / "7" / "abc" / f"{abs(hash(name)):032x}"
        folder.mkdir(parents=True)
        broker = self._opened.enter_context(AccountBroker(str(folder / f"{folder.name}.db"), account=name))
        broker.initialize(Timestamp(1_700_000_000).internal)
        self.brokers[name] = broker
        return folder


@pytest.fixture
def node(tmp_path):
    with ExitStack() as opened:
        yield Node(tmp_path, opened)


def test_all_accounts_of_all_devices_are_found_and_the_devices_are_those_of_the_ring(node):
    node.account("AUTH_a")
    node.account("AUTH_b", "sdc")
    found = AccountReader().read([node.conf()])
    assert found.accounts == ("AUTH_a", "AUTH_b")
    assert set(found.ring) == {f"{HERE}:6202/sdb", f"{HERE}:6202/sdc", f"{ELSEWHERE}:6202/sdb"}
    assert set(found.read) == {f"{HERE}:6202/sdb", f"{HERE}:6202/sdc"}
    assert found.faults == ()


def test_copies_stand_for_the_account_that_they_are_of_and_swifts_own_hold_nothing(node):
    node.account(copies_account("AUTH_a"))
    node.account(".expiring_objects")
    node.account("AUTH_gone")
    node.brokers["AUTH_gone"].delete_db(Timestamp.now().internal)
    assert AccountReader().read([node.conf()]).accounts == ("AUTH_a",)


def test_a_device_that_is_not_mounted_was_not_read(node):
    node.ring((HERE, "sdb"), (HERE, "sdd"))
    assert AccountReader().read([node.conf()]).read == (f"{HERE}:6202/sdb",)


def test_a_device_without_weight_is_read_and_need_not_be(node):
    node.ring((HERE, "sdb"), (HERE, "sdc", 0))
    node.account("AUTH_b", "sdc")
    found = AccountReader().read([node.conf()])
    assert (found.accounts, found.ring) == (("AUTH_b",), (f"{HERE}:6202/sdb",))


def test_two_servers_of_one_address_with_devices_of_one_name_are_told_apart(node):
    """As in an all-in-one of Swift; an agent with the devices of one of the two must not answer for both."""
    node.ring((HERE, "sdb"), (HERE, "sdb", 1, 6212))
    assert AccountReader().read([node.conf()]).read == ()
    (node.folder / "others" / "sdb").mkdir(parents=True)
    assert len(AccountReader().read([node.conf(), node.conf("others")]).read) == 2


def test_without_a_ring_nothing_is_complete(node):
    os.unlink(node.folder / "account.ring.gz")
    found = AccountReader().read([node.conf()])
    assert (found.ring, found.read) == ((), ())
    assert "the account ring cannot be read" in found.faults[0]


def test_a_folder_that_cannot_be_listed_is_a_fault(node, monkeypatch):
    """As on a disk with errors; its databases must not count as read."""
    folder = node.account("AUTH_a")
    partition, original = str(folder.parent.parent), os.scandir

    def scandir(path):
        if path == partition:
            raise OSError(5, "Input/output error", path)
        return original(path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert partition in AccountReader().read([node.conf()]).faults[0]


# Swift leaves the connection to a database that it cannot open to the garbage collector
@pytest.mark.filterwarnings("ignore:unclosed database:ResourceWarning")
def test_a_damaged_database_is_a_fault_unless_its_account_is_known(node):
    folder = node.account("AUTH_a")
    path = node.brokers["AUTH_a"].db_file
    reader = AccountReader()
    assert reader.read([node.conf()]).accounts == ("AUTH_a",)
    with open(path, "r+b") as file:
        file.write(b"no database at all" * 100)
    assert reader.read([node.conf()]).accounts == ("AUTH_a",)
    found = AccountReader().read([node.conf()])
    assert found.accounts == ()
    assert str(folder) in found.faults[0]
    gc.collect()


def test_a_database_is_opened_again_only_when_it_changed(node, monkeypatch):
    opened, original = [], accounts.read_account_row
    monkeypatch.setattr(accounts, "read_account_row", lambda path: (opened.append(path), original(path))[1])
    node.account("AUTH_a")
    broker = node.brokers["AUTH_a"]
    for path in (broker.db_file, broker.pending_file):
        if os.path.exists(path):
            os.utime(path, (1_700_000_000, 1_700_000_000))
    reader = AccountReader()
    for _ in range(3):
        assert reader.read([node.conf()]).accounts == ("AUTH_a",)
    assert len(opened) == 1
