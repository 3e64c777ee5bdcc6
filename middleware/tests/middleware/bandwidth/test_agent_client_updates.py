"""What a worker tells its agent over the line for credit, and hears of it beside credit."""

import os

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
from sluice_middleware.bandwidth import agent_client
from sluice_middleware.bandwidth.agent_client import CreditClient
from sluice_middleware.bandwidth.counters import in_parts
from sluice_middleware.bandwidth.current import CurrentAgentState
from sluice_middleware.swift import green
from sluice_middleware.testing.agent import FakeAgent

FLOW = Flow("AUTH_a", "GET")


def test_a_worker_says_hello_and_each_second_what_moved(agent, line, clock):
    line.tick()
    transfer = line.open(FLOW)
    transfer.pay(7)
    clock.now += 2
    line.tick()
    transfer.close()
    clock.now += 2
    line.tick()
    line.tick()
    agent.until(lambda: len(agent.hear(TrafficReport)) == 4)
    (hello,) = agent.hear(CreditHello)
    assert (hello.side, hello.pid, hello.policies, hello.server) == (PROXY, os.getpid(), {"0": "gold"}, "")
    assert [used.rows for used in agent.hear(TrafficReport)] == [
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
    transfer.pay(10**9)
    transfer.close()
    assert len([one for one in caplog.messages if "no agent gives credit" in one]) == 1


def test_levels_are_those_of_the_container_else_of_the_tenant(agent, line):
    line.tick()
    assert (line.standing().active, line.standing().level(FLOW)) == (False, NO_CLASS)
    agent.until(lambda: agent.workers)
    rows = (Level("AUTH_a", "", "GET", 0, 0), Level("AUTH_a", "c", "GET", 0, IDLE))
    agent.say(PriorityUpdate(rows, True, {"n1": 0.5}))
    agent.until(lambda: line.standing().active)
    level = line.standing().level
    assert [level(FLOW), level(FLOW._replace(container="c")), level(FLOW._replace(container="d"))] == [0, IDLE, 0]
    assert level(FLOW._replace(method="PUT")) == NO_CLASS
    assert line.standing().spares == {"n1": 0.5}


def test_objects_under_way_are_told_the_fastest_first_each_once(agent, path, clock):
    line = CreditClient(path, STORAGE_NODE, "127.0.0.1:6200", clock=clock)
    line.tick()
    transfers = [line.open(FLOW, "sda", f"c/o{number}", "0-end") for number in (0, 1, 2, 2)]
    for factor, transfer in enumerate(transfers):
        agent.finish(green.run(transfer.pay, 1000 * factor))
    transfers[1].close()
    clock.now += 2.0
    line.tick()
    clock.now += 1.0
    line.tick()
    agent.until(lambda: len(agent.hear(TrafficReport)) == 3)
    told = agent.hear(TrafficReport)
    assert [(one.device, one.account, one.oid, one.method, one.range, one.rate) for one in told[1].objects] == [
        ("sda", "AUTH_a", "c/o2", "GET", "0-end", 2500.0),
        ("sda", "AUTH_a", "c/o1", "GET", "0-end", 500.0),
    ]
    assert told[2].objects == ()
    assert agent.hear(CreditHello)[0].server == "127.0.0.1:6200"
    line.hang_up()
    agent.settle()


def test_long_news_travels_in_several_messages(agent, line):
    line.tick()
    flows = [Flow(f"AUTH_{number}" + "x" * 200, "GET") for number in range(1000)]
    for flow in flows:
        line.open(flow)
    seen = {}
    for _ in range(50):  # a full socket is no loss: what it did not take comes with the next tick
        line.tick()
        agent.settle()
        seen = {row.account for row in agent.moved()}
        if len(seen) == 1000:
            break
    assert len(seen) == 1000


def test_no_part_of_a_long_message_is_too_long():
    row = TrafficSample("AUTH_" + "x" * 250, "c" * 250, "GET", 0, "sda", 1, 1.0, 0.0, 1, 0)
    parts = in_parts(1.0, (row,) * 500, ())
    assert len(parts) > 2
    assert all(len(part) <= MESSAGE_LIMIT for part in parts)
    assert len(pack(TrafficReport(1.0, (row,) * 500))) > MESSAGE_LIMIT


def test_totals_begin_anew_with_each_connection(agent, line, clock):
    line.tick()
    transfer = line.open(FLOW)
    agent.finish(green.run(transfer.pay, 1000))
    line.tick()
    line.hang_up()
    transfer.pay(50)
    line.tick()
    transfer.pay(7)
    line.tick()
    agent.until(lambda: len(agent.hear(TrafficReport)) == 4)
    assert [row.moved for row in agent.moved()] == [1000, 0, 7]


def test_what_the_agent_says_in_another_way_is_passed_over(agent, line, caplog):
    line.tick()
    agent.until(lambda: agent.workers)
    for one in agent._open - {agent._listener}:
        one.send(b"\x77")
    agent.until(lambda: "in another way" in caplog.text)
    agent.finish(green.run(line.open(FLOW).pay, 1))


def test_flows_that_stand_still_are_forgotten_beyond_a_bound(agent, line, monkeypatch):
    monkeypatch.setattr(agent_client, "_MOST", 10)
    line.tick()
    kept = line.open(FLOW)
    for number in range(30):
        transfer = line.open(Flow(f"AUTH_{number}", "GET"))
        agent.finish(green.run(transfer.pay, 1))
        transfer.close()
    line.tick()
    line.tick()
    assert list(line._tills) == [FLOW]
    assert len(line._tallies) == 1
    kept.pay(1)


def test_there_is_one_line_of_a_process_to_an_agent(path, agent):
    one = agent_client.current(path)
    assert agent_client.current(path) is one
    assert agent_client.current(path, PROXY) is not one
    agent.until(lambda: agent.workers == 2)
    assert not CurrentAgentState(path).active()
    assert CurrentAgentState(path).level(FLOW) == NO_CLASS
    agent_client.current(path, server="127.0.0.1:6200")
    agent.until(lambda: [hello.server for hello in agent.hear(CreditHello)][-1:] == ["127.0.0.1:6200"] or one.tick())
    for line in (one, agent_client.current(path, PROXY)):
        line.hang_up()
    agent_client._lines.clear()
    agent.settle()


def test_a_socket_without_a_listener_is_no_agent(path, caplog):
    agent = FakeAgent(path)
    agent.close()
    assert os.path.exists(path + CREDIT_SUFFIX)
    line = CreditClient(path, PROXY)
    line.tick()
    assert "no agent gives credit" in caplog.text
