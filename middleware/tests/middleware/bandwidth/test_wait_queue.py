"""Many transfers of one flow at a low rate: each has its turn before its patience ends, and the rate is kept."""

import itertools
import time

import pytest
from tests.support.middleware.credit_agent import LIMIT, Clock, FakeAgent, grant_nothing

from sluice_core.describe import PROXY, STORAGE_NODE
from sluice_core.messages.bandwidth import GET, Flow
from sluice_core.messages.credit import CreditGrant, Grant
from sluice_middleware.bandwidth import wait_queue
from sluice_middleware.bandwidth.agent_client import PATIENCE, CreditClient
from sluice_middleware.bandwidth.bodies import ThrottledBody
from sluice_middleware.bandwidth.wait_queue import LEAST_TURN
from sluice_middleware.swift import green

FLOW = Flow("AUTH_a", GET)
KB = 1024
PIECE = bytes(64 * KB)
RATE = 1_000_000
MANY = 500
#: Seconds between two grants.
BEAT = 0.25


class Crowd:
    """Readers of long objects in one worker, whose clock advances with each grant."""

    def __init__(self, path, side, monkeypatch):
        monkeypatch.setattr(wait_queue, "_LOOK", 0.1)  # they check the clock of the test often
        self.agent = FakeAgent(path, grant_nothing)
        self.clock = Clock()
        self.line = CreditClient(path, side, clock=self.clock)
        self.line.tick()
        self.agent.wait_until(lambda: self.agent.workers)
        self.bodies, self.threads, self.turns = [], [], []
        self.given = 0

    def read(self, pieces=(), ceiling=0.0):
        """Add a reader; it records when it had its turns, and how many bytes each time."""
        transfer = self.line.open(FLOW, ceiling=ceiling)
        body = ThrottledBody(pieces or itertools.repeat(PIECE), transfer)
        turns = [(self.clock.now, 0)]

        def take():
            for part in body:
                turns.append((self.clock.now, len(part)))

        self.bodies.append(body)
        self.turns.append(turns)
        self.threads.append(green.start_green(take))
        green.yield_control()
        return turns

    @property
    def till(self):
        return self.line._queues[FLOW]

    def grant(self, size, rate):
        """Grant credit; served readers continue."""
        self.given += size
        self.agent.send(Grant((CreditGrant("AUTH_a", "", GET, 0, size, rate),)))
        self.settled(lambda: self.line._heard == self.clock.now)

    def settled(self, holds):
        end = time.monotonic() + LIMIT
        while not holds():
            assert time.monotonic() < end
            green.yield_control()
        green.yield_control()
        green.yield_control()

    def pass_time(self, seconds, rate=RATE):
        """At ``rate``."""
        for _ in range(int(seconds / BEAT)):
            self.clock.now += BEAT
            self.grant(int(rate * BEAT), rate)

    def longest(self):
        """Seconds between two turns, up to now."""
        moments = [[*(at for at, _ in turns), self.clock.now] for turns in self.turns]
        return max(later - at for one in moments for at, later in itertools.pairwise(one))

    def close(self):
        for thread in self.threads:
            thread.kill()
        for body in self.bodies:
            body.close()
        assert not self.till.open
        assert not self.till.bytes_waiting
        assert not self.till.waiters
        self.line.disconnect()
        self.agent.close()
        self.agent.wait_briefly()


@pytest.fixture
def crowd(path, monkeypatch, request):
    made = Crowd(path, getattr(request, "param", PROXY), monkeypatch)
    yield made
    made.close()


@pytest.mark.parametrize("crowd", [PROXY, STORAGE_NODE], indirect=True)
def test_many_waiters_at_a_low_rate_share_equally_without_debt(crowd):
    patience = PATIENCE[crowd.line.side]
    for _ in range(MANY):
        crowd.read()
    crowd.pass_time(3 * patience)
    assert crowd.line.unpaid == 0
    assert crowd.longest() <= patience / 2
    moved = [sum(size for _, size in turns) for turns in crowd.turns]
    assert sum(moved) == crowd.given - crowd.till.account.credit
    assert sum(moved) >= 0.95 * RATE * 3 * patience
    assert min(moved) >= 0.7 * max(moved)


def test_waiters_get_smaller_turns_when_the_rate_falls(crowd):
    crowd.grant(1, 100 * RATE)
    for _ in range(MANY):
        crowd.read()
    assert crowd.till.bytes_waiting > PATIENCE[PROXY] * RATE
    crowd.pass_time(2 * PATIENCE[PROXY])
    assert crowd.line.unpaid == 0
    assert crowd.longest() <= PATIENCE[PROXY] / 2


def test_many_waiters_without_an_agent_keep_to_the_ceiling(crowd):
    crowd.agent.disconnect()
    for _ in range(MANY):
        crowd.read(ceiling=RATE)
    for _ in range(int(40 / BEAT)):
        crowd.clock.now += BEAT
        crowd.till.serve()
        green.yield_control()
        green.yield_control()
    assert crowd.till.account.detached
    assert crowd.line.unpaid == 0
    assert crowd.longest() <= PATIENCE[PROXY] / 2
    assert sum(size for turns in crowd.turns for _, size in turns) <= 41 * RATE


def test_a_small_object_passes_after_one_turn_of_each_waiter(crowd):
    for _ in range(200):
        crowd.read()
    crowd.pass_time(10)
    begun = crowd.clock.now
    turns = crowd.read([b"x" * 3 * KB])
    crowd.pass_time(10)
    assert sum(size for _, size in turns) == 3 * KB
    assert turns[-1][0] - begun <= PATIENCE[PROXY] / 2


def test_few_waiters_get_whole_pieces(crowd):
    for _ in range(20):
        crowd.read()
    crowd.pass_time(10)
    assert {size for turns in crowd.turns for _, size in turns[1:]} == {len(PIECE)}


def test_turns_have_a_minimum_size_and_bounded_debt(crowd):
    for _ in range(50):
        crowd.read()
    crowd.pass_time(PATIENCE[PROXY] - 1, rate=4.0)
    assert crowd.line.unpaid == 0
    crowd.pass_time(1.5, rate=4.0)
    crowd.settled(lambda: crowd.line.unpaid == 50)
    assert {size for turns in crowd.turns for _, size in turns[1:]} == {LEAST_TURN}
    assert crowd.till.account.credit == -LEAST_TURN


def test_a_waiter_for_a_whole_piece_keeps_its_place(crowd):
    crowd.grant(0, 1000.0)
    first, second, third = (crowd.line.open(FLOW) for _ in range(3))
    done = []

    def pay(transfer, size):
        transfer.acquire(size)
        done.append(size)

    def pay_some(transfer, size):
        done.append(transfer.acquire_some(size))

    crowd.threads += [green.start_green(pay_some, first, 64 * KB), green.start_green(pay, second, 8 * KB)]
    crowd.threads += [green.start_green(pay_some, third, 64 * KB)]
    crowd.bodies += [first, second, third]
    crowd.settled(lambda: crowd.till.bytes_waiting == 136 * KB)
    part = 1000 * 20 // 4 // 3
    crowd.grant(part + 8 * KB - 1, 1000.0)
    assert done == [part]
    crowd.grant(1 + 5000, 1000.0)
    assert done == [part, 8 * KB, 5000]


def test_a_transfer_that_comes_later_waits_though_there_is_enough_for_it(crowd):
    crowd.grant(0, RATE)
    first, second = crowd.line.open(FLOW), crowd.line.open(FLOW)
    done = []

    def pay(transfer, size):
        transfer.acquire(size)
        done.append(size)

    crowd.bodies += [first, second]
    crowd.threads.append(green.start_green(pay, first, 64 * KB))
    crowd.settled(lambda: crowd.till.bytes_waiting == 64 * KB)
    crowd.grant(63 * KB, RATE)
    crowd.threads.append(green.start_green(pay, second, KB))
    crowd.settled(lambda: done or crowd.till.bytes_waiting == 65 * KB)
    assert done == []
    crowd.grant(2 * KB, RATE)
    assert done == [64 * KB, KB]


def test_a_waiter_killed_after_it_was_served_refunds_its_credit(crowd):
    crowd.grant(0, 1000.0)
    turns = crowd.read(), crowd.read()
    account = crowd.till.account
    account.grant(2500, 1000.0)
    crowd.till.serve()
    assert account.credit == 0
    crowd.threads[0].kill()
    assert account.credit == 2500
    assert [len(one) for one in turns] == [1, 1]
    assert crowd.till.bytes_waiting == len(PIECE)
