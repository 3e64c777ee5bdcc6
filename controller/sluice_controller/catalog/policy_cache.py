"""All policies and the registry, kept in this process and brought up to date before each use.

Creating a policy looks at every other one, and a list shows many; decoding them all for each
request would cost a second at 100,000.  So a cache reads them once and then follows the change
stream: one round trip when nothing happened.  What it hands out is immutable; refreshing replaces it.

* A new history, a smaller epoch or a trimmed stream: everything is read anew.  So it is when a Redis that lost
  changes has others under their numbers (``sluice_core.store.history_check``); a cache at rest looks for that once
  a second.
* ``head`` is read before the documents.  What changes in between is applied a second time, which
  does no harm.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import attrgetter
from typing import Final

from sluice_controller.catalog.vocabulary_index import VocabularyIndex
from sluice_core.errors import DecodeError
from sluice_core.messages.policies import Change, Entry, Policy, policy_of_assignment
from sluice_core.messages.registry import is_member
from sluice_core.messages.uploads import Upload
from sluice_core.store.history_check import HistoryCheck, change_time
from sluice_core.store.records import Gap, Head
from sluice_core.store.store import Store
from sluice_dsl.compile import ExistingPolicy
from sluice_dsl.diagnostics import Reporter
from sluice_dsl.plan import Plan
from sluice_dsl.syntax.ast import Sentence
from sluice_dsl.syntax.grammar import parse

log = logging.getLogger(__name__)

#: Seconds after which a cache at rest looks whether it is still the same stream.
_LOOK_AGAIN: Final = 1.0


@dataclass(frozen=True)
class CachedPolicy:
    """A policy, its version and its decoded plan."""

    policy: Policy
    version: int
    plan: Plan

    @cached_property
    def position(self) -> tuple[int, str]:
        """Where it stands in lists: by age, then by id."""
        return self.policy.created, self.policy.id

    @cached_property
    def existing(self) -> ExistingPolicy:
        """The same as the compiler wants it."""
        return ExistingPolicy(self.policy.id, self.plan)

    def sentences(self) -> list[Sentence]:
        """Its canonical text, parsed; parsing takes a millisecond, and trees of all policies would fill the memory."""
        return parse(self.policy.text, Reporter(self.policy.text))


@dataclass(frozen=True)
class CacheContents:
    """Everything at one moment; ``epochs`` says since when each policy stands as it does.

    ``upload_epochs`` says the same of uploads that changed since this process looks on; of others it is not known.
    """

    head: Head = field(default_factory=Head)
    policies: Mapping[str, CachedPolicy] = field(default_factory=dict)
    epochs: Mapping[str, int] = field(default_factory=dict)
    uploads: Mapping[str, Upload] = field(default_factory=dict)
    entries: Mapping[str, Entry] = field(default_factory=dict)
    upload_epochs: dict[str, int] = field(default_factory=dict)

    @cached_property
    def words(self) -> VocabularyIndex:
        """What the entries add to the vocabulary."""
        return VocabularyIndex.of(self.entries)

    @cached_property
    def ordered(self) -> tuple[CachedPolicy, ...]:
        """All policies, oldest first."""
        return tuple(sorted(self.policies.values(), key=attrgetter("position")))

    @cached_property
    def existing(self) -> tuple[ExistingPolicy, ...]:
        """The same as the compiler wants them."""
        return tuple(map(attrgetter("existing"), self.ordered))


class PolicyCache:
    """Safe to share between threads, not across a fork; does not connect when made."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._contents = CacheContents()
        self._history_check = HistoryCheck()
        self._looked = 0.0

    def contents(self) -> CacheContents:
        """What stands in Redis now.

        :raises PeerError: when Redis is away
        """
        with self._lock:
            self._contents = self._refreshed(self._contents, self._store.head())
            return self._contents

    def _refreshed(self, old: CacheContents, head: Head) -> CacheContents:
        if head.history != old.head.history or head.epoch < old.head.epoch or self._strayed(old.head, head):
            return self._read(head)
        while old.head.epoch < head.epoch:
            changes = self._store.changes_after(old.head.epoch)
            if isinstance(changes, Gap) or not changes or any(one.history != head.history for one in changes):
                return self._read(head)
            old = self._applied(old, changes)
            self._history_check.follow(changes[-1])
        return old

    def _strayed(self, position: Head, head: Head) -> bool:
        """Whether the stream has another change than the one that we stand at."""
        now = time.monotonic()
        if not position.history or (head == position and now - self._looked < _LOOK_AGAIN):
            return False
        self._looked = now
        return self._history_check.broken(position, self._store.run(change_time(self._store.keys, position.epoch)))

    def _read(self, head: Head) -> CacheContents:
        self._history_check.restart(head, self._store.run(change_time(self._store.keys, head.epoch)))
        epochs = self._store.epochs()
        cached = (decode_policy(policy, version) for policy, version in self._store.policies())
        policies = {one.policy.id: one for one in cached if one}
        return CacheContents(head, policies, epochs, self._store.uploads(), self._store.entries())

    def _applied(self, old: CacheContents, changes: list[Change]) -> CacheContents:
        epochs = dict(old.epochs)
        named: dict[str, None] = {}
        old = _with_entries(old, changes)
        for change in changes:
            touched = (*(one.policy for one in change.puts), *map(policy_of_assignment, change.drops), *change.policies)
            epochs.update(dict.fromkeys(touched, change.epoch))
            named |= dict.fromkeys(change.policies)
            if change.uploads or change.upload_drops:
                since = old.upload_epochs | {one.key: change.epoch for one in change.uploads}
                old = _carried(old, replace(old, uploads=self._store.uploads(), upload_epochs=since))
        head = Head(old.head.history, changes[-1].epoch)
        if not named:
            return _carried(old, replace(old, head=head, epochs=epochs))
        policies = dict(old.policies)
        for name in named:
            found = self._store.policy(name)
            cached = decode_policy(*found) if found else None
            if cached:
                policies[name] = cached
            else:
                policies.pop(name, None)
                epochs.pop(name, None)
        return _appended(old, replace(old, head=head, policies=policies, epochs=epochs), named)


def _appended(old: CacheContents, new: CacheContents, named: Collection[str]) -> CacheContents:
    """``new``, sorted already when all that changed are policies that came behind all others."""
    new = _carried(old, new)
    ordered = old.__dict__.get("ordered")
    fresh = (new.policies[name] for name in named if name in new.policies and name not in old.policies)
    added = sorted(fresh, key=attrgetter("position"))
    if not ordered or len(added) < len(named) or added[0].position < ordered[-1].position:
        return new
    new.__dict__["ordered"] = (*ordered, *added)
    if "existing" in old.__dict__:
        new.__dict__["existing"] = (*old.existing, *(one.existing for one in added))
    return new


def _with_entries(old: CacheContents, changes: list[Change]) -> CacheContents:
    if not any(change.entries or change.entry_drops for change in changes):
        return old
    entries = dict(old.entries)
    for change in changes:
        for name in change.entry_drops:
            entries.pop(name, None)
        entries.update((one.key, one) for one in change.entries)
    new = _carried(old, replace(old, entries=entries))
    touched = {name for change in changes for name in (*change.entry_drops, *(one.key for one in change.entries))}
    same = all(is_member(name) or old.entries.get(name) == entries.get(name) for name in touched)
    if same and "words" in old.__dict__:
        new.__dict__["words"] = old.words  # who is in a group is no word
    return new


#: What :class:`CacheContents` makes out of which of its fields.
_MADE_OF = {"ordered": "policies", "existing": "policies", "words": "entries"}


def _carried(old: CacheContents, new: CacheContents) -> CacheContents:
    """``new``, with what was made of fields that are still the same: what was sorted stays sorted."""
    for name, source in _MADE_OF.items():
        if name in old.__dict__ and getattr(old, source) is getattr(new, source):
            new.__dict__[name] = old.__dict__[name]
    return new


def decode_policy(policy: Policy, version: int) -> CachedPolicy | None:
    """The policy with its plan; None, and an error in the log, when the plan cannot be read."""
    try:
        return CachedPolicy(policy, version, Plan.from_data(policy.plan))
    except DecodeError as error:
        log.error("skipped policy `%s`: %s", policy.id, error)
        return None
