"""The home of an object: the process that serves it, until another one takes it over.

Theory of operation.  All states of an object form one sequence, as long as a majority of voters stores each state
before the next one is made, and a new home continues with the highest state that a majority knows.

*Taking over.*  The home asks all devices that may know the object for stamps, which also says who votes.  It chooses a
ballot above all that it met, and asks the voters to promise it.  With promises of a majority it takes the highest state
among them and stores it under its own ballot on a majority: only then it serves.  Without any state among the votes
the object does not exist, and the first commit creates it.  So a creation, too, is a round with promises: a plain PUT
that reached one device and failed would otherwise be newer than everything that was acknowledged later.

*Commits.*  A commit stores the whole new state under the next version and returns when a majority has it.  When it is
refused or no majority answers, nobody knows whether the state will survive: the home gives the object up, and the next
one finds out by taking over.

*Reads.*  A majority confirms that no higher ballot was promised.  A home that was replaced without knowing cannot
answer.

*Ballots.*  A ballot is a pair of a creation time and a number, in the order of Swift's timestamps.  A home may move a
state to a later creation time: this is how it continues where an unfinished creation left promises.  Neither clocks
nor leases decide anything about states.

Errors of the devices do not matter, only missing answers: :class:`Peers` leaves a device out that does not answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

from sluice_core.errors import SluiceError
from sluice_objects.protocol.acceptor import Promise, Refusal
from sluice_objects.protocol.stamps import NOTHING, Stamp
from sluice_objects.protocol.voters import Voter, Voters, majority, next_voters

S = TypeVar("S")


class NoMajority(SluiceError):
    """Fewer than a majority of the voters answered, and nothing was changed."""


class Unknown(SluiceError):
    """No majority acknowledged a commit: it may have happened or not."""


class Replaced(SluiceError):
    """Another home has the object.

    :ivar home: its address; empty when it is not known
    """

    def __init__(self, home: str) -> None:
        super().__init__(f"the object is at home at `{home}` now" if home else "another home took the object over")
        self.home = home


class Sighting(NamedTuple):
    """What a device knows of the object.

    :param voter: the device with its present incarnation
    :param stored: the stamp of its state
    :param voters: those that its state names; empty without a state, and where the state is a plain object
    :param promised: with version 0
    """

    voter: Voter
    stored: Stamp | None = None
    voters: Voters = ()
    promised: Stamp | None = None
    home: str = ""


class Vote(NamedTuple):
    """The answer of a device to a request."""

    voter: Voter
    answer: Promise | Refusal | bool


class Peers(Protocol[S]):
    """The devices of one object, over the network.  Answers arrive in any order; the caller may stop to read them.

    A device that does not answer in time, or answers with an error, is left out.
    """

    def rings(self) -> Sequence[Sequence[str]]:
        """The primaries by the present ring, and by earlier ones that other homes may still use."""

    def look(self, devices: Sequence[str]) -> Iterable[Sighting]:
        """Ask what devices know of the object."""

    def promise(self, devices: Sequence[str], ballot: Stamp, home: str) -> Iterable[Vote]:
        """Ask for a promise; answers are a :class:`Promise` or :class:`Refusal`."""

    def fetch(self, device: str, stamp: Stamp) -> tuple[S, Voters] | None:
        """The state with ``stamp`` of a device, and the voters that it names; None when it is not there any more."""

    def store(self, devices: Sequence[str], stamp: Stamp, voters: Voters, state: S) -> Iterable[Vote]:
        """Store a state; answers are True, or a :class:`Refusal`."""

    def confirm(self, devices: Sequence[str], stamp: Stamp) -> Iterable[Vote]:
        """Ask whether the home with ``stamp`` still has the object; answers are True or False."""

    def least_stamp(self, state: S) -> Stamp:
        """Creation time and version that the stamp of ``state`` must have at least; its ballot is ignored."""


class Home(Generic[S]):
    """One object that this process serves; calls run one after the other.

    :param address: of this process, for others that look for the home
    :param now: the time of the clock in units of :attr:`Stamp.created`
    """

    state: S | None = None
    stamp: Stamp
    #: The stamp under which :meth:`take_over` found the state; None when it found none.
    adopted: Stamp | None = None
    #: The stamp of the last commit, also of one whose outcome is not known; NOTHING when it ended before that.
    attempted: Stamp = NOTHING
    voters: Voters = ()

    def __init__(self, peers: Peers[S], address: str, now: Callable[[], int]) -> None:
        self._peers = peers
        self._address = address
        self._now = now
        self._floor: Stamp | None = None
        self._rings: Sequence[Sequence[str]] = ()
        self._electorates: list[Voters] = []

    def take_over(self, attempts: int = 8, created: int = 0) -> None:
        """Become the home; :attr:`state` is the state of the object then, None when the object does not exist.

        :param attempts: after which other homes that do the same at the same time win
        :param created: move the state to this creation time at least
        :raises NoMajority: when too few voters answer or can vote
        :raises Replaced: when others took the object over meanwhile, each time
        """
        refused = Replaced("")
        if created:
            self._raise_floor(Stamp(created, 0, 0))
        for _ in range(attempts):
            rings = self._peers.rings()
            sightings = {seen.voter: seen for seen in self._peers.look(_union(rings))}
            self._rings, self._electorates = rings, self._choose_electorates(sightings, rings)
            ballot = self._next_ballot(sightings.values())
            votes, refusal = self._promises(ballot)
            if refusal is not None:
                self._raise_floor(refusal.promised)
                refused = Replaced(refusal.home)
            elif self._adopt(votes, ballot):
                return
        raise refused

    def commit(self, state: S, voters: Voters = ()) -> None:
        """Store the next state; it is part of the sequence of states when this returns.

        :param voters: the voters from now on, which differ in one from those before; by default the same
        :raises Unknown: when the outcome is not known
        :raises Replaced: when a voter knows a newer home, so that the outcome is not known either; when the object does
            not exist and the ring changed since :meth:`take_over`
        """
        if self.state is None and self._rings != self._peers.rings():
            raise Replaced("")  # another home may create the object by the new ring alone
        self.attempted = NOTHING
        least = self._peers.least_stamp(state)
        if self.stamp.created < least.created:
            self._move(least.created)
        electorates = self._electorates if self.state is None else [voters or self.voters]
        stamp = self.stamp.next_version()
        self.attempted = stamp._replace(version=max(stamp.version, least.version))
        self._store(self.attempted, electorates, state)

    def _move(self, created: int) -> None:
        """Take the object over at a later creation time; the commit follows at once.

        :raises Replaced: when another home stored a state meanwhile
        """
        known = self.stamp if self.state is not None else None
        self.take_over(created=created)
        if self.adopted != known:
            raise Replaced("")

    def follow_ring(self, wanted: Sequence[Voter]) -> bool:
        """Commit the next change of the voters on the way to ``wanted``; False when there is none.

        :raises Unknown: as :meth:`commit`
        :raises Replaced: as :meth:`commit`
        """
        if self.state is None:
            return False
        voters = next_voters(self.voters, wanted)
        if voters == self.voters:
            return False
        self.commit(self.state, voters)
        return True

    def confirm(self) -> None:
        """Return when a majority confirmed that :attr:`state` is the newest one.

        :raises NoMajority: when too few voters answer
        :raises Replaced: when one of them knows a newer home
        """
        electorates = self._electorates if self.state is None else [self.voters]
        confirmed = set()
        for vote in self._peers.confirm(_union(map(_devices, electorates)), self.stamp):
            if vote.answer is not True:
                raise Replaced("")
            confirmed.add(vote.voter)
            if not _missing(confirmed, electorates):
                return
        raise NoMajority(f"too few voters answered: {_missing(confirmed, electorates)}")

    def _choose_electorates(self, sightings: dict[Voter, Sighting], rings: Sequence[Sequence[str]]) -> list[Voters]:
        """Sets of voters; a majority of each must promise, and store the first state.  Later the first set votes.

        Without a state that names its voters these are the primaries.  Homes with different rings may create the object
        at the same time: majorities of {0, 1, 2} and {1, 2, 3} need not meet, so the primaries of earlier rings vote,
        too.
        """
        with_state = [seen for seen in sightings.values() if seen.stored is not None]
        newest = max(with_state, key=_stored, default=None)
        if newest is not None and newest.voters:
            return [newest.voters]
        by_device = {voter.device: voter for voter in sightings}
        # a primary that did not answer counts, without being able to vote
        return [tuple(by_device.get(device, Voter(device, "")) for device in ring) for ring in rings]

    def _next_ballot(self, sightings: Iterable[Sighting]) -> Stamp:
        for seen in sightings:
            for stamp in (seen.stored, seen.promised):
                if stamp is not None:
                    self._raise_floor(stamp)
        if self._floor is None:
            return Stamp(self._now(), 1, 0)
        return self._floor.with_ballot(self._floor.ballot + 1).first_of_ballot

    def _raise_floor(self, stamp: Stamp) -> None:
        self._floor = max(self._floor or stamp, stamp)

    def _promises(self, ballot: Stamp) -> tuple[dict[Voter, Promise], Refusal | None]:
        """Promises of voters that can vote, of a majority of each electorate; or the first refusal.

        :raises NoMajority: when fewer answer
        """
        votes: dict[Voter, Promise] = {}
        devices = _union(map(_devices, self._electorates))
        for voter, answer in self._peers.promise(devices, ballot, self._address):
            if isinstance(answer, Refusal):
                return votes, answer
            if isinstance(answer, Promise) and answer.can_vote:
                votes[voter] = answer
            if not _missing(votes, self._electorates):
                return votes, None
        raise NoMajority(f"too few voters can vote: {_missing(votes, self._electorates)}")

    def _adopt(self, votes: dict[Voter, Promise], ballot: Stamp) -> bool:
        """Take the highest state among the votes and store it under ``ballot``.

        :returns: False when the state names other voters, or went away: look again
        """
        newest = max(votes, key=lambda voter: votes[voter].stored or NOTHING)
        stored = self.adopted = votes[newest].stored
        if stored is None:
            self.state, self.stamp, self.voters = None, ballot, self._electorates[0]
            return True
        fetched = self._peers.fetch(newest.device, stored)
        if fetched is None:
            return False
        state, named = fetched
        if named and [named] != self._electorates:
            return False
        self._store(ballot._replace(version=stored.version), self._electorates, state)
        return True

    def _store(self, stamp: Stamp, electorates: Sequence[Voters], state: S) -> None:
        stored = set()
        voters = electorates[0]
        for vote in self._peers.store(_union(map(_devices, electorates)), stamp, voters, state):
            if isinstance(vote.answer, Refusal):
                raise Replaced(vote.answer.home)
            stored.add(vote.voter)
            if not _missing(stored, electorates):
                self.state, self.stamp, self.voters = state, stamp, voters
                return
        raise Unknown(f"too few voters stored the state: {_missing(stored, electorates)}")


def _missing(votes: Iterable[Voter], electorates: Iterable[Voters]) -> str:
    """The first electorate of which ``votes`` are no majority, in words; empty when there is none."""
    for voters in electorates:
        given = sum(1 for voter in votes if voter in voters)
        if given < majority(voters):
            return f"{given} of {len(voters)}, expected {majority(voters)}"
    return ""


def _union(rings: Iterable[Sequence[str]]) -> list[str]:
    return list(dict.fromkeys(device for ring in rings for device in ring))


def _devices(voters: Iterable[Voter]) -> list[str]:
    return [voter.device for voter in voters]


def _stored(seen: Sighting) -> Stamp:
    assert seen.stored is not None
    return seen.stored
