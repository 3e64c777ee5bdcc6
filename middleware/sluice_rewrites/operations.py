"""Rewrite jobs in Redis: their creation, the claims of rewriters, and their progress.

Theory of operation.

* A job has a list of *units*.  The first is the listing of its account, which adds a unit for each container; for
  a job for the cluster it is the list of accounts, which adds a listing for each.
* A job for the cluster begins as *collecting*: its units are not claimed until all accounts are known.  It fails when
  they will not become known (:mod:`accounts`).
* A rewriter claims a unit for :data:`LEASE` seconds and renews that with each report.  An expired lease is claimed
  again, from the last reported name: a rewriter that is killed costs at most one page done twice, and
  a second rewrite does not change an object.
* Each claim has a number, greater than any before in the job.  A report names it; a report of an older claim is
  refused.  So a rewriter that was only suspended counts no object twice.
* The objects of a container, as its headers give them, are added to the job's total, and kept with its unit.  The
  objects processed there count against that: further objects are added at once, missing ones are subtracted at the
  end.  So a job never processes more objects than its total, and in the end exactly these.
* A job has ended when no unit is left and none is leased.
* Rates hold over all rewriters: each piece of work reserves its place on one time line (generic cell rate algorithm).

"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from sluice_core.store.keys import Keys
from sluice_core.store.operation import MessageHash, Operation, decoded, scripted
from sluice_rewrites.messages import (
    CANCELLED,
    FAILED,
    OPEN_STATES,
    PAUSED,
    RUNNING,
    RewriteCounts,
    RewriteJob,
    RewriteProgress,
    RewriteUnit,
    UnitSize,
)
from sluice_rewrites.scripts import CHANGE_STATE, CLAIM, CREATE, END_COLLECTING, REPORT, RESERVE

#: Seconds for which a unit belongs to a rewriter after a claim or report.
LEASE: Final = 30.0
#: Seconds by which rates may be exceeded for a moment.
BURST: Final = 0.5
#: The documents of jobs.
JOBS: Final = MessageHash(RewriteJob, lambda keys: keys.rewrites)
_MAX_EXAMPLES: Final = 20
_SEPARATOR: Final = "\0"
_NO_COUNTS: Final = RewriteCounts()
_NO_UNITS: Final[Mapping[str, UnitSize | None]] = {}


class _Reply(Protocol):
    def __getitem__(self, index: int) -> bytes: ...


def create_job(keys: Keys, job: RewriteJob) -> Operation[bool]:
    """Write a new job and its first unit; return False when the id exists."""
    names = (keys.rewrites, keys.rewrite(job.id, "units"), keys.rewrite(job.id, "progress"))
    return scripted(CREATE, names, (job.id, job.encode()), bool)


def change_state(keys: Keys, job_id: str, state: str) -> Operation[RewriteJob | None]:
    """Pause a job, resume it, or cancel it; return None when it has ended or does not exist.

    A job in this state keeps it.  A job for the cluster collects the accounts before it runs.
    """
    if state not in (PAUSED, RUNNING, CANCELLED):
        raise ValueError(f"`{state}` is no state that can be set, expected {PAUSED}, {RUNNING} or {CANCELLED}")
    names, arguments = (*_names(keys, job_id), keys.account_requests), (job_id, state, *OPEN_STATES)
    return scripted(CHANGE_STATE, names, arguments, lambda reply: decoded(RewriteJob, job_id, reply))


def begin_collected(keys: Keys, job: RewriteJob, accounts: int) -> Operation[bool]:
    """Start a job that was collecting, since all accounts are known; return False when it was not collecting."""
    return _end_collecting(keys, job, RUNNING, "accounts", str(accounts))


def fail_collecting(keys: Keys, job: RewriteJob, reason: str) -> Operation[bool]:
    """End a collecting job whose accounts will not all become known; return False when it was not collecting."""
    return _end_collecting(keys, job, FAILED, "reason", reason)


def _end_collecting(keys: Keys, job: RewriteJob, state: str, name: str, value: str) -> Operation[bool]:
    names = (keys.rewrites, keys.rewrite(job.id, "progress"), keys.account_requests)
    return scripted(END_COLLECTING, names, (job.id, job.request, state, name, value), bool)


def delete_job(keys: Keys, job_id: str) -> Operation[bool]:
    """Delete a job with all its data; return False when it does not exist."""
    rest = (*_names(keys, job_id)[1:], keys.rewrite(job_id, "pace"), keys.rewrite(job_id, "failures"))
    commands = (("HDEL", keys.rewrites, job_id), ("DEL", *rest))
    return Operation(commands, lambda replies: bool(replies[0]), atomic=True)


def claim_unit(keys: Keys, job_id: str, lease: float = LEASE) -> Operation[RewriteUnit | None]:
    """Claim a unit of a running job; return None when there is none."""

    def parse(reply: _Reply | None) -> RewriteUnit | None:
        if reply is None:
            return None
        return RewriteUnit(job_id, _text(reply[0]), _text(reply[1]), int(reply[2]))

    return scripted(CLAIM, _names(keys, job_id), (job_id, str(lease), RUNNING), parse)


def report_unit(
    keys: Keys,
    unit: RewriteUnit,
    marker: str,
    counts: RewriteCounts = _NO_COUNTS,
    units: Mapping[str, UnitSize | None] = _NO_UNITS,
    more: Mapping[str, int] | None = None,
    lease: float = LEASE,
    failures: Sequence[tuple[str, str]] = (),
) -> Operation[str | None]:
    """Report that all names of a unit up to ``marker`` are done, and keep it for ``lease`` seconds more.

    :param marker: empty: as in the last report
    :param units: paths of found units, with their objects and bytes if these are among the totals
    :param more: further counters of :class:`RewriteProgress`
    :param lease: ENDED when the unit is done, GIVEN_BACK to release it
    :param failures: objects that failed, with the reason; the last twenty are kept as examples
    :returns: the state that the operator has set; None when the unit is no longer this rewriter's
    """
    added: list[str | bytes] = []
    for path, size in units.items():
        added += [_raw(path), *(("", "") if size is None else (str(size.objects), str(size.bytes)))]
    counters = {**_counters(counts), **(more or {})}
    words = [str(word) for pair in counters.items() for word in pair]
    rows = [json.dumps(row) for row in failures][-_MAX_EXAMPLES:]
    head = (unit.job, _raw(unit.path), str(unit.token), str(lease), _raw(marker), str(_MAX_EXAMPLES))
    arguments: list[str | bytes | int] = [*head, str(len(added)), *added, str(len(rows)), *rows, *words]
    names = (*_names(keys, unit.job), keys.rewrite(unit.job, "failures"))
    return scripted(REPORT, names, arguments, lambda reply: None if reply is None else _text(reply))


def reserve(keys: Keys, job_id: str, seconds: float, burst: float = BURST) -> Operation[float]:
    """Reserve a place for work that takes ``seconds`` at the job's rate; return the seconds to wait.

    Negative ``seconds`` return an unused place.
    """
    return scripted(RESERVE, (keys.rewrite(job_id, "pace"),), (f"{seconds:.6f}", str(burst)), float)


def read_progress(keys: Keys, job_id: str, now: float | None = None) -> Operation[RewriteProgress]:
    """The progress of a job.

    :param now: Unix seconds, to find the claims that still hold
    """
    moment = time.time() if now is None else now

    def parse(replies: list[Any]) -> RewriteProgress:
        counters = {_text(name): value for name, value in replies[0].items()}
        numbers = {name: int(float(counters.get(name, 0))) for name in _NUMBERS}
        counts = RewriteCounts(
            **{name: numbers[name] for name in _COUNTS},
            skipped=_reasons(counters, "skipped"),
            failed=_reasons(counters, "failed"),
        )
        return RewriteProgress(
            counts,
            numbers["containers"],
            numbers["containers_done"],
            numbers["objects"],
            numbers["bytes"],
            numbers["listings"],
            int(replies[1]),
            float(counters.get("started", 0.0)),
            float(counters.get("ended", 0.0)),
            float(counters.get("paused", 0.0)),
            tuple((path, reason) for path, reason in map(json.loads, replies[2])),
            numbers["accounts"],
            _text(counters.get("reason", b"")),
        )

    commands = (
        ("HGETALL", keys.rewrite(job_id, "progress")),
        ("ZCOUNT", keys.rewrite(job_id, "leases"), f"({moment:.3f}", "+inf"),
        ("LRANGE", keys.rewrite(job_id, "failures"), 0, -1),
    )
    return Operation(commands, parse)


_COUNTS: Final = ("seen", "rewritten", "rewritten_bytes", "seen_bytes", "unchanged")
_NUMBERS: Final = (*_COUNTS, "containers", "containers_done", "objects", "bytes", "listings", "accounts")


def _counters(counts: RewriteCounts) -> dict[str, int]:
    counters = {name: getattr(counts, name) for name in _COUNTS}
    for name in ("skipped", "failed"):
        counters |= {f"{name}{_SEPARATOR}{reason}": number for reason, number in getattr(counts, name).items()}
    return {name: number for name, number in counters.items() if number}


def _reasons(found: Mapping[str, Any], name: str) -> dict[str, int]:
    begin = f"{name}{_SEPARATOR}"
    return {key.removeprefix(begin): int(value) for key, value in sorted(found.items()) if key.startswith(begin)}


def _names(keys: Keys, job_id: str) -> tuple[str, ...]:
    return (keys.rewrites, *(keys.rewrite(job_id, part) for part in ("units", "leases", "markers", "progress")))


def _raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")
