"""The policies that use a registered word, and optimistic locking between them and changes of the word.

A word in use is not deleted or changed.  A commit of a sentence is guarded against concurrent changes of the registered
words that it uses, and against other sentences for the same target.

The race: one request creates a policy about a group while another deletes the group, because no policy uses it yet.
Both checks pass, and the remaining policy has a group that does not exist.  Therefore

* a request that writes a policy expects each registered word in it at the version that it was compiled with
  (:func:`referenced_versions`);
* a request that writes a static policy also expects that since then no other policy was written for the same target,
  which it may contradict;
* a request that deletes an unused word expects the version of the whole configuration in which it searched for users
  (:func:`unless_used`).

The store refuses the second commit; its request then starts again (:func:`retry_conflicts`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, TypeVar

from sluice_controller.catalog.backend import Backend
from sluice_controller.catalog.policy_cache import CacheContents
from sluice_core.errors import Conflict, Fenced
from sluice_core.messages.policies import GROUP, Entry
from sluice_core.messages.registry import (
    ALIAS,
    FILTER,
    METRIC,
    METRIC_ENTRY,
    TARGET,
    TERM,
    Alias,
    Group,
    Term,
    group_kinds,
)
from sluice_core.messages.uploads import METRIC_CODE, Upload, upload_key
from sluice_core.store.change_stream import CONFIGURATION
from sluice_core.store.commit import scope_version
from sluice_core.store.operation import Operation
from sluice_dsl.compile import Compiled, PolicyConflict
from sluice_dsl.syntax.ast import Condition, Sentence, clauses

#: The maximum number of policies in an error.
_NAMED: Final = 5


class InUse(Conflict):
    """Policies use the word; another attempt would fail as well."""


def used_words(sentence: Sentence) -> Iterator[tuple[str, str]]:
    """Kind and name of each alias and term that a sentence may use; also of words that are not registered."""
    name = sentence.target.name
    if name is not None:
        yield from ((ALIAS, name.text), (ALIAS, name.text.partition("/")[0]))
    yield from ((ALIAS, action.keyword.text) for action in sentence.actions)
    yield from ((ALIAS, subject) for subject in _subjects(sentence.condition))
    yield from ((TERM, value.upper()) for value in _values(sentence.condition))


def refuse_used(what: str, users: Iterable[str], force: bool) -> None:
    """Refuse to remove ``what`` while policies use it, unless ``force`` is given.

    :raises InUse: naming some of the policies
    """
    used_by = [] if force else list(users)
    if used_by:
        verb = "uses" if len(used_by) == 1 else "use"
        raise InUse(f"{what} is in use: policies {name_some(used_by)} {verb} it; delete them first, or use `force`")


def name_some(names: Sequence[str], most: int = _NAMED) -> str:
    """The first ``most`` of the names, and the number of the others."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(f"`{one}`" for one in names[:most]) + more


def policies_about_group(contents: CacheContents, group: Group) -> Iterator[str]:
    """Policies about the group."""
    wanted = (GROUP, group.name, group.level)
    targets = ((one.policy.id, one.plan.target) for one in contents.ordered)
    return (policy for policy, target in targets if (target.select, target.name, target.level) == wanted)


def policies_of_origin(contents: CacheContents, origin: str) -> Iterator[str]:
    """Policies written by a stereotype or a deployment."""
    return (one.policy.id for one in contents.ordered if one.policy.origin == origin)


def policies_setting(contents: CacheContents, keyword: str) -> Iterator[str]:
    """Policies that set or delete the filter."""
    return (one.policy.id for one in contents.ordered if any(each.keyword == keyword for each in one.plan.actions))


def policies_watching(contents: CacheContents, name: str) -> Iterator[str]:
    """Policies that watch the metric."""
    return (one.policy.id for one in contents.ordered if name in one.plan.metrics)


def policies_using_term(contents: CacheContents, term: Term) -> Iterator[str]:
    """Policies whose sentence uses the term."""
    return _writing(contents, term.name, lambda sentence: term.name in map(str.upper, _values(sentence.condition)))


def policies_using_alias(contents: CacheContents, alias: Alias) -> Iterator[str]:
    """Policies that use the alias: as a filter, as a metric, or as their target or a path above it."""
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
    """Parsing a sentence takes a millisecond, so only the sentences that contain the word as text are parsed."""
    plain = word.isascii() and word.isprintable() and not set(word) & set("\"'\\")
    for one in contents.ordered:
        if (not plain or word.casefold() in one.policy.text.casefold()) and any(map(uses, one.sentences())):
            yield one.policy.id


def _values(condition: Condition | None) -> Iterator[str]:
    return (one.value.text for one in clauses(condition) if one.subject.text == "OBJECT_TYPE")


def _subjects(condition: Condition | None) -> Iterator[str]:
    return (one.subject.text for one in clauses(condition))


#: Attempts of a change that loses races against others.
ATTEMPTS: Final = 5

T = TypeVar("T")


class _Superseded(Conflict):
    """A concurrent change came first; another attempt would undo it."""


#: Conflicts that another attempt would meet again.
_FINAL: Final = (InUse, PolicyConflict, Fenced, _Superseded)


def referenced_versions(backend: Backend, contents: CacheContents, compiled: Iterable[Compiled]) -> dict[str, int]:
    """The versions of everything that ``compiled`` depends on, as in ``contents``.

    These are the registered words that it uses, and the scopes of static policies.

    :raises Conflict: when one of them has changed since
    """
    sentences = list(compiled)
    words = sorted({name for one in sentences for name in _names(one) if _meaning(contents, name) is not None})
    scopes = {scope_version(one.plan.target) for one in sentences if not one.plan.dynamic}
    if not words and not scopes:
        return {}
    versions = backend.store.run(_versions(backend.store.keys.versions, [*words, *sorted(scopes)]))
    # Versions are read before the documents that they guard.
    now = backend.policy_cache.contents()
    for name in words:
        if _meaning(now, name) != _meaning(contents, name):
            raise Conflict(f"`{name}` changed while a sentence was compiled that uses it")
    if now.head != contents.head and scopes & _written_scopes(contents, now):
        raise Conflict("another policy for the same target was written while a sentence was compiled")
    return versions


def _written_scopes(old: CacheContents, new: CacheContents) -> set[str]:
    """Names of versions of the scopes of static policies that are in ``new`` and not in ``old``."""
    written = (one.plan for name, one in new.policies.items() if one is not old.policies.get(name))
    return {scope_version(plan.target) for plan in written if not plan.dynamic}


def unless_used(backend: Backend, thing: str, change: Callable[[dict[str, int]], T], force: bool = False) -> T:
    """Call ``change`` with the versions to expect in its commit; it raises :class:`InUse` if it finds users.

    It is called again when the configuration changed meanwhile.  With ``force`` only ``thing`` itself is guarded.

    :param thing: the name of the version of the changed object
    :raises Conflict: when the object was changed meanwhile
    """
    first = backend.store.version(thing)

    def once() -> T:
        seen = {} if force else {CONFIGURATION: backend.store.version(CONFIGURATION)}
        if backend.store.version(thing) != first:
            raise _Superseded(f"`{thing}` was changed by another request meanwhile")
        return change(seen)

    return retry_conflicts(once)


def retry_conflicts(change: Callable[[], T], exhausted: str = "") -> T:
    """Call ``change`` again while it loses a race; raise at once a conflict that another attempt would meet again.

    :param exhausted: message of the conflict after the last attempt, instead of its own
    """
    lost: Conflict | None = None
    for _ in range(ATTEMPTS):
        try:
            return change()
        except _FINAL:
            raise
        except Conflict as error:
            lost = error
    raise Conflict(exhausted or str(lost)) from lost


def _names(compiled: Compiled) -> Iterator[str]:
    """Names of versions of all registered words that a policy may use; not all of them exist."""
    target = compiled.plan.target
    if target.select == GROUP:
        yield f"entry/{group_kinds(target.level).group}/{target.name}"
    for action in compiled.plan.actions:
        yield f"upload/{action.keyword}"
    for metric in compiled.plan.metrics:
        yield f"entry/{METRIC_ENTRY}/{metric}"
        yield f"upload/{upload_key(METRIC_CODE, metric)}"
    yield from (f"entry/{kind}/{word}" for kind, word in used_words(compiled.sentence))


def _meaning(contents: CacheContents, name: str) -> Entry | Upload | None:
    sort, _, key = name.partition("/")
    return contents.entries.get(key) if sort == "entry" else contents.uploads.get(key)


def _versions(key: str, names: list[str]) -> Operation[dict[str, int]]:
    def parse(replies: list[list[bytes | None]]) -> dict[str, int]:
        return {name: int(found or 0) for name, found in zip(names, replies[0], strict=True)}

    return Operation((("HMGET", key, *names),), parse)
