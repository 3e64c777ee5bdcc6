"""All policies, the registry and the states of policies, cached in each worker process, refreshed before each use.

The compiler compares a new policy with every other one, and lists show many.  Decoding all policies for each request
would take a second at 100,000 policies.  The cache decodes them once and then follows the change stream: one round
trip when nothing changed.  Its contents are immutable; a refresh replaces them.

* A new history, a smaller epoch or a trimmed stream makes the cache read everything again.  So does a Redis that
  lost changes and numbered others like them (``sluice_core.store.history_check``); an idle cache checks for that once
  a second.
* ``head`` is read before the documents.  A change between the two is applied a second time, which does no harm.

Of each policy's state, which its actor writes, only the status is kept, for filters and counts: a state contains all
data from which an actor continues, and is large.  Every commit increments a number in Redis, and each state has the
number of its commit.  So one read shows that nothing changed, and otherwise only states with another number are read.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import attrgetter
from typing import Any, Final

from sluice_controller.catalog.vocabulary_index import VocabularyIndex
from sluice_core.errors import DecodeError
from sluice_core.messages.policies import NAME, Change, Entry, Policy, PolicyState, policy_of_assignment
from sluice_core.messages.registry import is_member
from sluice_core.messages.uploads import Upload
from sluice_core.store.fencing import chunks
from sluice_core.store.history_check import HistoryCheck, change_digest
from sluice_core.store.operation import Operation, decoded
from sluice_core.store.records import Gap, Head
from sluice_core.store.store import Store
from sluice_dsl.compile import ExistingPolicy
from sluice_dsl.diagnostics import Reporter
from sluice_dsl.plan import Plan
from sluice_dsl.syntax.ast import Sentence
from sluice_dsl.syntax.grammar import parse

log = logging.getLogger(__name__)

#: The states of policies.
ACTIVE: Final = "active"
WAITING: Final = "waiting"
FAILED: Final = "failed"
DISABLED: Final = "disabled"
STATES: Final = (ACTIVE, WAITING, FAILED, DISABLED)

#: Seconds after which an idle cache checks that the stream is still the same.
_LOOK_AGAIN: Final = 1.0


@dataclass(frozen=True)
class CachedPolicy:
    """A policy, its version and its decoded plan."""

    policy: Policy
    version: int
    plan: Plan

    @cached_property
    def position(self) -> tuple[int, str]:
        """Its position in lists: by age, then by id."""
        return self.policy.created, self.policy.id

    @cached_property
    def existing(self) -> ExistingPolicy:
        """The policy in the form for the compiler."""
        return ExistingPolicy(self.policy.id, self.plan)

    @cached_property
    def tenants(self) -> tuple[str, str] | tuple[()]:
        """The account of its target, and its name in the sentence; empty for a group, ALL or the cluster."""
        target = self.plan.target
        if target.select != NAME:
            return ()
        return target.name.partition("/")[0], target.label.partition("/")[0]

    @cached_property
    def searchable(self) -> str:
        """The texts that a search covers, in lower case: its sentence, also as sent, and the account of its target."""
        return "\n".join({self.policy.text, self.policy.source, self.plan.target.name}).casefold()

    def sentences(self) -> list[Sentence]:
        """Its canonical text, parsed; parsing takes a millisecond, and the trees of all would fill the memory."""
        return parse(self.policy.text, Reporter(self.policy.text))


class PolicyLists:
    """All policies by age: sorted at the first use; a newer policy is appended, not sorted in."""

    def __init__(self, policies: Mapping[str, CachedPolicy]) -> None:
        self._policies = policies

    @cached_property
    def ordered(self) -> tuple[CachedPolicy, ...]:
        """All policies, oldest first."""
        return tuple(sorted(self._policies.values(), key=attrgetter("position")))

    @cached_property
    def existing(self) -> tuple[ExistingPolicy, ...]:
        """All policies in the form for the compiler."""
        return tuple(map(attrgetter("existing"), self.ordered))

    def following(self, policies: Mapping[str, CachedPolicy], changed: Collection[str]) -> PolicyLists:
        """The lists of ``policies``, which differ from these only in the policies ``changed``."""
        made = PolicyLists(policies)
        fresh = (policies[name] for name in changed if name in policies and name not in self._policies)
        added = sorted(fresh, key=attrgetter("position"))
        sorted_before: tuple[CachedPolicy, ...] = vars(self).get("ordered", ())
        if sorted_before and len(added) == len(changed) and added[0].position >= sorted_before[-1].position:
            made.ordered = (*sorted_before, *added)
            if "existing" in vars(self):
                made.existing = (*self.existing, *(one.existing for one in added))
        return made


class EntryVocabulary:
    """The vocabulary of the registry's entries, made at its first use."""

    def __init__(self, entries: Mapping[str, Entry]) -> None:
        self._entries = entries

    @cached_property
    def index(self) -> VocabularyIndex:
        """The words that the entries add to the vocabulary."""
        return VocabularyIndex.from_entries(self._entries)


@dataclass(frozen=True)
class CacheContents:
    """All documents at one moment; ``epochs`` is the last change of each policy.

    ``upload_epochs`` is the last change of the uploads that changed since this process started; others are not known.
    ``lists`` and ``words`` are reused while their inputs do not change.
    """

    head: Head
    policies: Mapping[str, CachedPolicy]
    epochs: Mapping[str, int]
    uploads: Mapping[str, Upload]
    entries: Mapping[str, Entry]
    lists: PolicyLists
    words: EntryVocabulary
    upload_epochs: dict[str, int] = field(default_factory=dict)

    @property
    def vocabulary(self) -> VocabularyIndex:
        """The words that the entries add to the vocabulary."""
        return self.words.index

    @property
    def ordered(self) -> tuple[CachedPolicy, ...]:
        """All policies, oldest first."""
        return self.lists.ordered

    @property
    def existing(self) -> tuple[ExistingPolicy, ...]:
        """All policies in the form for the compiler."""
        return self.lists.existing


class PolicyCache:
    """Safe to share between threads, not across a fork; does not connect when it is created."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._contents = CacheContents(Head(), {}, {}, {}, {}, PolicyLists({}), EntryVocabulary({}))
        self._history_check = HistoryCheck()
        self._looked = 0.0

    def contents(self) -> CacheContents:
        """The current contents of Redis.

        :raises PeerError: when Redis is unreachable
        """
        with self._lock:
            self._contents = self._refreshed(self._contents, self._store.head())
            return self._contents

    def _refreshed(self, old: CacheContents, head: Head) -> CacheContents:
        if head.history != old.head.history or head.epoch < old.head.epoch or self._strayed(old.head, head):
            return self._read(head)
        while old.head.epoch < head.epoch:
            changes = self._store.changes_after(old.head.epoch, digest=self._history_check.digest(old.head))
            if isinstance(changes, Gap) or not changes or any(one.history != head.history for one in changes):
                return self._read(head)
            old = self._applied(old, changes)
            self._history_check.follow(changes[-1])
        return old

    def _strayed(self, position: Head, head: Head) -> bool:
        """Whether the stream has another change at ``position`` than the one that was applied."""
        now = time.monotonic()
        if not position.history or (head == position and now - self._looked < _LOOK_AGAIN):
            return False
        self._looked = now
        return self._history_check.broken(position, self._store.run(change_digest(self._store.keys, position.epoch)))

    def _read(self, head: Head) -> CacheContents:
        self._history_check.restart(head, self._store.run(change_digest(self._store.keys, head.epoch)))
        epochs = self._store.epochs()
        cached = (decode_policy(policy, version) for policy, version in self._store.policies())
        policies = {one.policy.id: one for one in cached if one}
        entries = self._store.entries()
        return CacheContents(
            head, policies, epochs, self._store.uploads(), entries, PolicyLists(policies), EntryVocabulary(entries)
        )

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
                old = replace(old, uploads=self._store.uploads(), upload_epochs=since)
        head = Head(old.head.history, changes[-1].epoch)
        if not named:
            return replace(old, head=head, epochs=epochs)
        policies = dict(old.policies)
        for name in named:
            found = self._store.policy(name)
            cached = decode_policy(*found) if found else None
            if cached:
                policies[name] = cached
            else:
                policies.pop(name, None)
                epochs.pop(name, None)
        return replace(old, head=head, policies=policies, epochs=epochs, lists=old.lists.following(policies, named))


def _with_entries(old: CacheContents, changes: list[Change]) -> CacheContents:
    if not any(change.entries or change.entry_drops for change in changes):
        return old
    entries = dict(old.entries)
    for change in changes:
        for name in change.entry_drops:
            entries.pop(name, None)
        entries.update((one.key, one) for one in change.entries)
    touched = {name for change in changes for name in (*change.entry_drops, *(one.key for one in change.entries))}
    # A change of a group's members does not change the words.
    same = all(is_member(name) or old.entries.get(name) == entries.get(name) for name in touched)
    return replace(old, entries=entries, words=old.words if same else EntryVocabulary(entries))


def decode_policy(policy: Policy, version: int) -> CachedPolicy | None:
    """The policy with its plan; None, with an error in the log, if the plan cannot be read."""
    try:
        return CachedPolicy(policy, version, Plan.from_data(policy.plan))
    except DecodeError as error:
        log.error("skipped policy `%s`: %s", policy.id, error)
        return None


class PolicyStatuses:
    """The statuses of all policies; safe to share between threads, does not connect when it is created."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._commit: tuple[str, int] = ("", -1)
        self._policies: Mapping[str, CachedPolicy] = {}
        self._versions: dict[str, int] = {}
        self._written: dict[str, str] = {}
        self._statuses: dict[str, str] = {}

    def current(self, contents: CacheContents) -> Mapping[str, str]:
        """Policy id → one of :data:`STATES`, of all policies in ``contents``.

        :raises PeerError: when Redis is unreachable
        """
        with self._lock:
            commit = (contents.head.history, self._store.version("*"))
            if commit != self._commit or contents.policies is not self._policies:
                if commit[0] != self._commit[0]:
                    self._versions, self._written = {}, {}
                self._refresh(contents.policies)
                self._commit, self._policies = commit, contents.policies
            return self._statuses

    def _refresh(self, policies: Mapping[str, CachedPolicy]) -> None:
        """Read the states that were written since the last read.

        The numbers are read before the states: a state newer than its number is read once more, never missed.
        """
        versions = state_versions(self._store, [name for name, one in policies.items() if one.policy.dynamic])
        changed = [name for name, version in versions.items() if version != self._versions.get(name)]
        written = {name: status for name, status in self._written.items() if name in versions}
        for some in chunks(changed):
            written |= {name: state.status for name, state in states_of(self._store, some).items()}
        self._versions, self._written = versions, written
        self._statuses = {name: policy_status(one, written.get(name)) for name, one in policies.items()}


def policy_status(cached: CachedPolicy, written: str | None) -> str:
    """A static policy is active; a dynamic one whose actor has not written a state yet is waiting."""
    if not cached.policy.enabled:
        return DISABLED
    if not cached.policy.dynamic:
        return ACTIVE
    return written or WAITING


def state_versions(store: Store, policies: Sequence[str]) -> dict[str, int]:
    """Policy id → the number of the commit that wrote its state, for some policies; those without one are left out.

    :raises PeerError: when Redis is unreachable
    """
    if not policies:
        return {}
    fields = [f"state/{name}" for name in policies]

    def parse(replies: list[Any]) -> dict[str, int]:
        return {name: int(raw) for name, raw in zip(policies, replies[0], strict=True) if raw is not None}

    return store.run(Operation((("HMGET", store.keys.versions, *fields),), parse))


def states_of(store: Store, policies: Sequence[str]) -> dict[str, PolicyState]:
    """Policy id → the state that its actor wrote, for the given policies; those without one are left out.

    :raises PeerError: when Redis is unreachable
    """
    if not policies:
        return {}

    def parse(replies: list[Any]) -> dict[str, PolicyState]:
        found = zip(policies, replies[0], strict=True)
        read = ((name, decoded(PolicyState, name, raw)) for name, raw in found)
        return {name: one for name, one in read if one is not None}

    return store.run(Operation((("HMGET", store.keys.states, *policies),), parse))
