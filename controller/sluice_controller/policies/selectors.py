"""Reads policies for the API: one with its enforcement, pages of them by age, and the log of their actors.

The order of reads keeps an answer correct: first the state of a policy, then the epoch of its last change, then
the nodes.  A change between two reads can make a policy look less enforced than it is, never more.

Actors keep the last firings only; a marker identifies one of them by its time, and by its number among those
of the same moment, so it stays valid when newer ones are added or it is itself removed.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final

from sluice_controller.catalog.backend import Backend
from sluice_controller.catalog.entries import Page
from sluice_controller.catalog.nodes import Cluster, Enforcement, cluster_now, enforcement
from sluice_controller.catalog.policy_cache import CacheContents, CachedPolicy, policy_status, states_of
from sluice_core.describe import OBJECTS, SERVICE
from sluice_core.errors import CallerError, NotFound
from sluice_core.messages.policies import Firing, PolicyState
from sluice_dsl.catalogue.base import Catalogue, expand_aliases
from sluice_dsl.checks.attributes import check_attributes
from sluice_dsl.diagnostics import WARNING, Reporter

#: Seconds for which actors publish their observations after a request for them.
WATCH_SECONDS: Final = 10.0
OLDEST: Final = "oldest"
NEWEST: Final = "newest"
ORDERS: Final = (OLDEST, NEWEST)
_position: Final = attrgetter("position")

#: The position of a firing: its time in microseconds, and its number among those of that time.
Position = tuple[int, int]


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
        """One of :data:`~sluice_controller.catalog.policy_cache.STATES`."""
        return policy_status(self.cached, self.state.status if self.state else None)


def policy_enforcement(cached: CachedPolicy, epoch: int, cluster: Cluster) -> Enforcement:
    """The enforcement of a policy that was last changed at ``epoch``.

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
    """One policy, with the present observation of its actor.

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
    """The published values of the actor, None if no request watched it lately; asks it to continue publishing."""
    backend.store.watch(cached.policy.id, WATCH_SECONDS)
    published = backend.store.observed(cached.policy.id)
    catalogue = backend.catalogue
    metrics = {name: metric for name in cached.plan.metrics if (metric := catalogue.metric(name))}
    period = max((one.period for one in metrics.values()), default=1.0)
    if not published or backend.now() - published["window"] > WATCH_SECONDS + 2 * period:
        return None
    return {**published, "units": {name: one.unit for name, one in metrics.items()}}


@dataclass(frozen=True, slots=True)
class PolicyFilter:
    """Selects policies; empty fields select all.

    :param tenant: the account, or the project's name, of the target
    :param state: one of :data:`~sluice_controller.catalog.policy_cache.STATES`
    :param text: a part of the sentence, in any case
    :param accounts: only policies about these accounts and the paths in them; None for all
    """

    tenant: str = ""
    state: str = ""
    text: str = ""
    accounts: frozenset[str] | None = None

    def choose(self, contents: CacheContents, statuses: Mapping[str, str]) -> Sequence[CachedPolicy]:
        """The selected policies, oldest first."""
        chosen: Sequence[CachedPolicy] = contents.ordered
        if self.accounts is not None:
            chosen = [one for one in chosen if one.existing.account in self.accounts]
        if self.tenant:
            chosen = [one for one in chosen if self.tenant in one.tenants]
        if self.state:
            chosen = [one for one in chosen if statuses.get(one.policy.id) == self.state]
        if self.text:
            text = self.text.casefold()
            chosen = [one for one in chosen if text in one.searchable]
        return chosen


@dataclass(frozen=True, slots=True)
class PolicyPage(Page[PolicyView]):
    """Some of ``total`` policies, and the marker of the page before; empty on the first one."""

    previous_marker: str
    total: int


def list_policies(
    backend: Backend, wanted: PolicyFilter, limit: int, marker: str = "", before: str = "", order: str = OLDEST
) -> PolicyPage:
    """The page of the policies ``wanted`` that begins after ``marker``, or that ends before ``before``.

    :raises CallerError: when a marker is not valid, or both are given
    """
    contents = backend.policy_cache.contents()
    chosen = wanted.choose(contents, backend.policy_statuses.current(contents) if wanted.state else {})
    first, last = page_bounds(chosen, limit, marker, before, newest=order == NEWEST)
    page = list(chosen[first:last])
    views = policy_views(backend, [one.policy.id for one in page], wanted.state)
    older = page_marker(page[0]) if page and first else ""
    newer = page_marker(page[-1]) if page and last < len(chosen) else ""
    if order == NEWEST:
        return PolicyPage(views[::-1], older, newer, len(chosen))
    return PolicyPage(views, newer, older, len(chosen))


def page_bounds(chosen: Sequence[CachedPolicy], limit: int, marker: str, before: str, newest: bool) -> tuple[int, int]:
    """The beginning and the end of the page in ``chosen``, oldest first.

    :raises CallerError: when a marker is not valid, or both are given
    """
    if marker and before:
        raise CallerError("expected `marker` or `before`, not both")
    if not (marker or before):
        return (max(0, len(chosen) - limit), len(chosen)) if newest else (0, min(limit, len(chosen)))
    name, given = ("before", before) if before else ("marker", marker)
    position = parse_marker(given, name)
    if newest is bool(before):  # the page contains the policies newer than its marker
        first = bisect_right(chosen, position, key=_position)
        return first, min(first + limit, len(chosen))
    last = bisect_left(chosen, position, key=_position)
    return max(0, last - limit), last


def policy_views(backend: Backend, policies: Sequence[str], state: str = "") -> list[PolicyView]:
    """The present policies with these ids, without deleted ones and those in another state than ``state``."""
    states = states_of(backend.store, policies)
    contents = backend.policy_cache.contents()  # read after the states, so that epochs are not older than these
    cluster = cluster_now(backend)
    catalogue = backend.described(contents)
    views = []
    for name in policies:
        cached = contents.policies.get(name)
        if cached is not None:
            epoch = contents.epochs.get(name, 0)
            enforced = policy_enforcement(cached, epoch, cluster)
            views.append(PolicyView(cached, states.get(name), epoch, enforced, catalogue))
    return [one for one in views if state in ("", one.status)]


def page_marker(one: CachedPolicy) -> str:
    """A position in the list that stays valid when its policy is deleted."""
    created, policy_id = one.position
    return f"{created}-{policy_id}"


def parse_marker(marker: str, name: str) -> tuple[int, str]:
    """The position in ``marker``, the parameter ``name``.

    :raises CallerError: when it is not valid
    """
    created, dash, policy_id = marker.partition("-")
    if not (dash and created.isascii() and created.isdigit() and len(created) < 20):
        raise CallerError(f"`{name}` is `{marker}`, expected `next_marker` or `previous_marker` of another page")
    return int(created), policy_id


def page_firings(
    firings: Sequence[Firing], limit: int, marker: str = "", what: str = "", member: str = ""
) -> Page[Firing]:
    """The firings after ``marker``, of one kind or member if given."""
    before = firing_position(marker)
    chosen = [
        (place, one)
        for place, one in _placed(firings)
        if (before is None or place < before) and what in ("", one.what) and member in ("", one.member)
    ]
    shown = chosen[:limit]
    more = f"{shown[-1][0][0]}-{shown[-1][0][1]}" if len(chosen) > limit else ""
    return Page([one for _, one in shown], more)


def _placed(firings: Sequence[Firing]) -> Iterator[tuple[Position, Firing]]:
    """Each firing with its position, newest first."""
    places: list[tuple[Position, Firing]] = []
    for firing in firings:
        at = int(firing.at * 1_000_000)
        number = sum(place[0] == at for place, _ in places)
        places.append(((at, number), firing))
    return reversed(places)


def firing_position(marker: str) -> Position | None:
    """The position in ``marker``; None without a marker.

    :raises CallerError: when it is not valid
    """
    if not marker:
        return None
    match = re.fullmatch(r"([0-9]{1,18})-([0-9]{1,6})", marker, re.ASCII)
    if match is None:
        raise CallerError(f"`marker` is `{marker}`, expected `next_marker` of the page before")
    return int(match[1]), int(match[2])


def attribute_warnings(backend: Backend, cached: CachedPolicy) -> list[dict[str, Any]]:
    """The warnings about filters of a policy that cannot act: conditions on properties that they do not know in time.

    The positions are in its canonical text.
    """
    sentences = cached.sentences()
    if len(sentences) != 1:
        return []
    catalogue = backend.vocabulary(backend.policy_cache.contents())
    reporter = Reporter(cached.policy.text)
    check_attributes(expand_aliases(sentences[0], catalogue), cached.plan, catalogue, reporter, kept=True)
    return [one.to_data() for one in reporter.all(WARNING)]
