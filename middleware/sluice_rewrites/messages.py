"""The data of rewrites in Redis: jobs, the units of work that rewriters claim, and their counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from sluice_core.messages.base import Message

#: The goals of a job: the filters of the policies in force, plain bytes, or the active key of encryption.
POLICIES: Final = "policies"
PLAIN: Final = "plain"
KEY: Final = "key"
GOALS: Final = (POLICIES, PLAIN, KEY)

#: The state of a job for the cluster until all accounts are known.
COLLECTING: Final = "collecting"
#: The states that an operator sets.
RUNNING: Final = "running"
PAUSED: Final = "paused"
CANCELLED: Final = "cancelled"
#: The state when no unit is left.
DONE: Final = "done"
#: The state when not all accounts will become known.
FAILED: Final = "failed"
#: The states of jobs that have not ended.
OPEN_STATES: Final = (COLLECTING, RUNNING, PAUSED)
STATES: Final = (*OPEN_STATES, CANCELLED, DONE, FAILED)


@dataclass(frozen=True, slots=True)
class RewriteJob(Message):
    """One job as it was created.

    :param account: the account whose objects are rewritten; empty for all accounts
    :param container: one container with its versions and parts of multipart uploads; empty for all of the account
    :param prefix: of the names of objects
    :param goal: one of :data:`GOALS`
    :param state: one of :data:`STATES`
    :param created: unix milliseconds
    :param max_bw: bytes of objects per second over all rewriters, 0 for no limit
    :param max_objects: objects per second over all rewriters, 0 for no limit
    :param history: the history in which it was created
    :param epoch: of that history; rewriters wait until they have its policies
    :param request: for all accounts, which this job waits for (:mod:`accounts`); empty for a job of one account
    """

    id: str
    account: str
    container: str
    prefix: str
    goal: str
    state: str
    created: int
    by: str
    max_bw: float = 0.0
    max_objects: float = 0.0
    history: str = ""
    epoch: int = 0
    request: str = ""


@dataclass(frozen=True, slots=True)
class RewriteUnit:
    """A piece of a job that one rewriter processes: the objects of a container, or a listing.

    ``path`` is ``account/container``; ``account`` for the listing of its containers; empty for the first listing of the
    job, which is that of its account, or of all accounts.

    ``marker`` is the last name that is done.  ``token`` is the number of this claim: a later claim of
    the unit has a greater one, and reports of older claims are refused.
    """

    job: str
    path: str
    marker: str
    token: int


@dataclass(frozen=True, slots=True)
class RewriteCounts:
    """The counts of processed objects; bytes are those of plain objects.

    ``seen`` counts all objects, ``rewritten`` those that were written, ``unchanged`` those that match the goal already.
    ``skipped`` and ``failed`` map a reason to a number.
    """

    seen: int = 0
    rewritten: int = 0
    rewritten_bytes: int = 0
    seen_bytes: int = 0
    unchanged: int = 0
    skipped: Mapping[str, int] = field(default_factory=dict)
    failed: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RewriteProgress:
    """The progress of a job.

    ``containers`` and ``objects`` are those found so far; ``listings`` are still to be made, 0 when all are
    done.  Times are Unix seconds, 0 for never.  ``paused`` is the number of seconds for which it was paused, up to its
    last resumption.  ``examples`` are the last objects that failed, with the reason.  ``accounts`` are those that a job
    for the cluster covers, 0 while it collects them; ``reason`` says why that failed.
    """

    counts: RewriteCounts = RewriteCounts()
    containers: int = 0
    containers_done: int = 0
    objects: int = 0
    bytes: int = 0
    listings: int = 1
    claimed: int = 0
    started: float = 0.0
    ended: float = 0.0
    paused: float = 0.0
    examples: tuple[tuple[str, str], ...] = ()
    accounts: int = 0
    reason: str = ""


class UnitSize(NamedTuple):
    """The objects and bytes of a container, as its headers give them."""

    objects: int
    bytes: int
