"""What Redis keeps of rewrites: jobs, the units of work that rewriters claim, and what was done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from sluice_core.messages.base import Message

#: What objects are brought to: what the policies in force say, plain bytes, or the active key of encryption.
POLICIES: Final = "policies"
PLAIN: Final = "plain"
KEY: Final = "key"
GOALS: Final = (POLICIES, PLAIN, KEY)

#: What a job for the cluster is while it is not known that all accounts are.
COLLECTING: Final = "collecting"
#: What a job is told to do.
RUNNING: Final = "running"
PAUSED: Final = "paused"
CANCELLED: Final = "cancelled"
#: What it is once nothing is left to do.
DONE: Final = "done"
#: Or once it is clear that not all accounts will be known.
FAILED: Final = "failed"
#: Those of jobs that have not ended.
OPEN_STATES: Final = (COLLECTING, RUNNING, PAUSED)
STATES: Final = (*OPEN_STATES, CANCELLED, DONE, FAILED)


@dataclass(frozen=True, slots=True)
class RewriteJob(Message):
    """One job as it was ordered.

    :param account: the account whose objects are rewritten; empty for all accounts
    :param container: one container with its versions and parts of multipart uploads; empty for all of the account
    :param prefix: of the names of objects
    :param goal: one of :data:`GOALS`
    :param state: one of :data:`STATES`
    :param created: unix milliseconds
    :param max_bw: bytes of objects per second over all rewriters, 0 for no limit
    :param max_objects: objects per second over all rewriters, 0 for no limit
    :param history: the history in which it was ordered
    :param epoch: of that history; rewriters wait until they know the policies of then
    :param request: for all accounts, which this job waits for (:mod:`accounts`); empty of a job for one account
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
    """A piece of a job that one rewriter works at: the objects of a container, or a listing.

    ``path`` is ``account/container``; ``account`` for the listing of its containers; empty for the first listing of the
    job, which is that of its account, or of all accounts.

    ``marker`` is the last name that is done.  ``token`` is the number of this claim: a later claim of
    the unit has a greater one, and no older claim may report any more.
    """

    job: str
    path: str
    marker: str
    token: int


@dataclass(frozen=True, slots=True)
class RewriteCounts:
    """What became of objects; bytes are those of plain objects.

    ``seen`` objects were looked at.  ``rewritten`` of them were; ``unchanged`` are as wanted already.  ``skipped`` and
    ``failed`` map a reason to a number.
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
    """How far a job is.

    ``containers`` and ``objects`` are those that were found so far; ``listings`` are still to be made, 0 when all are
    known.  Times are unix seconds, 0 for never.  ``paused`` is the number of seconds that it has been paused, up to its
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
    """What a container says that it holds."""

    objects: int
    bytes: int
