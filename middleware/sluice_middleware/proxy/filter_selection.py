"""Chooses the request filters of a request on the proxy, by the known attributes of the object.

Theory of operation.  Conditions of policies need size, type and tags of the object.  A PUT has them.  The
attributes of a stored object become known in this order:

* POST and DELETE cost one HEAD, when a condition needs more than the request has.
* GET and HEAD cost nothing: the cache is read first, since a hit has no other response; else the response has the
  attributes.  A filter with ``info.on_answer`` whose condition is undecided waits for the response.  For any other
  filter the condition counts as false.
* The response decides again about all filters with ``info.on_answer``; the others have acted, and stay.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from sluice_core.describe import FILTER, PROXY
from sluice_core.errors import PeerError
from sluice_core.messages.predicate import Facts
from sluice_core.resolve import Candidates, running_order
from sluice_filters.api import Filter
from sluice_filters.visits import Reply
from sluice_middleware.swift.proxy_api import close_if_possible
from sluice_middleware.wsgi.policy_lookup import PolicyLookup, SelectedFilter, download_facts
from sluice_middleware.wsgi.response import Env, UpstreamResponse, object_size

_MULTIPART = "multipart/byteranges"


class CachedAttributes(Protocol):
    """The cache of this node, as a source of attributes."""

    def complete_facts(self, env: Env, facts: Facts) -> Facts:
        """Add the attributes of a cached copy of the object of ``env`` to ``facts``."""


@dataclass(frozen=True, slots=True)
class FilterSelection:
    """Request filters in running order; the response decides about those in ``waiting``.

    ``choose`` returns the filters that hold for the object of a response, None when it does not describe it; ``choose``
    itself is None when no response changes the selection.
    """

    filters: Sequence[Filter]
    waiting: Collection[Filter] = ()
    choose: Callable[[UpstreamResponse], Collection[Filter] | None] | None = None


def answer_facts(method: str, name: str, answer: UpstreamResponse) -> Facts | None:
    """The attributes in the response to a GET or HEAD of the stored object; None when it has none."""
    if answer.code not in (200, 206):
        return None
    facts = download_facts(method, name, answer.headers, object_size(answer))
    return None if (facts.content_type or "").startswith(_MULTIPART) else facts


def select_filters(
    lookup: PolicyLookup, candidates: Candidates, facts: Facts, passed: Collection[str] = ()
) -> FilterSelection:
    """Return the filters that may act on a request with the known attributes ``facts``.

    :param passed: keywords of filters that have seen the request already
    :raises PeerError: when a policy requires a filter that is not installed here
    """

    def left(found: list[SelectedFilter]) -> list[SelectedFilter]:
        return [one for one in found if one.filter.info.keyword not in passed]

    decided = left(lookup.request_filters(candidates, facts, PROXY))
    if facts.method not in ("GET", "HEAD") or not candidates.undecided(FILTER, facts):
        return FilterSelection([one.filter for one in decided])
    chosen = [one.filter for one in decided]
    waiting = [
        one
        for one in left(lookup.undecided_filters(candidates, facts, PROXY))
        if one.filter.info.on_answer and one.filter not in chosen
    ]
    if not any(one.info.on_answer for one in chosen) and not waiting:
        return FilterSelection(chosen)

    def choose(answer: UpstreamResponse) -> list[Filter] | None:
        known = answer_facts(facts.method, facts.name, answer)
        return None if known is None else [one.filter for one in lookup.request_filters(candidates, known, PROXY)]

    everything = sorted([*decided, *waiting], key=lambda one: running_order(one.step))
    return FilterSelection([one.filter for one in everything], [one.filter for one in waiting], choose)


def complete_facts(
    candidates: Candidates,
    facts: Facts,
    env: Env,
    cache: CachedAttributes | None,
    head: Callable[[], Reply],
) -> Facts:
    """Return ``facts`` of a request for a stored object, with the attributes known before the request is made.

    :param head: makes a HEAD of the object
    :raises PeerError: when a condition needs attributes of the object, and the HEAD fails
    """
    if not candidates.undecided(FILTER, facts):
        return facts
    if facts.method in ("GET", "HEAD"):
        return facts if cache is None else cache.complete_facts(env, facts)
    reply = head()
    close_if_possible(reply.body)
    if reply.code == 404:
        return facts
    if reply.code != 200:
        raise PeerError(f"a policy needs attributes of the object, and HEAD answered {reply.status}")
    return download_facts(facts.method, facts.name, list(reply.headers.items()), None)
