"""What a voter decides: promises of ballots, and which states it stores.

Theory of operation.  A voter keeps two things of an object.  The *state* is an object of Swift, which replicators may
replace by a newer one at any time.  The *record* lies on the same device outside the folder ``objects``, so that no
replicator reaches it: the ballot that the voter promised, and the highest stamp that it accepted.  After a promise the
voter refuses states of smaller ballots.

A voter whose state is older than the highest stamp that it accepted has lost a state that it acknowledged: its file was
quarantined or its disk was restored, and a replicator brought an older state.  It answers that it cannot vote until a
state as high arrives.  A device that never accepted a state votes without one.

Each call is one step under a lock of the object, for which the caller cares: requests for one device arrive in
several processes.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from sluice_objects.protocol.stamps import NOTHING, Stamp


class Record(NamedTuple):
    """What a voter wrote of an object beside its state.

    :param promised: with version 0; None when nothing was promised
    :param accepted: the highest stamp of a state that was acknowledged to a home
    :param home: address of the home that got the promise
    """

    promised: Stamp | None = None
    accepted: Stamp | None = None
    home: str = ""


class Device(Protocol):
    """The files of one object on one device."""

    def record(self) -> Record:
        """The record; an empty one when there is none."""

    def save(self, record: Record) -> None:
        """Write the record; it is on the disk when the call returns."""

    def stored(self) -> Stamp | None:
        """The stamp of the stored state, read from the disk; None without a state."""


class Refusal(NamedTuple):
    """Another home has a promise of the same ballot or a higher one, or a newer state is stored.

    :param promised: the ballot that must be exceeded
    :param home: address of the home that got the promise; empty when it is not known
    """

    promised: Stamp
    home: str = ""


class Promise(NamedTuple):
    """
    :param stored: the stamp of the stored state; None without one
    :param can_vote: False when the voter has lost a state that it acknowledged
    """

    stored: Stamp | None
    can_vote: bool


class Acceptor:
    """The decisions about one object on one device; the caller holds the lock of the object."""

    def __init__(self, device: Device) -> None:
        self._device = device

    def promise(self, ballot: Stamp, home: str) -> Promise | Refusal:
        """Promise to refuse states of smaller ballots, for the home at the address ``home``.

        Only one home gets a promise of a ballot: the same ballot is refused the second time.

        :param ballot: with version 0
        """
        record, stored = self._device.record(), self._device.stored()
        highest = max(record.promised or NOTHING, stored or NOTHING).first_of_ballot
        if ballot.first_of_ballot <= highest:
            return Refusal(highest, record.home)
        self._device.save(record._replace(promised=ballot.first_of_ballot, home=home))
        return Promise(stored, has_kept(record, stored))

    def refusal(self, stamp: Stamp) -> Refusal | None:
        """Why a state with ``stamp`` must not be stored; None when the caller stores it and calls :meth:`accepted`.

        A state that is stored already is refused when a higher ballot was promised since.
        """
        record, stored = self._device.record(), self._device.stored()
        if record.promised is not None and stamp.first_of_ballot < record.promised:
            return Refusal(record.promised, record.home)
        if stored is not None and stamp < stored:
            return Refusal(stored.first_of_ballot, record.home)
        return None

    def accepted(self, stamp: Stamp) -> None:
        """Record that the state with ``stamp`` is on the disk, before it is acknowledged."""
        record = self._device.record()
        if record.accepted is None or stamp > record.accepted:
            promised = max(stamp.first_of_ballot, record.promised or stamp.first_of_ballot)
            self._device.save(record._replace(promised=promised, accepted=stamp))

    def confirms(self, stamp: Stamp) -> bool:
        """Whether the home with ``stamp`` still has the object: no higher ballot was promised or stored here."""
        highest = max(self._device.record().promised or NOTHING, self._device.stored() or NOTHING)
        return highest.first_of_ballot <= stamp.first_of_ballot


def has_kept(record: Record, stored: Stamp | None) -> bool:
    """Whether the stored state is as high as the highest one that was acknowledged."""
    return record.accepted is None or (stored is not None and stored >= record.accepted)
