"""Fallback rates of workers without their agent: near the divided rate, whichever worker requested bytes when."""

import asyncio
import math
import socket
from collections import Counter

import pytest

from sluice_agent.bandwidth.node_limiter import NodeLimiter
from sluice_agent.bandwidth.service import BandwidthService
from sluice_agent.settings import Settings
from sluice_core.describe import PROXY, STORAGE_NODE
from sluice_core.messages.bandwidth import GET, PUT, Share, Shares
from sluice_core.messages.credit import (
    CREDIT_SUFFIX,
    FREE,
    Ask,
    CreditHello,
    CreditRequest,
    Grant,
    PriorityUpdate,
    pack,
    unpack,
)

MB = 1e6
NAN = math.nan


def share(account, rate, ceiling=0.0):
    return Share(PROXY, account, "", GET, 0, rate, 0.0, ceiling)


class Node:
    """A limiter, its workers, and their rates; busy workers request bytes each 10 ms."""

    def __init__(self, workers, *rows, newcomer=None):
        self.now = 0.0
        self.limiter = NodeLimiter()
        self.rates = {}
        self.free = set()
        self.told = Counter()
        for worker in workers:
            self.limiter.add_worker(worker, PROXY)
        self.take(*rows, newcomer=newcomer)

    def take(self, *rows, newcomer=None):
        newcomers = {} if newcomer is None else {PROXY: {GET: newcomer}}
        self.rows = Shares("n", 1, 1, 0.0, rows, newcomers)
        self.limiter.set_shares(self.rows, self.now)
        self.hear(self.limiter.due_grants(self.now))

    def hear(self, grants):
        for worker, rows in grants.items():
            for row in rows:
                if row.size == FREE:
                    self.rates.pop((worker, row.account), None)
                    self.free.add((worker, row.account))
                else:
                    self.rates[worker, row.account] = row.rate

    def run(self, seconds, busy="", account="T"):
        for _ in range(seconds):
            for _ in range(100):
                self.now += 0.01
                for worker in busy:
                    self.limiter.request(worker, CreditRequest(account, "", GET, 0, 40_000, 1), self.now)
                self.hear(self.limiter.due_grants(self.now))
            self.limiter.set_shares(self.rows, self.now)
            self.hear(self.limiter.due_grants(self.now))
            rates = self.limiter.changed_fallback_rates(self.now)
            assert all(row.size == 0 for rows in rates.values() for row in rows)
            self.told.update({worker: len(rows) for worker, rows in rates.items()})
            self.hear(rates)

    def sum(self, account="T"):
        return sum(rate for (_, name), rate in self.rates.items() if name == account)


@pytest.mark.parametrize("seconds", [5, 60])
def test_workers_that_are_busy_in_turn_hold_one_share_together(seconds):
    node = Node("ABCD", share("T", 4 * MB))
    for worker in "ABCD":
        node.run(seconds, worker)
        assert 0.9 * 4 * MB <= node.sum() <= 1.15 * 4 * MB
        assert node.rates[worker, "T"] >= 0.9 * 4 * MB
    assert min(node.rates.values()) >= 0.02 * 4 * MB


def test_workers_that_are_busy_together_hold_equal_parts():
    node = Node("AB", share("T", 4 * MB))
    node.run(10, "AB")
    assert node.rates == {(worker, "T"): pytest.approx(2 * MB, rel=0.06) for worker in "AB"}


def test_fractions_stay_while_all_workers_are_idle():
    node = Node("AB", share("T", 4 * MB))
    node.run(10, "AB")
    node.run(2000)
    assert node.rates == {(worker, "T"): pytest.approx(2 * MB, rel=0.06) for worker in "AB"}
    node.take(share("T", MB))
    node.run(1)
    assert node.sum() == pytest.approx(MB, rel=0.06)
    node.told.clear()
    node.run(30)
    assert not node.told


def test_an_idle_newcomer_falls_back_to_the_newcomer_rate():
    node = Node("AB", share("T", 4 * MB), newcomer=3 * MB)
    node.run(3, "A", "new")
    assert node.rates["A", "new"] >= 2 * MB
    node.run(15)
    assert node.rates["A", "new"] == 1.5 * MB
    assert node.limiter.newcomer_fallback_rates(PROXY) == {GET: 1.5 * MB}
    assert node.limiter.newcomer_fallback_rates(STORAGE_NODE) == {}


def test_a_worker_with_a_fallback_rate_is_released_without_a_request():
    node = Node("AB", share("T", 4 * MB))
    node.run(3, "AB")
    node.take(share("other", MB))
    assert node.free == {("A", "T"), ("B", "T")}
    assert node.rates == {}
    node.take(share("T", MB))
    assert node.limiter.workers_to_renegotiate() == ["A", "B"]


def test_nan_shares_leave_those_of_before_in_force():
    node = Node("A", share("T", MB), share("free", -1.0), newcomer=3 * MB)
    node.take(share("T", NAN), share("free", NAN), share("new", NAN), newcomer=NAN)
    assert node.limiter.is_limiting
    node.run(2, "A")
    node.run(1, "A", "free")
    node.run(1, "A", "new")
    assert node.rates == {("A", "T"): MB, ("A", "new"): 3 * MB}
    assert node.free == {("A", "free")}
    node.take(share("T", MB, NAN), share("c", MB, MB))
    node.take(share("T", 2 * MB), share("c", 2 * MB, NAN))
    node.run(2, "A")
    node.run(1, "A", "c")
    assert (node.rates["A", "T"], node.rates["A", "c"]) == (2 * MB, MB)


def test_without_shares_nothing_is_limited():
    node = Node("A", share("T", MB))
    assert node.limiter.is_limiting
    node.take(share("T", -1.0))
    assert not node.limiter.is_limiting
    node.take(newcomer=MB)
    assert node.limiter.is_limiting
    node.take()
    assert not node.limiter.is_limiting


def test_workers_get_updates_each_second_until_limits_end(tmp_path):
    class RecordingServer:
        def __init__(self, server):
            self.server = server
            self.said = []

        def send_priorities(self, sides):
            self.said.append(tuple(sides))
            self.server.send_priorities(sides)

        def send_rates(self):
            self.said.append("rates")
            self.server.send_rates()

        def __getattr__(self, name):
            return getattr(self.server, name)

    async def story():
        now = [1000.0]
        settings = Settings("n", "", str(tmp_path / "snapshot"), socket=str(tmp_path / "agent.sock"))
        service = BandwidthService(settings, None, lambda: now[0])
        server = service.server = RecordingServer(service.server)
        service.open()
        said = []
        for number, rates in enumerate(({}, {PROXY: {PUT: MB}}, {PROXY: {PUT: MB}}, {}, {})):
            service.shares.receive("", Shares("n", 1, number, 0.0, (), rates).encode())
            now[0] += 1
            server.said.clear()
            service.tick()
            said.append(list(server.said))
        service.server.close()
        both = [(PROXY, STORAGE_NODE), "rates"]
        assert said == [[], both, both, both, []]

    asyncio.run(story())


def test_a_worker_gets_its_fallback_rates(tmp_path):
    async def hear(line, kind):
        while True:
            raw = await asyncio.get_running_loop().sock_recv(line, 1 << 17)
            assert raw
            message = unpack(raw)
            if isinstance(message, kind):
                return message

    async def story():
        now = [1000.0]
        path = str(tmp_path / "agent.sock")
        service = BandwidthService(Settings("n", "", str(tmp_path / "s"), socket=path), None, lambda: now[0])
        service.open()

        def second(rate):
            rows, now[0] = (share("T", rate),), now[0] + 1
            service.shares.receive("", Shares("n", 1, int(now[0]), 0.0, rows, {PROXY: {GET: 3 * MB}}).encode())
            service.tick()

        second(MB)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK) as line:
            line.connect(path + CREDIT_SUFFIX)
            line.send(pack(CreditHello("w", PROXY, 1)))
            assert (await hear(line, PriorityUpdate)).alone == {GET: 3 * MB}
            line.send(pack(Ask((CreditRequest("T", "", GET, 0, 10_000),))))
            assert (await hear(line, Grant)).rows[0][4:] == (10_000, MB)
            second(MB / 2)
            assert (await hear(line, PriorityUpdate)).alone == {GET: 3 * MB}
            assert (await hear(line, Grant)).rows[0][4:] == (0, MB / 2)
        service.server.close()

    async def limited():
        async with asyncio.timeout(30):
            await story()

    asyncio.run(limited())
