"""What each daemon of motifs tells the others: which items were opened, made, contracted and attached at its node.

A capped stream in Redis.  What is lost there (a reader that was away for too long) costs accuracy until the next scan,
and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from sluice_core.errors import DecodeError
from sluice_core.messages.base import Message
from sluice_core.store.change_stream import stream_fields
from sluice_core.store.keys import Keys
from sluice_core.store.operation import Operation, nothing

#: Entries that are kept, and names in one of them.
LENGTH: Final = 5000
MOST_NAMES: Final = 2000
#: Id before all entries.
FIRST: Final = "0-0"
#: What a change says of an item.
GONE: Final = -1
CONTRACTED: Final = 0
EXPANDED: Final = 1
_FIELD: Final = b"activity"


@dataclass(frozen=True, slots=True)
class MotifActivity(Message):
    """What happened to items in about two seconds.

    :param changed: name, plain bytes, and :data:`GONE`, :data:`CONTRACTED` or :data:`EXPANDED`
    :param opened: names, each as often as it was opened, in the order of the last open
    :param made: name, and seconds that its bytes took
    """

    daemon: str
    changed: tuple[tuple[str, int, int], ...] = ()
    opened: tuple[tuple[str, int], ...] = ()
    made: tuple[tuple[str, float], ...] = ()


def tell_activity(keys: Keys, activity: MotifActivity) -> Operation[None]:
    """Tell the other daemons."""
    return Operation((("XADD", keys.motif_activity, "MAXLEN", "~", LENGTH, "*", _FIELD, activity.encode()),), nothing)


def last_activity(keys: Keys) -> Operation[str]:
    """The id of the newest entry."""

    def parse(replies: list[Any]) -> str:
        return replies[0][0][0].decode() if replies[0] else FIRST

    return Operation((("XREVRANGE", keys.motif_activity, "+", "-", "COUNT", 1),), parse)


def activity_after(keys: Keys, marker: str, most: int = 100) -> Operation[tuple[list[MotifActivity], str]]:
    """What was told behind ``marker``, and the id up to which that is; what cannot be read is left out."""

    def parse(replies: list[Any]) -> tuple[list[MotifActivity], str]:
        found, last = [], marker
        for entry, fields in replies[0]:
            last = entry.decode()
            try:
                found.append(MotifActivity.decode(stream_fields(fields)[_FIELD]))
            except (DecodeError, KeyError):  # of a daemon that knows more
                continue
        return found, last

    return Operation((("XRANGE", keys.motif_activity, f"({marker}", "+", "COUNT", most),), parse)
