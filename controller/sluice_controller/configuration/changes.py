"""``/changes``: the log of changes from the change stream, newest first; rollback of one policy.

The stream and the undo log are trimmed independently (``sluice_core.store.change_stream``).  One page examines a
bounded number of stream entries, so a filtered page may be short or empty and still have a next page.

A policy is restored to its document in the undo log, and nothing else changes.  A deleted policy comes back
under its id and with its age, a created one is deleted.  Its sentence is compiled anew: words that it uses may have
been deleted, or another policy may contradict it.  A rollback is a change like any other, so a second one restores
what the first one rolled back.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from sluice_controller.catalog.backend import Backend
from sluice_controller.configuration.configuration import POLICY, Configuration, Difference, Transformation, differences
from sluice_controller.policies.bandwidth_checks import check_bandwidth
from sluice_controller.policies.services import KEPT, Authorize, allow_all
from sluice_core.errors import CallerError, NotFound
from sluice_core.messages.policies import Change, Policy, policy_of_assignment
from sluice_core.store.change_stream import changes_before, oldest_change, replaced_before, replaced_since
from sluice_core.store.records import Gap, Head
from sluice_dsl.compile import compile_text
from sluice_dsl.plan import Plan

#: The maximum number of entries that are examined for one page, or for a policy's last change in the undo log.
_LOOKED_AT: Final = 2000
#: The number of entries that are read at once.
_STEP: Final = 500
_UNDO_STEP: Final = 200
_BEYOND: Final = 10**15


@dataclass(frozen=True, slots=True)
class ChangePage:
    """Some changes; ``oldest`` is the first that is kept, None without any."""

    changes: tuple[Change, ...]
    next_marker: str
    head: Head
    oldest: Change | None

    @property
    def trimmed(self) -> bool:
        """Whether older changes were removed."""
        return self.oldest is not None and self.oldest.epoch > 1


@dataclass(frozen=True, slots=True)
class ChangeFilter:
    """Selects changes; ``since`` in Unix seconds."""

    policy: str = ""
    by: str = ""
    since: float = 0.0

    def matches(self, change: Change) -> bool:
        """Whether a change is selected."""
        return (not self.by or change.by == self.by) and (not self.policy or self.policy in touched_policies(change))


def touched_policies(change: Change) -> list[str]:
    """The policies in a change."""
    touched = (*change.policies, *(one.policy for one in change.puts), *map(policy_of_assignment, change.drops))
    return list(dict.fromkeys(touched))


def list_changes(backend: Backend, wanted: ChangeFilter, limit: int, marker: str = "") -> ChangePage:
    """Changes before ``marker``, newest first."""
    below = _read_marker(marker)
    matching: list[Change] = []
    head = backend.store.head()

    def page(next_marker: str) -> ChangePage:
        return ChangePage(tuple(matching), next_marker, head, _oldest(backend))

    for _ in range(_LOOKED_AT // _STEP):
        entries = backend.store.run(changes_before(backend.store.keys, below, _STEP))
        for change in entries:
            if change.at < wanted.since:
                return page("")
            if wanted.matches(change):
                if len(matching) == limit:
                    return page(str(below))
                matching.append(change)
            below = change.epoch
        if len(entries) < _STEP:
            return page("")
    return page(str(below))


def _read_marker(marker: str) -> int:
    if not marker:
        return _BEYOND
    if not (marker.isascii() and marker.isdigit() and len(marker) < 16 and int(marker) > 0):
        raise CallerError(f"`marker` is `{marker}`, expected `next_marker` of the page before")
    return int(marker)


def _oldest(backend: Backend) -> Change | None:
    epoch = backend.store.run(oldest_change(backend.store.keys))
    found = backend.store.changes_after(epoch - 1, count=1) if epoch else []
    return None if isinstance(found, Gap) or not found else found[0]


@dataclass(frozen=True, slots=True)
class ChangeDetails:
    """One change; ``differences`` is None if the replaced documents are not kept any more."""

    change: Change
    differences: list[Difference] | None


def find_change(backend: Backend, epoch: int) -> ChangeDetails:
    """One change, with the documents before and after it.

    :raises NotFound: when it does not exist, or was trimmed
    """
    newest = backend.store.run(changes_before(backend.store.keys, epoch + 1, 1))
    if not newest or newest[0].epoch != epoch:
        oldest = backend.store.run(oldest_change(backend.store.keys))
        more = f", the oldest that is kept is {oldest}" if oldest > epoch else ""
        raise NotFound(f"there is no change {epoch}{more}")
    now = Configuration.now(backend)
    past = backend.store.run(replaced_since(backend.store.keys, epoch))
    if epoch <= past.since:
        return ChangeDetails(newest[0], None)
    before = Configuration().with_documents(past.first)
    after = now.with_documents(past.later).only(past.first)
    return ChangeDetails(newest[0], differences(before, after))


def policy_before_last_change(backend: Backend, policy_id: str, allow: Authorize = allow_all) -> Transformation:
    """The present configuration, with one policy as it was before its last change.

    :param allow: called with the policy's present and former plans

    :raises NotFound: when no change of it is kept
    :raises PolicyErrors: when its sentence is not valid any more
    """

    def wanted(now: Configuration) -> Configuration:
        before = _before(backend, policy_id)
        policies = dict(now.policies)
        present = policies.pop(policy_id, None)
        allow([Plan.from_data(one.plan) for one in (present, before) if one is not None])
        if before is not None:
            policies[policy_id] = _compiled(backend, before)
        return replace(now, policies=policies)

    return wanted


def _before(backend: Backend, policy_id: str) -> Policy | None:
    """The policy before its last change; None if that created it."""
    name, place = f"{POLICY}/{policy_id}", ""
    for _ in range(_LOOKED_AT // _UNDO_STEP):
        found = backend.store.run(replaced_before(backend.store.keys, place, _UNDO_STEP))
        for _entry, documents in found:
            if name in documents:
                raw = documents[name]
                return Policy.decode(raw) if raw else None
        if len(found) < _UNDO_STEP:
            break
        place = found[-1][0]
    raise NotFound(f"no change of policy `{policy_id}` is kept that could be rolled back")


def _compiled(backend: Backend, policy: Policy) -> Policy:
    """``policy`` with its sentence compiled by the present vocabulary."""
    if KEPT in policy.plan:  # a policy that was kept of an actor has no sentence
        return policy
    contents = backend.policy_cache.contents()
    others = [one for one in contents.ordered if one.policy.id != policy.id]
    plain = compile_text(policy.text, backend.vocabulary(contents), [one.existing for one in others], kept=True)
    (one,) = check_bandwidth(backend, policy.text, plain, others)
    return replace(policy, text=one.text, plan=one.plan.to_data(), dynamic=one.plan.dynamic)
