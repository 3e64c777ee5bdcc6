"""Registered names that a built-in of this version also has: metrics, terms and filters (docs/admin/registry.md).

The name of a built-in cannot be registered, but a newer version may add a built-in.  The built-in wins, on nodes and in
sentences: nodes publish and run it whatever is registered.  So policies that were written for the registered one may
have another meaning.  An event and a line of the log report that when the API starts, and a warning is shown with
each of the policies.  Deleting the registration ends that.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from sluice_controller.catalog import reference_guards
from sluice_controller.catalog.backend import Backend
from sluice_controller.catalog.events import add_event
from sluice_controller.catalog.policy_cache import CacheContents, CachedPolicy
from sluice_core.errors import PeerError
from sluice_core.messages.events import NAME_TAKEN_OVER
from sluice_core.messages.registry import Activation, Metric, Term, named_records
from sluice_core.messages.uploads import FILTER_CODE, METRIC_CODE
from sluice_dsl.catalogue.base import Catalogue
from sluice_dsl.diagnostics import Reporter, Span
from sluice_dsl.syntax import ast

log = logging.getLogger(__name__)

METRIC: Final = "metric"
TERM: Final = "term"
FILTER: Final = "filter"
#: The maximum number of policies in an event.
_LISTED: Final = 100


@dataclass(frozen=True, slots=True)
class Takeover:
    """A registered name that means a built-in now.

    :param sort: :data:`METRIC`, :data:`TERM` or :data:`FILTER`
    :param built_in: a description of the built-in
    :param registered: a description of the registered one
    :param effect: the effect on policies that were written for the registered one
    :param policies: their ids, and those of policies that were written for the built-in since
    """

    sort: str
    name: str
    built_in: str
    registered: str
    effect: str
    policies: tuple[str, ...]

    @property
    def message(self) -> str:
        """A description of the takeover."""
        return f"{self.sort} `{self.name}` is built in ({self.built_in}) and {self.registered}; {self.effect}"

    def __str__(self) -> str:
        named = reference_guards.name_some(self.policies)
        return f"{self.message}: {f'it concerns policies {named}' if named else 'no policy uses it'}"


def find_takeovers(backend: Backend, contents: CacheContents) -> list[Takeover]:
    """All registered names at the moment of ``contents`` that are names of built-ins.

    :raises PeerError: when Redis is unreachable
    """
    native = backend.built_in
    return [*_metrics(native, contents), *_terms(native, contents), *_filters(native, contents)]


def report_takeovers(backend: Backend) -> None:
    """Log each of them, as text and as events; without Redis they are not known."""
    try:
        takeovers = find_takeovers(backend, backend.policy_cache.contents())
    except PeerError as error:
        log.warning("names that built-ins have taken over are not looked for: %s", error)
        return
    for takeover in takeovers:
        log.error("%s", takeover)
        policies = list(takeover.policies[:_LISTED])
        add_event(
            backend,
            NAME_TAKEN_OVER,
            str(takeover),
            subject=f"{takeover.sort}/{takeover.name}",
            fields={"policies": policies},
        )


def takeover_warnings(backend: Backend, cached: CachedPolicy) -> list[dict[str, Any]]:
    """The warnings about names in a policy that were taken over.  Positions are in its canonical text.

    :raises PeerError: when Redis is unreachable
    """
    contents = backend.policy_cache.contents()
    mine = {(one.sort, one.name): one for one in find_takeovers(backend, contents) if cached.policy.id in one.policies}
    if not mine:
        return []
    reporter = Reporter(cached.policy.text)
    for sentence in cached.sentences():
        for sort, name, span in _named(sentence, contents):
            if (sort, name) in mine:
                reporter.warn(mine[sort, name].message, span)
    return [one.to_data() for one in reporter.all("warning")]


def is_taken_over(sort: str, name: str, backend: Backend) -> bool:
    """Whether ``name`` is both registered and built in."""
    known = find_takeovers(backend, backend.policy_cache.contents())
    return any((one.sort, one.name) == (sort, name) for one in known)


def _named(sentence: ast.Sentence, contents: CacheContents) -> Iterator[tuple[str, str, Span]]:
    """Sort, name and position of each word that may be a registered one."""
    words = contents.vocabulary
    for clause in ast.clauses(sentence.condition):
        subject = clause.subject.text
        alias = words.metrics.get(subject)
        yield METRIC, subject if alias is None else alias.metric, clause.subject.span
        yield TERM, clause.value.text.upper(), clause.value.span
    for action in sentence.actions:
        keyword = action.keyword.text
        meant = words.actions.get(keyword)
        yield FILTER, keyword if meant is None else meant.keyword, action.keyword.span


def _metrics(native: Catalogue, contents: CacheContents) -> Iterator[Takeover]:
    units = {name: one.unit for name, one in named_records(contents.entries, Metric).items()}
    uploaded = {one.keyword: "code" for one in contents.uploads.values() if one.kind == METRIC_CODE and one.running}
    for name, what in _both({**uploaded, **units}, native.metrics):
        info = native.metrics[name]
        described = "was uploaded as code" if name in uploaded else f"was registered as another one (unit {what})"
        effect = "policies read the built-in one, and values that are published under its name are added to it"
        if name in uploaded:
            effect = "policies read the built-in one"
        yield Takeover(
            METRIC,
            name,
            f"{info.help}, unit {info.unit}",
            described,
            effect,
            tuple(reference_guards.policies_watching(contents, name)),
        )


def _terms(native: Catalogue, contents: CacheContents) -> Iterator[Takeover]:
    coined = named_records(contents.entries, Term)
    for name, term in _both(coined, native.terms):
        yield Takeover(
            TERM,
            name,
            ", ".join(native.terms[name]),
            f"was coined for {', '.join(term.values)}",
            "a policy has the types that it was compiled with, and those of the built-in one when it is written again",
            tuple(reference_guards.policies_using_term(contents, term)),
        )


def _filters(native: Catalogue, contents: CacheContents) -> Iterator[Takeover]:
    services = {name for name, one in named_records(contents.entries, Activation).items() if one.service}
    uploaded = {one.keyword for one in contents.uploads.values() if one.kind == FILTER_CODE and one.sha256}
    for name, _ in _both(dict.fromkeys((*services, *uploaded)), native.actions):
        described, effect = "was uploaded as code", "nodes run the built-in one, and read objects by it"
        if name not in uploaded:
            described = "was registered as a service's"
            effect = "a policy calls the service, until it is written again and sets the built-in one"
        yield Takeover(
            FILTER,
            name,
            native.actions[name].help,
            described,
            effect,
            tuple(reference_guards.policies_setting(contents, name)),
        )


def _both(registered: Mapping[str, Any], built_in: Collection[str]) -> Iterable[tuple[str, Any]]:
    return ((name, one) for name, one in sorted(registered.items()) if name in built_in)
