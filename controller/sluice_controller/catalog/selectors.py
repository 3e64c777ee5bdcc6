"""Read operations: what the API shows, composed from the store.

The order of reads keeps an answer trustworthy: first the state of a policy, then the epoch of its last change, then
the nodes.  A change between two reads can make a policy look less enforced than it is, never more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from sluice_controller.catalog.backend import Backend
from sluice_controller.catalog.cluster.enforcement import Cluster, Enforcement, enforcement
from sluice_controller.catalog.policy_cache import CacheContents, CachedPolicy
from sluice_controller.catalog.policy_statuses import policy_status
from sluice_core.describe import OBJECTS, SERVICE
from sluice_core.errors import NotFound
from sluice_core.messages.nodes import NodeReport
from sluice_core.messages.policies import PolicyState
from sluice_dsl.catalogue.base import Catalogue

#: Seconds for which actors publish what they observe after somebody looked.
WATCH_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class PolicyView:
    """A policy with its state, enforcement and observed values; ``catalogue`` describes its actions."""

    cached: CachedPolicy
    state: PolicyState | None
    epoch: int
    enforcement: Enforcement
    catalogue: Catalogue
    observed: Mapping[str, Any] | None = None

    @property
    def status(self) -> str:
        """One of :data:`~sluice_controller.catalog.policy_statuses.STATES`."""
        return policy_status(self.cached, self.state.status if self.state else None)


def cluster_now(backend: Backend) -> Cluster:
    """The nodes and the change they should have applied."""
    head = backend.store.head()
    nodes, config = tuple(backend.store.nodes()), backend.config
    return Cluster(head, nodes, backend.now(), config.node_timeout, backend.store.service_states)


def policy_enforcement(cached: CachedPolicy, epoch: int, cluster: Cluster) -> Enforcement:
    """How far a policy has come that was last changed at ``epoch``.

    A static policy has its services called at once, a dynamic one when it fires.
    """
    policy, actions = cached.policy, cached.plan.actions
    if not any(OBJECTS in one.about for one in actions):
        cluster = cluster.konnectors
    if not any(one.kind == SERVICE for one in actions):
        return enforcement(policy.id, epoch, cluster)
    due = actions if policy.enabled and not policy.dynamic else ()
    services = {
        f"{policy.id}.{number}": one.keyword
        for number, one in enumerate(due)
        if one.kind == SERVICE and one.verb == "set"
    }
    return enforcement(policy.id, epoch, cluster, services)


def find_cached(contents: CacheContents, policy_id: str) -> CachedPolicy:
    """One policy.

    :raises NotFound: when there is none of this id
    """
    cached = contents.policies.get(policy_id)
    if cached is None:
        raise NotFound(f"there is no policy `{policy_id}`")
    return cached


def find_policy(backend: Backend, policy_id: str) -> PolicyView:
    """One policy, with what its actor observes now.

    :raises NotFound: when there is none of this id
    """
    state = backend.store.state(policy_id)
    contents = backend.policy_cache.contents()
    cached = find_cached(contents, policy_id)
    observed = None
    if cached.policy.dynamic:
        observed = fresh_observation(backend, cached)
    epoch = contents.epochs.get(policy_id, 0)
    enforced = policy_enforcement(cached, epoch, cluster_now(backend))
    return PolicyView(cached, state, epoch, enforced, backend.described(contents), observed)


def fresh_observation(backend: Backend, cached: CachedPolicy) -> dict[str, Any] | None:
    """What the actor published, unless that was when somebody looked long ago; it is asked to publish on."""
    backend.store.watch(cached.policy.id, WATCH_SECONDS)
    found = backend.store.observed(cached.policy.id)
    catalogue = backend.catalogue
    metrics = {name: metric for name in cached.plan.metrics if (metric := catalogue.metric(name))}
    period = max((one.period for one in metrics.values()), default=1.0)
    if not found or backend.now() - found["window"] > WATCH_SECONDS + 2 * period:
        return None
    return {**found, "units": {name: one.unit for name, one in metrics.items()}}


@dataclass(frozen=True, slots=True)
class NodeFilter:
    """Selects nodes: behind a name, in a state, with refusals."""

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
    raise NotFound(f"there is no node `{node}`")
