"""The allocating host with clocks that jump: its own, and those of nodes.  Time passes only while a task waits."""

import asyncio
import heapq
import itertools
from dataclasses import replace

import pytest
from tests.support.actors.bandwidth import MB, bandwidth_policy, flow_row, flow_stat, node_load
from tests.support.actors.host import run_scenario, settings
from tests.support.actors.ownership import SingleHost

from sluice_actors.bandwidth.service import LISTEN_SECONDS, NAME, AllocationService
from sluice_actors.policies.group_index import GroupIndex
from sluice_agent.bandwidth.shares import ShareReceiver
from sluice_core.connections.exchanges import load_routing_key
from sluice_core.describe import PROXY
from sluice_core.messages.bandwidth import GET, Flow, Shares
from sluice_core.messages.policies import Change
from sluice_core.store.keys import Keys
from sluice_core.testing import FakeBus

HOUR, DAY = 3600.0, 86_400.0
#: The longest time between two rounds: the rest of the present second, and a whole one.
GAP = 2.0
#: The shortest: the seconds of two rounds end half a second apart, and the report of the first was late.
APART = 0.3
#: After this time an agent accepts shares whose numbers start again.
SILENCE = 10.0
JUMPS = pytest.mark.parametrize("jump", [HOUR, -HOUR, DAY + 0.4, -DAY])


class Store:
    """Stores nothing."""

    keys = Keys("t")

    async def run(self, operation):
        return []


class Owner(SingleHost):
    """Owns the name or not, under one term."""

    def __init__(self):
        self.owning = True

    def owns(self, name):
        return self.owning and name == NAME


class Wire(FakeBus):
    """The publisher and the consumer of one host."""

    def __init__(self, said):
        super().__init__()
        self.connected = asyncio.Event()
        self.connected.set()
        self.subscribe("shares.#", said)

    def bind(self, pattern):
        pass

    def unbind(self, pattern):
        pass


class World:
    """One host, and one node whose agent reports its load just after each second of its own clock."""

    def __init__(self):
        self.steady = 1000.3
        self.ahead = self.node_ahead = 1.8e9
        self.waits = []
        self.said = []
        self.took = []
        self.moved = 5.0
        self.inbox = ShareReceiver(
            "p1", lambda shares: self.took.append((self.steady, shares.number)), None, self._monotonic
        )
        self.started, self.number = self.steady + self.node_ahead, 0
        self._events = []
        self._order = itertools.count()
        self.at(self.steady + 0.1, self._tell)
        self.restart()

    def _monotonic(self):
        return self.steady

    def restart(self):
        """Replace the allocating process by another one."""
        self.owner = Owner()
        self.host = AllocationService(
            settings("redis://127.0.0.1:1/0", "t"), Store(), self.owner, GroupIndex(),
            lambda: self.steady + self.ahead, self._monotonic,
        )  # fmt: skip
        self.host._publisher = self.host._consumer = Wire(self._said)
        self.host._wait = self._wait

    def at(self, steady, event):
        heapq.heappush(self._events, (steady, next(self._order), event))

    def jump(self, seconds, after=0.0):
        """Let the host's clock jump, after ``after`` seconds."""
        self.at(self.steady + after, lambda: setattr(self, "ahead", self.ahead + seconds))

    def restart_agent(self, ahead):
        """Restart the node's agent, which numbers its reports anew, with a clock ``ahead`` of the steady one."""
        self.node_ahead = ahead
        self.started, self.number = self.steady + ahead, 0

    async def run(self, seconds):
        end = self.steady + seconds
        while self.steady < end:
            await self.host.run_round()

    def _tell(self):
        now = self.steady + self.node_ahead
        self.number += 1
        told = node_load("p1", self.number, flow_row("a", self.moved), started=self.started, sides=(PROXY,))
        self.host.receive(load_routing_key("p1"), replace(told, at=now).encode())
        rest = 1.0 - (now - 0.05) % 1.0
        self.at(self.steady + rest + (rest < 0.5), self._tell)

    def _said(self, routing_key, body):
        self.said.append((self.steady, Shares.decode(body).number))
        self.inbox.receive(routing_key, body)

    async def _wait(self, event, seconds):
        self.waits.append(seconds)
        if self.host._stale.is_set():
            await self.host.load_objectives()
            self.host.apply(Change(1, "h", 0.0, puts=(bandwidth_policy("a", get_bw=30),)))
        end = self.steady + seconds
        while not event.is_set() and self._events[0][0] <= end:
            when, _, happens = heapq.heappop(self._events)
            self.steady = max(self.steady, when)
            happens()
        if not event.is_set():
            self.steady = end


def rounds_are_sound(world, begin=0):
    """From message ``begin`` on: no long pause, no number is left out, and the agent accepts each."""
    said = world.said[begin:]
    assert all(0.0 < one <= GAP for one in world.waits)
    assert all(APART <= later - sooner <= GAP for (sooner, _), (later, _) in itertools.pairwise(said))
    numbers = [number for _, number in said]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert [one for one in world.took if one >= said[0]] == said


def played(tell):
    async def story():
        world = World()
        await world.run(4.0)
        assert world.took  # the host has received reports, and publishes
        await tell(world)

    run_scenario(story())


@pytest.mark.parametrize("jump", [HOUR, -HOUR, DAY, -DAY, 0.6, -1.0, HOUR + 0.4, 0.4 - DAY])
@pytest.mark.parametrize("after", [0.3, 0.74, 0.9])
def test_a_round_is_made_each_second_when_the_clock_jumps(jump, after):
    """The node reports 0.75 s after the beginning: the jump comes long before, just before the round, and after it."""

    async def tell(world):
        world.steady = round(world.steady) + 0.3
        begin = len(world.said)
        world.jump(jump, after)
        await world.run(8.0)
        rounds_are_sound(world, begin)
        assert 7 <= len(world.said) - begin <= 9  # of eight; the jump loses or adds one second

    played(tell)


def test_rounds_do_not_spin_when_the_clock_jumps_every_second():
    async def tell(world):
        for second in range(20):
            world.jump(DAY * (-1) ** second, second + 0.75)
        begin = len(world.said)
        await world.run(20.0)
        rounds_are_sound(world, begin)
        assert 18 <= len(world.said) - begin <= 21

    played(tell)


@JUMPS
def test_round_numbers_grow_within_a_term_though_the_clock_went_back(jump):
    async def tell(world):
        begin = len(world.said)
        world.owner.owning = False
        world.host.check_ownership()
        world.jump(jump)
        await world.run(1.0)
        assert len(world.said) == begin
        world.owner.owning = True
        world.host.check_ownership()
        await world.run(LISTEN_SECONDS + 3.0)
        rounds_are_sound(world, begin)
        assert world.said[begin][1] > world.said[begin - 1][1]

    played(tell)


@pytest.mark.parametrize("jump", [-HOUR, -DAY])
def test_shares_of_a_process_whose_clock_is_behind_are_accepted_after_some_seconds(jump):
    async def tell(world):
        left = world.took[-1][0]
        world.ahead += jump
        world.restart()
        begin = len(world.took)
        await world.run(SILENCE + 8.0)
        took = world.took[begin:]
        assert took[0][0] - left <= SILENCE + GAP
        assert took == world.said[-len(took) :]
        assert len(took) > 4

    played(tell)


def test_shares_of_a_process_whose_clock_is_right_are_accepted_at_once():
    async def tell(world):
        left, begin = world.took[-1][0], len(world.said)
        world.restart()
        await world.run(6.0)
        rounds_are_sound(world, begin)
        assert world.said[begin][0] - left <= LISTEN_SECONDS + 2 * GAP

    played(tell)


@JUMPS
def test_reports_of_a_node_whose_clock_jumps_are_accepted(jump):
    async def tell(world):
        begin = len(world.said)
        world.node_ahead += jump
        world.moved = 8.0
        await world.run(5.0)
        rounds_are_sound(world, begin)
        loads = world.host._allocator.loads
        assert loads.repeated == 0
        assert loads.nodes["p1"].number == world.number
        assert flow_stat(loads, "p1", PROXY, Flow("a", GET)).moved == 8 * MB

    played(tell)


@JUMPS
def test_reports_of_an_agent_restarted_with_another_clock_are_accepted_within_seconds(jump):
    async def tell(world):
        begin = len(world.said)
        world.restart_agent(world.node_ahead + jump)
        world.moved = 8.0
        await world.run(6.0)
        rounds_are_sound(world, begin)
        loads = world.host._allocator.loads
        assert loads.nodes["p1"].number == world.number
        assert loads.repeated <= 4
        assert flow_stat(loads, "p1", PROXY, Flow("a", GET)).moved == 8 * MB

    played(tell)


def test_an_old_report_is_known_by_its_number_whatever_its_time():
    async def tell(world):
        old = node_load("p1", world.number - 1, flow_row("a", 99.0), started=world.started, sides=(PROXY,))
        world.host.receive(load_routing_key("p1"), replace(old, at=world.steady + world.node_ahead + DAY).encode())
        loads = world.host._allocator.loads
        assert loads.repeated == 1
        assert flow_stat(loads, "p1", PROXY, Flow("a", GET)).moved == 5 * MB

    played(tell)
