"""What is copied between storage nodes has the priority of copies, whose object it may be."""

import random

import pytest

from sluice_core.messages.bandwidth import COPIES, GET, NO_CLASS, PUT, Flow
from sluice_core.messages.credit import IDLE
from sluice_middleware import disk_copies, io_priority, io_streams
from sluice_middleware.credit_standings import Standings
from sluice_middleware.disk_streams import StreamFile
from sluice_middleware.disk_testing import StorageNode, swift_conf
from sluice_middleware.io_streams import STEP

BODY = random.Random(5).randbytes(2 * STEP)
COPY = {"X-Backend-Replication": "True"}
ENV = {"HTTP_X_BACKEND_REPLICATION": "True"}


class Told(Standings):
    def active(self):
        return True


@pytest.fixture
def node(tmp_path, monkeypatch):
    monkeypatch.setattr(io_streams, "_threads", {})
    monkeypatch.setattr(StreamFile, "_cached", lambda self, size: b"")
    with swift_conf(tmp_path):
        yield StorageNode(tmp_path / "node", {"sluice_io_threads": "always"})


@pytest.mark.parametrize(("told", "level"), [({COPIES: IDLE}, IDLE), ({}, NO_CLASS)])
def test_copies_never_have_the_level_of_their_tenant(node, monkeypatch, told, level):
    found = []
    monkeypatch.setattr(io_priority, "set_level", found.append)
    levels = {Flow("a", GET): 0, Flow("a", PUT): 0, **told}
    node.manager().streams.standings = Told(levels)
    assert node.put(BODY, headers=COPY).status == "201 Created"
    assert node.get(headers=COPY).body == BODY
    assert {NO_CLASS, *found} == {NO_CLASS, level}  # threads begin with the first
    assert node.get().body == BODY
    assert found[-1] == 0


def test_a_request_within_a_copy_says_itself_what_it_is():
    assert disk_copies.current() is None
    with disk_copies.serving(ENV):
        assert disk_copies.current() == COPIES
        with disk_copies.serving({}):
            assert disk_copies.current() is None
        assert disk_copies.current() == COPIES
    assert disk_copies.current() is None
