"""Reads the change stream.

Entry ``<epoch>-0`` is one change.  Epochs follow each other without holes, so a hole shows that changes were trimmed.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from sluice_core.errors import DecodeError
from sluice_core.messages.nodes import NodeReport
from sluice_core.messages.policies import Change
from sluice_core.store.history_check import digest_command, entry_digest, parse_digest
from sluice_core.store.keys import Keys
from sluice_core.store.operation import Command, Operation
from sluice_core.store.operations import report_commands
from sluice_core.store.records import Gap, Replaced

log = logging.getLogger(__name__)

#: Milliseconds that Redis may wait for a change: well below the time-out of a reply (``store.TIMEOUT``).
LONGEST_BLOCK: Final = 3000


def changes_after(
    keys: Keys, epoch: int, block_ms: int = 0, count: int = 500, report: NodeReport | None = None, digest: str = ""
) -> Operation[list[Change] | Gap]:
    """The changes that follow ``epoch``, at most ``count``, waiting ``block_ms`` for the first.

    Empty when there is none.  ``report`` is written before, in the same round trip.  Changes of another history are
    not left out: compare :attr:`Change.history`.

    :param block_ms: milliseconds, at most :data:`LONGEST_BLOCK`
    :param digest: of change ``epoch`` as the reader knows it; :class:`Replaced` when the stream has another one there
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

    # behind the read, which may have waited: what came before it is not replaced later
    return Operation((*said, read, digest_command(keys, epoch)), parse, blocking=True)


def _parse_changes(reply: Any, epoch: int) -> list[Change] | Gap:
    if not reply:
        return []
    changes: list[Change] = []
    for entry, raw in reply[0][1]:
        fields = stream_fields(raw)
        expected = epoch + len(changes) + 1
        found = int(entry.partition(b"-")[0])
        if found != expected:
            return changes or Gap(f"change {expected} was trimmed, the oldest is {found}")
        try:
            changes.append(_parse_change(found, fields))
        except DecodeError as error:
            log.error("change %d cannot be decoded: %s; raw %r", found, error, error.raw[:200])
            return changes or Gap(f"change {found} cannot be decoded: {error}")
    return changes


def changes_before(keys: Keys, epoch: int, count: int) -> Operation[list[Change]]:
    """At most ``count`` changes below ``epoch``, newest first; those that cannot be decoded are left out."""

    def parse(replies: list[Any]) -> list[Change]:
        found = []
        for entry, raw in replies[0]:
            number = int(entry.partition(b"-")[0])
            try:
                found.append(_parse_change(number, stream_fields(raw)))
            except DecodeError as error:
                log.error("change %d cannot be decoded: %s; raw %r", number, error, error.raw[:200])
        return found

    return Operation((("XREVRANGE", keys.changes, f"({epoch}-0", "-", "COUNT", count),), parse)


def oldest_change(keys: Keys) -> Operation[int]:
    """The epoch of the oldest change in the stream; 0 when there is none."""

    def parse(replies: list[Any]) -> int:
        return int(replies[0][0][0].partition(b"-")[0]) if replies[0] else 0

    return Operation((("XRANGE", keys.changes, "-", "+", "COUNT", 1),), parse)


def stream_fields(raw: Any) -> Mapping[bytes, bytes]:
    """The fields of one entry of a stream, which some clients make a mapping of and others do not."""
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
