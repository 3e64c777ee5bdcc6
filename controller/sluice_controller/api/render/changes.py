"""What ``/changes``, roll back and import answer, as plain data."""

from __future__ import annotations

from typing import Any, Final

from sluice_controller.api.render.effective import step_data
from sluice_controller.api.render.policies import head_data
from sluice_controller.configuration.changes import ChangeDetails, ChangePage, policies_of
from sluice_controller.configuration.configuration import HOWS, ConfigurationChange, Difference
from sluice_controller.configuration.export import CODE_SECTIONS
from sluice_controller.validation.times import iso_time
from sluice_core.messages.base import Message
from sluice_core.messages.policies import FILTER_CODE, Change, Entry, Policy

#: Differences that are shown.
MOST: Final = 1000


def page_data(page: ChangePage) -> dict[str, Any]:
    """A page of changes."""
    oldest = page.oldest
    return {
        "changes": [change_data(one) for one in page.changes],
        "next_marker": page.next_marker or None,
        "head": head_data(page.head),
        "trimmed": page.trimmed,
        "oldest": oldest and {"epoch": oldest.epoch, "at": iso_time(oldest.at)},
    }


def change_data(change: Change) -> dict[str, Any]:
    """One change of a list."""
    return {
        "epoch": change.epoch,
        "at": iso_time(change.at),
        "by": change.by,
        "policies": policies_of(change),
        **_code(change),
        "entries": [*(one.key for one in change.entries), *change.entry_drops],
        "set": len(change.puts),
        "taken_back": len(change.drops),
    }


def _code(change: Change) -> dict[str, list[str]]:
    """The uploaded code that a change is about, by the sections of documents."""
    keys = (*(one.key for one in change.uploads), *change.upload_drops)
    found: dict[str, list[str]] = {section: [] for section in CODE_SECTIONS}
    for key in dict.fromkeys(keys):
        kind, slash, name = key.partition("/")
        found[_SECTIONS[kind] if slash else _SECTIONS[FILTER_CODE]].append(name if slash else key)
    return found


#: Kind of code → its section.
_SECTIONS: Final = {kind: section for section, kind in CODE_SECTIONS.items()}


def detail_data(found: ChangeDetails) -> dict[str, Any]:
    """One change by itself."""
    change = found.change
    known = found.differences
    return {
        **change_data(change),
        "history": change.history,
        "assignments": [step_data(one) for one in change.puts],
        "dropped": list(change.drops),
        "differences": None if known is None else [difference_data(one) for one in known],
    }


def difference_data(one: Difference) -> dict[str, Any]:
    """One thing that is another than before."""
    return {
        "what": one.what,
        "name": one.name,
        "how": one.how,
        "before": _document(one.old),
        "after": _document(one.new),
    }


def _document(message: Message | None) -> dict[str, Any] | None:
    if isinstance(message, Policy):
        return {"policy": message.text, "enabled": message.enabled, "created_by": message.created_by}
    if isinstance(message, Entry):
        return dict(message.data)
    return None if message is None else message.to_data()


def outcome_data(outcome: ConfigurationChange, plan: bool) -> dict[str, Any]:
    """What was changed, or would be."""
    counts = {how: sum(one.how == how for one in outcome.changes) for how in HOWS}
    return {
        "plan": plan,
        "epoch": outcome.epoch,
        "version": outcome.version,
        **counts,
        "changes": [difference_data(one) for one in outcome.changes[:MOST]],
    }
