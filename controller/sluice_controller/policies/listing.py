"""The list of policies: some of them by tenant, state and text, in pages by age, forwards and backwards."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

from sluice_controller.catalog.backend import Backend
from sluice_controller.catalog.entries import Page
from sluice_controller.catalog.policy_cache import CacheContents, CachedPolicy
from sluice_controller.catalog.policy_statuses import states_of
from sluice_controller.catalog.selectors import PolicyView, cluster_now, policy_enforcement
from sluice_core.errors import CallerError

OLDEST: Final = "oldest"
NEWEST: Final = "newest"
ORDERS: Final = (OLDEST, NEWEST)
_position: Final = attrgetter("position")


@dataclass(frozen=True, slots=True)
class PolicyFilter:
    """Selects policies; what is empty selects all.

    :param tenant: the account, or the project's name, that a policy is about or in
    :param state: one of :data:`~sluice_controller.catalog.policy_statuses.STATES`
    :param text: stands somewhere in the sentence, in any case
    :param accounts: only policies about these accounts and what is in them; None for all
    """

    tenant: str = ""
    state: str = ""
    text: str = ""
    accounts: frozenset[str] | None = None

    def choose(self, contents: CacheContents, statuses: Mapping[str, str]) -> Sequence[CachedPolicy]:
        """The policies that are selected, oldest first."""
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
    """Some of ``total`` policies, and where the page before ends; empty on the first one."""

    previous_marker: str
    total: int


def list_policies(
    backend: Backend, wanted: PolicyFilter, limit: int, marker: str = "", before: str = "", order: str = OLDEST
) -> PolicyPage:
    """The page of the policies ``wanted`` that begins behind ``marker``, or that ends before ``before``.

    :raises CallerError: when a marker is none of ours, or both are given
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
    """Where in ``chosen``, oldest first, the page begins and ends.

    :raises CallerError: when a marker is none of ours, or both are given
    """
    if marker and before:
        raise CallerError("expected `marker` or `before`, not both")
    if not (marker or before):
        return (max(0, len(chosen) - limit), len(chosen)) if newest else (0, min(limit, len(chosen)))
    name, given = ("before", before) if before else ("marker", marker)
    position = parse_marker(given, name)
    if newest is bool(before):  # the page holds what is newer than its marker
        first = bisect_right(chosen, position, key=_position)
        return first, min(first + limit, len(chosen))
    last = bisect_left(chosen, position, key=_position)
    return max(0, last - limit), last


def policy_views(backend: Backend, policies: Sequence[str], state: str = "") -> list[PolicyView]:
    """The policies with these ids, as they are now; without those that are gone, or in another state than ``state``."""
    states = states_of(backend.store, policies)
    contents = backend.policy_cache.contents()  # read behind the states, so that epochs are not older than these
    cluster = cluster_now(backend)
    catalogue = backend.described(contents)
    found = []
    for name in policies:
        one = contents.policies.get(name)
        if one is not None:
            epoch = contents.epochs.get(name, 0)
            enforced = policy_enforcement(one, epoch, cluster)
            found.append(PolicyView(one, states.get(name), epoch, enforced, catalogue))
    return [one for one in found if state in ("", one.status)]


def page_marker(one: CachedPolicy) -> str:
    """A position in the list that stays valid when its policy is deleted."""
    created, policy_id = one.position
    return f"{created}-{policy_id}"


def parse_marker(marker: str, name: str) -> tuple[int, str]:
    """The position that ``marker``, the parameter ``name``, says.

    :raises CallerError: when it is not one of ours
    """
    created, dash, policy_id = marker.partition("-")
    if not (dash and created.isascii() and created.isdigit() and len(created) < 20):
        raise CallerError(f"`{name}` is `{marker}`, expected `next_marker` or `previous_marker` of another page")
    return int(created), policy_id
