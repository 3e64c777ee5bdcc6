"""Ceilings that workers report, before an allocator has sent a share."""

import pytest

from sluice_agent.bandwidth.node_limiter import NodeLimiter
from sluice_core.describe import PROXY
from sluice_core.messages.bandwidth import GET, Share, Shares
from sluice_core.messages.credit import FREE, CreditRequest

MB = 1_000_000
PIECE = 64 * 1024


class Node:
    """A limiter with a clock, and one worker whose flows request more bytes as soon as they got some."""

    def __init__(self):
        self.now = 1000.0
        self.limiter = NodeLimiter()
        self.limiter.add_worker("w", PROXY)

    def take(self, *rows, newcomer=None):
        self.limiter.set_shares(
            Shares("n", 1, 1, 0.0, rows, {} if newcomer is None else {PROXY: {GET: newcomer}}), self.now
        )

    def moved(self, ceilings, seconds):
        """Bytes of each account meanwhile, or :data:`FREE`; ``ceilings`` maps it to its worker's ceiling."""
        found = dict.fromkeys(ceilings, 0)
        for account, ceiling in ceilings.items():
            self.ask(account, PIECE, ceiling)
        end = self.now + seconds
        while self.now < end:
            for row in self.limiter.due_grants(self.now).get("w", ()):
                if row.size == FREE:
                    found[row.account] = FREE
                else:
                    found[row.account] += row.size
                    self.ask(row.account, row.size, ceilings[row.account])
            self.now += 0.005
        return found

    def ask(self, account, size, ceiling=0.0):
        self.limiter.request("w", CreditRequest(account, "", GET, 0, size, 0, ceiling), self.now)


@pytest.fixture
def node():
    return Node()


def about(rate, seconds):
    """With the bytes that a bucket holds at the start."""
    return pytest.approx(rate * (seconds + 0.25), rel=0.05)


def test_a_reported_ceiling_limits_one_flow_without_an_allocator(node):
    found = node.moved({"a": 2 * MB, "b": 0.0, "c": 5 * MB}, 4.0)
    assert found == {"a": about(2 * MB, 4), "b": FREE, "c": about(5 * MB, 4)}
    assert node.limiter.workers_to_renegotiate() == []
    assert node.limiter.is_limiting  # so that workers get their rates each second


def test_a_reported_ceiling_bounds_a_newcomer(node):
    node.take(newcomer=8 * MB)
    found = node.moved({"a": MB, "b": 0.0}, 2.0)
    assert found["a"] == about(MB, 2)
    assert found["b"] == pytest.approx(8 * MB, rel=0.3)


def test_a_greater_ceiling_does_not_raise_the_newcomer_rate(node):
    node.take(newcomer=MB)
    assert node.moved({"a": 50 * MB}, 2.0)["a"] == about(MB, 2)


def test_a_share_replaces_a_reported_ceiling(node):
    node.moved({"a": 2 * MB}, 1.0)
    node.take(Share(PROXY, "a", "", GET, 0, MB, 0.0, MB))
    node.moved({"a": 2 * MB}, 1.0)
    assert node.moved({"a": 2 * MB}, 4.0)["a"] == pytest.approx(4 * MB, rel=0.05)


def test_an_unlimited_share_ends_a_reported_ceiling(node):
    node.take(Share(PROXY, "a", "", GET, 0, -1.0))
    assert node.moved({"a": 2 * MB}, 0.1) == {"a": FREE}


def test_an_allocator_that_sends_no_share_for_three_seconds_ends_a_reported_ceiling(node):
    for _ in range(2):
        assert node.moved({"a": 2 * MB}, 1.4)["a"] > 0
        node.take()
    assert node.moved({"a": 2 * MB}, 0.5)["a"] > 0
    node.take()
    assert node.limiter.due_grants(node.now)["w"][0].size == FREE


def test_the_end_of_a_share_releases_a_long_active_flow_at_once(node):
    node.take(Share(PROXY, "a", "", GET, 0, MB, 0.0, MB))
    node.moved({"a": MB}, 4.0)  # its worker still reports the ceiling that was deleted meanwhile
    node.take()
    assert node.limiter.due_grants(node.now)["w"][0].size == FREE


def test_the_end_of_a_share_keeps_the_ceiling_of_a_new_flow(node):
    node.take(Share(PROXY, "a", "", GET, 0, MB, 0.0, MB))
    node.moved({"a": MB}, 1.0)
    node.take()
    assert node.moved({"a": MB}, 2.0)["a"] == pytest.approx(2 * MB, rel=0.1)


def test_a_resumed_flow_is_limited_again(node):
    node.take(Share(PROXY, "a", "", GET, 0, MB, 0.0, MB))
    node.moved({"a": MB}, 1.0)
    node.limiter.remove_worker("w")
    node.limiter.add_worker("w", PROXY)
    for _ in range(8):
        node.now += 1.0
        node.take()
    assert node.limiter.due_grants(node.now) == {}
    assert node.moved({"a": MB}, 2.0)["a"] == about(MB, 2)


def test_a_ceiling_that_changes_or_ends_counts_at_once(node):
    node.moved({"a": 2 * MB}, 1.0)
    node.moved({"a": 4 * MB}, 1.0)
    assert node.moved({"a": 4 * MB}, 2.0)["a"] == pytest.approx(8 * MB, rel=0.05)
    assert node.moved({"a": 0.0}, 2.0)["a"] > 20 * MB


def test_returned_bytes_need_no_limiter(node):
    node.ask("a", -PIECE, 2 * MB)
    assert node.limiter.due_grants(node.now) == {}
    assert node.limiter.seconds_until_due(node.now) is None


def test_a_worker_without_the_ceiling_must_renegotiate_after_a_share(node):
    node.limiter.add_worker("late", PROXY)
    node.limiter.request("late", CreditRequest("a", "", GET, 0, PIECE), node.now)
    assert node.limiter.due_grants(node.now)["late"][0].size == FREE
    node.moved({"a": 2 * MB}, 0.5)
    node.take(Share(PROXY, "a", "", GET, 0, MB, 0.0, MB))
    assert "late" in node.limiter.workers_to_renegotiate()
