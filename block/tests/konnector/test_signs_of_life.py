"""The service manager is told that the konnector lives while its volumes are checked, however many are in trouble."""

import threading

import pytest

from sluice_block.datapath.records import VolumeAttachment
from sluice_block.konnector.cli import Supervisor
from sluice_block.konnector.konnector import Konnector
from sluice_core.errors import PeerError


class LostVolume:
    """A volume whose source is away."""

    attachment = VolumeAttachment("a-volume", "acme", {})

    def __init__(self, seen):
        self._seen = seen

    def check(self, devices):
        self._seen.append("checked")
        raise PeerError("its source does not answer")

    def processes(self):
        return []


@pytest.fixture
def seen():
    return []


@pytest.fixture
def konnector(tmp_path, monkeypatch, seen):
    made = Konnector(*(tmp_path / name for name in ("state", "run", "built", "logs")))
    monkeypatch.setattr(made, "volumes", lambda: [LostVolume(seen)] * 3)
    return made


def test_a_sign_of_life_follows_each_volume(konnector, seen):
    konnector.check(lambda: seen.append("alive"))
    assert seen == ["checked", "alive"] * 3


def test_the_supervisor_gives_them_without_volumes_too(konnector, monkeypatch):
    monkeypatch.setattr(konnector, "volumes", list)
    alive = threading.Event()
    supervisor = Supervisor(konnector, alive.set)
    supervisor.start()
    try:
        assert alive.wait(10)
    finally:
        supervisor.stop()
