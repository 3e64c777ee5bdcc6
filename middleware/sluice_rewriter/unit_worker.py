"""Processes one unit of a job: lists accounts or containers, or rewrites the objects of a container page by page.

Older versions of a container ``c`` are stored in ``\\0versions\\0c``, parts of S3 multipart uploads in ``c+segments``.
A job for ``c`` covers both.  Copies of contracted objects are stored in an account beside theirs, which a job for a
whole account covers.  A container that is the source of container-sync is skipped, since container-sync cannot read
a timestamp with an offset.

The lease of the unit is renewed while it is processed (:class:`Claim`).
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sluice_core.errors import PeerError
from sluice_core.jobs import ENDED, GIVEN_BACK
from sluice_core.store.store import Store
from sluice_middleware.swift import green
from sluice_middleware.wsgi.internal_client import Row, SwiftClient
from sluice_rewriter.object_rewriter import FAILED, GONE, REWRITTEN, SKIPPED, STOPPED, UNCHANGED, Outcome
from sluice_rewrites.accounts import accounts_after, copies_account, is_copies_account
from sluice_rewrites.messages import RUNNING, RewriteCounts, RewriteJob, RewriteUnit, UnitSize
from sluice_rewrites.operations import LEASE, report_unit

log = logging.getLogger(__name__)

_RENEWAL: Final = LEASE / 4
_NO_COUNTS: Final = RewriteCounts()
_NO_UNITS: Final[Mapping[str, UnitSize | None]] = {}
#: The marker of a report without names.  The response to the last report may have been lost, and a renewal may
#: overtake a report: a smaller marker would make names count twice.
_AS_REPORTED: Final = ""


class Claim:
    """:param stopped: whether this rewriter stops"""

    def __init__(self, store: Store, unit: RewriteUnit, stopped: Callable[[], bool]) -> None:
        self.unit = unit
        #: The last reported name.
        self.marker = unit.marker
        self._store = store
        self._stopped = stopped
        self._valid = True
        self._state: str | None = RUNNING
        self._renewal = green.start_green(self._renew)

    @property
    def is_active(self) -> bool:
        """Whether the unit is still this rewriter's, the job runs, and this rewriter does not stop."""
        return self._valid and self._state == RUNNING and not self._stopped()

    def report(
        self,
        marker: str,
        counts: RewriteCounts = _NO_COUNTS,
        units: Mapping[str, UnitSize | None] = _NO_UNITS,
        more: Mapping[str, int] | None = None,
        failures: Sequence[tuple[str, str]] = (),
    ) -> None:
        """Report that all names up to ``marker`` are done.

        :raises PeerError: when Redis is unreachable; then either the whole report counts, or the names are processed
            again
        """
        self._send(marker, counts, units, more, failures=failures)
        self.marker = marker

    def finish(self, more: Mapping[str, int] | None = None) -> None:
        """Report the unit as done.

        :raises PeerError: when Redis is unreachable
        """
        self._renewal.kill()
        self._send(_AS_REPORTED, more=more, lease=ENDED)
        self._valid = False

    def release(self) -> None:
        """Release the unit, so that another rewriter can claim it at once; without Redis its lease expires."""
        self._renewal.kill()
        if self._valid:
            try:
                self._send(_AS_REPORTED, lease=GIVEN_BACK)
            except PeerError as error:
                log.warning("unit `%s` of rewrite `%s` is not released: %s", self.unit.path, self.unit.job, error)

    def _renew(self) -> None:
        while self._valid:
            green.pause(_RENEWAL)
            try:
                self._send(_AS_REPORTED)
            except PeerError as error:
                log.warning("rewrite `%s`: %s", self.unit.job, error)

    def _send(
        self,
        marker: str,
        counts: RewriteCounts = _NO_COUNTS,
        units: Mapping[str, UnitSize | None] = _NO_UNITS,
        more: Mapping[str, int] | None = None,
        lease: float = LEASE,
        failures: Sequence[tuple[str, str]] = (),
    ) -> None:
        operation = report_unit(self._store.keys, self.unit, marker, counts, units, more, lease, failures)
        state = self._store.run(operation)
        self._valid, self._state = state is not None, state


VERSIONS: Final = "\0versions\0"
SEGMENTS: Final = "+segments"
_SYNCED: Final = "container is synchronized to another"
#: Objects between two reports, and the most accounts or containers that one report adds.
_PAGE: Final = 100
_LISTED: Final = 500


@dataclass(frozen=True, slots=True)
class UnitWorker:
    """:param rewrite: rewrites one object (account, container, name) to a goal
    :param concurrency: objects at a time
    """

    store: Store
    client: SwiftClient
    rewrite: Callable[[tuple[str, str, str], str], Outcome]
    concurrency: int

    def work(self, job: RewriteJob, claim: Claim) -> None:
        """Process the unit until it is done or the claim ends.

        :raises PeerError: when Swift or Redis is unreachable
        """
        account, slash, container = (claim.unit.path or job.account).partition("/")
        if slash:
            if self._rewrite_all(job, claim, account, container):
                claim.finish({"containers_done": 1})
        elif self._list_containers(job, claim, account) if account else self._list_accounts(claim):
            claim.finish({"listings": -1})

    def _list_accounts(self, claim: Claim) -> bool:
        while claim.is_active:
            names = self.store.run(accounts_after(self.store.keys, claim.marker, _LISTED))
            if not names:
                return True
            claim.report(names[-1], units=dict.fromkeys(names), more={"listings": len(names)})
        return False

    def _list_containers(self, job: RewriteJob, claim: Claim, account: str) -> bool:
        beside = [] if claim.marker or job.container or is_copies_account(account) else [copies_account(account)]
        for names in self._containers(job, account, claim.marker):
            if not claim.is_active:
                return False

            def size(name: str) -> UnitSize | None:
                return self._size(account, name)

            found = green.map_concurrently(size, names, self.concurrency)
            known = {f"{account}/{name}": size for name, size in zip(names, found, strict=True) if size is not None}
            more = {
                "containers": len(known),
                "objects": sum(size.objects for size in known.values()),
                "bytes": sum(size.bytes for size in known.values()),
                "listings": len(beside),
            }
            claim.report(names[-1], units={**dict.fromkeys(beside), **known}, more=more)
            beside = []
        return claim.is_active

    def _containers(self, job: RewriteJob, account: str, marker: str) -> Iterator[list[str]]:
        """Pages of the names of the job's containers, whether they exist or not."""
        if job.container:
            if not marker:
                yield [job.container, f"{VERSIONS}{job.container}", f"{job.container}{SEGMENTS}"]
            return
        for page in self.client.list_containers(account, marker, _LISTED):
            yield [row["name"] for row in page]

    def _size(self, account: str, container: str) -> UnitSize | None:
        """The objects and bytes of a container, None without one; the account's listing is updated too late."""
        headers = self.client.container_headers(account, container)
        return None if headers is None else _held(headers)

    def _rewrite_all(self, job: RewriteJob, claim: Claim, account: str, container: str) -> bool:
        headers = self.client.container_headers(account, container)
        if headers is None:
            return True
        if "x-container-sync-to" in headers:
            held = _held(headers)
            claim.report("", RewriteCounts(seen=held.objects, seen_bytes=held.bytes, skipped={_SYNCED: held.objects}))
            return True
        prefix = f"\0{job.prefix}" if job.prefix and container.startswith(VERSIONS) else job.prefix
        for page in self.client.list_objects(account, container, claim.marker, prefix, _PAGE):
            if not claim.is_active or not self._page(job, claim, page):
                return False
        return claim.is_active

    def _page(self, job: RewriteJob, claim: Claim, page: Sequence[Row]) -> bool:
        """Rewrite the objects of a page and report them; return False when some of them were not started."""
        account, _, container = claim.unit.path.partition("/")

        def rewrite(row: Row) -> Outcome:
            return self.rewrite((account, container, row["name"]), job.goal) if claim.is_active else Outcome(STOPPED)

        outcomes = green.map_concurrently(rewrite, page, self.concurrency)
        done = next((number for number, outcome in enumerate(outcomes) if outcome.state == STOPPED), len(page))
        rows, known = page[:done], outcomes[:done]
        if not rows:
            return False
        failures = [
            (f"{claim.unit.path}/{row['name']}", ": ".join(filter(None, (outcome.reason, outcome.detail))))
            for row, outcome in zip(rows, known, strict=True)
            if outcome.state == FAILED
        ]
        claim.report(rows[-1]["name"], count(known, [row["bytes"] for row in rows]), failures=failures)
        return done == len(page)


def _held(headers: Mapping[str, str]) -> UnitSize:
    return UnitSize(int(headers.get("x-container-object-count", 0)), int(headers.get("x-container-bytes-used", 0)))


def count(outcomes: Sequence[Outcome], listed: Sequence[int]) -> RewriteCounts:
    """The counts of some objects.

    :param listed: the sizes of their rows, for objects whose size is not known otherwise: the row of a large object's
        manifest has the size of all its parts
    """
    states = Counter(outcome.state for outcome in outcomes)

    def reasons(state: str) -> dict[str, int]:
        return dict(Counter(outcome.reason for outcome in outcomes if outcome.state == state))

    return RewriteCounts(
        seen=len(outcomes),
        rewritten=states[REWRITTEN],
        rewritten_bytes=sum(outcome.size or 0 for outcome in outcomes if outcome.state == REWRITTEN),
        seen_bytes=sum(
            size if outcome.size is None else outcome.size for outcome, size in zip(outcomes, listed, strict=True)
        ),
        unchanged=states[UNCHANGED] + states[GONE],
        skipped=reasons(SKIPPED),
        failed=reasons(FAILED),
    )
