"""The policies that use a registered word, so that a word in use is not deleted or changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from sluice_controller.catalog.policy_cache import CacheContents
from sluice_core.errors import Conflict
from sluice_core.messages.policies import GROUP
from sluice_core.messages.registry import ALIAS, FILTER, METRIC, TARGET, TERM, Alias, Group, Term
from sluice_dsl.syntax.ast import And, Clause, Condition, Not, Or, Sentence

#: Policies that an error names.
_NAMED: Final = 5


class InUse(Conflict):
    """Policies use it; another attempt would fail as well."""


def used_words(sentence: Sentence) -> Iterator[tuple[str, str]]:
    """Kind and name of each alias and coined term that a sentence may name; more than are registered."""
    name = sentence.target.name
    if name is not None:
        yield from ((ALIAS, name.text), (ALIAS, name.text.partition("/")[0]))
    yield from ((ALIAS, action.keyword.text) for action in sentence.actions)
    yield from ((ALIAS, subject) for subject in _subjects(sentence.condition))
    yield from ((TERM, value.upper()) for value in _values(sentence.condition))


def refuse_used(what: str, users: Iterable[str], force: bool) -> None:
    """Taking ``what`` away needs ``force`` while policies use it.

    :raises InUse: naming some of them
    """
    found = [] if force else list(users)
    if found:
        verb = "uses" if len(found) == 1 else "use"
        raise InUse(
            f"{what} is in use: policies {name_some(found)} {verb} it; delete them first, or insist with `force`"
        )


def name_some(found: Sequence[str], most: int = _NAMED) -> str:
    """The first ``most`` of what an error names, and how many more there are."""
    more = f" and {len(found) - most} more" if len(found) > most else ""
    return ", ".join(f"`{one}`" for one in found[:most]) + more


def policies_about_group(contents: CacheContents, group: Group) -> Iterator[str]:
    """Policies about the group."""
    wanted = (GROUP, group.name, group.level)
    targets = ((one.policy.id, one.plan.target) for one in contents.ordered)
    return (policy for policy, target in targets if (target.select, target.name, target.level) == wanted)


def policies_of_origin(contents: CacheContents, origin: str) -> Iterator[str]:
    """Policies that a stereotype or a deployment wrote."""
    return (one.policy.id for one in contents.ordered if one.policy.origin == origin)


def policies_setting(contents: CacheContents, keyword: str) -> Iterator[str]:
    """Policies that set or delete the filter."""
    return (one.policy.id for one in contents.ordered if any(each.keyword == keyword for each in one.plan.actions))


def policies_watching(contents: CacheContents, name: str) -> Iterator[str]:
    """Policies that watch the metric."""
    return (one.policy.id for one in contents.ordered if name in one.plan.metrics)


def policies_using_term(contents: CacheContents, term: Term) -> Iterator[str]:
    """Policies whose sentence names the coined term."""
    return _writing(contents, term.name, lambda sentence: term.name in map(str.upper, _values(sentence.condition)))


def policies_using_alias(contents: CacheContents, alias: Alias) -> Iterator[str]:
    """Policies that set a filter, ask for a metric, or are about a target or something below it, by the alias."""
    uses = {FILTER: _is_set, METRIC: _is_watched, TARGET: _is_below}[alias.of]
    return _writing(contents, alias.name, lambda sentence: uses(sentence, alias.name))


def _is_set(sentence: Sentence, alias: str) -> bool:
    return any(one.keyword.text == alias for one in sentence.actions)


def _is_watched(sentence: Sentence, alias: str) -> bool:
    return alias in _subjects(sentence.condition)


def _is_below(sentence: Sentence, alias: str) -> bool:
    name = sentence.target.name
    return name is not None and sentence.target.select != GROUP and name.text.split("/")[0] == alias


def _writing(contents: CacheContents, word: str, uses: Callable[[Sentence], bool]) -> Iterator[str]:
    """Reading a sentence costs a millisecond, so only those are read in which the word may stand."""
    plain = word.isascii() and word.isprintable() and not set(word) & set("\"'\\")
    for one in contents.ordered:
        if (not plain or word.casefold() in one.policy.text.casefold()) and any(map(uses, one.sentences())):
            yield one.policy.id


def _clauses(condition: Condition | None) -> Iterator[Clause]:
    if isinstance(condition, Clause):
        yield condition
    elif isinstance(condition, Not):
        yield from _clauses(condition.part)
    elif isinstance(condition, And | Or):
        for part in condition.parts:
            yield from _clauses(part)


def _values(condition: Condition | None) -> Iterator[str]:
    return (one.value.text for one in _clauses(condition) if one.subject.text == "OBJECT_TYPE")


def _subjects(condition: Condition | None) -> Iterator[str]:
    return (one.subject.text for one in _clauses(condition))
