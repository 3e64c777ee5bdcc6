"""The whole configuration, present, past or wanted: policies, registry and uploaded code.

Import and rollback are the same operation: compute the difference between the present and the wanted configuration
and write it as one atomic change.  The commit expects the configuration version that was read, so a concurrent change
is never lost: the difference is computed again, or the request refused.  Equal parts are not touched; the actor of
a replaced policy starts again.  Revision numbers of code only grow: a number is never used twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from sluice_controller.catalog.backend import Backend
from sluice_controller.code.controllers import policy_of_controller
from sluice_controller.errors import check_version
from sluice_controller.policies.services import static_puts
from sluice_core.errors import Conflict, NotFound
from sluice_core.messages.base import Message
from sluice_core.messages.policies import Entry, Policy
from sluice_core.messages.uploads import CODE_KINDS, CONTROLLER_CODE, REVISIONS, Upload
from sluice_core.store.change_stream import CONFIGURATION, Documents, replaced_since
from sluice_core.store.records import Draft
from sluice_dsl.plan import Plan

CREATE: Final = "create"
REPLACE: Final = "replace"
DELETE: Final = "delete"
HOWS: Final = (CREATE, REPLACE, DELETE)
POLICY: Final = "policy"
ENTRY: Final = "entry"
WHATS: Final = (POLICY, *CODE_KINDS, ENTRY)
_TRIES: Final = 3


@dataclass(frozen=True, slots=True)
class Configuration:
    """All policies by id, uploads by key and registry entries by ``kind/name``."""

    policies: Mapping[str, Policy] = field(default_factory=dict)
    uploads: Mapping[str, Upload] = field(default_factory=dict)
    entries: Mapping[str, Entry] = field(default_factory=dict)

    @classmethod
    def now(cls, backend: Backend) -> Configuration:
        """The present configuration."""
        contents = backend.policy_cache.contents()
        policies = {name: one.policy for name, one in contents.policies.items()}
        return cls(policies, contents.uploads, contents.entries)

    def with_documents(self, documents: Documents) -> Configuration:
        """This configuration, with ``documents`` instead of its own.

        :raises DecodeError: when a document is not valid
        """
        parts: dict[str, dict[str, Any]] = {part: dict(getattr(self, part)) for part, _ in _PARTS.values()}
        for name, raw in documents.items():
            sort, _, key = name.partition("/")
            part, message = _PARTS[sort]
            if raw:
                parts[part][key] = message.decode(raw)
            else:
                parts[part].pop(key, None)
        return Configuration(**parts)

    def only(self, documents: Documents) -> Configuration:
        """The part of this configuration that ``documents`` has."""
        parts: dict[str, dict[str, Any]] = {
            part: {key: one for key, one in getattr(self, part).items() if f"{sort}/{key}" in documents}
            for sort, (part, _) in _PARTS.items()
        }
        return Configuration(**parts)


#: Prefix of a document's name → its part of the configuration, and its message.
_PARTS: Final[Mapping[str, tuple[str, type[Message]]]] = {
    POLICY: ("policies", Policy),
    "upload": ("uploads", Upload),
    ENTRY: ("entries", Entry),
}


@dataclass(frozen=True, slots=True)
class Difference:
    """One document before and after a change; None where it does not exist."""

    what: str
    name: str
    old: Message | None
    new: Message | None

    @property
    def how(self) -> str:
        """One of :data:`HOWS`."""
        return CREATE if self.old is None else DELETE if self.new is None else REPLACE


def differences(old: Configuration, new: Configuration) -> list[Difference]:
    """The changes that turn ``old`` into ``new``."""
    return [
        *_different(POLICY, old.policies, new.policies),
        *map(_of_code, _different("", old.uploads, new.uploads)),
        *_different(ENTRY, old.entries, new.entries),
    ]


def _different(what: str, old: Mapping[str, Message], new: Mapping[str, Message]) -> Iterator[Difference]:
    for name in (*old, *(name for name in new if name not in old)):
        if old.get(name) != new.get(name):
            yield Difference(what, name, old.get(name), new.get(name))


def _of_code(difference: Difference) -> Difference:
    """A difference of two uploads, under the kind and the name of the code."""
    upload = difference.new or difference.old
    assert isinstance(upload, Upload)
    return replace(difference, what=upload.kind, name=upload.keyword)


def make_draft(changes: list[Difference], by: str, expect: Mapping[str, int]) -> Draft:
    """One atomic change that makes all of ``changes``."""
    new = [one.new for one in changes]
    policies = tuple(one for one in new if isinstance(one, Policy))
    gone = [one.old for one in changes if one.new is None]
    replaced = tuple(one.name for one in changes if one.what == POLICY and one.old is not None)
    ended = tuple(policy_of_controller(one.name) for one in changes if one.what == CONTROLLER_CODE and _ends(one))
    return Draft(
        by,
        puts=static_puts((one, Plan.from_data(one.plan)) for one in policies),
        policies=policies,
        policy_drops=(*replaced, *ended),
        uploads=tuple(one for one in new if isinstance(one, Upload)),
        upload_drops=tuple(one.key for one in gone if isinstance(one, Upload)),
        entries=tuple(one for one in new if isinstance(one, Entry)),
        entry_drops=tuple(one.key for one in gone if isinstance(one, Entry)),
        expect=expect,
    )


def _ends(one: Difference) -> bool:
    """Whether a controller is stopped or deleted, so that its assignments are removed."""
    return not (isinstance(one.new, Upload) and one.new.running)


@dataclass(frozen=True, slots=True)
class ConfigurationChange:
    """The differences that were or would be written; the version and the epoch of the configuration after them."""

    changes: list[Difference]
    epoch: int
    version: int


Transformation = Callable[[Configuration], Configuration]
#: Called with the differences before anything is written; raises to refuse them.
Authorize = Callable[[list[Difference]], None]


def allow_all(changes: list[Difference]) -> None:
    """Refuse nothing."""


def replace_configuration(
    backend: Backend,
    wanted: Transformation,
    by: str,
    plan: bool = False,
    force: bool = False,
    expected: int | None = None,
    allow: Authorize = allow_all,
) -> ConfigurationChange:
    """Replace the present configuration by the result of ``wanted``; for a ``plan`` only return the differences.

    :param expected: the version that the configuration must be at
    :raises PreconditionFailed: when it is at another one
    :raises Conflict: when objects would become unreadable and ``force`` is not given
    """
    for _ in range(_TRIES):
        version = backend.store.version(CONFIGURATION)
        check_version("the configuration", version, expected)
        epoch = backend.store.head().epoch
        old = Configuration.now(backend)
        changes = differences(old, continue_revisions(old, keep_readable(old, wanted(old), force)))
        allow(changes)
        if plan or not changes:
            return ConfigurationChange(changes, epoch, version)
        try:
            done = backend.store.commit(make_draft(changes, by, {CONFIGURATION: version}))
        except Conflict:
            continue
        return ConfigurationChange(changes, done.epoch, done.version)
    raise Conflict("the configuration changes faster than it can be replaced")


def keep_readable(old: Configuration, new: Configuration, force: bool) -> Configuration:
    """``new``, whose filters have every revision of code that stored objects may need.

    :raises Conflict: when it lacks a filter that objects may need
    """
    uploads = dict(new.uploads)
    for keyword, was in old.uploads.items():
        if not (was.reverse and was.sha256):
            continue
        now = uploads.get(keyword)
        if now is None:
            if not force:
                raise Conflict(
                    f"objects stored through filter `{keyword}` would become unreadable, `force=true` allows it"
                )
            continue
        if not now.reverse and not force:
            raise Conflict(f"objects may be stored through filter `{keyword}`, so it must stay reversible")
        known = (*now.earlier, was.sha256, *was.earlier)
        uploads[keyword] = replace(now, earlier=tuple(one for one in dict.fromkeys(known) if one != now.sha256))
    return replace(new, uploads=uploads)


def continue_revisions(old: Configuration, new: Configuration) -> Configuration:
    """``new``, in which code that differs from the present one is a newer revision, and equal code the same one."""
    uploads = {
        key: _counted_on(old.uploads[key], now) if key in old.uploads else now for key, now in new.uploads.items()
    }
    return replace(new, uploads=uploads)


def _counted_on(was: Upload, now: Upload) -> Upload:
    if now.revision > was.revision or not was.sha256:
        return now
    if (was.sha256, was.main, was.dependencies) == (now.sha256, now.main, now.dependencies):
        return replace(now, revision=was.revision, revisions=was.revisions)
    return replace(now, revision=was.revision + 1, revisions=(was.current, *was.revisions)[:REVISIONS])


def configuration_at(backend: Backend, epoch: int) -> Transformation:
    """The configuration after the change ``epoch``.

    :raises NotFound: when there was no such change yet
    :raises Conflict: when a document replaced since then is not kept any more
    """

    def wanted(now: Configuration) -> Configuration:
        past = backend.store.run(replaced_since(backend.store.keys, epoch + 1))
        if epoch > past.head.epoch:
            raise NotFound(f"there is no change {epoch}, the newest is {past.head.epoch}")
        if epoch < past.since:
            raise Conflict(f"the configuration after change {epoch} is not kept any more, the earliest is {past.since}")
        return now.with_documents(past.replaced())

    return wanted
