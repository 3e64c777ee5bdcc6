"""Watches nodes: logs an event when a problem of a node begins, and when the node has recovered.

One host of the cluster does this, the one that owns :data:`NAME`.  It reads the reports of all nodes every
:data:`_INTERVAL` seconds, so it delays no request, and agents are not involved.

* A problem is logged when two reports read in a row have it: a node that refuses something for a moment, while it
  starts, has no problem.
* Logged problems are kept in Redis (``Keys.node_problems``), so that another host continues where this one ended.
* The problems of a silent node are those of its last report, and its silence.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from sluice_actors.runtime.services import Ownership, Service, Spawn, repeat_forever
from sluice_core.messages.events import (
    CODE_UNUSABLE,
    ENVIRONMENT_FAILED,
    NODE_AWAY,
    NODE_FAILED,
    NODE_WELL,
    PLUGIN_LEFT_OUT,
    REFUSED,
    VOLUME_FAILED,
    Event,
)
from sluice_core.messages.nodes import NodeReport
from sluice_core.messages.policies import policy_of_assignment
from sluice_core.store.operation import Operation, nothing, read_documents, write_documents
from sluice_core.store.store import AsyncStore

#: The state of a node, or of one of its environments, without a problem.
OK: Final = "ok"
#: Prefix of refusals of uploaded code, as opposed to refusals of assignments.
_UPLOAD: Final = "upload/"

#: The identity of a problem on its node: kind, policy and subject.
ProblemKey = tuple[str, str, str]


def key_of(event: Event) -> ProblemKey:
    """The identity of a problem among those of its node."""
    return event.kind, event.policy, event.subject


def is_away(report: NodeReport, now: float, timeout: float) -> bool:
    """Whether the node's agent has been silent for longer than ``timeout`` seconds."""
    return now - report.at > timeout


def away_event(report: NodeReport, now: float) -> Event:
    """The event of a node that has become silent."""
    text = f"node `{report.node}` has not reported for {now - report.at:.0f} s"
    return Event.make(now, NODE_AWAY, text, report.node, node=report.node, fields={"reported_at": report.at})


def problems_of(report: NodeReport, now: float) -> dict[ProblemKey, Event]:
    """All problems of a node whose agent reports; of several refusals of one policy the first."""
    problems: dict[ProblemKey, Event] = {}
    for event in (*_of_state(report, now), *_of_refusals(report, now), *_of_parts(report, now)):
        problems.setdefault(key_of(event), event)
    return problems


def _of_state(report: NodeReport, now: float) -> Iterator[Event]:
    if report.state != OK:
        text = f"node `{report.node}` is {report.state}: {report.detail}"
        yield Event.make(now, NODE_FAILED, text, report.node, subject=report.state, node=report.node)


def _of_refusals(report: NodeReport, now: float) -> Iterator[Event]:
    for name, reason in report.refused.items():
        if name.startswith(_UPLOAD):
            key = name.removeprefix(_UPLOAD)
            text = f"node `{report.node}` cannot use code `{key}`: {reason}"
            yield Event.make(now, CODE_UNUSABLE, text, report.node, subject=key, node=report.node)
        else:
            policy = policy_of_assignment(name)
            text = f"node `{report.node}` refuses policy `{policy}`: {reason}"
            fields = {"assignment": name}
            yield Event.make(now, REFUSED, text, report.node, node=report.node, policy=policy, fields=fields)


def _of_parts(report: NodeReport, now: float) -> Iterator[Event]:
    for name, state in report.sandbox.items():
        if state != OK:
            text = f"environment `{name}` of node `{report.node}`: {state}"
            yield Event.make(now, ENVIRONMENT_FAILED, text, report.node, subject=name, node=report.node)
    for name, reason in report.plugins.items():
        text = f"node `{report.node}` runs without plugin `{name}`: {reason}"
        yield Event.make(now, PLUGIN_LEFT_OUT, text, report.node, subject=name, node=report.node)
    for volume, reason in report.volume_faults.items():
        text = f"volume `{volume}` is not as it should be on node `{report.node}`: {reason}"
        yield Event.make(now, VOLUME_FAILED, text, report.node, subject=volume, node=report.node)


#: The name under which the watching host owns its work.
NAME: Final = "events/nodes"
_INTERVAL: Final = 2.0
#: Seconds between two requests to the log to report its omitted events, without other events.
_COUNT_INTERVAL: Final = 60.0
#: The kinds of problems whose end is logged.
_ENDS: Final = (NODE_AWAY, NODE_FAILED)

Known = dict[str, frozenset[ProblemKey]]


@dataclass(eq=False)
class NodeWatcher(Service):
    """Watches while this host owns :data:`NAME`.

    :param timeout: seconds without a report after which a node is away
    """

    store: AsyncStore
    ownership: Ownership
    timeout: float
    clock: Callable[[], float]
    #: Node → its logged problems; None: not read yet.
    _known: Known | None = field(init=False, default=None)
    _last: Known = field(init=False, default_factory=dict)
    _counted: float = field(init=False, default=0.0)

    def start(self, spawn: Spawn) -> None:
        spawn(repeat_forever("watch nodes", self._step))

    async def _step(self) -> None:
        await asyncio.sleep(_INTERVAL)
        if self.ownership.owns(NAME):
            await self.poll()
        else:
            self._known = None
            self._last = {}

    async def poll(self) -> None:
        """Read all reports, and log what has changed since the last time.

        :raises PeerError: when Redis is unreachable; the next poll finds the same changes
        """
        if self._known is None:
            documents = await self.store.run(read_documents(self.store.keys.node_problems))
            self._known = _parse_known(documents)
        reports = await self.store.nodes()
        now = self.clock()
        events: list[Event] = []
        known: Known = {}
        standing: Known = {}
        for report in reports:
            before = self._known.get(report.node, frozenset())
            problems = problems_of(report, now)
            standing[report.node] = frozenset(problems)
            settled = self._last.get(report.node, frozenset())
            known[report.node], new = _compare(report, problems, before, settled, now, self.timeout)
            events += new
        await self._write(events, known, now)
        self._last = standing

    async def _write(self, events: list[Event], known: Known, now: float) -> None:
        """Write the log first: events that are logged twice, because the second write failed, count as repeats."""
        if events or abs(now - self._counted) >= _COUNT_INTERVAL:
            await self.store.append_events(events)
            self._counted = now
        assert self._known is not None
        keys, before = self.store.keys, self._known
        changed = {node: _document(one) for node, one in known.items() if one != before.get(node, frozenset())}
        gone = tuple(node for node in before if node not in known)
        if changed:
            await self.store.run(write_documents(keys.node_problems, changed))
        if gone:
            await self.store.run(Operation((("HDEL", keys.node_problems, *gone),), nothing))
        self._known = known


def _compare(
    report: NodeReport,
    problems: Mapping[ProblemKey, Event],
    before: frozenset[ProblemKey],
    settled: frozenset[ProblemKey],
    now: float,
    timeout: float,
) -> tuple[frozenset[ProblemKey], list[Event]]:
    """The logged problems of a node from now on, and the events to log.

    :param problems: those of its last report
    :param before: problems that were logged
    :param settled: problems in the report before
    """
    if is_away(report, now, timeout):
        away = away_event(report, now)
        return before | {key_of(away)}, [] if key_of(away) in before else [away]
    new = [event for key, event in problems.items() if key not in before and key in settled]
    known = (before & problems.keys()) | {key_of(event) for event in new}
    ended = [key for key in before - problems.keys() if key[0] in _ENDS]
    if ended and report.state == OK:
        new.append(_well_event(report, now))
    return frozenset(known), new


def _well_event(report: NodeReport, now: float) -> Event:
    return Event.make(now, NODE_WELL, f"node `{report.node}` is well again", report.node, node=report.node)


def _document(problems: Iterable[ProblemKey]) -> dict[str, Any]:
    return {"problems": sorted(map(list, problems))}


def _parse_known(documents: Mapping[str, Mapping[str, Any]]) -> Known:
    known: Known = {}
    for node, data in documents.items():
        rows = data.get("problems", ())
        known[node] = frozenset((str(kind), str(policy), str(subject)) for kind, policy, subject in rows)
    return known
