"""The host that watches nodes: it logs what goes wrong with them, once when it begins, and when they are well again.

One host of the cluster does this, the one that owns :data:`NAME`.  It reads the reports of all nodes every
:data:`_INTERVAL` seconds, so nothing of this is on the way of a request, and agents need not know of it.

* A problem of a report is logged when it stands in two reports in a row that were read: what a node refuses for a
  moment, while it starts, is none.
* What was logged is kept in Redis (``Keys.node_problems``), so that another host goes on where this one ended.
* Problems of a silent node are those of its last report, and one more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from sluice_actors.events.node_problems import OK, ProblemKey, away_event, is_away, key_of, problems_of
from sluice_actors.runtime.ownership import Ownership
from sluice_actors.runtime.tasks import Service, Spawn, repeat_forever
from sluice_core.messages.events import NODE_AWAY, NODE_FAILED, NODE_WELL, Event
from sluice_core.messages.nodes import NodeReport
from sluice_core.store.operation import Operation, nothing, read_documents, write_documents
from sluice_core.store.store import AsyncStore

#: What the watching host owns.
NAME: Final = "events/nodes"
_INTERVAL: Final = 2.0
#: Seconds between two times when the log is told to count what it left out, should nothing else happen.
_COUNT_INTERVAL: Final = 60.0
#: What a node recovers from.
_ENDS: Final = (NODE_AWAY, NODE_FAILED)

Known = dict[str, frozenset[ProblemKey]]


class NodeWatcher(Service):
    """Watches while this host owns :data:`NAME`.

    :param timeout: seconds without a report after which a node is away
    """

    def __init__(self, store: AsyncStore, ownership: Ownership, timeout: float, clock: Callable[[], float]) -> None:
        self._store = store
        self._ownership = ownership
        self._timeout = timeout
        self._clock = clock
        #: Node → its problems that were logged; None: not read yet.
        self._known: Known | None = None
        self._last: Known = {}
        self._counted = 0.0

    def start(self, spawn: Spawn) -> None:
        spawn(repeat_forever("watch nodes", self._step))

    async def _step(self) -> None:
        await asyncio.sleep(_INTERVAL)
        if self._ownership.owns(NAME):
            await self.poll()
        else:
            self._known = None
            self._last = {}

    async def poll(self) -> None:
        """Read all reports, and log what has changed since the last time.

        :raises PeerError: when Redis is away; the same is found again then
        """
        if self._known is None:
            documents = await self._store.run(read_documents(self._store.keys.node_problems))
            self._known = _parse_known(documents)
        reports = await self._store.nodes()
        now = self._clock()
        events: list[Event] = []
        known: Known = {}
        standing: Known = {}
        for report in reports:
            before = self._known.get(report.node, frozenset())
            found = problems_of(report, now)
            standing[report.node] = frozenset(found)
            settled = self._last.get(report.node, frozenset())
            known[report.node], new = _compare(report, found, before, settled, now, self._timeout)
            events += new
        await self._write(events, known, now)
        self._last = standing

    async def _write(self, events: list[Event], known: Known, now: float) -> None:
        """Log first: what is logged twice, because the second write failed, is a repeat."""
        if events or abs(now - self._counted) >= _COUNT_INTERVAL:
            await self._store.append_events(events)
            self._counted = now
        assert self._known is not None
        keys, before = self._store.keys, self._known
        changed = {node: _document(one) for node, one in known.items() if one != before.get(node, frozenset())}
        gone = tuple(node for node in before if node not in known)
        if changed:
            await self._store.run(write_documents(keys.node_problems, changed))
        if gone:
            await self._store.run(Operation((("HDEL", keys.node_problems, *gone),), nothing))
        self._known = known


def _compare(
    report: NodeReport,
    found: Mapping[ProblemKey, Event],
    before: frozenset[ProblemKey],
    settled: frozenset[ProblemKey],
    now: float,
    timeout: float,
) -> tuple[frozenset[ProblemKey], list[Event]]:
    """The problems of a node that are logged from now on, and what to log.

    :param found: problems by its last report
    :param before: problems that were logged
    :param settled: problems by the report that was read before
    """
    if is_away(report, now, timeout):
        away = away_event(report, now)
        return before | {key_of(away)}, [] if key_of(away) in before else [away]
    new = [event for key, event in found.items() if key not in before and key in settled]
    known = (before & found.keys()) | {key_of(event) for event in new}
    ended = [key for key in before - found.keys() if key[0] in _ENDS]
    if ended and report.state == OK:
        new.append(_well_event(report, now))
    return frozenset(known), new


def _well_event(report: NodeReport, now: float) -> Event:
    return Event.make(now, NODE_WELL, f"node `{report.node}` is well again", report.node, node=report.node)


def _document(problems: Iterable[ProblemKey]) -> dict[str, Any]:
    return {"problems": sorted(map(list, problems))}


def _parse_known(documents: Mapping[str, Mapping[str, Any]]) -> Known:
    found: Known = {}
    for node, data in documents.items():
        rows = data.get("problems", ())
        found[node] = frozenset((str(kind), str(policy), str(subject)) for kind, policy, subject in rows)
    return found
