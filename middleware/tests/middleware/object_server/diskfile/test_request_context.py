"""Copies between storage nodes have the priority of copies, for any object."""

import random

import pytest
from tests.support.middleware.object_server import StorageNode, swift_conf

from sluice_core.messages.bandwidth import GET, NO_CLASS, PUT, REPLICATION_FLOW, Flow
from sluice_core.messages.credit import IDLE
from sluice_middleware.bandwidth.io_levels import AgentState
from sluice_middleware.object_server import stream_scheduler
from sluice_middleware.object_server.diskfile import request_context
from sluice_middleware.object_server.diskfile.streams import StreamFile
from sluice_middleware.object_server.stream_scheduler import STEP

BODY = random.Random(5).randbytes(2 * STEP)
COPY = {"X-Backend-Replication": "True"}
ENV = {"REQUEST_METHOD": "GET", "HTTP_X_BACKEND_REPLICATION": "True"}


@pytest.fixture
def node(tmp_path, monkeypatch):
    monkeypatch.setattr(stream_scheduler, "_threads", {})
    monkeypatch.setattr(StreamFile, "_cached", lambda self, size: b"")
    with swift_conf(tmp_path):
        yield StorageNode(tmp_path / "node", {"sluice_io_threads": "always"})


@pytest.mark.parametrize(("told", "level"), [({REPLICATION_FLOW: IDLE}, IDLE), ({}, NO_CLASS)])
def test_replication_streams_do_not_use_the_tenants_io_level(node, monkeypatch, told, level):
    found = []
    monkeypatch.setattr(stream_scheduler, "set_level", found.append)
    levels = {Flow("a", GET): 0, Flow("a", PUT): 0, **told}
    node.manager().scheduler.agent_state = lambda: AgentState(levels, active=True)
    assert node.put(BODY, headers=COPY).status == "201 Created"
    assert node.get(headers=COPY).body == BODY
    assert {NO_CLASS, *found} == {NO_CLASS, level}  # threads start with the first
    assert node.get().body == BODY
    assert found[-1] == 0


def scope(env):
    return request_context.request_scope(request_context.requested_context(env))


def test_a_nested_request_has_its_own_replication_flag():
    assert request_context.current_request().replication_flow is None
    with scope(ENV):
        assert request_context.current_request().replication_flow == REPLICATION_FLOW
        with scope({"REQUEST_METHOD": "GET"}):
            assert request_context.current_request().replication_flow is None
        assert request_context.current_request().replication_flow == REPLICATION_FLOW
    assert request_context.current_request().replication_flow is None
