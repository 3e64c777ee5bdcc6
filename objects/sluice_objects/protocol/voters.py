"""Voters: the devices that store the states of an object, and how their set follows the ring.

The voters of a state are part of the state.  A commit adds one voter or removes one, and a majority of the *new*
voters stores it.  Majorities of two sets that differ in one voter have a voter in common; those of sets that differ
in two need not ({0, 2} of {0, 1, 2}, {1, 3} of {1, 2, 3}).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Voter(NamedTuple):
    """
    :param device: ``<ip>:<port>/<name>`` as in the ring
    :param incarnation: a random id that is written with the first promise of the device.  A device that lost its
        promises, since its disk was wiped or replaced, has another one and is another voter.
    """

    device: str
    incarnation: str


Voters = tuple[Voter, ...]


def majority(voters: Sequence[Voter]) -> int:
    """How many of ``voters`` are a majority."""
    return len(voters) // 2 + 1


def next_voters(voters: Voters, wanted: Sequence[Voter]) -> Voters:
    """The voters after the next change of the set on its way to ``wanted``; the same when it is there.

    A voter is added before another one is removed, so that a change never lowers the number of replicas.

    :param wanted: the devices that the ring names
    """
    missing = [voter for voter in wanted if voter not in voters]
    surplus = [voter for voter in voters if voter not in wanted]
    if missing and len(voters) <= len(wanted):
        return (*voters, missing[0])
    if surplus and wanted:
        return tuple(voter for voter in voters if voter != surplus[0])
    return voters
