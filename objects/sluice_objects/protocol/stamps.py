"""The stamp of a state: a timestamp of Swift that orders the states of an object as the protocol does.

All states of an object have the time at which it was created, and differ in the *offset* that Swift's timestamps
have behind it: ``1402444821.72589_0000010000000002``.  Object servers, replicators, SSYNC and container servers keep
the newer of two timestamps, offset included (``swift/common/utils/timestamp.py``), so that none of them puts an older
state over a newer one.

The 64 bits of an offset are a *ballot* (24 bits), which a home gets from a majority of voters, and the *version*
(40 bits), which each commit raises by one and which does not go back when the ballot changes.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from sluice_core.errors import DecodeError

_VERSION_BITS: Final = 40
_TIMESTAMP: Final = re.compile(r"(\d{10})\.(\d{5})(?:_([0-9a-f]{16}))?")
#: Units of :attr:`Stamp.created` in a second.
UNITS: Final = 100_000
LARGEST_BALLOT: Final = (1 << 24) - 1
LARGEST_VERSION: Final = (1 << _VERSION_BITS) - 1


class Stamp(NamedTuple):
    """
    :param created: when the object was created, in 10 µs since 1970
    """

    created: int
    ballot: int
    version: int

    @classmethod
    def read(cls, text: str) -> Stamp:
        """The stamp of a timestamp in Swift's internal form.

        :raises DecodeError: when it has another form
        """
        parts = _TIMESTAMP.fullmatch(text)
        if parts is None:
            raise DecodeError(f"`{text[:60]}` is no timestamp, expected the internal form of Swift")
        seconds, fraction, offset = parts.groups()
        ballot, version = divmod(int(offset or "0", 16), 1 << _VERSION_BITS)
        return cls(int(seconds) * UNITS + int(fraction), ballot, version)

    @property
    def internal(self) -> str:
        """The timestamp in Swift's internal form."""
        seconds, fraction = divmod(self.created, UNITS)
        offset = self.ballot << _VERSION_BITS | self.version
        return f"{seconds:010d}.{fraction:05d}" + (f"_{offset:016x}" if offset else "")

    @property
    def first_of_ballot(self) -> Stamp:
        """The smallest stamp of the same ballot: what a voter promises."""
        return self._replace(version=0)

    def next_version(self) -> Stamp:
        """The stamp of the next commit under the same ballot.

        :raises OverflowError: after 2⁴⁰ commits
        """
        if self.version == LARGEST_VERSION:
            raise OverflowError("the object has no versions left")
        return self._replace(version=self.version + 1)

    def with_ballot(self, ballot: int) -> Stamp:
        """The stamp of the same state under another ballot.

        :raises OverflowError: after 2²⁴ changes of the home
        """
        if ballot > LARGEST_BALLOT:
            raise OverflowError("the object has no ballots left")
        return self._replace(ballot=ballot)


#: Smaller than the stamp of any state.
NOTHING: Final = Stamp(0, 0, 0)
