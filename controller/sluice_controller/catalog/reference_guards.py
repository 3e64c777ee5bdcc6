"""Optimistic locking between sentences, the registered words that they use, and other sentences for the same target.

The race: one request creates a policy about a group while another deletes the group, because no policy uses it yet.
Both checks pass, and the policy that remains means nothing.  Therefore

* a request that writes a policy expects each registered word in it at the version that it was compiled with
  (:func:`referenced_versions`);
* a request that writes a static policy also expects that since then nobody wrote another for the same target, which
  it may contradict;
* a request that deletes an unused word expects the version of the whole configuration that it searched for users
  (:func:`unless_used`).

The store refuses the commit that comes second; its request then starts again (:func:`retry_conflicts`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

from sluice_controller.catalog import usage
from sluice_controller.catalog.backend import Backend
from sluice_controller.catalog.policy_cache import CacheContents
from sluice_core.errors import Conflict, Fenced
from sluice_core.messages.policies import GROUP, Entry
from sluice_core.messages.registry import METRIC_ENTRY, group_kinds
from sluice_core.messages.uploads import METRIC_CODE, Upload, upload_key
from sluice_core.store.commit import scope_version
from sluice_core.store.operation import Operation
from sluice_core.store.undo_log import CONFIGURATION
from sluice_dsl.compile import Compiled, PolicyConflict

#: How often a change is tried again that lost a race against another one.
ATTEMPTS: Final = 5

T = TypeVar("T")


class _Superseded(Conflict):
    """A concurrent change came first; another attempt would undo it."""


#: Conflicts that stay when the change is tried again.
_FINAL: Final = (usage.InUse, PolicyConflict, Fenced, _Superseded)


def referenced_versions(backend: Backend, contents: CacheContents, compiled: Iterable[Compiled]) -> dict[str, int]:
    """What ``compiled`` was compiled against, with the versions at which it is as in ``contents``.

    These are the registered words that it uses, and the scopes of static policies.

    :raises Conflict: when one of them has changed since
    """
    sentences = list(compiled)
    words = sorted({name for one in sentences for name in _names(one) if _meaning(contents, name) is not None})
    scopes = {scope_version(one.plan.target) for one in sentences if not one.plan.dynamic}
    if not words and not scopes:
        return {}
    versions = backend.store.run(_versions(backend.store.keys.versions, [*words, *sorted(scopes)]))
    # versions come before what they guard
    now = backend.policy_cache.contents()
    for name in words:
        if _meaning(now, name) != _meaning(contents, name):
            raise Conflict(f"`{name}` changed while a sentence was compiled that uses it")
    if now.head != contents.head and scopes & _written_scopes(contents, now):
        raise Conflict("another policy for the same target was written while a sentence was compiled")
    return versions


def _written_scopes(old: CacheContents, new: CacheContents) -> set[str]:
    """Names of versions of the scopes of static policies that are in ``new`` and were not in ``old``."""
    written = (one.plan for name, one in new.policies.items() if one is not old.policies.get(name))
    return {scope_version(plan.target) for plan in written if not plan.dynamic}


def unless_used(backend: Backend, thing: str, change: Callable[[dict[str, int]], T], force: bool = False) -> T:
    """Call ``change`` with the versions to expect in its commit; it raises :class:`usage.InUse` when it finds users.

    It is called again when the configuration changed meanwhile.  With ``force`` only ``thing`` itself is guarded.

    :param thing: the name of the version of what ``change`` changes
    :raises Conflict: when that was changed meanwhile
    """
    first = backend.store.version(thing)

    def once() -> T:
        seen = {} if force else {CONFIGURATION: backend.store.version(CONFIGURATION)}
        if backend.store.version(thing) != first:
            raise _Superseded(f"`{thing}` was changed by somebody else just now")
        return change(seen)

    return retry_conflicts(once)


def retry_conflicts(change: Callable[[], T], exhausted: str = "") -> T:
    """Call ``change`` again while it loses a race; a conflict that would remain is raised at once.

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


def _names(one: Compiled) -> Iterator[str]:
    """Names of versions of everything registered that a policy may use; not all of them exist."""
    target = one.plan.target
    if target.select == GROUP:
        yield f"entry/{group_kinds(target.level).group}/{target.name}"
    for action in one.plan.actions:
        yield f"upload/{action.keyword}"
    for metric in one.plan.metrics:
        yield f"entry/{METRIC_ENTRY}/{metric}"
        yield f"upload/{upload_key(METRIC_CODE, metric)}"
    yield from (f"entry/{kind}/{word}" for kind, word in usage.used_words(one.sentence))


def _meaning(contents: CacheContents, name: str) -> Entry | Upload | None:
    sort, _, key = name.partition("/")
    return contents.entries.get(key) if sort == "entry" else contents.uploads.get(key)


def _versions(key: str, names: list[str]) -> Operation[dict[str, int]]:
    def parse(replies: list[list[bytes | None]]) -> dict[str, int]:
        return {name: int(found or 0) for name, found in zip(names, replies[0], strict=True)}

    return Operation((("HMGET", key, *names),), parse)
