"""What keeps a sentence and the words that it uses from passing each other by.

Somebody makes a policy about a group; at the same instant somebody deletes the group, because no policy is about
it.  Both looked, both were right, and what is left is a policy that means nothing.  So

* whoever writes a policy expects each registered word in it at the version that it was compiled with
  (:func:`referenced_versions`);
* whoever takes a word away because nobody uses it expects the configuration as a whole to be the one that was
  searched for users (:func:`unless_used`).

Either one is refused by the store when the other came first, and looks again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

from sluice_controller.catalog import usage
from sluice_controller.catalog.backend import Backend
from sluice_controller.catalog.policy_cache import CacheContents
from sluice_core.errors import Conflict, Fenced
from sluice_core.messages.policies import CONTAINER, GROUP, Entry
from sluice_core.messages.registry import CONTAINER_GROUP, METRIC_ENTRY
from sluice_core.messages.registry import GROUP as GROUP_ENTRY
from sluice_core.messages.uploads import METRIC_CODE, Upload, upload_key
from sluice_core.store.operation import Operation
from sluice_core.store.undo_log import CONFIGURATION
from sluice_dsl.compile import Compiled, PolicyConflict

#: How often a change is tried again that lost a race against another one.
ATTEMPTS: Final = 5

T = TypeVar("T")


class _Superseded(Conflict):
    """Somebody else was faster; trying again would undo what he did."""


#: Conflicts that stay when the change is tried again.
_FINAL: Final = (usage.InUse, PolicyConflict, Fenced, _Superseded)


def referenced_versions(backend: Backend, contents: CacheContents, compiled: Iterable[Compiled]) -> dict[str, int]:
    """The words that ``compiled`` uses, with versions at which they mean what they meant in ``contents``.

    :raises Conflict: when one of them means something else by now
    """
    names = sorted({name for one in compiled for name in _names(one) if _meaning(contents, name) is not None})
    if not names:
        return {}
    versions = backend.store.run(_versions(backend.store.keys.versions, names))
    # versions come before what they guard
    now = backend.policy_cache.contents()
    for name in names:
        if _meaning(now, name) != _meaning(contents, name):
            raise Conflict(f"`{name}` changed while a sentence was compiled that uses it")
    return versions


def unless_used(backend: Backend, thing: str, change: Callable[[dict[str, int]], T], force: bool = False) -> T:
    """Do ``change``, which refuses (:class:`usage.InUse`) when it finds users, and commits with what it is given.

    It is done again when anything else was configured meanwhile; with ``force`` it does not matter who uses it.

    :param thing: what it is about, by its name among the versions
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
    """``change``, again when it lost a race; what is wrong with it stays wrong and is raised at once.

    :param exhausted: what is raised, instead of the last conflict, when it loses every time
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
    """Everything registered that a policy may use, by its name among the versions; more than there is."""
    target = one.plan.target
    if target.select == GROUP:
        yield f"entry/{CONTAINER_GROUP if target.level == CONTAINER else GROUP_ENTRY}/{target.name}"
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
