"""``/changes``: who changed what and when, from the change stream, newest first.

The stream and the undo log are trimmed independently (``sluice_core.store.change_stream``).  One page examines a
bounded number of stream entries, so a filtered page may be short or empty and still have a next page.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sluice_controller.catalog.backend import Backend
from sluice_controller.configuration.configuration import Configuration, Difference, differences
from sluice_core.errors import CallerError, NotFound
from sluice_core.messages.policies import Change, policy_of_assignment
from sluice_core.store.change_stream import changes_before, oldest_change, replaced_since
from sluice_core.store.records import Gap, Head

#: Entries of the stream that are looked at for one page.
_LOOKED_AT: Final = 2000
_STEP: Final = 500
_BEYOND: Final = 10**15


@dataclass(frozen=True, slots=True)
class ChangePage:
    """Some changes; ``oldest`` is the first that is kept, None when there is none."""

    changes: tuple[Change, ...]
    next_marker: str
    head: Head
    oldest: Change | None

    @property
    def trimmed(self) -> bool:
        """Whether older changes were forgotten."""
        return self.oldest is not None and self.oldest.epoch > 1


@dataclass(frozen=True, slots=True)
class ChangeFilter:
    """Which changes are wanted; ``since`` in unix seconds."""

    policy: str = ""
    by: str = ""
    since: float = 0.0

    def matches(self, change: Change) -> bool:
        """Whether it is one of them."""
        return (not self.by or change.by == self.by) and (not self.policy or self.policy in touched_policies(change))


def touched_policies(change: Change) -> list[str]:
    """The policies that a change is about."""
    touched = (*change.policies, *(one.policy for one in change.puts), *map(policy_of_assignment, change.drops))
    return list(dict.fromkeys(touched))


def list_changes(backend: Backend, wanted: ChangeFilter, limit: int, marker: str = "") -> ChangePage:
    """Changes below ``marker``, newest first."""
    below = _read_marker(marker)
    found: list[Change] = []
    head = backend.store.head()

    def page(next_marker: str) -> ChangePage:
        return ChangePage(tuple(found), next_marker, head, _oldest(backend))

    for _ in range(_LOOKED_AT // _STEP):
        entries = backend.store.run(changes_before(backend.store.keys, below, _STEP))
        for change in entries:
            if change.at < wanted.since:
                return page("")
            if wanted.matches(change):
                if len(found) == limit:
                    return page(str(below))
                found.append(change)
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
    """One change; ``differences`` is None when what it replaced is not known any more."""

    change: Change
    differences: list[Difference] | None


def find_change(backend: Backend, epoch: int) -> ChangeDetails:
    """One change, with what it replaced and by what.

    :raises NotFound: when there is none, or it was trimmed
    """
    found = backend.store.run(changes_before(backend.store.keys, epoch + 1, 1))
    if not found or found[0].epoch != epoch:
        oldest = backend.store.run(oldest_change(backend.store.keys))
        more = f", the oldest that is kept is {oldest}" if oldest > epoch else ""
        raise NotFound(f"there is no change {epoch}{more}")
    now = Configuration.now(backend)
    past = backend.store.run(replaced_since(backend.store.keys, epoch))
    if epoch <= past.since:
        return ChangeDetails(found[0], None)
    before = Configuration().with_documents(past.first)
    after = now.with_documents(past.later).only(past.first)
    return ChangeDetails(found[0], differences(before, after))
