"""The node's limiter: the divided rate moves, no bandwidth is unused, and no flow starves."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice_agent.bandwidth.flow_limiter import MIN_RATE, FlowLimiter
from sluice_agent.bandwidth.method_limiter import POOL_SECONDS
from sluice_agent.bandwidth.node_limiter import NodeLimiter
from sluice_agent.bandwidth.token_bucket import BURST_SECONDS
from sluice_core.describe import PROXY
from sluice_core.messages.bandwidth import GET, PUT, Share, Shares
from sluice_core.messages.credit import FREE, CreditRequest

KIB = 1024
MB = 1_000_000.0


def share(account, rate, ceiling=0.0, method=GET, side=PROXY):
    return Share(side, account, "", method, 0, rate, 0.0, ceiling)


def shares(*rows, newcomer=None):
    return Shares("n1", 1, 1, 0.0, rows, {} if newcomer is None else {PROXY: {GET: newcomer}})


def asked(account, size, method=GET):
    return CreditRequest(account, "", method, 0, size)


class Node:
    """A limiter with a clock, and clients that request again as soon as they got bytes."""

    def __init__(self, *rows, newcomer=None, shortest=0.002, longest=0.05):
        self.now = 1000.0
        self.limiter = NodeLimiter()
        self.moved = Counter()
        self.bounds = shortest, longest
        self.clients = {}
        self.take(*rows, newcomer=newcomer)

    def take(self, *rows, newcomer=None):
        self.limiter.set_shares(shares(*rows, newcomer=newcomer), self.now)

    def client(self, account, size, count=1):
        for number in range(count):
            worker = f"{account}/{size}/{len(self.clients)}/{number}"
            self.limiter.add_worker(worker, PROXY)
            self.clients[worker] = account, size, size
            self.limiter.request(worker, asked(account, size), self.now)

    def stop(self, account):
        for worker in [one for one, (name, *_) in self.clients.items() if name == account]:
            self.limiter.remove_worker(worker)
            del self.clients[worker]

    def serve(self):
        for worker, rows in self.limiter.due_grants(self.now).items():
            account, size, left = self.clients[worker]
            for row in rows:
                assert row.size > 0
                self.moved[account] += row.size
                left -= row.size
            assert left >= 0, "more than was asked for"
            if not left:
                left = size
                self.limiter.request(worker, asked(account, size), self.now)
            self.clients[worker] = account, size, left

    def run(self, seconds):
        """The bytes that moved meanwhile."""
        before = self.moved.copy()
        end = self.now + seconds
        while self.now < end:
            self.serve()
            due = self.limiter.seconds_until_due(self.now)
            shortest, longest = self.bounds
            self.now = min(self.now + min(max(longest if due is None else due, shortest), longest), end)
        self.serve()
        return self.moved - before


SIZES = (64 * KIB, 300_001, 1024 * KIB)
CASES = [(rate, size) for rate in (10e3, 300e3, 5e6, 90e6) for size in SIZES]
CASES += [(1e9, 1024 * KIB), (10e9, 1024 * KIB)]


@pytest.mark.parametrize(("rate", "size"), CASES)
def test_each_backlogged_flow_gets_its_rate(rate, size):
    node = Node(share("a", rate), share("b", rate / 2), share("c", rate / 3))
    clients = min(max(int(rate * 0.05 / size), 2), 150)
    if clients * size < rate * 0.02:
        node.bounds = 0.0005, 0.05  # requests so small that they are used up sooner
    for account in "abc":
        node.client(account, size, clients)
    length = 20.0 if rate < 1e6 else 200 * min(clients * size / rate, 0.02)
    node.run(0.4)  # the bytes in the buckets at the start are used up then
    moved = node.run(length)
    assert moved["a"] / length == pytest.approx(rate, rel=0.01)
    assert moved["b"] / length == pytest.approx(rate / 2, rel=0.01)
    assert moved["c"] / length == pytest.approx(rate / 3, rel=0.01)


def test_unused_bytes_are_divided_equally_among_backlogged_flows():
    node = Node(share("a", 30 * MB), share("b", 20 * MB), share("c", 40 * MB))
    for account in "abc":
        node.client(account, 256 * KIB, 4)
    node.run(1.0)
    node.stop("c")
    node.run(0.3)
    moved = node.run(1.0)
    assert moved["a"] + moved["b"] == pytest.approx(90 * MB, rel=0.01)
    assert moved["a"] == pytest.approx(50 * MB, rel=0.02)
    assert moved["b"] == pytest.approx(40 * MB, rel=0.02)


def test_a_flow_that_resumes_has_its_share_at_once():
    node = Node(share("a", 30 * MB), share("b", 60 * MB))
    node.client("a", 256 * KIB, 4)
    assert node.run(2.0)["a"] > 150 * MB
    node.client("b", 256 * KIB, 4)
    moved = node.run(1.0)
    assert 60 * MB * 0.99 <= moved["b"] <= 60 * MB * (1 + BURST_SECONDS) + 90 * MB * POOL_SECONDS


def test_drained_buckets_give_no_burst_after_a_restart():
    node = Node(share("a", 30 * MB), share("b", 60 * MB, ceiling=60 * MB), share("c", 10 * MB))
    node.run(2.0)
    node.limiter.drain(PROXY, node.now)
    for account in "abc":
        node.client(account, 256 * KIB, 4)
    moved = node.run(1.0)
    assert moved == {
        "a": pytest.approx(30 * MB, rel=0.02),
        "b": pytest.approx(60 * MB, rel=0.02),
        "c": pytest.approx(10 * MB, rel=0.02),
    }


def test_a_ceiling_bounds_borrowed_bytes():
    node = Node(share("a", 10 * MB, ceiling=12 * MB), share("b", 10 * MB), share("c", 70 * MB))
    node.client("a", 256 * KIB, 4)
    node.client("b", 256 * KIB, 4)
    node.run(2.0)
    moved = node.run(1.0)
    assert moved["a"] == pytest.approx(12 * MB, rel=0.01)
    assert moved["b"] == pytest.approx(78 * MB, rel=0.01)


def test_no_grant_is_due_while_all_waiting_flows_are_at_their_ceiling():
    node = Node(share("a", MB, ceiling=MB), share("b", 70 * MB))
    node.client("a", 256 * KIB, 4)
    node.run(1.0)
    node.serve()
    assert node.limiter.seconds_until_due(node.now) > 0.005


def test_a_flow_without_a_rate_gets_the_lowest_rate():
    node = Node(share("a", 0.0), share("b", 50 * MB))
    node.client("a", 64 * KIB)
    node.client("b", 256 * KIB, 8)
    node.run(1.0)
    assert node.run(10.0)["a"] >= 9 * MIN_RATE


def test_the_workers_of_one_flow_are_served_in_round_robin():
    node = Node(share("a", MB))
    node.client("a", 1024 * KIB, 4)
    first = Counter()
    for _ in range(40):
        for worker, rows in node.limiter.due_grants(node.now).items():
            first[worker] += sum(row.size for row in rows)
        node.now += 0.05
    assert max(first.values()) < 1.5 * min(first.values())


def test_newcomers_divide_the_newcomer_rate():
    node = Node(share("a", 10 * MB), newcomer=6 * MB)
    node.client("a", 256 * KIB, 10)
    for name in "bcd":
        node.client(name, 64 * KIB)
    node.run(0.5)  # the bytes in the buckets at the start are spent
    moved = node.run(1.0)
    for name in "bcd":
        assert moved[name] == pytest.approx(2 * MB, rel=0.05)
    node.stop("c")
    node.run(2.0)
    node.take(share("a", 10 * MB), newcomer=6 * MB)  # idle newcomers have no part any more
    moved = node.run(1.0)
    assert moved["b"] == pytest.approx(3 * MB, rel=0.05) == moved["d"]


def test_thousands_of_newcomers_at_once_cost_little_each(monkeypatch):
    changes = Counter()
    change = FlowLimiter.set_limits
    monkeypatch.setattr(FlowLimiter, "set_limits", lambda *args: (changes.update(["all"]), change(*args))[1])
    node = Node(newcomer=6 * MB)
    for number in range(3000):
        node.limiter.add_worker(str(number), PROXY)
        node.limiter.request(str(number), asked(str(number), 1), node.now)
    assert changes["all"] < 20 * 3000


def test_a_newcomer_begins_at_once_and_lends_nothing():
    node = Node(share("a", 10 * MB), newcomer=2 * MB)
    node.client("a", 256 * KIB, 4)
    node.client("new", 64 * KIB, 4)
    node.run(1.0)
    moved = node.run(1.0)
    assert moved["a"] == pytest.approx(10 * MB, rel=0.01)
    assert moved["new"] == pytest.approx(2 * MB, rel=0.01)
    node.stop("new")
    node.run(1.0)
    assert node.run(1.0)["a"] == pytest.approx(10 * MB, rel=0.01)


def test_a_flow_without_limits_is_free():
    limiter = NodeLimiter()
    limiter.add_worker("w", PROXY)
    limiter.request("w", asked("a", 1), 0.0)
    assert limiter.seconds_until_due(0.0) == 0.0
    [row] = limiter.due_grants(0.0)["w"]
    assert (row.size, row.account) == (FREE, "a")
    assert limiter.due_grants(0.0) == {}
    assert limiter.seconds_until_due(0.0) is None


def test_without_a_newcomer_rate_flows_without_a_share_are_free():
    limiter = NodeLimiter()
    limiter.set_shares(shares(share("a", MB, MB), share("b", -1.0)), 0.0)
    limiter.add_worker("w", PROXY)
    for account in "abc":
        limiter.request("w", asked(account, 1000), 0.0)
    limiter.request("w", asked("a", 1000, PUT), 0.0)
    sizes = {(row.account, row.method): row.size for row in limiter.due_grants(0.0)["w"]}
    assert sizes == {("a", GET): 1000, ("b", GET): FREE, ("c", GET): FREE, ("a", PUT): FREE}


def test_a_released_worker_must_renegotiate_once():
    limiter = NodeLimiter()
    limiter.add_worker("told", PROXY)
    limiter.add_worker("not told", PROXY)
    limiter.request("told", asked("a", 1), 0.0)
    limiter.due_grants(0.0)
    limiter.set_shares(shares(share("b", MB, method=PUT)), 0.0)
    assert limiter.workers_to_renegotiate() == []
    limiter.set_shares(shares(share("b", MB)), 0.0)
    assert limiter.workers_to_renegotiate() == ["told"]
    limiter.set_shares(shares(share("b", 2 * MB)), 1.0)
    assert limiter.workers_to_renegotiate() == []
    limiter.request("told", asked("a", 1), 1.0)
    limiter.due_grants(1.0)
    limiter.set_shares(shares(share("b", 2 * MB), newcomer=MB), 2.0)
    assert limiter.workers_to_renegotiate() == ["told"]


def test_a_waiting_worker_is_released_when_its_limit_ends():
    limiter = NodeLimiter()
    limiter.set_shares(shares(share("a", MB)), 0.0)
    limiter.add_worker("w", PROXY)
    limiter.request("w", asked("a", 10_000_000), 0.0)
    limiter.due_grants(0.0)
    limiter.set_shares(shares(), 0.1)
    assert [row.size for row in limiter.due_grants(0.1)["w"]] == [FREE]
    assert not limiter.is_limiting


def test_returned_bytes_are_granted_again():
    limiter = NodeLimiter()
    limiter.set_shares(shares(share("a", 40_000.0)), 0.0)
    limiter.add_worker("w", PROXY)
    limiter.request("w", asked("a", 10_000), 0.0)
    assert [row.size for row in limiter.due_grants(0.0)["w"]] == [10_000]
    limiter.request("w", asked("a", -10_000), 0.0)
    limiter.request("w", asked("a", 10_000), 0.0)
    assert [row.size for row in limiter.due_grants(0.0)["w"]] == [10_000]
    limiter.request("w", asked("a", 10_000), 0.0)
    assert limiter.due_grants(0.0) == {}


def test_a_removed_worker_has_no_pending_bytes():
    limiter = NodeLimiter()
    limiter.set_shares(shares(share("a", MB)), 0.0)
    limiter.add_worker("gone", PROXY)
    limiter.add_worker("here", PROXY)
    limiter.request("gone", asked("a", 100_000_000), 0.0)
    limiter.request("here", asked("a", 1_000), 0.0)
    limiter.remove_worker("gone")
    assert list(limiter.due_grants(0.0)) == ["here"]
    assert limiter.seconds_until_due(0.0) is None


def test_the_fallback_rate_is_the_workers_fraction_of_the_demand():
    node = Node(share("a", 8 * MB))
    for name, size in (("one", 100_000), ("three", 300_000)):
        node.limiter.add_worker(name, PROXY)
        node.clients[name] = "a", size, size
    rates = {}
    for _ in range(300):
        for name in node.clients:
            node.limiter.request(name, asked("a", node.clients[name][1]), node.now)
        node.now += 0.05
        for worker, rows in node.limiter.due_grants(node.now).items():
            rates[worker] = rows[0].rate
    assert rates["one"] == pytest.approx(2 * MB, rel=0.05)
    assert rates["three"] == pytest.approx(6 * MB, rel=0.05)


def test_ten_thousand_idle_flows_cost_nothing():
    node = Node(*(share(f"idle{number}", 1000.0) for number in range(10_000)), share("a", MB))
    node.client("a", 64 * KIB)
    node.run(1.0)
    looked = []
    method_limiter = node.limiter._limiters[PROXY, GET]
    settle = method_limiter._refill
    method_limiter._refill = lambda account: (looked.append(account), settle(account))
    assert node.run(1.0)["a"] == pytest.approx(11 * MB, rel=0.02)
    assert {account.flow.account for account in looked} == {"a"}


rates = st.one_of(st.floats(0, 1e5), st.floats(1e4, 1e8), st.just(10e9))
sizes = st.integers(1, 1 << 20)
events = st.lists(
    st.tuples(
        st.integers(0, 3),  # flow
        st.integers(0, 2),  # worker
        st.one_of(sizes, sizes.map(lambda size: -size)),
        st.floats(0, 0.4),
    ),
    max_size=60,
)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(rates, st.booleans()), min_size=1, max_size=4), events, st.floats(0, 1e6))
def test_grants_never_exceed_what_was_divided(rows, story, newcomer):
    """No flow gets more than its ceiling, all together at most the sum, and only requested bytes."""
    made = [share(str(n), rate, rate * 1.5 if capped else 0.0) for n, (rate, capped) in enumerate(rows)]
    limiter = NodeLimiter()
    limiter.set_shares(shares(*made, newcomer=newcomer), 0.0)
    for worker in range(3):
        limiter.add_worker(str(worker), PROXY)
    now, held, wanted = 0.0, Counter(), Counter()
    for flow, worker, size, pause in story:
        key = str(worker), str(flow)
        if size < 0:
            size = -min(-size, held[key])
        else:
            wanted[key] += size
        held[key] += min(size, 0)
        if size:
            limiter.request(str(worker), asked(str(flow), size), now)
        for by, grants in limiter.due_grants(now).items():
            for row in grants:
                held[by, row.account] += row.size
                wanted[by, row.account] -= row.size
        assert min(wanted.values(), default=0) >= 0
        sums = Counter()
        for (_, account), amount in held.items():
            sums[account] += amount
        for row in made:
            if row.ceiling:
                top = max(row.ceiling, MIN_RATE)
                assert sums[row.account] <= top * (now + BURST_SECONDS) + 1
        guests = [account for account in sums if int(account) >= len(made)]
        rows = sum(max(row.rate, MIN_RATE) for row in made)
        # they share one rate, and each starts with a full bucket of its part at that time
        shared = max(newcomer * 1.1, len(guests) * MIN_RATE) * now
        bursts = sum(max(newcomer / number, MIN_RATE) for number in range(1, len(guests) + 1)) * BURST_SECONDS
        assert sums.total() <= (rows * (now + BURST_SECONDS + POOL_SECONDS) + shared + bursts) * (1 + 1e-9) + 1
        now += pause


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(20e3, 50e6), min_size=1, max_size=6), st.data())
def test_no_byte_stays_idle_and_each_flow_gets_its_own_rate_while_any_waits(parts, data):
    node = Node(*(share(str(n), rate) for n, rate in enumerate(parts)))
    waiting = data.draw(st.sets(st.integers(0, len(parts) - 1), min_size=1))
    size = data.draw(st.sampled_from((64 * KIB, 1024 * KIB)))
    for n in waiting:
        node.client(str(n), size, max(int(sum(parts) * 0.1 / size), 2))
    node.run(1.0)
    moved = node.run(5.0)
    assert moved.total() / 5.0 == pytest.approx(sum(parts), rel=0.01, abs=64 * KIB)
    for n in waiting:
        assert moved[str(n)] / 5.0 >= parts[n] * 0.99 - SMALL
    extra = [moved[str(n)] / 5.0 - parts[n] for n in waiting]
    assert max(extra) - min(extra) <= 0.03 * sum(parts) + 64 * KIB


#: A step of the slowest flow, spread over the measured time.
SMALL = 4 * KIB
