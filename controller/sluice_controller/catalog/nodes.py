"""Reports of nodes and actor hosts: acknowledged changes, waits for them, and the health of dependencies.

A node enforces a policy when its agent is alive and well, has the current history, has
acknowledged the epoch of the policy's last change, and refused none of its assignments.  Every other
node is named exactly once, under the reason that an operator has to remove first.  A policy
about volumes alone is enforced by the nodes that have a konnector.

A request that waits for a roll-out occupies a thread of its worker.  One thread always stays free for other requests:
a request that finds no free slot is answered at once with the present state of the roll-out.

The actor host that allocates bandwidth reports each second (``sluice_core.messages.bandwidth_report``).  Only a fresh
report counts; without one, no host allocates.
``sluice_controller.bandwidth.report_tables`` makes lists of it.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf
from operator import itemgetter
from typing import Any, Final

from sluice_controller.catalog.backend import Backend
from sluice_controller.config import KEYSTONE
from sluice_controller.identity.keystone_probe import probe_for
from sluice_controller.validation.names import near_miss
from sluice_core.errors import NotFound, PeerError
from sluice_core.messages.bandwidth_report import BandwidthReport
from sluice_core.messages.nodes import NodeReport
from sluice_core.messages.policies import policy_of_assignment
from sluice_core.messages.registry import CALL_DONE, CALL_FAILED, ServiceState
from sluice_core.store.operations import REPORT_FRESH, REPORT_RETENTION, read_bandwidth_report, read_idle_flows
from sluice_core.store.records import Head

log = logging.getLogger(__name__)

OK: Final = "ok"
AWAY: Final = "away"
DEGRADED: Final = "degraded"
#: The longest wait of a request, in seconds, and the seconds between two checks.
LONGEST_WAIT: Final = 30.0
_STEP: Final = 0.02


@dataclass(frozen=True)
class Cluster:
    """The newest change and the reports of all nodes at one moment."""

    head: Head
    nodes: tuple[NodeReport, ...]
    now: float
    timeout: float
    #: Reads the answers of third parties' services, by assignment; called once, if a policy needs them.
    read_services: Callable[[], Mapping[str, ServiceState]] = dict

    def state(self, node: NodeReport) -> str:
        """``ok``, ``stale_history``, ``failed`` or ``away``."""
        return AWAY if self.now - node.at > self.timeout else node.state

    def pending(self, epoch: int) -> bool:
        """Whether a node that is alive and well has not acknowledged ``epoch`` yet."""
        return bool(self.groups.astray) or self.groups.slowest < epoch

    @cached_property
    def konnectors(self) -> Cluster:
        """The same cluster with only the nodes that have a konnector."""
        return replace(self, nodes=tuple(one for one in self.nodes if one.konnector))

    @cached_property
    def services(self) -> Mapping[str, ServiceState]:
        """Assignment id → the last call to the service that enforces it."""
        return self.read_services()

    @cached_property
    def groups(self) -> Groups:
        """The nodes grouped by state, computed once for all policies."""
        groups = Groups()
        for node in self.nodes:
            state = self.state(node)
            if state == AWAY:
                groups.away.append(node.node)
            elif state != OK:
                groups.unwell.append({"node": node.node, "reason": f"{state}: {node.detail}"})
            elif node.history != self.head.history:
                groups.astray.append(node.node)
            else:
                groups.add(node)
        return groups


@dataclass(slots=True)
class Groups:
    """``current`` nodes are alive and well and have the current history, ``slowest`` is their least epoch.

    ``refusals`` maps a policy to nodes and reasons, of the current nodes alone.
    """

    away: list[str] = field(default_factory=list)
    unwell: list[dict[str, str]] = field(default_factory=list)
    astray: list[str] = field(default_factory=list)
    current: list[NodeReport] = field(default_factory=list)
    slowest: float = inf
    refusals: dict[str, dict[str, dict[str, None]]] = field(default_factory=dict)

    def add(self, node: NodeReport) -> None:
        """Add a current node."""
        self.current.append(node)
        self.slowest = min(self.slowest, node.epoch)
        for assignment, reason in node.refused.items():
            reasons = self.refusals.setdefault(policy_of_assignment(assignment), {}).setdefault(node.node, {})
            reasons[reason] = None


def cluster_now(backend: Backend) -> Cluster:
    """The nodes and the newest change."""
    head = backend.store.head()
    nodes, config = tuple(backend.store.nodes()), backend.config
    return Cluster(head, nodes, backend.now(), config.node_timeout, backend.store.service_states)


@dataclass(frozen=True, slots=True)
class NodeFilter:
    """Selects nodes: after a name, in a state, with refusals."""

    after: str = ""
    state: str = ""
    refusing: bool = False

    def matches(self, node: NodeReport, cluster: Cluster) -> bool:
        """Whether a node is selected."""
        return (
            node.node > self.after
            and self.state in ("", cluster.state(node))
            and (bool(node.refused) or not self.refusing)
        )


def find_node(cluster: Cluster, node: str) -> NodeReport:
    """The report of one node.

    :raises NotFound: when it never reported, or was forgotten
    """
    for one in cluster.nodes:
        if one.node == node:
            return one
    raise NotFound(f"there is no node `{node}`{near_miss(node, (one.node for one in cluster.nodes))}")


@dataclass(slots=True)
class Enforcement:
    """``nodes`` of ``total`` enforce a policy, or have a revision of code; each other node is in one of the lists.

    Those in ``refused`` are described by ``node``, ``reason``, and for code the ``revision`` that they run instead.
    """

    total: int
    nodes: int
    refused: list[dict[str, Any]]
    waiting: list[str]
    away: list[str]


def enforcement(policy_id: str, epoch: int, cluster: Cluster, services: Mapping[str, str] | None = None) -> Enforcement:
    """The enforcement of ``policy_id``, last changed at ``epoch``, on every node and by every service.

    :param services: assignment id → keyword, of the policy's filters that services of third parties enforce; None
        without such filters.  Assignments in force besides these are found here.
    """
    groups = cluster.groups
    late = [] if groups.slowest >= epoch else [one.node for one in groups.current if one.epoch < epoch]
    # A refusal counts once the node has acknowledged the change.
    refusals = groups.refusals.get(policy_id, {})
    refused = [{"node": node, "reason": "; ".join(reasons)} for node, reasons in refusals.items() if node not in late]
    outcome = Enforcement(
        total=len(cluster.nodes),
        nodes=len(groups.current) - len(late) - len(refused),
        refused=sorted(refused + groups.unwell, key=itemgetter("node")),
        waiting=sorted(late + groups.astray),
        away=groups.away,
    )
    if services is not None:
        _add_services(outcome, policy_id, services, cluster.services)
    return outcome


def _add_services(
    outcome: Enforcement, policy_id: str, expected: Mapping[str, str], states: Mapping[str, ServiceState]
) -> None:
    """Count each due call like a node: accepted, failed with the reason, or waiting."""
    mine = {name: one for name, one in states.items() if one.policy == policy_id and not one.undo}
    for name in sorted(expected.keys() | mine.keys()):
        state = mine.get(name)
        called = f"service {state.keyword if state else expected[name]}"
        outcome.total += 1
        if state is not None and state.state == CALL_DONE:
            outcome.nodes += 1
        elif state is not None and state.state == CALL_FAILED:
            reason = f"{state.reason} ({state.attempts} attempts for `{state.target}`)"
            outcome.refused.append({"node": called, "reason": reason})
        else:
            outcome.waiting.append(called)


def dependency_health(backend: Backend) -> dict[str, str]:
    """``ok`` or ``degraded`` for each; without details, because no token is needed.

    ``actors``: a host is alive; ``broker``: an alive host is connected to it; ``nodes``: all are well; ``keystone``, if
    it authenticates callers: it answers.
    """
    return {**_of_redis(backend), **_of_keystone(backend)}


def _of_keystone(backend: Backend) -> dict[str, str]:
    config = backend.config
    if config.auth != KEYSTONE or not config.keystone_source:
        return {}
    return {"keystone": OK if probe_for(config.keystone_source).is_up() else DEGRADED}


def _of_redis(backend: Backend) -> dict[str, str]:
    try:
        cluster = cluster_now(backend)
        hosts = backend.store.hosts()
    except PeerError as error:
        log.warning("health: %s", error)
        return dict.fromkeys(("redis", "actors", "broker", "nodes"), DEGRADED)
    alive = [host for host in hosts.values() if is_alive(backend, host)]
    connected = any(host.get("bus") is True for host in alive)
    well = bool(cluster.nodes) and all(cluster.state(node) == OK for node in cluster.nodes)
    found = {"redis": True, "actors": bool(alive), "broker": connected, "nodes": well}
    return {name: OK if good else DEGRADED for name, good in found.items()}


def is_alive(backend: Backend, host: Mapping[str, Any]) -> bool:
    """Whether an actor host has reported lately."""
    at = host.get("at")
    return isinstance(at, int | float) and backend.now() - at <= backend.config.node_timeout


def wait_acknowledged(backend: Backend, epoch: int, seconds: float) -> bool:
    """Wait until all live nodes have acknowledged ``epoch``, at most ``seconds``; return whether they have."""
    return wait_until(backend, lambda: not cluster_now(backend).pending(epoch), seconds)


def wait_until(backend: Backend, done: Callable[[], bool], seconds: float, step: float = _STEP) -> bool:
    """Wait until ``done`` is true, at most ``seconds``; return whether it is, False at once without a free slot.

    :param step: seconds between two calls of ``done``
    """
    if seconds <= 0 or not backend.waiters.acquire(blocking=False):
        return False
    deadline = time.monotonic() + seconds
    try:
        while not done():
            rest = deadline - time.monotonic()
            if rest <= 0:
                return False
            time.sleep(min(step, rest))
        return True
    finally:
        backend.waiters.release()


def current_report(backend: Backend, idle: bool = False) -> BandwidthReport | None:
    """The last report; None if it is older than :data:`REPORT_FRESH` seconds, or there is none.

    :param idle: with the idle flows, which are many and need a further read
    :raises PeerError: when Redis is unreachable
    """
    return report_and_age(backend, idle)[0]


def report_and_age(backend: Backend, idle: bool = False) -> tuple[BandwidthReport | None, float]:
    """The last report, and its age in seconds, infinite without one.

    :raises PeerError: when Redis is unreachable
    """
    report, left = backend.store.run(read_bandwidth_report(backend.store.keys))
    if report is None:
        return None, math.inf
    # The age comes from Redis' own clock; the clocks of two hosts may differ.
    age = REPORT_RETENTION - left if left >= 0 else backend.now() - report.at
    if age > REPORT_FRESH:
        return None, math.inf
    if idle and report.promises:
        report = report.with_idle(backend.store.run(read_idle_flows(backend.store.keys, report.promises)))
    return report, age


def shortfall(report: BandwidthReport | None, policy_id: str, parameter: str = "") -> dict[str, float] | None:
    """The bandwidth that the objectives of a policy lack, or that of one ``parameter`` of it.

    None if nothing is missing, or no host measures.
    """
    missing = None
    if report is not None:
        missing = report.lacking.get(policy_id, {}).get(parameter) if parameter else report.infeasible.get(policy_id)
    return {"shortfall": missing} if missing else None
