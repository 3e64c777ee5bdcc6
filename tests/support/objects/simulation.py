"""A simulated cluster for one typed object: homes of Sluice's own code over devices that lose messages and files.

Each home runs in a greenlet and lets others run before each message.  Beside them run a replicator, which copies newer
states anywhere at any time past all promises and removes those of devices that the ring does not name, and a nemesis,
which stops devices, wipes disks, quarantines files and moves the ring by one replica.

A state is the tuple of all operations until then.  What a client was told by a commit or a read must stay a prefix of
all that clients are told later (:class:`Violation`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from greenlet import GreenletExit, greenlet

from sluice_objects.protocol.acceptor import Acceptor, Record, Refusal
from sluice_objects.protocol.home import Home, NoMajority, Replaced, Sighting, Unknown, Vote
from sluice_objects.protocol.stamps import NOTHING, Stamp
from sluice_objects.protocol.voters import Voter, Voters
from sluice_objects.serving import ServedObject

State = tuple[str, ...]
#: The probability that a message is lost.
LOST = 0.12


class Violation(AssertionError):
    """Clients were told what does not fit together."""


def append(state: State | None, operation: str) -> tuple[State | None, State]:
    """Append an operation; without one it is a read."""
    appended = (*(state or ()), operation) if operation else state
    return appended, appended or ()


@dataclass
class Disk:
    """One device: its files, and the record beside them."""

    name: str
    incarnation: str = ""
    written: Record = field(default_factory=Record)
    stamp: Stamp | None = None
    state: State = ()
    voters: Voters = ()

    def record(self) -> Record:
        return self.written

    def save(self, record: Record) -> None:
        self.written = record

    def stored(self) -> Stamp | None:
        return self.stamp

    def put(self, stamp: Stamp, state: State, voters: Voters) -> None:
        if self.stamp is None or stamp > self.stamp:
            self.stamp, self.state, self.voters = stamp, state, voters

    def remove(self) -> None:
        self.stamp, self.state, self.voters = None, (), ()

    def wipe(self, incarnation: str) -> None:
        """Become another voter, which knows nothing."""
        self.remove()
        self.written, self.incarnation = Record(), incarnation


class World:
    """
    :param acceptor: of a device, instead of the right one
    :param home: of the object, instead of the right one
    :param served: the object at its home, instead of the right one
    :param moves: probability that a step of the nemesis moves the ring
    :param wear: probability that it wipes a disk or quarantines a file
    :param old: probability that a state needs a later creation time
    """

    def __init__(
        self,
        seed: int,
        acceptor: type[Acceptor] = Acceptor,
        home: type[Home[State]] = Home,
        served: type[ServedObject[State, str, State]] = ServedObject,
        devices: int = 5,
        replicas: int = 3,
        moves: float = 0.015,
        wear: float = 0.005,
        old: float = 0.03,
    ) -> None:
        self.random = random.Random(seed)
        self.disks = {f"d{number}": Disk(f"d{number}", f"i{number}") for number in range(devices)}
        self.acceptor = acceptor
        self.home = home
        self.served = served
        self.ring = list(self.disks)[:replicas]
        #: earlier rings, of which homes with an odd number learn late
        self.rings: list[list[str]] = [list(self.ring)]
        self.down: set[str] = set()
        self.told: State = ()
        self.moves, self.wear, self.old = moves, wear, old
        self.steps = self.next_move = 0
        self.counts = dict.fromkeys(("commits", "reads", "moves", "wipes", "quarantines", "voters", "homes"), 0)
        self._clock = 170_000_000_000_000
        self._main = greenlet.getcurrent()

    def now(self) -> int:
        """Clocks of homes differ by minutes."""
        self._clock += 1
        return self._clock + self.random.randrange(-30_000_000, 30_000_000)

    def rings_of(self, home: int) -> list[list[str]]:
        """The ring that a home has, and the one before."""
        versions = [*self.rings, list(self.ring)]
        if home % 2 and self.steps < self.next_move - 100:
            versions.pop()
        return versions[-1:-3:-1]

    def reachable(self, device: str) -> bool:
        return device not in self.down and self.random.random() >= LOST

    def pause(self) -> None:
        """Let others run."""
        self._main.switch()

    def check(self, before: State, state: State, what: str) -> None:
        """A client asked when ``before`` had been told, and is told ``state``."""
        if state[: len(before)] != before:
            raise Violation(f"{what}: {before} was told, and now {state}")
        shorter, longer = sorted((self.told, state), key=len)
        if longer[: len(shorter)] != shorter:
            raise Violation(f"{what}: {self.told} and {state} were told")
        self.told = longer

    def run(self, steps: int) -> None:
        """
        :raises Violation: when clients are told what does not fit together
        """
        programs: list[Callable[[], None]] = [self._serve, self._serve, self._serve, self._replicate, self._disturb]
        running = [greenlet(program) for program in programs]
        try:
            for self.steps in range(steps):
                number = self.random.choice((0, 0, 0, 1, 1, 1, 2, 2, 3, 4))
                running[number].switch()
                if self.random.random() < 0.003:  # a home is killed, and another one begins
                    number = self.random.randrange(3)
                    running[number].throw(GreenletExit)
                    running[number] = greenlet(programs[number])
        finally:
            for program in running:
                program.throw(GreenletExit)

    def _serve(self) -> None:
        number = self.counts["homes"]
        self.counts["homes"] += 1
        while True:
            self.pause()
            served = self.served(lambda: self.home(self.connect(number), f"home {number}", self.now), append)
            for _ in range(self.random.randrange(1, 16)):
                for _ in range(self.random.choice((1, 1, 30))):
                    self.pause()
                with suppress(NoMajority, Replaced, Unknown):
                    self._call(served, number)

    def connect(self, home: int) -> Network:
        """The messages of a home."""
        return Network(self, home)

    def _call(self, served: ServedObject[State, str, State], number: int) -> None:
        before = self.told
        choice = self.random.random()
        if choice < 0.2:
            self.counts["voters"] += served.follow_ring([self._voter(device) for device in self.ring])
        elif choice < 0.7:
            self.counts["commits"] += 1
            operation = f"{number}.{self.counts['commits']}"
            state = served.call(operation)
            if state.count(operation) != 1:
                raise Violation(f"`{operation}` took place {state.count(operation)} times: {state}")
            self.check(before, state, "commit")
        else:
            self.counts["reads"] += 1
            self.check(before, served.call(""), "read")

    def _voter(self, device: str) -> Voter:
        return Voter(device, self.disks[device].incarnation)

    def _replicate(self) -> None:
        while True:
            self.pause()
            source = self.disks[self.random.choice(list(self.disks))]
            target = self.disks[self.random.choice(self.ring)]
            if source.stamp is not None and not self.down & {source.name, target.name}:
                self.copy(source, target)
            for disk in self.disks.values():
                if disk.name not in self.ring and self.random.random() < 0.2:
                    self._drop_handoff(disk)

    def copy(self, source: Disk, target: Disk) -> None:
        """rsync replaces a file by a newer one."""
        assert source.stamp is not None
        target.put(source.stamp, source.state, source.voters)

    def _drop_handoff(self, disk: Disk) -> None:
        primaries = [self.disks[device] for device in self.ring]
        is_everywhere = all(one.stamp is not None and one.stamp >= (disk.stamp or NOTHING) for one in primaries)
        if is_everywhere and not self.down & {disk.name, *self.ring}:
            disk.remove()

    def _disturb(self) -> None:
        while True:
            self.pause()
            choice = self.random.random()
            if choice < 0.03:
                self.down = {self.random.choice(list(self.disks))} if self.random.random() < 0.6 else set()
            elif choice < 0.03 + self.moves:
                self._move_ring()
            elif choice < 0.03 + self.moves + self.wear:
                self._lose_files()

    def _move_ring(self) -> None:
        """By one replica, and not again before requests of that time have ended: Swift's ``min_part_hours``."""
        others = [device for device in self.disks if device not in self.ring]
        if others and self.steps >= self.next_move:
            self.next_move = self.steps + 200
            self.counts["moves"] += 1
            self.rings.append(list(self.ring))
            self.ring[self.random.randrange(len(self.ring))] = self.random.choice(others)

    def _lose_files(self) -> None:
        """A disk is wiped or a file quarantined, unless the others know nothing of the object."""
        disk = self.disks[self.random.choice(self.ring)]
        if disk.stamp is None or any(self.disks[other].stamp is None for other in self.ring):
            return
        if self.random.random() < 0.5:
            self.counts["quarantines"] += 1
            disk.remove()
        else:
            self.counts["wipes"] += 1
            disk.wipe(f"i{self.random.randrange(10**9)}")


class Network:
    """The messages of one home; each may be lost on its way or on its way back, and others run before each."""

    def __init__(self, world: World, number: int) -> None:
        self._world = world
        self._number = number

    def rings(self) -> Sequence[Sequence[str]]:
        return self._world.rings_of(self._number)

    def look(self, devices: Sequence[str]) -> Iterable[Sighting]:
        def answer(disk: Disk) -> Sighting:
            record = disk.record()
            voter = Voter(disk.name, disk.incarnation)
            return Sighting(voter, disk.stamp, disk.voters, record.promised, record.home)

        yield from self._ask(devices, answer)

    def promise(self, devices: Sequence[str], ballot: Stamp, home: str) -> Iterable[Vote]:
        return self._votes(devices, lambda disk: self._acceptor(disk).promise(ballot, home))

    def fetch(self, device: str, stamp: Stamp) -> tuple[State, Voters] | None:
        self._world.pause()
        disk = self._world.disks[device]
        if not self._world.reachable(device) or disk.stamp != stamp:
            return None
        return disk.state, disk.voters

    def store(self, devices: Sequence[str], stamp: Stamp, voters: Voters, state: State) -> Iterable[Vote]:
        def answer(disk: Disk) -> Refusal | bool:
            acceptor = self._acceptor(disk)
            refusal = acceptor.refusal(stamp)
            if refusal is not None:
                return refusal
            disk.put(stamp, state, voters)
            acceptor.accepted(stamp)
            return True

        return self._votes(devices, answer)

    def confirm(self, devices: Sequence[str], stamp: Stamp) -> Iterable[Vote]:
        return self._votes(devices, lambda disk: self._acceptor(disk).confirms(stamp))

    def least_stamp(self, state: State) -> Stamp:
        """Some states need a later creation time, and versions are not less than the length of the state."""
        created = self._world.now() if self._world.random.random() < self._world.old else 0
        return Stamp(created, 0, len(state))

    def _acceptor(self, disk: Disk) -> Acceptor:
        return self._world.acceptor(disk)

    def _votes(self, devices: Sequence[str], answer: Callable[[Disk], object]) -> Iterator[Vote]:
        return self._ask(devices, lambda disk: Vote(Voter(disk.name, disk.incarnation), answer(disk)))

    def _ask(self, devices: Sequence[str], answer: Callable[[Disk], object]) -> Iterator[object]:
        for device in self._world.random.sample(list(devices), len(devices)):
            self._world.pause()
            if self._world.reachable(device):
                answered = answer(self._world.disks[device])
                if self._world.random.random() >= LOST:
                    yield answered
