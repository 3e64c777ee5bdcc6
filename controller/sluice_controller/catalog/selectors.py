"""Read operations: what the API shows, composed from the store.

The order of reads keeps an answer trustworthy: first the state of a policy, then the epoch of its last change, then
the nodes.  A change between two reads can make a policy look less enforced than it is, never more.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import attrgetter
from typing import Any, Final

from sluice_controller.catalog.backend import Backend
from sluice_controller.catalog.enforcement import Cluster, Enforcement, enforcement
from sluice_controller.catalog.entries import Page
from sluice_controller.catalog.policy_cache import CacheContents, CachedPolicy
from sluice_core.describe import OBJECTS, SERVICE
from sluice_core.errors import CallerError, NotFound
from sluice_core.messages.nodes import NodeReport
from sluice_core.messages.policies import NAME, PolicyState
from sluice_core.store.operation import Operation, decoded
from sluice_core.store.store import Store
from sluice_dsl.catalogue.base import Catalogue

#: Seconds for which actors publish what they observe after somebody looked.
WATCH_SECONDS: Final = 10.0
ACTIVE: Final = "active"
WAITING: Final = "waiting"
DISABLED: Final = "disabled"
STATES: Final = (ACTIVE, WAITING, "failed", DISABLED)
LARGEST_PAGE: Final = 1000


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
        """One of :data:`STATES`."""
        return policy_status(self.cached, self.state)


def policy_status(cached: CachedPolicy, state: PolicyState | None) -> str:
    """A static policy is active; a dynamic one whose actor has not reported yet is waiting."""
    if not cached.policy.enabled:
        return DISABLED
    if not cached.policy.dynamic:
        return ACTIVE
    return state.status if state else WAITING


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


def list_policies(
    backend: Backend,
    limit: int,
    marker: str = "",
    tenant: str = "",
    state: str = "",
    accounts: frozenset[str] | None = None,
) -> Page[PolicyView]:
    """Policies by age, those behind ``marker``, of one tenant or state if given.

    :param accounts: only policies about these accounts and what is in them; None for all
    """
    ordered = backend.policy_cache.contents().ordered
    behind = bisect_right(ordered, parse_marker(marker), key=attrgetter("position"))
    candidates = (
        one
        for one in islice(ordered, behind, None)
        if (not tenant or _is_of(one, tenant)) and (accounts is None or one.existing.account in accounts)
    )
    chosen, states = _chosen(backend, candidates, limit + 1, state)
    contents = backend.policy_cache.contents()  # anew, so that epochs are not older than the states
    cluster = cluster_now(backend)
    catalogue = backend.described(contents)
    views = [
        PolicyView(one, states.get(name), epoch, policy_enforcement(one, epoch, cluster), catalogue)
        for name in (one.policy.id for one in chosen[:limit])
        if (one := contents.policies.get(name)) is not None and state in ("", policy_status(one, states.get(name)))
        for epoch in (contents.epochs.get(name, 0),)
    ]
    return Page(views, page_marker(chosen[limit - 1]) if len(chosen) > limit else "")


def _chosen(
    backend: Backend, candidates: Iterator[CachedPolicy], count: int, state: str
) -> tuple[list[CachedPolicy], dict[str, PolicyState]]:
    """The first ``count`` of ``candidates`` that are in ``state``, if given; what actors wrote of those looked at."""
    chosen: list[CachedPolicy] = []
    states: dict[str, PolicyState] = {}
    step = max(count, LARGEST_PAGE) if state else count
    while len(chosen) < count and (some := list(islice(candidates, step))):
        states |= states_of(backend.store, [one.policy.id for one in some])
        chosen += [one for one in some if state in ("", policy_status(one, states.get(one.policy.id)))]
    return chosen[:count], states


def states_of(store: Store, policies: Sequence[str]) -> dict[str, PolicyState]:
    """Policy id → what its actor wrote, of some policies; those of which nothing was written are left out.

    :raises PeerError: when Redis is away
    """

    def parse(replies: list[Any]) -> dict[str, PolicyState]:
        found = zip(policies, replies[0], strict=True)
        read = ((name, decoded(PolicyState, name, raw)) for name, raw in found)
        return {name: one for name, one in read if one is not None}

    return store.run(Operation((("HMGET", store.keys.states, *policies),), parse))


def _is_of(one: CachedPolicy, tenant: str) -> bool:
    target = one.plan.target
    return target.select == NAME and tenant in (target.name.partition("/")[0], target.label.partition("/")[0])


def page_marker(one: CachedPolicy) -> str:
    """A position in the list that stays valid when its policy is deleted."""
    created, policy_id = one.position
    return f"{created}-{policy_id}"


def parse_marker(marker: str) -> tuple[int, str]:
    """The position that ``marker`` names.

    :raises CallerError: when it is not one of ours
    """
    if not marker:
        return -1, ""
    created, dash, policy_id = marker.partition("-")
    if not (dash and created.isascii() and created.isdigit() and len(created) < 20):
        raise CallerError(f"`marker` is `{marker}`, expected `next_marker` of the page before")
    return int(created), policy_id


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
