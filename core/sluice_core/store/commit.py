"""The commit of a draft: one script, whole or not at all."""

from __future__ import annotations

import time
import uuid
import zlib
from collections.abc import Iterable
from typing import Any, Final

from sluice_core.errors import Conflict, Fenced
from sluice_core.messages.policies import Change, Policy, Target, policy_of_assignment
from sluice_core.store.keys import Keys
from sluice_core.store.operation import Operation, scripted
from sluice_core.store.records import Committed, Draft
from sluice_core.store.scripts import COMMIT

#: Changes kept for agents that were cut off; who missed more reloads everything.
STREAM_LENGTH: Final = 10_000
_SCOPES: Final = 1 << 16


def commit(keys: Keys, draft: Draft) -> Operation[Committed]:
    """Apply ``draft``, whole or not at all.

    :raises Conflict: naming the record that has not the expected version
    :raises Fenced: naming the slot that another actor host owns now
    """
    named = sorted({one.id for one in draft.policies} | set(draft.policy_drops))
    touched = {one.policy for one in draft.puts} | {one.id for one in draft.policies}
    touched.update(map(policy_of_assignment, draft.drops))
    change = Change(
        0, "", time.time(), draft.by, draft.puts, draft.drops, tuple(named), draft.uploads, draft.upload_drops,
        draft.entries, draft.entry_drops,
    )  # fmt: skip
    lists: tuple[list[tuple[str | bytes | int, ...]], ...] = (
        sorted(draft.expect.items()),
        [(one.id, one.encode()) for one in draft.puts],
        [(name,) for name in draft.drops],
        [(one.id, one.encode()) for one in draft.policies],
        [(name, f"{_glob_quoted(name)}.*") for name in draft.policy_drops],
        [(one.policy, one.encode()) for one in draft.states],
        [(name,) for name in sorted(touched - (set(draft.policy_drops) - {one.id for one in draft.policies}))],
        [(one.key, one.encode()) for one in draft.uploads],
        [(name,) for name in draft.upload_drops],
        [(one.key, one.encode()) for one in draft.entries],
        [(name,) for name in draft.entry_drops],
        sorted(draft.fence.items()),
        [(name,) for name in _static_scopes(draft.policies)],
    )
    arguments: list[str | bytes | int] = [uuid.uuid4().hex, draft.history, int(draft.moves), STREAM_LENGTH]
    arguments.append(change.encode())
    for items in lists:
        arguments.append(len(items))
        for item in items:
            arguments.extend(item)
    names = (
        keys.history, keys.epoch, keys.assignments, keys.policies, keys.states, keys.versions,
        keys.epochs, keys.changes, keys.observed, keys.watched, keys.uploads, keys.registry,
        keys.owners, keys.past,
    )  # fmt: skip
    return scripted(COMMIT, names, arguments, _parse_commit)


def scope_version(target: Target) -> str:
    """Name of the version that moves when a static policy for ``target`` is written, for ``Draft.expect``.

    Some scopes share one, so that their number is bounded: an attempt may be refused for another scope's sake.
    """
    scope = f"{target.level}/{target.select}/{target.name}".encode()
    return f"scope/{zlib.crc32(scope) % _SCOPES:04x}"


def _static_scopes(policies: Iterable[Policy]) -> list[str]:
    targets = (one.plan.get("target") for one in policies if not one.dynamic)
    return sorted({scope_version(Target.from_data(target)) for target in targets if target})


def _glob_quoted(text: str) -> str:
    return "".join(f"\\{char}" if char in "*?[]\\^-" else char for char in text)


def _parse_commit(reply: list[Any]) -> Committed:
    if reply[0] == b"ok":
        return Committed(reply[1].decode(), int(reply[2]), int(reply[3]))
    name, found = reply[1].decode(), reply[2].decode()
    if reply[0] == b"fenced":
        raise Fenced(name, found)
    if name == "history":
        raise Conflict(f"history is `{found}` now, not the expected one")
    raise Conflict(f"`{name}` is at version {found} now, not the expected one")
