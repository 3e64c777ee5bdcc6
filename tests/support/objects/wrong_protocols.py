"""Protocols that are wrong in one place each; the simulation must find each of them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from tests.support.objects.simulation import Disk, State, World

from sluice_objects.protocol.acceptor import Acceptor, Promise, Record, Refusal
from sluice_objects.protocol.home import Home, Sighting, Unknown
from sluice_objects.protocol.stamps import NOTHING, Stamp
from sluice_objects.protocol.voters import Voter, Voters
from sluice_objects.serving import ServedObject


class NoPromise(Acceptor):
    """Compares a ballot with the stored state and writes nothing: promise and first write are one step."""

    def promise(self, ballot: Stamp, home: str) -> Promise | Refusal:
        record = self._device.record()
        answer = super().promise(ballot, home)
        self._device.save(record)
        return answer


class NoHighest(Acceptor):
    """Votes with any state, also with an older one than it acknowledged."""

    def accepted(self, stamp: Stamp) -> None:
        super().accepted(stamp)
        self._device.save(self._device.record()._replace(accepted=None))


class EqualBallots(Acceptor):
    """Promises one ballot to two homes."""

    def promise(self, ballot: Stamp, home: str) -> Promise | Refusal:
        record = self._device.record()
        if record.promised == ballot and self._device.stored() is None:
            self._device.save(record._replace(promised=None))
        return super().promise(ballot, home)


class VotersOfRing(Home[State]):
    """Lets the ring's present primaries vote, whatever the state says."""

    def _choose_electorates(self, sightings: dict[Voter, Sighting], rings: Sequence[Sequence[str]]) -> list[Voters]:
        return super()._choose_electorates(
            {voter: seen._replace(voters=()) for voter, seen in sightings.items()}, rings
        )[:1]

    def _adopt(self, votes: dict[Voter, Promise], ballot: Stamp) -> bool:
        newest = max(votes, key=lambda voter: votes[voter].stored or NOTHING)
        fetched = votes[newest].stored and self._peers.fetch(newest.device, votes[newest].stored)
        if not fetched:
            return super()._adopt(votes, ballot)
        self._store(ballot._replace(version=votes[newest].stored.version), self._electorates, fetched[0])
        return True


class VotersAtOnce(Home[State]):
    """Replaces all voters that the ring does not name in one commit."""

    def follow_ring(self, wanted: Sequence[Voter]) -> bool:
        if self.state is None or set(wanted) == set(self.voters):
            return False
        self.commit(self.state, tuple(wanted))
        return True


class CreatedByPut(Home[State]):
    """Creates an object without promises, as a PUT to a majority does."""

    def take_over(self, attempts: int = 8, created: int = 0) -> None:
        self._rings = self._peers.rings()
        sightings = {seen.voter: seen for seen in self._peers.look(self._rings[0])}
        if any(seen.stored for seen in sightings.values()):
            super().take_over(attempts, created)
            return
        self._electorates = self._choose_electorates(sightings, self._rings)
        self.state, self.voters = None, self._electorates[0]
        self.stamp = Stamp(self._now(), 1, 0)


class CreatedByOneRing(Home[State]):
    """Creates an object with promises of the present ring's primaries alone."""

    def _choose_electorates(self, sightings: dict[Voter, Sighting], rings: Sequence[Sequence[str]]) -> list[Voters]:
        return super()._choose_electorates(sightings, rings)[:1]


class WithoutTakingState(Home[State]):
    """Serves before the state that it met is stored under its own ballot."""

    def _adopt(self, votes: dict[Voter, Promise], ballot: Stamp) -> bool:
        newest = max(votes, key=lambda voter: votes[voter].stored or NOTHING)
        stored = votes[newest].stored
        fetched = stored and self._peers.fetch(newest.device, stored)
        if not fetched or [fetched[1]] != self._electorates:
            return super()._adopt(votes, ballot)
        self.state, self.voters, self.stamp = fetched[0], fetched[1], ballot._replace(version=stored.version)
        return True


class UnconfirmedReads(Home[State]):
    """Answers reads without asking the voters."""

    def confirm(self) -> None:
        pass


class GoesOnAfterUnknown(Home[State]):
    """Answers a commit that a minority stored."""

    def _store(self, stamp: Stamp, electorates: Sequence[Voters], state: State) -> None:
        voters = electorates[0]
        answers = self._peers.store([voter.device for voter in voters], stamp, voters, state)
        if not any(vote.answer is True for vote in answers):
            raise Unknown("no voter stored the state")
        self.state, self.stamp, self.voters = state, stamp, voters


class RunsAgain(ServedObject[State, str, State]):
    """Runs calls again whose commit ended without a majority, although a new home may have met it."""

    def _happened(self, attempted: Stamp, unknown: Unknown) -> bool:
        return super()._happened(attempted, unknown) and False


class NeverRunsAgain(ServedObject[State, str, State]):
    """Answers calls whose commit ended without a majority, although it never happened."""

    def _happened(self, attempted: Stamp, unknown: Unknown) -> bool:
        return super()._happened(attempted, unknown) or True


class IgnoresOthers(ServedObject[State, str, State]):
    """Takes the state that another home left between for the one before the commit."""

    def _happened(self, attempted: Stamp, unknown: Unknown) -> bool:
        with suppress(Unknown):
            return super()._happened(attempted, unknown)
        return False


class KeepsAttempt(Home[State]):
    """Takes the commit before for one that failed while the object was moved to a later creation time."""

    def _move(self, created: int) -> None:
        self.attempted = self.stamp
        super()._move(created)


class PromiseInObject(World):
    """The promise lies in the object's own file, which rsync replaces."""

    def copy(self, source: Disk, target: Disk) -> None:
        super().copy(source, target)
        target.written = Record()


class SameIncarnation(World):
    """A wiped disk votes as the same voter."""

    def _lose_files(self) -> None:
        incarnations = {disk.name: disk.incarnation for disk in self.disks.values()}
        super()._lose_files()
        for disk in self.disks.values():
            disk.incarnation = incarnations[disk.name]


class PlainWrites(World):
    """A PUT of a client reaches one device past the home and fails: it is newer than all states."""

    def _move_ring(self) -> None:
        super()._move_ring()
        disk = self.disks[self.random.choice(self.ring)]
        disk.put(Stamp(self.now() + 60_000_000, 0, 0), ("plain",), ())
