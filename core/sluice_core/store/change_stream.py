"""Reads the two streams that a commit writes: the changes, and the documents that they replaced.

In the change stream entry ``<epoch>-0`` is one change.  Epochs follow each other without holes, so a hole shows that
changes were trimmed.

The undo log (``Keys.past``) has the documents that changes of the configuration replaced, to show them and to roll
back.  For each change of policies, uploads or registry entries it has the replaced documents, in parts of at most 500;
each part carries the epoch of the previous such change (``before``).  The configuration after epoch E is the present
one, in which each record has the oldest document that a change after E replaced.  It reaches back to
the ``before`` of its oldest change, if all parts of that change are there.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from sluice_core.errors import DecodeError
from sluice_core.messages.nodes import NodeReport
from sluice_core.messages.policies import Change
from sluice_core.store.history_check import digest_command, entry_digest, parse_digest
from sluice_core.store.keys import Keys
from sluice_core.store.operation import Command, Operation
from sluice_core.store.operations import parse_head, report_commands
from sluice_core.store.records import Gap, Head, Replaced

log = logging.getLogger(__name__)

#: Milliseconds that Redis may wait for a change: well below the time-out of a reply (``store.TIMEOUT``).
LONGEST_BLOCK: Final = 3000


def changes_after(
    keys: Keys, epoch: int, block_ms: int = 0, count: int = 500, report: NodeReport | None = None, digest: str = ""
) -> Operation[list[Change] | Gap]:
    """Return the changes that follow ``epoch``, at most ``count``, waiting ``block_ms`` for the first.

    Empty when there is none.  ``report`` is written first, in the same round trip.  Changes of another history are
    included: compare :attr:`Change.history`.

    :param block_ms: milliseconds, at most :data:`LONGEST_BLOCK`
    :param digest: of change ``epoch`` as the reader has it; the result is :class:`Replaced` when the stream has another
        one there
    """
    waiting: Command = ("BLOCK", min(block_ms, LONGEST_BLOCK)) if block_ms > 0 else ()
    read = ("XREAD", "COUNT", count, *waiting, "STREAMS", keys.changes, f"{epoch}-0")
    said = () if report is None else report_commands(keys, report)
    if not digest:
        return Operation((*said, read), lambda replies: _parse_changes(replies[-1], epoch), blocking=True)

    def parse(replies: list[Any]) -> list[Change] | Gap:
        found = parse_digest(replies[-1])
        if found not in ("", digest):
            return Replaced(f"the stream has another change {epoch}")
        return _parse_changes(replies[-2], epoch)

    # behind the read, which may have waited: an entry before it is not replaced later
    return Operation((*said, read, digest_command(keys, epoch)), parse, blocking=True)


def _parse_changes(reply: Any, epoch: int) -> list[Change] | Gap:
    if not reply:
        return []
    changes: list[Change] = []
    for entry, raw in reply[0][1]:
        fields = stream_fields(raw)
        expected = epoch + len(changes) + 1
        number = int(entry.partition(b"-")[0])
        if number != expected:
            return changes or Gap(f"change {expected} was trimmed, the oldest is {number}")
        try:
            changes.append(_parse_change(number, fields))
        except DecodeError as error:
            log.error("change %d cannot be decoded: %s; raw %r", number, error, error.raw[:200])
            return changes or Gap(f"change {number} cannot be decoded: {error}")
    return changes


def changes_before(keys: Keys, epoch: int, count: int) -> Operation[list[Change]]:
    """Return at most ``count`` changes below ``epoch``, newest first; undecodable ones are left out."""

    def parse(replies: list[Any]) -> list[Change]:
        parsed = []
        for entry, raw in replies[0]:
            number = int(entry.partition(b"-")[0])
            try:
                parsed.append(_parse_change(number, stream_fields(raw)))
            except DecodeError as error:
                log.error("change %d cannot be decoded: %s; raw %r", number, error, error.raw[:200])
        return parsed

    return Operation((("XREVRANGE", keys.changes, f"({epoch}-0", "-", "COUNT", count),), parse)


def oldest_change(keys: Keys) -> Operation[int]:
    """Return the epoch of the oldest change in the stream; 0 when there is none."""

    def parse(replies: list[Any]) -> int:
        return int(replies[0][0][0].partition(b"-")[0]) if replies[0] else 0

    return Operation((("XRANGE", keys.changes, "-", "+", "COUNT", 1),), parse)


def stream_fields(raw: Any) -> Mapping[bytes, bytes]:
    """The fields of one entry of a stream, which are a mapping with some clients and a list with others."""
    return dict(zip(raw[::2], raw[1::2], strict=True)) if isinstance(raw, list) else raw


def _parse_change(epoch: int, fields: Mapping[bytes, bytes]) -> Change:
    try:
        change = Change.decode(fields[b"change"])
        more = json.loads(fields.get(b"drops", b"[]"))
        if not isinstance(more, list) or not all(isinstance(one, str) for one in more):
            raise ValueError("`drops` is no list of texts")
        history = fields[b"history"].decode()
    except (KeyError, ValueError, RecursionError) as error:
        raise DecodeError(f"not an entry of the change stream: {error}", repr(fields).encode()) from error
    drops = tuple(dict.fromkeys((*change.drops, *more)))
    return replace(change, epoch=epoch, history=history, drops=drops, digest=entry_digest(fields))


#: Version name of the configuration as a whole, for ``Draft.expect``.
CONFIGURATION: Final = "config/*"
_BEFORE: Final = b"before"

#: ``policy/<id>``, ``upload/<keyword>`` or ``entry/<kind>/<name>`` → document; empty: there was none.
Documents = Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class ReplacedDocuments:
    """Documents replaced since an epoch.

    ``since`` is the earliest epoch that can be restored.  ``first`` holds the documents that the wanted change
    replaced, if it is in the stream; ``later`` those that the changes after it replaced, the oldest of each record.
    """

    head: Head
    since: int
    first: Documents
    later: Documents

    def replaced(self) -> dict[str, bytes]:
        """The documents as they were before the wanted change, of every record that changed since."""
        return {**self.later, **self.first}


def replaced_since(keys: Keys, epoch: int) -> Operation[ReplacedDocuments]:
    """Return the documents that change ``epoch`` and the changes after it replaced."""
    commands = (
        ("MGET", keys.history, keys.epoch),
        ("XRANGE", keys.past, "-", "+", "COUNT", 1),
        ("XRANGE", keys.past, f"{epoch}-0", "+"),
    )

    def parse(replies: list[Any]) -> ReplacedDocuments:
        head = parse_head(replies[0])
        first: dict[str, bytes] = {}
        later: dict[str, bytes] = {}
        for entry, raw in replies[2]:
            into = first if _place(entry)[0] == epoch else later
            for name, document in stream_fields(raw).items():
                if name != _BEFORE:
                    into.setdefault(name.decode(), document)
        return ReplacedDocuments(head, _since(replies[1], head), first, later)

    return Operation(commands, parse, atomic=True)


def replaced_before(keys: Keys, entry: str, count: int) -> Operation[list[tuple[str, Documents]]]:
    """Return at most ``count`` entries of the stream before ``entry``, newest first, with the documents that each
    replaced.

    :param entry: the last entry of the previous call; empty for the newest
    """

    def parse(replies: list[Any]) -> list[tuple[str, Documents]]:
        return [
            (place.decode(), {name.decode(): raw for name, raw in stream_fields(fields).items() if name != _BEFORE})
            for place, fields in replies[0]
        ]

    newest = f"({entry}" if entry else "+"
    return Operation((("XREVRANGE", keys.past, newest, "-", "COUNT", count),), parse)


def _since(oldest: list[Any], head: Head) -> int:
    if not oldest:
        return head.epoch
    entry, raw = oldest[0]
    epoch, part = _place(entry)
    return int(stream_fields(raw)[_BEFORE]) if part == 0 else epoch


def _place(entry: bytes) -> tuple[int, int]:
    epoch, _, part = entry.partition(b"-")
    return int(epoch), int(part)
