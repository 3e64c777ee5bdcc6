"""A worker whose agent is away: flows that it never had, and what may be owed."""

import pytest

from sluice_core.messages.bandwidth import GET, PUT, Flow
from sluice_core.messages.credit import CreditGrant, Grant, PriorityUpdate, Renegotiate
from sluice_middleware.bandwidth.token_account import BURST, LEAST, TokenAccount
from sluice_middleware.swift import green
from sluice_middleware.testing.agent import free, nothing, paying, plenty

KNOWN, NEW = Flow("AUTH_a", GET), Flow("AUTH_b", GET)
KB = 1024
MB = 10**6


@pytest.fixture
def agent(agent):
    agent.answer = plenty
    return agent


@pytest.fixture
def line(agent, line):
    line.tick()
    agent.until(lambda: agent.workers)
    return line


def told(agent, line, **alone):
    agent.say(PriorityUpdate(alone=alone))
    agent.until(lambda: line.standing().alone == alone)


def passed(agent, line, flow, clock, seconds=4.0, ceiling=0.0):
    """Bytes that pass in so many seconds when as many as possible are to."""
    transfer = line.open(flow, ceiling=ceiling)
    account = transfer.till.account
    found = 0
    for _ in range(int(seconds * 100)):
        clock.now += 0.01
        while account.take(16 * KB) and found < 1000 * MB:
            found += 16 * KB
            if account.unlimited:
                found = 1000 * MB
    transfer.close()
    return found


def test_a_flow_that_is_new_while_the_agent_is_away_goes_as_newcomers_do(agent, line, clock):
    told(agent, line, GET=2.0 * MB)
    agent.hang_up()
    assert passed(agent, line, NEW, clock) == pytest.approx(8 * MB, rel=0.1)
    assert passed(agent, line, NEW._replace(method=PUT), clock) == 1000 * MB


def test_a_ceiling_bounds_a_flow_that_is_new_while_the_agent_is_away(agent, line, clock):
    told(agent, line, GET=4.0 * MB)
    agent.hang_up()
    assert passed(agent, line, NEW, clock, ceiling=2.0 * MB) == pytest.approx(8 * MB, rel=0.1)
    assert passed(agent, line, NEW, clock, ceiling=90.0 * MB) == pytest.approx(16 * MB, rel=0.1)
    put = NEW._replace(method=PUT)
    assert passed(agent, line, put, clock, ceiling=3.0 * MB) == pytest.approx(12 * MB, rel=0.1)
    assert passed(agent, line, put, clock) == 1000 * MB


def test_it_moves_a_piece_each_second_however_many_newcomers_there_are(agent, line, clock):
    told(agent, line, GET=10.0)
    agent.hang_up()
    assert 3.5 * 64 * KB <= passed(agent, line, NEW, clock) <= 5.5 * 64 * KB


def test_a_flow_that_the_agent_named_a_rate_for_keeps_that_one(agent, line, clock):
    transfer = line.open(KNOWN)
    agent.answer = lambda asked: CreditGrant(*asked[:4], asked.size, 5.0 * MB)
    agent.finish(green.run(transfer.pay, KB))
    agent.say(Grant((CreditGrant(*KNOWN[:1], "", GET, 0, 0, 3.0 * MB),)))
    agent.until(lambda: transfer.rate == 3.0 * MB)
    told(agent, line, GET=2.0 * MB)
    agent.hang_up()
    assert passed(agent, line, KNOWN, clock) == pytest.approx(12 * MB, rel=0.1)
    transfer.close()


def test_a_flow_that_was_free_stays_so_and_one_that_is_no_longer_goes_as_newcomers_do(agent, line, clock):
    agent.answer = free
    told(agent, line, GET=2.0 * MB)
    transfer = line.open(KNOWN)
    agent.finish(green.run(transfer.pay, KB))
    transfer.close()
    agent.hang_up()
    assert passed(agent, line, KNOWN, clock) == 1000 * MB
    line.tick()
    agent.until(lambda: agent.workers)
    told(agent, line, GET=3.0 * MB)
    agent.answer = nothing
    agent.say(Renegotiate())
    agent.settle()
    agent.hang_up()
    assert passed(agent, line, KNOWN, clock) == pytest.approx(12 * MB, rel=0.1)


def test_a_transfer_that_waits_when_the_agent_dies_goes_on_as_a_newcomer(agent, line, clock):
    agent.answer = nothing
    told(agent, line, GET=1.0 * MB)
    thread, sizes = paying(line.open(NEW), 64 * KB, 1000 * KB)
    agent.until(lambda: agent.asked())
    agent.hang_up()
    agent.settle()
    assert not sizes
    clock.now += 0.07
    agent.until(lambda: sizes == [64 * KB])
    clock.now += 1.1
    agent.finish(thread)


# -- what is owed ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rate", "most"), [(0.0, 64 * KB), (10.0 * KB, 64 * KB), (MB, MB)])
def test_debt_is_a_second_of_the_rate_or_one_piece(clock, rate, most):
    account = TokenAccount(KNOWN, clock)
    account.granted(0, rate)
    for _ in range(100):
        account.owe(64 * KB)
        assert account.credit >= -most
    assert account.credit == -most
    account.granted(most + 10, rate)
    assert account.take(10)
    assert not account.take(1)


def test_debt_that_was_greater_for_another_reason_stays(clock):
    account = TokenAccount(KNOWN, clock)
    account.granted(0, 1000.0)
    account.charge(MB)
    account.owe(64 * KB)
    assert account.credit == -MB


def test_who_waited_too_long_owes_one_piece_however_many_they_are(agent, line, clock, monkeypatch):
    monkeypatch.setattr("sluice_middleware.bandwidth.wait_queue._LOOK", 0.002)
    agent.answer = nothing
    threads = [paying(line.open(KNOWN), 64 * KB) for _ in range(20)]
    while not all(sizes for _, sizes in threads):
        clock.now += 1.0
        agent.say(PriorityUpdate())
        agent.settle()
    agent.finish(*(thread for thread, _ in threads))
    assert line.unpaid == 20
    assert line._tills[KNOWN].account.credit == -64 * KB


def test_a_burst_alone_is_as_bounded_for_newcomers(clock):
    account = TokenAccount(NEW, clock)
    account.go_alone(8.0 * MB)
    clock.now += 3600
    burst = 0
    while account.take(LEAST):
        burst += LEAST
    assert burst == pytest.approx(BURST * 8 * MB, rel=0.05)
    assert 0 < account.seconds(MB) <= 0.13
