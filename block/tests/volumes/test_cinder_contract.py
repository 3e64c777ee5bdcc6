"""The fake Cinder passes the contract of a real one; ``tests/functional/block`` tests a real one."""

import pytest

from sluice_volumes.messages import Pool
from sluice_volumes.testing.cinder_contract import CinderContract
from sluice_volumes.testing.fake_cinder import FakeCinder


class TestFakeCinder(CinderContract):
    @pytest.fixture
    def service(self):
        return FakeCinder(Pool("host@nbd#fast", 1e12, 1e12, {"fabric": "nbd"}))

    @pytest.fixture
    def caller(self, service):
        return service.as_caller("token", "p1")

    @pytest.fixture
    def stranger(self, service):
        return service.as_caller("token", "p2")
