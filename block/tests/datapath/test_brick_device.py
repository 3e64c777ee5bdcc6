"""Devices by os-brick, which is an optional dependency."""

import sys
from types import ModuleType, SimpleNamespace

import pytest

from sluice_block.datapath.source import BrickDevice, Source
from sluice_core.errors import CallerError, PeerError

MODULES = (
    "os_brick",
    "os_brick.initiator",
    "os_brick.initiator.connector",
    "os_brick.privileged",
    "os_brick.exception",
)


class BrickError(Exception):
    pass


class InvalidProtocol(BrickError):
    pass


class FakeConnector:
    def __init__(self):
        self.calls = []
        self.failure = None

    def connect_volume(self, data):
        self.calls.append(("connect", data))
        if self.failure is not None:
            raise self.failure
        return {"type": "block", "path": "/dev/sdz", "scsi_wwn": "7"}

    def disconnect_volume(self, data, device):
        self.calls.append(("disconnect", data, device))


@pytest.fixture
def brick(monkeypatch):
    """os-brick's methods that are used."""
    connector = FakeConnector()

    def factory(protocol, root_helper, device_scan_attempts):
        if protocol != "ISCSI":
            raise InvalidProtocol
        return connector

    made = {name: ModuleType(name) for name in (*MODULES, "oslo_concurrency.processutils", "oslo_config.cfg")}
    made["os_brick.initiator.connector"].InitiatorConnector = SimpleNamespace(factory=factory)
    made["os_brick.privileged"].default = SimpleNamespace(set_client_mode=lambda client: None)
    made["os_brick.exception"].BrickException = BrickError
    made["os_brick.exception"].InvalidConnectorProtocol = InvalidProtocol
    made["oslo_concurrency.processutils"].ProcessExecutionError = BrickError
    made["oslo_config.cfg"].CONF = SimpleNamespace(set_default=lambda *given: None)
    for name, module in made.items():
        monkeypatch.setitem(sys.modules, name, module)
    return connector


def test_a_device_is_connected_once_and_disconnected_as_it_was_connected(brick, tmp_path):
    data = {"target_iqn": "iqn.7"}
    source = Source({"driver_volume_type": "iscsi", "data": data}, tmp_path)
    assert source.start() == ["file", "/dev/sdz"]
    assert Source({"driver_volume_type": "iscsi", "data": data}, tmp_path).start() == ["file", "/dev/sdz"]
    source.end()
    source.end()
    assert brick.calls == [
        ("connect", data),
        ("disconnect", data, {"type": "block", "path": "/dev/sdz", "scsi_wwn": "7"}),
    ]


def test_a_failure_of_os_brick_is_told_without_what_the_connection_holds(brick, tmp_path):
    brick.failure = BrickError("CHAP password is secret")
    with pytest.raises(PeerError, match="does not connect a volume of type `iscsi`: BrickError"):
        BrickDevice(tmp_path / "record").connect("iscsi", {})


def test_a_type_that_nobody_knows_is_refused(brick, tmp_path):
    with pytest.raises(CallerError, match="os-brick knows no connections of type `smoke`"):
        BrickDevice(tmp_path / "record").connect("smoke", {})


def test_without_os_brick_its_types_are_refused_with_those_that_work(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "os_brick.initiator.connector", None)
    with pytest.raises(CallerError, match="`iscsi` cannot be used here, expected nbd, nfs, rbd, local, or os-brick"):
        BrickDevice(tmp_path / "record").connect("iscsi", {})
