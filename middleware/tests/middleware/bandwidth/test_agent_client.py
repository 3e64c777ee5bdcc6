"""A worker's connection to its agent for credit, over a real socket: charges, waits, and the agent's absence."""

import logging
import time

import pytest
from tests.support.middleware.credit_agent import LIMIT, acquire_in_background, grant_all, grant_nothing

from sluice_core.describe import PROXY, STORAGE_NODE
from sluice_core.messages.bandwidth import Flow
from sluice_core.messages.credit import FREE, CreditGrant, CreditHello, Grant, PriorityUpdate, Renegotiate
from sluice_middleware.bandwidth import agent_client, wait_queue
from sluice_middleware.bandwidth.agent_client import PATIENCE, CreditClient
from sluice_middleware.swift import green

FLOW = Flow("AUTH_a", "GET")
OTHER = Flow("AUTH_b", "GET", 1, "c")
KB = 1024


@pytest.fixture
def often(monkeypatch):
    """Let waiters check the clock of the test often."""
    monkeypatch.setattr(wait_queue, "_LOOK", 0.002)


def test_credit_for_an_unlimited_flow_is_requested_once(agent, line):
    line.tick()
    for size in (KB, 10**9, 10**9):
        transfer = line.open(FLOW)
        agent.join(green.start_green(transfer.acquire, size))
        transfer.close()
    agent.wait_briefly()
    assert [(row.flow, row.size) for row in agent.requests()] == [(FLOW, 64 * KB)]


def test_an_unlimited_flow_requests_credit_after_a_ceiling_is_set(agent, line):
    line.tick()
    for ceiling in (0.0, 5e6, 5e6, 0.0, 7e6):
        transfer = line.open(FLOW, ceiling=ceiling)
        agent.join(green.start_green(transfer.acquire, KB))
        transfer.close()
    agent.wait_briefly()
    assert [(row.flow, row.ceiling) for row in agent.requests()] == [(FLOW, 0.0), (FLOW, 5e6), (FLOW, 7e6)]


def test_waiters_are_served_in_order_and_never_beyond_the_credit(agent, line):
    agent.answer = grant_nothing
    line.tick()
    first, second = line.open(FLOW), line.open(FLOW)
    thread, passed = acquire_in_background(first, 60 * KB, 60 * KB)
    other, there = acquire_in_background(second, KB, KB, 60 * KB)
    agent.wait_until(lambda: agent.requests())
    assert sum(row.size for row in agent.requests()) >= 61 * KB
    agent.send(Grant((CreditGrant("AUTH_a", "", "GET", 0, 60 * KB, 1e6),)))
    agent.wait_until(lambda: passed)
    assert not there  # there was credit for it, but it came after the other's first piece
    agent.send(Grant((CreditGrant("AUTH_a", "", "GET", 0, KB, 1e6),)))
    agent.wait_until(lambda: there)
    assert (passed, there) == ([60 * KB], [KB])
    agent.wait_until(lambda: sum(row.size for row in agent.requests()) >= 122 * KB)
    assert agent.requests()[-1].waiting
    agent.send(Grant((CreditGrant("AUTH_a", "", "GET", 0, 121 * KB, 1e6),)))
    agent.join(thread)
    agent.join(other)


def test_a_waiting_transfer_does_not_block_other_flows(agent, line, clock):
    agent.answer = lambda row: grant_nothing(row) if row.flow == FLOW else grant_all(row)
    line.tick()
    held = line.open(FLOW)
    thread, passed = acquire_in_background(held, KB)
    clock.now += 1.0
    agent.join(green.start_green(line.open(OTHER).acquire, KB))
    clock.now += 0.5
    line.tick()
    agent.wait_until(lambda: agent.samples())
    assert {(row.flow, row.moved, row.held, row.waiting) for row in agent.samples()} == {
        (FLOW, 0, 0.5, 1),
        (OTHER, KB, 0.0, 0),
    }
    assert not passed
    thread.kill()


def test_a_killed_waiter_leaves_the_queue(agent, line):
    agent.answer = grant_nothing
    line.tick()
    one, two = line.open(FLOW), line.open(FLOW)
    killed, _ = acquire_in_background(one, 64 * KB)
    thread, passed = acquire_in_background(two, KB)
    agent.wait_until(lambda: agent.requests())
    killed.kill()
    agent.send(Grant((CreditGrant("AUTH_a", "", "GET", 0, KB, 1e6),)))
    agent.join(thread)
    assert passed == [KB]


def test_unused_credit_is_returned_after_the_last_transfer(agent, line):
    agent.answer = grant_all
    line.tick()
    one, two = line.open(FLOW), line.open(FLOW)
    agent.join(green.start_green(one.acquire, KB))
    one.close()
    one.close()
    agent.wait_briefly()
    agent.wait_briefly()
    agent.wait_briefly()
    assert all(row.size > 0 for row in agent.requests())
    two.close()
    agent.wait_until(lambda: agent.given == {FLOW: KB})


def test_late_credit_is_returned(agent, line):
    agent.answer = grant_nothing
    line.tick()
    line.open(FLOW).close()
    agent.wait_until(lambda: agent.requests())
    agent.send(Grant((CreditGrant("AUTH_a", "", "GET", 0, KB, 1e6), CreditGrant("AUTH_b", "c", "GET", 1, 7, 1e6))))
    agent.wait_until(lambda: {(row.flow, row.size) for row in agent.requests()} >= {(FLOW, -KB), (OTHER, -7)})


def test_a_slow_reader_holds_no_credit(agent, line):
    agent.answer = grant_all
    line.tick()
    transfer = line.open(FLOW)
    agent.join(green.start_green(transfer.acquire, KB))
    agent.wait_until(lambda: line.tick() or agent.given == {FLOW: KB})
    agent.join(green.start_green(transfer.acquire, KB))
    transfer.close()


def test_charged_bytes_equal_granted_bytes_at_the_agents_rate(agent, path):
    line = CreditClient(path, PROXY)
    agent.set_rate(FLOW, 4e6)
    line.tick()
    threads = [acquire_in_background(line.open(FLOW), *[50_000] * 10) for _ in range(4)]
    for thread, _ in threads:
        agent.join(thread)
    till = line._queues[FLOW]
    assert agent.given[FLOW] == 2_000_000 + till.account.credit
    assert {tuple(passed) for _, passed in threads} == {(50_000,) * 10}
    line.disconnect()
    agent.wait_briefly()


def test_a_new_rate_applies_to_open_transfers_at_the_next_piece(agent, line):
    line.tick()
    transfer = line.open(FLOW)
    agent.join(green.start_green(transfer.acquire, 10**9))
    agent.answer = grant_nothing
    agent.send(Renegotiate())
    agent.wait_until(lambda: len(agent.requests()) == 2)
    thread, passed = acquire_in_background(transfer, KB, 10**9)
    agent.wait_briefly()
    assert not passed
    agent.send(Grant((CreditGrant("AUTH_a", "", "GET", 0, KB, 5.0),)))
    agent.wait_until(lambda: passed)
    assert transfer.rate == 5.0
    agent.send(Grant((CreditGrant("AUTH_a", "", "GET", 0, FREE, 0.0),)))
    agent.join(thread)
    assert transfer.rate is None


def test_transfers_keep_the_last_rate_while_the_agent_is_away(agent, line, clock, often, caplog):
    caplog.set_level(logging.INFO)
    agent.answer = lambda row: CreditGrant(*row[:4], row.size, 1e6)
    line.tick()
    transfer = line.open(FLOW)
    agent.join(green.start_green(transfer.acquire, 64 * KB))
    agent.answer = grant_nothing
    agent.wait_briefly()
    agent.disconnect()
    agent.wait_until(lambda: line._detached)
    held = transfer.queue.account.credit
    assert held < 150_000
    thread, passed = acquire_in_background(transfer, *[25_000] * 100)
    for eighth in range(13):
        due = (held + eighth * 125_000) // 25_000
        agent.wait_until(lambda due=due: len(passed) >= due)
        agent.wait_briefly()
        assert len(passed) == due
        clock.now += 0.125
    agent.answer = grant_all
    line.tick()
    agent.join(thread)
    agent.wait_until(lambda: len(agent.received(CreditHello)) == 2)
    assert len({one.worker for one in agent.received(CreditHello)}) == 2
    assert "the agent gives credit at" in caplog.text
    transfer.close()


def test_a_detached_transfer_wakes_when_its_account_has_filled(agent, path, monkeypatch):
    monkeypatch.setattr(wait_queue, "_LOOK", 6 * LIMIT)  # no waiter checks meanwhile
    agent.answer = lambda row: CreditGrant(*row[:4], row.size, 1e6)
    line = CreditClient(path, PROXY)
    line.tick()
    transfer = line.open(FLOW)
    agent.join(green.start_green(transfer.acquire, 64 * KB))
    agent.answer = grant_nothing
    agent.wait_briefly()
    begun = time.monotonic()
    agent.disconnect()
    agent.wait_until(lambda: line._detached)
    held = transfer.queue.account.credit
    thread, _ = acquire_in_background(transfer, *[25_000] * 24)
    agent.join(thread)
    assert time.monotonic() - begun >= (24 * 25_000 - held) / 1e6
    transfer.close()
    line.disconnect()
    agent.wait_briefly()


def test_waiters_continue_at_once_when_the_agent_dies(agent, path, monkeypatch):
    monkeypatch.setattr(wait_queue, "_LOOK", 6 * LIMIT)  # no waiter checks meanwhile
    agent.answer = lambda row: CreditGrant(*row[:4], row.size, 1e6)
    line = CreditClient(path, PROXY)
    line.tick()
    transfers = [line.open(FLOW) for _ in range(3)]
    agent.join(green.start_green(transfers[0].acquire, 64 * KB))
    agent.answer = grant_nothing
    agent.wait_briefly()
    threads = [acquire_in_background(transfer, 200_000)[0] for transfer in transfers]
    agent.wait_until(lambda: len(transfers[0].queue.waiters) == 3)
    agent.disconnect()
    for thread in threads:
        agent.join(thread)
    assert line.unpaid == 0
    line.disconnect()
    agent.wait_briefly()


def test_transfers_detach_after_two_seconds_of_silence(agent, line, clock, often):
    agent.answer = lambda row: CreditGrant(*row[:4], row.size, 1e5)
    line.tick()
    transfer = line.open(FLOW)
    agent.join(green.start_green(transfer.acquire, KB))
    agent.answer = grant_nothing
    thread, passed = acquire_in_background(transfer, 100_000, 100_000)
    agent.wait_briefly()
    clock.now += 1.9
    agent.wait_briefly()
    assert not passed
    clock.now += 0.2
    agent.wait_until(lambda: line._detached)
    clock.now += 1.0
    agent.wait_until(lambda: passed)
    agent.answer = grant_all
    agent.send(PriorityUpdate())
    agent.join(thread)
    assert not line._detached
    assert line._socket is not None


def test_an_idle_connection_is_not_a_silent_agent(agent, line, clock):
    line.tick()
    clock.now += 3600
    agent.answer = grant_nothing
    thread, passed = acquire_in_background(line.open(FLOW), KB)
    agent.wait_briefly()
    assert not line._detached
    assert not passed
    thread.kill()


@pytest.mark.parametrize("side", [PROXY, STORAGE_NODE])
def test_a_waiter_passes_with_debt_before_swifts_timeout(agent, path, clock, side, caplog, often):
    line = CreditClient(path, side, clock=clock)
    agent.answer = grant_nothing
    line.tick()
    thread, passed = acquire_in_background(line.open(FLOW), 64 * KB, 64 * KB)
    while not passed:
        clock.now += 0.5
        agent.send(PriorityUpdate())
        agent.wait_briefly()
    assert clock.now - 1000.0 == pytest.approx(PATIENCE[side], abs=1.1)
    assert line.unpaid == 1
    assert "waited" in caplog.text
    agent.wait_until(lambda: sum(row.size for row in agent.requests()) >= 128 * KB)
    agent.send(Grant((CreditGrant("AUTH_a", "", "GET", 0, 128 * KB - 1, 1e6),)))
    agent.wait_briefly()
    assert len(passed) == 1
    agent.send(Grant((CreditGrant("AUTH_a", "", "GET", 0, 1, 1e6),)))
    agent.join(thread)
    line.disconnect()
    agent.wait_briefly()


def test_patience_is_shorter_than_swifts_timeouts():
    assert PATIENCE[STORAGE_NODE] < 10
    assert PATIENCE[PROXY] < 30
    assert wait_queue._LOOK < agent_client.SILENCE
