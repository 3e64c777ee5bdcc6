"""The undo log: the documents that changes of the configuration replaced, to show them and to roll back.

The commit script writes the stream ``Keys.past``.  For each change of policies, uploads or registry entries it has the
replaced documents, in parts of at most 500; each part carries the epoch of the previous such change (``before``).  The
configuration after epoch E is the present one, with the oldest document that a change after E replaced put back in the
place of each record.

The stream is trimmed.  It reaches back to the ``before`` of its oldest change, if all parts of that change are there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from sluice_core.store.change_stream import stream_fields
from sluice_core.store.keys import Keys
from sluice_core.store.operation import Operation
from sluice_core.store.operations import parse_head
from sluice_core.store.records import Head

#: Version name of the configuration as a whole, for ``Draft.expect``.
CONFIGURATION: Final = "config/*"
_BEFORE: Final = b"before"

#: ``policy/<id>``, ``upload/<keyword>`` or ``entry/<kind>/<name>`` → document; empty: there was none.
Documents = Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class ReplacedDocuments:
    """Documents replaced since an epoch.

    ``since`` is the earliest epoch that can be restored.  ``first`` holds what the wanted change replaced,
    if it is in the stream; ``later`` those that the changes after it replaced, the oldest of each record.
    """

    head: Head
    since: int
    first: Documents
    later: Documents

    def replaced(self) -> dict[str, bytes]:
        """The documents as they were before the wanted change, of every record that changed since."""
        return {**self.later, **self.first}


def replaced_since(keys: Keys, epoch: int) -> Operation[ReplacedDocuments]:
    """The documents that change ``epoch`` and the changes after it replaced."""
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
    """At most ``count`` entries of the stream before ``entry``, newest first, with the documents that each replaced.

    :param entry: the last one of the call before; empty for the newest
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
