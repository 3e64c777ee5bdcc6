"""The debt of copies: it is counted, waited for, refunded, and bounded."""

import os
import time

import pytest
from tests.support.middleware.credit_agent import FakeAgent, grant_all, grant_nothing

from sluice_core.describe import STORAGE_NODE
from sluice_core.messages.bandwidth import REPLICATION_FLOW
from sluice_core.messages.credit import PriorityUpdate
from sluice_middleware.bandwidth import client_registry
from sluice_middleware.bandwidth.agent_client import PATIENCE, CreditClient
from sluice_middleware.replication.replication_throttle import MOST_DEBT, MOST_SAVED, AgentThrottle
from sluice_middleware.swift import green


@pytest.fixture
def agent(tmp_path):
    made = FakeAgent(os.path.relpath(tmp_path / "agent.sock"))
    yield made
    made.close()
    made.wait_briefly()


@pytest.fixture
def line(tmp_path, agent, monkeypatch):
    made = CreditClient(os.path.relpath(tmp_path / "agent.sock"), "storage_node")
    made.tick()
    monkeypatch.setattr(client_registry, "shared_client", lambda path, **more: made)
    yield made
    agent.wait_briefly()  # the last request
    made.disconnect()
    agent.wait_briefly()


def moved(line):
    line._update_counters()
    return line._counters.counter(REPLICATION_FLOW, "sda").moved


def test_debt_is_bounded_and_every_byte_is_counted(agent, line):
    agent.answer = grant_all
    throttle = AgentThrottle({"sluice_agent_socket": "named"})
    with throttle.open("sda") as payment:
        assert payment.rate() == 1e9
        payment._transfer.queue.account.rate = 1e6
        payment.record(int(1e12))
        assert -payment._transfer.queue.account.credit <= MOST_DEBT * 1e6
    assert moved(line) >= 1e12


def test_reserved_bytes_are_counted_when_moved_and_the_rest_refunded(agent, line):
    agent.answer = grant_all
    throttle = AgentThrottle({"sluice_agent_socket": "named"})
    with throttle.open("sda") as payment:
        payment.rate()
        agent.wait_briefly()
        agent.answer = grant_nothing
        account = payment._transfer.queue.account
        account.rate = 1e6
        begin, before = account.credit, moved(line)
        payment.reserve(900_000)
        assert (account.credit, moved(line)) == (begin - 900_000, before)
        payment.record(500_000)
        assert (account.credit, moved(line)) == (begin - 900_000, before + 500_000)
    assert account.credit == min(begin - 500_000, MOST_SAVED * 1e6)


def test_wait_for_debt_lasts_longer_than_one_patience(agent, line, monkeypatch):
    monkeypatch.setitem(PATIENCE, STORAGE_NODE, 0.5)
    agent.set_rate(REPLICATION_FLOW, 1e6)
    throttle = AgentThrottle({"sluice_agent_socket": "named"})

    def alive():
        while True:
            agent.send(PriorityUpdate())  # as an agent does
            green.InterruptibleSleep().wait(0.1)

    with throttle.open("sda") as payment:
        assert payment.rate() == 1e6
        agent.wait_briefly()
        agent.set_rate(REPLICATION_FLOW, 0.1e6)  # a cap that was lowered
        payment.record(100_000)
        saying = green.start_green(alive)
        began = time.monotonic()
        payment.wait_for_debt()
        saying.kill()
        assert payment._transfer.queue.account.credit >= 0
    assert time.monotonic() - began > PATIENCE[STORAGE_NODE]
