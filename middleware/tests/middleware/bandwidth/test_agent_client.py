"""A worker's line to its agent about credit, over a real socket: who pays, who waits, and what without an agent."""

import logging
import time

import pytest

from sluice_core.describe import PROXY, STORAGE_NODE
from sluice_core.messages.bandwidth import Flow
from sluice_core.messages.credit import FREE, CreditGrant, CreditHello, Grant, PriorityUpdate, Renegotiate
from sluice_middleware.bandwidth import agent_client, wait_queue
from sluice_middleware.bandwidth.agent_client import PATIENCE, CreditClient
from sluice_middleware.swift import green
from sluice_middleware.testing.agent import LIMIT, nothing, paying, plenty

FLOW = Flow("AUTH_a", "GET")
OTHER = Flow("AUTH_b", "GET", 1, "c")
KB = 1024


@pytest.fixture
def often(monkeypatch):
    """Those that wait look at the clock of the test often."""
    monkeypatch.setattr(wait_queue, "_LOOK", 0.002)


def test_a_free_flow_is_asked_about_once(agent, line):
    line.tick()
    for size in (KB, 10**9, 10**9):
        transfer = line.open(FLOW)
        agent.finish(green.run(transfer.pay, size))
        transfer.close()
    agent.settle()
    assert [(row.flow, row.size) for row in agent.asked()] == [(FLOW, 64 * KB)]


def test_who_is_free_asks_again_when_a_policy_bounds_it(agent, line):
    line.tick()
    for ceiling in (0.0, 5e6, 5e6, 0.0, 7e6):
        transfer = line.open(FLOW, ceiling=ceiling)
        agent.finish(green.run(transfer.pay, KB))
        transfer.close()
    agent.settle()
    assert [(row.flow, row.ceiling) for row in agent.asked()] == [(FLOW, 0.0), (FLOW, 5e6), (FLOW, 7e6)]


def test_who_waits_is_served_in_order_and_never_beyond_what_was_given(agent, line):
    agent.answer = nothing
    line.tick()
    first, second = line.open(FLOW), line.open(FLOW)
    thread, passed = paying(first, 60 * KB, 60 * KB)
    other, there = paying(second, KB, KB, 60 * KB)
    agent.until(lambda: agent.asked())
    assert sum(row.size for row in agent.asked()) >= 61 * KB
    agent.say(Grant((CreditGrant("AUTH_a", "", "GET", 0, 60 * KB, 1e6),)))
    agent.until(lambda: passed)
    assert not there  # it would have fitted, but came later than the other's first piece
    agent.say(Grant((CreditGrant("AUTH_a", "", "GET", 0, KB, 1e6),)))
    agent.until(lambda: there)
    assert (passed, there) == ([60 * KB], [KB])
    agent.until(lambda: sum(row.size for row in agent.asked()) >= 122 * KB)
    assert agent.asked()[-1].waiting
    agent.say(Grant((CreditGrant("AUTH_a", "", "GET", 0, 121 * KB, 1e6),)))
    agent.finish(thread)
    agent.finish(other)


def test_while_a_transfer_waits_others_go_on(agent, line, clock):
    agent.answer = lambda row: nothing(row) if row.flow == FLOW else plenty(row)
    line.tick()
    held = line.open(FLOW)
    thread, passed = paying(held, KB)
    clock.now += 1.0
    agent.finish(green.run(line.open(OTHER).pay, KB))
    clock.now += 0.5
    line.tick()
    agent.until(lambda: agent.moved())
    assert {(row.flow, row.moved, row.held, row.waiting) for row in agent.moved()} == {
        (FLOW, 0, 0.5, 1),
        (OTHER, KB, 0.0, 0),
    }
    assert not passed
    thread.kill()


def test_a_thread_that_is_killed_while_it_waits_leaves_the_queue_to_the_others(agent, line):
    agent.answer = nothing
    line.tick()
    one, two = line.open(FLOW), line.open(FLOW)
    killed, _ = paying(one, 64 * KB)
    thread, passed = paying(two, KB)
    agent.until(lambda: agent.asked())
    killed.kill()
    agent.say(Grant((CreditGrant("AUTH_a", "", "GET", 0, KB, 1e6),)))
    agent.finish(thread)
    assert passed == [KB]


def test_what_is_left_goes_back_when_the_last_transfer_has_ended(agent, line):
    agent.answer = plenty
    line.tick()
    one, two = line.open(FLOW), line.open(FLOW)
    agent.finish(green.run(one.pay, KB))
    one.close()
    one.close()
    agent.settle()
    agent.settle()
    agent.settle()
    assert all(row.size > 0 for row in agent.asked())
    two.close()
    agent.until(lambda: agent.given == {FLOW: KB})


def test_credit_that_comes_too_late_goes_back(agent, line):
    agent.answer = nothing
    line.tick()
    line.open(FLOW).close()
    agent.until(lambda: agent.asked())
    agent.say(Grant((CreditGrant("AUTH_a", "", "GET", 0, KB, 1e6), CreditGrant("AUTH_b", "c", "GET", 1, 7, 1e6))))
    agent.until(lambda: {(row.flow, row.size) for row in agent.asked()} >= {(FLOW, -KB), (OTHER, -7)})


def test_a_slow_reader_holds_no_credit(agent, line):
    agent.answer = plenty
    line.tick()
    transfer = line.open(FLOW)
    agent.finish(green.run(transfer.pay, KB))
    agent.until(lambda: line.tick() or agent.given == {FLOW: KB})
    agent.finish(green.run(transfer.pay, KB))
    transfer.close()


def test_bytes_paid_are_bytes_given_at_the_pace_of_the_agent(agent, path):
    line = CreditClient(path, PROXY)
    agent.pace(FLOW, 4e6)
    line.tick()
    threads = [paying(line.open(FLOW), *[50_000] * 10) for _ in range(4)]
    for thread, _ in threads:
        agent.finish(thread)
    till = line._tills[FLOW]
    assert agent.given[FLOW] == 2_000_000 + till.account.credit
    assert {tuple(passed) for _, passed in threads} == {(50_000,) * 10}
    line.hang_up()
    agent.settle()


def test_a_rate_changes_on_transfers_under_way_and_free_ends_with_the_next_piece(agent, line):
    line.tick()
    transfer = line.open(FLOW)
    agent.finish(green.run(transfer.pay, 10**9))
    agent.answer = nothing
    agent.say(Renegotiate())
    agent.until(lambda: len(agent.asked()) == 2)
    thread, passed = paying(transfer, KB, 10**9)
    agent.settle()
    assert not passed
    agent.say(Grant((CreditGrant("AUTH_a", "", "GET", 0, KB, 5.0),)))
    agent.until(lambda: passed)
    assert transfer.rate == 5.0
    agent.say(Grant((CreditGrant("AUTH_a", "", "GET", 0, FREE, 0.0),)))
    agent.finish(thread)
    assert transfer.rate is None


def test_when_the_agent_dies_transfers_go_on_at_the_last_rate_and_come_back_to_it(agent, line, clock, often, caplog):
    caplog.set_level(logging.INFO)
    agent.answer = lambda row: CreditGrant(*row[:4], row.size, 1e6)
    line.tick()
    transfer = line.open(FLOW)
    agent.finish(green.run(transfer.pay, 64 * KB))
    agent.answer = nothing
    agent.settle()
    agent.hang_up()
    agent.until(lambda: line._alone)
    held = transfer.till.account.credit
    assert held < 150_000
    thread, passed = paying(transfer, *[25_000] * 100)
    for eighth in range(13):
        due = (held + eighth * 125_000) // 25_000
        agent.until(lambda due=due: len(passed) >= due)
        agent.settle()
        assert len(passed) == due
        clock.now += 0.125
    agent.answer = plenty
    line.tick()
    agent.finish(thread)
    agent.until(lambda: len(agent.hear(CreditHello)) == 2)
    assert len({one.worker for one in agent.hear(CreditHello)}) == 2
    assert "the agent gives credit at" in caplog.text
    transfer.close()


def test_a_transfer_alone_wakes_when_its_account_has_filled(agent, path, monkeypatch):
    monkeypatch.setattr(wait_queue, "_LOOK", 6 * LIMIT)  # nobody looks meanwhile
    agent.answer = lambda row: CreditGrant(*row[:4], row.size, 1e6)
    line = CreditClient(path, PROXY)
    line.tick()
    transfer = line.open(FLOW)
    agent.finish(green.run(transfer.pay, 64 * KB))
    agent.answer = nothing
    agent.settle()
    begun = time.monotonic()
    agent.hang_up()
    agent.until(lambda: line._alone)
    held = transfer.till.account.credit
    thread, _ = paying(transfer, *[25_000] * 24)
    agent.finish(thread)
    assert time.monotonic() - begun >= (24 * 25_000 - held) / 1e6
    transfer.close()
    line.hang_up()
    agent.settle()


def test_who_waits_already_when_the_agent_dies_goes_on_at_once(agent, path, monkeypatch):
    monkeypatch.setattr(wait_queue, "_LOOK", 6 * LIMIT)  # nobody looks meanwhile
    agent.answer = lambda row: CreditGrant(*row[:4], row.size, 1e6)
    line = CreditClient(path, PROXY)
    line.tick()
    transfers = [line.open(FLOW) for _ in range(3)]
    agent.finish(green.run(transfers[0].pay, 64 * KB))
    agent.answer = nothing
    agent.settle()
    threads = [paying(transfer, 200_000)[0] for transfer in transfers]
    agent.until(lambda: len(transfers[0].till.queue) == 3)
    agent.hang_up()
    for thread in threads:
        agent.finish(thread)
    assert line.unpaid == 0
    line.hang_up()
    agent.settle()


def test_when_the_agent_says_nothing_for_two_seconds_transfers_go_on_alone(agent, line, clock, often):
    agent.answer = lambda row: CreditGrant(*row[:4], row.size, 1e5)
    line.tick()
    transfer = line.open(FLOW)
    agent.finish(green.run(transfer.pay, KB))
    agent.answer = nothing
    thread, passed = paying(transfer, 100_000, 100_000)
    agent.settle()
    clock.now += 1.9
    agent.settle()
    assert not passed
    clock.now += 0.2
    agent.until(lambda: line._alone)
    clock.now += 1.0
    agent.until(lambda: passed)
    agent.answer = plenty
    agent.say(PriorityUpdate())
    agent.finish(thread)
    assert not line._alone
    assert line._socket is not None


def test_an_idle_line_is_not_taken_for_a_silent_one(agent, line, clock):
    line.tick()
    clock.now += 3600
    agent.answer = nothing
    thread, passed = paying(line.open(FLOW), KB)
    agent.settle()
    assert not line._alone
    assert not passed
    thread.kill()


@pytest.mark.parametrize("side", [PROXY, STORAGE_NODE])
def test_nobody_waits_longer_than_swift_does_and_what_passed_is_debt(agent, path, clock, side, caplog, often):
    line = CreditClient(path, side, clock=clock)
    agent.answer = nothing
    line.tick()
    thread, passed = paying(line.open(FLOW), 64 * KB, 64 * KB)
    while not passed:
        clock.now += 0.5
        agent.say(PriorityUpdate())
        agent.settle()
    assert clock.now - 1000.0 == pytest.approx(PATIENCE[side], abs=1.1)
    assert line.unpaid == 1
    assert "waited" in caplog.text
    agent.until(lambda: sum(row.size for row in agent.asked()) >= 128 * KB)
    agent.say(Grant((CreditGrant("AUTH_a", "", "GET", 0, 128 * KB - 1, 1e6),)))
    agent.settle()
    assert len(passed) == 1
    agent.say(Grant((CreditGrant("AUTH_a", "", "GET", 0, 1, 1e6),)))
    agent.finish(thread)
    line.hang_up()
    agent.settle()


def test_the_patience_ends_before_swift_gives_up():
    assert PATIENCE[STORAGE_NODE] < 10
    assert PATIENCE[PROXY] < 30
    assert wait_queue._LOOK < agent_client.SILENCE
