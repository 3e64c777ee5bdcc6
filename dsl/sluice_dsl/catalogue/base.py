"""The vocabulary that sentences are checked against.

The language itself defines no filter and no metric: a :class:`Catalogue` does.  The controller
builds one from the installed and registered words; tests and ``sluice-dsl`` build one by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from sluice_core.describe import ActionInfo, MetricInfo, Scalar
from sluice_core.messages.policies import CLUSTER, CONTAINER, NAME, OBJECT, TENANT, VOLUME, Target
from sluice_dsl.syntax.ast import Action, Parameter, Sentence, Word

#: Answers of :meth:`Catalogue.erasure_coding`; the third one is empty.
ALL_ERASURE_CODED: Final = "all"
SOME_ERASURE_CODED: Final = "some"
#: The levels of a cluster without volumes.
OBJECT_LEVELS: Final = (OBJECT, CONTAINER, TENANT, CLUSTER)
#: Stands in ``erasure_coded`` for containers that are not listed.
ANY_CONTAINER: Final = "*"


@dataclass(frozen=True, slots=True)
class ActionAlias:
    """Another word for setting ``keyword`` with ``params``, which are as they would be written."""

    keyword: str
    params: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MetricAlias:
    """Another word for ``metric``, only in sentences about targets of ``level``, unless that is empty."""

    metric: str
    level: str = ""


def no_volumes(name: str) -> Sequence[Target]:
    """Return the volumes of a name where there are no volumes: none."""
    return ()


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All words that a sentence may name.

    Keys of ``actions`` are lower case, those of ``metrics`` and ``terms`` upper case.  ``terms``
    maps a coined term to type patterns (``DOCS`` → ``("pdf", "doc")``).  ``aliases`` maps a word to
    a target.  ``groups`` maps a group's name to the level of its members.  ``tenants`` maps a
    project's name to its Swift account; a name that is not in it is an account itself.
    ``levels`` are the target levels that can be enforced here.  ``actions_by_alias`` (lower case) and
    ``metrics_by_alias`` (upper case) are further words for entries of the first two.
    """

    actions: Mapping[str, ActionInfo] = field(default_factory=dict)
    metrics: Mapping[str, MetricInfo] = field(default_factory=dict)
    terms: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    aliases: Mapping[str, Target] = field(default_factory=dict)
    groups: Mapping[str, str] = field(default_factory=dict)
    tenants: Mapping[str, str] = field(default_factory=dict)
    default_tenant: str = ""
    #: Keyword → a check of the parameters together, which raises a ``CallerError``.
    trials: Mapping[str, Callable[[Mapping[str, Scalar]], object]] = field(default_factory=dict)
    levels: tuple[str, ...] = OBJECT_LEVELS
    actions_by_alias: Mapping[str, ActionAlias] = field(default_factory=dict)
    metrics_by_alias: Mapping[str, MetricAlias] = field(default_factory=dict)
    #: Containers (``account/container``) on erasure-coded storage policies; ``*`` beside them when the
    #: cluster has such a policy and not all of its containers are listed.  Empty: no such policy.
    erasure_coded: frozenset[str] = frozenset()
    #: Prefix of accounts' names, where a tenant is a project or such an account; empty: any name is one.
    account_prefix: str = ""
    #: Returns the names of the current nodes; called when a sentence names one.  Returns nothing when they are unknown.
    known_nodes: Callable[[], Collection[str]] = tuple
    #: Returns the volumes that a name, ``tenant/name`` or an id may mean; called when a sentence names one.
    volumes: Callable[[str], Sequence[Target]] = no_volumes
    #: Names of volumes among which a near miss is searched.
    volume_names: Callable[[], Collection[str]] = tuple
    #: Templates of motifs by keyword; their parameters are those of ``motif`` with that template.
    templates: Mapping[str, ActionInfo] = field(default_factory=dict)

    def metric(self, name: str) -> MetricInfo | None:
        """The metric called ``name`` or having it as an alias, in any case."""
        folded = name.upper()
        found = self.metrics.get(folded)
        if found is not None:
            return found
        return next((one for one in self.metrics.values() if folded in one.aliases), None)

    def action(self, keyword: str) -> ActionInfo | None:
        """The action called ``keyword``, in any case."""
        return self.actions.get(keyword.lower())

    def account(self, tenant: str) -> str:
        """The Swift account of a tenant's name."""
        return self.tenants.get(tenant, tenant)

    def erasure_coding(self, target: Target) -> str:
        """Return how much of ``target`` is erasure-coded: all, some (or unknown), or (empty) nothing."""
        if not self.erasure_coded or target.level == VOLUME:
            return ""
        if target.select == NAME and target.level in (CONTAINER, OBJECT):
            if "/".join(target.name.split("/", 2)[:2]) in self.erasure_coded:
                return ALL_ERASURE_CODED
            return SOME_ERASURE_CODED if ANY_CONTAINER in self.erasure_coded else ""
        if target.select == NAME and target.level == TENANT:
            inside = any(path == ANY_CONTAINER or path.startswith(f"{target.name}/") for path in self.erasure_coded)
            return SOME_ERASURE_CODED if inside else ""
        return SOME_ERASURE_CODED


def expand_aliases(sentence: Sentence, catalogue: Catalogue) -> Sentence:
    """Return ``sentence`` with keywords of the vocabulary in place of aliases; the checks read this form.

    Spans stay at the words of the sentence, so that an error points at the source; a parameter that comes with the
    alias points at the alias.  The canonical text keeps the alias.
    """
    if not any(one.keyword.text in catalogue.actions_by_alias for one in sentence.actions):
        return sentence
    return replace(sentence, actions=tuple(_expanded(one, catalogue) for one in sentence.actions))


def _expanded(action: Action, catalogue: Catalogue) -> Action:
    alias = catalogue.actions_by_alias.get(action.keyword.text)
    if alias is None:
        return action
    span = action.keyword.span
    given = {one.name.text for one in action.parameters}
    # parameters of the sentence replace those of the alias; DELETE takes no parameters
    brought = tuple(
        Parameter(Word(name, span=span), Word(value, span=span), span=span)
        for name, value in alias.params.items()
        if action.verb != "delete" and name not in given
    )
    return replace(action, keyword=Word(alias.keyword, span=span), parameters=(*brought, *action.parameters))
