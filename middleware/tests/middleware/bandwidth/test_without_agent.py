"""A worker without its agent: flows without an earlier rate, and the limits of debt."""

import pytest
from tests.support.middleware.credit_agent import acquire_in_background, grant_all, grant_free, grant_nothing

from sluice_core.messages.bandwidth import GET, PUT, Flow
from sluice_core.messages.credit import CreditGrant, Grant, PriorityUpdate, Renegotiate
from sluice_middleware.bandwidth.token_account import BURST, LEAST, TokenAccount
from sluice_middleware.swift import green

KNOWN, NEW = Flow("AUTH_a", GET), Flow("AUTH_b", GET)
KB = 1024
MB = 10**6


@pytest.fixture
def agent(agent):
    agent.answer = grant_all
    return agent


@pytest.fixture
def line(agent, line):
    line.tick()
    agent.wait_until(lambda: agent.workers)
    return line


def told(agent, line, **alone):
    agent.send(PriorityUpdate(alone=alone))
    agent.wait_until(lambda: line.state.fallback_rates == alone)


def passed(agent, line, flow, clock, seconds=4.0, ceiling=0.0):
    """The bytes that pass in this many seconds, with requests for as many as possible."""
    transfer = line.open(flow, ceiling=ceiling)
    account = transfer.queue.account
    found = 0
    for _ in range(int(seconds * 100)):
        clock.now += 0.01
        while account.try_charge(16 * KB) and found < 1000 * MB:
            found += 16 * KB
            if account.unlimited:
                found = 1000 * MB
    transfer.close()
    return found


def test_a_new_flow_without_an_agent_uses_the_fallback_rate(agent, line, clock):
    told(agent, line, GET=2.0 * MB)
    agent.disconnect()
    assert passed(agent, line, NEW, clock) == pytest.approx(8 * MB, rel=0.1)
    assert passed(agent, line, NEW._replace(method=PUT), clock) == 1000 * MB


def test_a_new_flow_without_an_agent_keeps_to_its_ceiling(agent, line, clock):
    told(agent, line, GET=4.0 * MB)
    agent.disconnect()
    assert passed(agent, line, NEW, clock, ceiling=2.0 * MB) == pytest.approx(8 * MB, rel=0.1)
    assert passed(agent, line, NEW, clock, ceiling=90.0 * MB) == pytest.approx(16 * MB, rel=0.1)
    put = NEW._replace(method=PUT)
    assert passed(agent, line, put, clock, ceiling=3.0 * MB) == pytest.approx(12 * MB, rel=0.1)
    assert passed(agent, line, put, clock) == 1000 * MB


def test_a_fallback_rate_has_a_minimum(agent, line, clock):
    told(agent, line, GET=10.0)
    agent.disconnect()
    assert 3.5 * 64 * KB <= passed(agent, line, NEW, clock) <= 5.5 * 64 * KB


def test_a_flow_with_a_granted_rate_keeps_it_without_an_agent(agent, line, clock):
    transfer = line.open(KNOWN)
    agent.answer = lambda asked: CreditGrant(*asked[:4], asked.size, 5.0 * MB)
    agent.join(green.start_green(transfer.acquire, KB))
    agent.send(Grant((CreditGrant(*KNOWN[:1], "", GET, 0, 0, 3.0 * MB),)))
    agent.wait_until(lambda: transfer.rate == 3.0 * MB)
    told(agent, line, GET=2.0 * MB)
    agent.disconnect()
    assert passed(agent, line, KNOWN, clock) == pytest.approx(12 * MB, rel=0.1)
    transfer.close()


def test_an_unlimited_flow_stays_so_until_it_must_request_credit(agent, line, clock):
    agent.answer = grant_free
    told(agent, line, GET=2.0 * MB)
    transfer = line.open(KNOWN)
    agent.join(green.start_green(transfer.acquire, KB))
    transfer.close()
    agent.disconnect()
    assert passed(agent, line, KNOWN, clock) == 1000 * MB
    line.tick()
    agent.wait_until(lambda: agent.workers)
    told(agent, line, GET=3.0 * MB)
    agent.answer = grant_nothing
    agent.send(Renegotiate())
    agent.wait_briefly()
    agent.disconnect()
    assert passed(agent, line, KNOWN, clock) == pytest.approx(12 * MB, rel=0.1)


def test_a_waiting_new_transfer_uses_the_fallback_rate_when_the_agent_dies(agent, line, clock):
    agent.answer = grant_nothing
    told(agent, line, GET=1.0 * MB)
    thread, sizes = acquire_in_background(line.open(NEW), 64 * KB, 1000 * KB)
    agent.wait_until(lambda: agent.requests())
    agent.disconnect()
    agent.wait_briefly()
    assert not sizes
    clock.now += 0.07
    agent.wait_until(lambda: sizes == [64 * KB])
    clock.now += 1.1
    agent.join(thread)


# -- debt ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rate", "most"), [(0.0, 64 * KB), (10.0 * KB, 64 * KB), (MB, MB)])
def test_debt_is_a_second_of_the_rate_or_one_piece(clock, rate, most):
    account = TokenAccount(KNOWN, clock)
    account.grant(0, rate)
    for _ in range(100):
        account.add_debt(64 * KB)
        assert account.credit >= -most
    assert account.credit == -most
    account.grant(most + 10, rate)
    assert account.try_charge(10)
    assert not account.try_charge(1)


def test_greater_debt_from_charges_is_kept(clock):
    account = TokenAccount(KNOWN, clock)
    account.grant(0, 1000.0)
    account.charge(MB)
    account.add_debt(64 * KB)
    assert account.credit == -MB


def test_waiters_that_time_out_owe_one_piece_together(agent, line, clock, monkeypatch):
    monkeypatch.setattr("sluice_middleware.bandwidth.wait_queue._LOOK", 0.002)
    agent.answer = grant_nothing
    threads = [acquire_in_background(line.open(KNOWN), 64 * KB) for _ in range(20)]
    while not all(sizes for _, sizes in threads):
        clock.now += 1.0
        agent.send(PriorityUpdate())
        agent.wait_briefly()
    agent.join(*(thread for thread, _ in threads))
    assert line.unpaid == 20
    assert line._queues[KNOWN].account.credit == -64 * KB


def test_the_burst_at_the_fallback_rate_is_bounded(clock):
    account = TokenAccount(NEW, clock)
    account.detach(8.0 * MB)
    clock.now += 3600
    burst = 0
    while account.try_charge(LEAST):
        burst += LEAST
    assert burst == pytest.approx(BURST * 8 * MB, rel=0.05)
    assert 0 < account.seconds_until(MB) <= 0.13
