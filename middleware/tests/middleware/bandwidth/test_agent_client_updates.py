"""The messages of a worker and its agent besides credit, on the same connection."""

import os

from tests.support.middleware.credit_agent import FakeAgent

from sluice_core.describe import PROXY, STORAGE_NODE
from sluice_core.messages.bandwidth import NO_CLASS, Flow
from sluice_core.messages.credit import (
    CREDIT_SUFFIX,
    IDLE,
    MESSAGE_LIMIT,
    CreditHello,
    Level,
    PriorityUpdate,
    TrafficReport,
    TrafficSample,
    pack,
)
from sluice_middleware.bandwidth import agent_client, client_registry
from sluice_middleware.bandwidth.agent_client import CreditClient
from sluice_middleware.bandwidth.counters import split_report
from sluice_middleware.swift import green

FLOW = Flow("AUTH_a", "GET")


def test_a_worker_sends_hello_and_a_report_each_second(agent, line, clock):
    line.tick()
    transfer = line.open(FLOW)
    transfer.acquire(7)
    clock.now += 2
    line.tick()
    transfer.close()
    clock.now += 2
    line.tick()
    line.tick()
    agent.wait_until(lambda: len(agent.received(TrafficReport)) == 4)
    (hello,) = agent.received(CreditHello)
    assert (hello.side, hello.pid, hello.policies, hello.server) == (PROXY, os.getpid(), {"0": "gold"}, "")
    assert [used.rows for used in agent.received(TrafficReport)] == [
        (),
        (TrafficSample("AUTH_a", "", "GET", 0, "", 7, 2.0, 0.0, 1, 0),),
        (TrafficSample("AUTH_a", "", "GET", 0, "", 7, 2.0, 0.0, 0, 0),),
        (),
    ]


def test_without_an_agent_everything_passes(path, caplog):
    line = CreditClient(path, PROXY)
    line.tick()
    line.tick()
    transfer = line.open(FLOW)
    transfer.acquire(10**9)
    transfer.close()
    assert len([one for one in caplog.messages if "no agent gives credit" in one]) == 1


def test_io_levels_are_those_of_the_container_or_else_the_tenant(agent, line):
    line.tick()
    assert (line.state.active, line.state.level(FLOW)) == (False, NO_CLASS)
    agent.wait_until(lambda: agent.workers)
    rows = (Level("AUTH_a", "", "GET", 0, 0), Level("AUTH_a", "c", "GET", 0, IDLE))
    agent.send(PriorityUpdate(rows, True, {"n1": 0.5}))
    agent.wait_until(lambda: line.state.active)
    level = line.state.level
    assert [level(FLOW), level(FLOW._replace(container="c")), level(FLOW._replace(container="d"))] == [0, IDLE, 0]
    assert level(FLOW._replace(method="PUT")) == NO_CLASS
    assert line.state.spares == {"n1": 0.5}


def test_the_fastest_objects_are_reported_once_each(agent, path, clock):
    line = CreditClient(path, STORAGE_NODE, "127.0.0.1:6200", clock=clock)
    line.tick()
    transfers = [line.open(FLOW, "sda", f"c/o{number}", "0-end") for number in (0, 1, 2, 2)]
    for factor, transfer in enumerate(transfers):
        agent.join(green.start_green(transfer.acquire, 1000 * factor))
    transfers[1].close()
    clock.now += 2.0
    line.tick()
    clock.now += 1.0
    line.tick()
    agent.wait_until(lambda: len(agent.received(TrafficReport)) == 3)
    told = agent.received(TrafficReport)
    assert [(one.device, one.account, one.oid, one.method, one.range, one.rate) for one in told[1].objects] == [
        ("sda", "AUTH_a", "c/o2", "GET", "0-end", 2500.0),
        ("sda", "AUTH_a", "c/o1", "GET", "0-end", 500.0),
    ]
    assert told[2].objects == ()
    assert agent.received(CreditHello)[0].server == "127.0.0.1:6200"
    line.disconnect()
    agent.wait_briefly()


def test_a_long_report_is_split_into_messages(agent, line):
    line.tick()
    flows = [Flow(f"AUTH_{number}" + "x" * 200, "GET") for number in range(1000)]
    for flow in flows:
        line.open(flow)
    seen = {}
    for _ in range(50):  # a full socket loses nothing: the next tick sends the rest
        line.tick()
        agent.wait_briefly()
        seen = {row.account for row in agent.samples()}
        if len(seen) == 1000:
            break
    assert len(seen) == 1000


def test_no_part_of_a_split_report_exceeds_the_limit():
    row = TrafficSample("AUTH_" + "x" * 250, "c" * 250, "GET", 0, "sda", 1, 1.0, 0.0, 1, 0)
    parts = split_report(1.0, (row,) * 500, ())
    assert len(parts) > 2
    assert all(len(part) <= MESSAGE_LIMIT for part in parts)
    assert len(pack(TrafficReport(1.0, (row,) * 500))) > MESSAGE_LIMIT


def test_totals_restart_with_each_connection(agent, line, clock):
    line.tick()
    transfer = line.open(FLOW)
    agent.join(green.start_green(transfer.acquire, 1000))
    line.tick()
    line.disconnect()
    transfer.acquire(50)
    line.tick()
    transfer.acquire(7)
    line.tick()
    agent.wait_until(lambda: len(agent.received(TrafficReport)) == 4)
    assert [row.moved for row in agent.samples()] == [1000, 0, 7]


def test_an_unknown_message_of_the_agent_is_ignored(agent, line, caplog):
    line.tick()
    agent.wait_until(lambda: agent.workers)
    for one in agent._open - {agent._listener}:
        one.send(b"\x77")
    agent.wait_until(lambda: "invalid message from the agent" in caplog.text)
    agent.join(green.start_green(line.open(FLOW).acquire, 1))


def test_idle_flows_beyond_the_limit_are_forgotten(agent, line, monkeypatch):
    monkeypatch.setattr(agent_client, "_MOST", 10)
    line.tick()
    kept = line.open(FLOW)
    for number in range(30):
        transfer = line.open(Flow(f"AUTH_{number}", "GET"))
        agent.join(green.start_green(transfer.acquire, 1))
        transfer.close()
    line.tick()
    line.tick()
    assert list(line._queues) == [FLOW]
    assert len(line._counters) == 1
    kept.acquire(1)


def test_a_process_has_one_client_per_agent_and_side(path, agent):
    one = client_registry.shared_client(path)
    assert client_registry.shared_client(path) is one
    assert client_registry.shared_client(path, PROXY) is not one
    agent.wait_until(lambda: agent.workers == 2)
    assert not client_registry.AgentStateReader(path)().active
    assert client_registry.AgentStateReader(path)().level(FLOW) == NO_CLASS
    client_registry.shared_client(path, server="127.0.0.1:6200")
    agent.wait_until(
        lambda: [hello.server for hello in agent.received(CreditHello)][-1:] == ["127.0.0.1:6200"] or one.tick()
    )
    for line in (one, client_registry.shared_client(path, PROXY)):
        line.disconnect()
    client_registry._clients.clear()
    agent.wait_briefly()


def test_a_socket_without_a_listener_counts_as_no_agent(path, caplog):
    agent = FakeAgent(path)
    agent.close()
    assert os.path.exists(path + CREDIT_SUFFIX)
    line = CreditClient(path, PROXY)
    line.tick()
    assert "no agent gives credit" in caplog.text
