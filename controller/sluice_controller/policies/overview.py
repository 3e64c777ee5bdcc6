"""Counts of policies, nodes and hosts by state, for a page that shows at once whether all is well."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from sluice_controller.catalog.backend import Backend
from sluice_controller.catalog.nodes import Cluster, cluster_now, current_report, dependency_health, is_alive


@dataclass(frozen=True, slots=True)
class StateCounts:
    """The number of policies or nodes in each state; ``refused`` are refused ones, or refuse, in any state."""

    states: Mapping[str, int]
    refused: int

    @property
    def total(self) -> int:
        """The number of all of them."""
        return sum(self.states.values())


@dataclass(frozen=True, slots=True)
class FloorCounts:
    """The number of policies with floors that the cluster cannot carry now, and the missing bytes per second.

    ``stale`` is true if no host measures, so that nothing is known.
    """

    short: int
    shortfall: float
    stale: bool


@dataclass(frozen=True, slots=True)
class HostCounts:
    """The numbers of actor hosts that have reported lately, and that have not."""

    alive: int
    away: int


@dataclass(frozen=True, slots=True)
class ClusterCounts:
    """The state of the whole cluster, as opposed to that of tenants."""

    nodes: StateCounts
    hosts: HostCounts
    dependencies: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Overview:
    """All counts; ``cluster`` is None for callers that see their own policies alone."""

    policies: StateCounts
    floors: FloorCounts
    cluster: ClusterCounts | None


def overview(backend: Backend, accounts: frozenset[str] | None) -> Overview:
    """The counts of policies about ``accounts`` and the paths in them; None for all.

    :raises PeerError: when Redis is unreachable
    """
    contents = backend.policy_cache.contents()
    statuses = backend.policy_statuses.current(contents)
    if accounts is not None:
        seen = {name for name, one in contents.policies.items() if one.existing.account in accounts}
        statuses = {name: status for name, status in statuses.items() if name in seen}
    cluster = cluster_now(backend)
    policies = StateCounts(Counter(statuses.values()), len(cluster.groups.refusals.keys() & statuses.keys()))
    return Overview(policies, _floors(backend, statuses), _cluster(backend, cluster) if accounts is None else None)


def _floors(backend: Backend, policies: Mapping[str, str]) -> FloorCounts:
    report = current_report(backend)
    missing = {} if report is None else report.infeasible
    short = [rate for name, rate in missing.items() if name in policies and rate > 0]
    return FloorCounts(len(short), sum(short), report is None)


def _cluster(backend: Backend, cluster: Cluster) -> ClusterCounts:
    states = Counter(cluster.state(node) for node in cluster.nodes)
    hosts = Counter(is_alive(backend, host) for host in backend.store.hosts().values())
    return ClusterCounts(
        StateCounts(states, sum(bool(node.refused) for node in cluster.nodes)),
        HostCounts(hosts[True], hosts[False]),
        dependency_health(backend),
    )
