"""What is wrong with a node, by its last report, as events would say it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sluice_core.messages.events import (
    CODE_UNUSABLE,
    ENVIRONMENT_FAILED,
    NODE_AWAY,
    NODE_FAILED,
    PLUGIN_LEFT_OUT,
    REFUSED,
    VOLUME_FAILED,
    Event,
)
from sluice_core.messages.nodes import NodeReport
from sluice_core.messages.policies import policy_of_assignment

OK: Final = "ok"
#: What a node refuses of uploaded code, rather than of an assignment.
_UPLOAD: Final = "upload/"

#: What makes a problem another one: kind, policy and subject.
ProblemKey = tuple[str, str, str]


def key_of(event: Event) -> ProblemKey:
    """What tells this problem from the other ones of its node."""
    return event.kind, event.policy, event.subject


def is_away(report: NodeReport, now: float, timeout: float) -> bool:
    """Whether the node's agent has been silent for longer than ``timeout`` seconds."""
    return now - report.at > timeout


def away_event(report: NodeReport, now: float) -> Event:
    """The event of a node that has become silent."""
    text = f"node `{report.node}` has not reported for {now - report.at:.0f} s"
    return Event.make(now, NODE_AWAY, text, report.node, node=report.node, fields={"reported_at": report.at})


def problems_of(report: NodeReport, now: float) -> dict[ProblemKey, Event]:
    """All that is wrong with a node whose agent reports; of several refusals of one policy the first."""
    found: dict[ProblemKey, Event] = {}
    for event in (*_of_state(report, now), *_of_refusals(report, now), *_of_parts(report, now)):
        found.setdefault(key_of(event), event)
    return found


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
