"""How far a policy has come on the nodes, out of what they report.

A node enforces a policy when its agent lives, is well, stands in the current history, has
acknowledged the epoch of the policy's last change, and refused none of its assignments.  Every
node that does not is named exactly once, under the reason that an operator acts on first.  A policy
about volumes alone is enforced by the nodes that have a konnector.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf
from operator import itemgetter
from typing import Any, Final

from sluice_core.messages.nodes import NodeReport
from sluice_core.messages.policies import policy_of_assignment
from sluice_core.messages.services import DONE, FAILED, ServiceState
from sluice_core.store.records import Head

OK: Final = "ok"
AWAY: Final = "away"


@dataclass(frozen=True)
class Cluster:
    """The newest change and the reports of all nodes at one moment."""

    head: Head
    nodes: tuple[NodeReport, ...]
    now: float
    timeout: float
    #: Reads what services of third parties answered, by assignment; asked once, where a policy needs it.
    read_services: Callable[[], Mapping[str, ServiceState]] = dict

    def state(self, node: NodeReport) -> str:
        """``ok``, ``stale_history``, ``failed`` or ``away``."""
        return AWAY if self.now - node.at > self.timeout else node.state

    def pending(self, epoch: int) -> bool:
        """Whether a node that lives and is well has yet to acknowledge ``epoch``."""
        return bool(self.groups.astray) or self.groups.slowest < epoch

    @cached_property
    def konnectors(self) -> Cluster:
        """The same of the nodes that have volumes."""
        return replace(self, nodes=tuple(one for one in self.nodes if one.konnector))

    @cached_property
    def services(self) -> Mapping[str, ServiceState]:
        """Assignment id → the last call to the service that enforces it."""
        return self.read_services()

    @cached_property
    def groups(self) -> Groups:
        """The nodes grouped by state, once for all policies."""
        found = Groups()
        for node in self.nodes:
            state = self.state(node)
            if state == AWAY:
                found.away.append(node.node)
            elif state != OK:
                found.unwell.append({"node": node.node, "reason": f"{state}: {node.detail}"})
            elif node.history != self.head.history:
                found.astray.append(node.node)
            else:
                found.add(node)
        return found


@dataclass(slots=True)
class Groups:
    """``current`` nodes live, are well and stand in the current history, ``slowest`` is their least epoch.

    ``refusals`` maps a policy to node and reasons, of the current nodes alone.
    """

    away: list[str] = field(default_factory=list)
    unwell: list[dict[str, str]] = field(default_factory=list)
    astray: list[str] = field(default_factory=list)
    current: list[NodeReport] = field(default_factory=list)
    slowest: float = inf
    refusals: dict[str, dict[str, dict[str, None]]] = field(default_factory=dict)

    def add(self, node: NodeReport) -> None:
        """One more current node."""
        self.current.append(node)
        self.slowest = min(self.slowest, node.epoch)
        for assignment, reason in node.refused.items():
            reasons = self.refusals.setdefault(policy_of_assignment(assignment), {}).setdefault(node.node, {})
            reasons[reason] = None


@dataclass(slots=True)
class Enforcement:
    """``nodes`` of ``total`` enforce a policy, or have a revision of code; each of the others is in one of the lists.

    Those in ``refused`` are described by ``node``, ``reason``, and for code the ``revision`` that they have instead.
    """

    total: int
    nodes: int
    refused: list[dict[str, Any]]
    waiting: list[str]
    away: list[str]


def enforcement(policy_id: str, epoch: int, cluster: Cluster, services: Mapping[str, str] | None = None) -> Enforcement:
    """The enforcement of ``policy_id``, last changed at ``epoch``, on every node and by every service.

    :param services: assignment id → keyword, of what the policy has services of third parties do; None for a policy
        without such filters.  What is in force beside these is found by itself.
    """
    groups = cluster.groups
    late = [] if groups.slowest >= epoch else [one.node for one in groups.current if one.epoch < epoch]
    # what a node refuses counts once it has acknowledged the change that it is about
    refusals = groups.refusals.get(policy_id, {})
    refused = [{"node": node, "reason": "; ".join(reasons)} for node, reasons in refusals.items() if node not in late]
    found = Enforcement(
        total=len(cluster.nodes),
        nodes=len(groups.current) - len(late) - len(refused),
        refused=sorted(refused + groups.unwell, key=itemgetter("node")),
        waiting=sorted(late + groups.astray),
        away=groups.away,
    )
    if services is not None:
        _add_services(found, policy_id, services, cluster.services)
    return found


def _add_services(
    found: Enforcement, policy_id: str, expected: Mapping[str, str], states: Mapping[str, ServiceState]
) -> None:
    """Count each call that is due like a node: accepted, failed with the reason, or waiting."""
    mine = {name: one for name, one in states.items() if one.policy == policy_id and not one.undo}
    for name in sorted(expected.keys() | mine.keys()):
        state = mine.get(name)
        called = f"service {state.keyword if state else expected[name]}"
        found.total += 1
        if state is not None and state.state == DONE:
            found.nodes += 1
        elif state is not None and state.state == FAILED:
            reason = f"{state.reason} ({state.attempts} attempts for `{state.target}`)"
            found.refused.append({"node": called, "reason": reason})
        else:
            found.waiting.append(called)
