"""The server for credit, with real sockets."""

import asyncio
import socket
import time

import pytest

from sluice_agent.bandwidth.io_levels import IoLevels
from sluice_agent.bandwidth.loads import LoadMeter
from sluice_agent.bandwidth.node_limiter import NodeLimiter
from sluice_agent.bandwidth.server import CreditServer
from sluice_agent.bandwidth.service import BandwidthService
from sluice_agent.settings import Settings
from sluice_core.describe import PROXY, STORAGE_NODE
from sluice_core.messages.bandwidth import GET, NodeLoad, Share, Shares
from sluice_core.messages.credit import (
    CREDIT_SUFFIX,
    FREE,
    IDLE,
    MESSAGE_LIMIT,
    Ask,
    CreditHello,
    CreditRequest,
    Grant,
    PriorityUpdate,
    Renegotiate,
    TrafficReport,
    TrafficSample,
    pack,
    unpack,
)

LIMIT = 30
KIB = 1024


def share(account, rate, side=PROXY, floor=0.0):
    return Share(side, account, "", GET, 0, rate, floor)


def shares(*rows, number=1, newcomer=None, spares=None):
    rates = {} if newcomer is None else {PROXY: {GET: newcomer}}
    return Shares("n1", 1, number, 0.0, rows, rates, spares or {})


def asked(account, size):
    return CreditRequest(account, "", GET, 0, size)


class Worker:
    """The other end of the socket."""

    all = []

    def __init__(self, path, side=PROXY, name="w"):
        self.all.append(self)
        self.line = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK)
        self.line.connect(path + CREDIT_SUFFIX)
        self.say(CreditHello(name, side, 1, "127.0.0.1:6200", {"0": "gold"}))

    def say(self, message):
        self.line.send(pack(message))

    def ask(self, *rows):
        self.say(Ask(rows))

    async def hear(self, kind):
        """The next message of this kind."""
        while True:
            raw = await asyncio.get_running_loop().sock_recv(self.line, 1 << 17)
            if not raw:
                raise EOFError
            message = unpack(raw)
            if isinstance(message, kind):
                return message


@pytest.fixture(autouse=True)
def hung_up():
    yield
    while Worker.all:
        Worker.all.pop().line.close()


class Node:
    def __init__(self, path):
        self.path = str(path / "agent.sock")
        self.limiter = NodeLimiter()
        self.loads = LoadMeter("n1", {})
        self.levels = IoLevels()
        self.server = CreditServer(self.path, self.limiter, self.loads, self.levels)


def told(tmp_path, story):
    async def limited():
        node = Node(tmp_path)
        node.server.open()
        async with asyncio.timeout(LIMIT):
            try:
                await story(node)
            finally:
                node.server.close()

    asyncio.run(limited())


def test_a_free_flow_is_released_and_renegotiated_later(tmp_path):
    async def story(node):
        worker = Worker(node.path)
        worker.ask(asked("a", 1), asked("b", 1))
        assert [(row.account, row.size) for row in (await worker.hear(Grant)).rows] == [("a", FREE), ("b", FREE)]
        node.server.apply_shares(shares(share("a", 40_000.0)))
        await worker.hear(Renegotiate)
        worker.ask(asked("a", 10_000))
        [row] = (await worker.hear(Grant)).rows
        assert (row.account, row.size, row.rate) == ("a", 10_000, 40_000.0)

    told(tmp_path, story)


def test_a_worker_gets_the_rate_of_its_flow_in_parts(tmp_path):
    async def story(node):
        node.server.apply_shares(shares(share("a", 4_000_000.0)))
        worker = Worker(node.path)
        worker.ask(asked("a", 1_000_000))
        await worker.hear(Grant)
        got, started = 0, time.monotonic()
        worker.ask(asked("a", 2_000_000))
        while got < 2_000_000:
            for row in (await worker.hear(Grant)).rows:
                got += row.size
        assert time.monotonic() - started == pytest.approx(0.5, rel=0.2)

    told(tmp_path, story)


def test_a_disconnected_worker_has_no_requests_and_an_invalid_message_disconnects(tmp_path):
    async def story(node):
        node.server.apply_shares(shares(share("a", 10_000.0)))
        gone, strange, late = Worker(node.path), Worker(node.path), Worker(node.path)
        gone.ask(asked("a", 100_000_000))
        await gone.hear(Grant)
        gone.line.close()
        strange.line.send(pack(Grant(())))
        with pytest.raises(EOFError):
            await strange.hear(Grant)
        late.say(Ask((CreditRequest("a", "", GET, 0, 1.5),)))
        with pytest.raises(EOFError):
            await late.hear(Grant)
        assert node.server.count == 0
        assert node.limiter.seconds_until_due(time.monotonic()) is None

    told(tmp_path, story)


def test_a_worker_that_does_not_read_is_disconnected(tmp_path):
    async def story(node):
        deaf, other = Worker(node.path, name="deaf"), Worker(node.path, name="other")
        for number in range(3000):
            try:
                deaf.ask(asked(f"a{number}", 1))
            except BlockingIOError:
                pass
            except OSError:
                break
            await asyncio.sleep(0)
        while node.server.count > 1:
            await asyncio.sleep(0)
        other.ask(asked("a", 1))
        assert [row.size for row in (await other.hear(Grant)).rows] == [FREE]

    told(tmp_path, story)


def test_many_grants_are_split_over_messages(tmp_path):
    async def story(node):
        worker = Worker(node.path)
        names = [f"AUTH_{number:040d}" for number in range(1500)]
        for first in range(0, 1500, 300):
            worker.ask(*(asked(name, 1) for name in names[first : first + 300]))
        await asyncio.sleep(0)
        got = []
        while len(got) < len(names):
            message = await worker.hear(Grant)
            assert len(pack(message)) <= MESSAGE_LIMIT
            got += [row.account for row in message.rows]
        assert got == names

    told(tmp_path, story)


def test_a_restarted_agent_limits_what_was_limited_before(tmp_path):
    settings = Settings("n1", "", str(tmp_path / "snapshot"), socket=str(tmp_path / "agent.sock"))

    class Bus:
        dropped = 0

        def __init__(self):
            self.sent = []

        def publish(self, key, body):
            self.sent.append((key, NodeLoad.decode(body)))

    async def story():
        now = time.time()
        first = BandwidthService(settings, Bus(), lambda: now, quiet_start=0.0)
        first.open()
        worker = Worker(settings.socket, STORAGE_NODE)
        assert not (await worker.hear(PriorityUpdate)).active
        given = shares(share("a", 50_000.0, STORAGE_NODE, 40_000.0), share("b", -1.0, STORAGE_NODE), spares={"n2": 0.5})
        first.shares.receive("shares.n1", given.encode())
        rows = [
            TrafficSample(account, "", GET, 0, "sda", moved, 1.0, 0.0, 1, 0)
            for account, moved in (("a", 9), ("b", 70_000))
        ]
        worker.say(TrafficReport(now, tuple(rows)))
        worker.ask(asked("a", 1))
        await worker.hear(Grant)
        first.tick()
        standing = await worker.hear(PriorityUpdate)
        assert {row.account: row.level for row in standing.rows} == {"a": 0, "b": IDLE, "": IDLE}
        assert standing.active
        [(key, load)] = first.bus.sent
        assert key == "load.n1"
        assert {(row.account, row.device): row.moved for row in load.rows} == {("a", "sda"): 9, ("b", "sda"): 70_000}
        assert (load.server, load.sides, load.gone) == ("127.0.0.1:6200", (STORAGE_NODE,), False)
        first.server.close()

        again = BandwidthService(settings, Bus())
        again.open()
        worker = Worker(settings.socket, STORAGE_NODE)
        await worker.hear(PriorityUpdate)
        again.tick()  # the reports of its workers do not cover a whole second
        assert not again.bus.sent
        worker.ask(asked("a", 1_000_000), asked("b", 1))
        assert {row.account: row.size for row in (await worker.hear(Grant)).rows} == {"b": FREE}
        [row] = (await worker.hear(Grant)).rows
        assert row.account == "a"
        assert 0 < row.size < 12_500  # no bytes accumulated meanwhile
        again.server.close()

    async def limited():
        async with asyncio.timeout(LIMIT):
            await story()

    asyncio.run(limited())
