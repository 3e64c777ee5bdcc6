"""Which objects have motifs, and which are made from another object; in Redis, and rebuilt from Swift.

All that must survive lies with the objects.  What is kept here spares a walk over all of them, so it is used only as
long as it is complete: a scan of the storage says so, for the run of Redis in which it was made.  A Redis that was
restarted, wiped or replaced has another run id, and may have lost what was noted last.

Of contracted objects that need another one as it is all must be known.  Which are derived from one that may change is
used as far as it is known, since they are looked at when they are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from sluice_core.errors import PeerError
from sluice_core.store.keys import Keys
from sluice_core.store.operation import Operation, nothing, scripted
from sluice_core.store.scripts import Script

#: Items that are read at once.
PAGE: Final = 500

_RUN: Final = "local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')\n"

#: KEYS: the run for which all is known, a set.  Answers its members, or nothing when it may not be complete.
FIND: Final = Script(
    _RUN
    + """
if redis.call('GET', KEYS[1]) ~= run then return false end
return redis.call('SMEMBERS', KEYS[2])
"""
)

#: KEYS: the run for which all is known.  Answers 1 when it is this one.
IS_COMPLETE: Final = Script(_RUN + "return redis.call('GET', KEYS[1]) == run and 1 or 0")

#: Answers the id of this run.
RUN: Final = Script(_RUN + "return run")

#: KEYS: the run for which all is known.  ARGV: the run in which a scan began.  Answers 1 when it is this one still.
COMPLETE: Final = Script(
    _RUN
    + """
if ARGV[1] ~= run then return 0 end
redis.call('SET', KEYS[1], run)
return 1
"""
)


def add_dependent(keys: Keys, source: str, item: str) -> Operation[None]:
    """Note that ``item`` needs ``source``."""
    return Operation((("SADD", keys.motif_dependents(source), item),), nothing)


def remove_dependent(keys: Keys, source: str, item: str) -> Operation[None]:
    """Note that it does not."""
    return Operation((("SREM", keys.motif_dependents(source), item),), nothing)


def find_dependents(keys: Keys, source: str) -> Operation[list[str]]:
    """The items that may need ``source``, sorted.

    :raises PeerError: when run, while not all of them are known
    """

    def parse(reply: Any) -> list[str]:
        if reply is None:
            raise PeerError("not all objects with motifs are known: a scan of the storage has not ended")
        return sorted(_text(one) for one in reply)

    return scripted(FIND, (keys.motif_scan, keys.motif_dependents(source)), (), parse)


def add_item(keys: Keys, item: str, sources: Iterable[str] = ()) -> Operation[None]:
    """Note that ``item`` has motifs, or is about to, and is derived from ``sources``."""
    derived = (("SADD", keys.motif_derived(source), item) for source in sources)
    return Operation((("ZADD", keys.motif_items, 0, item), *derived), nothing)


def find_derived(keys: Keys, sources: Sequence[str]) -> Operation[list[list[str]]]:
    """For each of ``sources`` the items that are known to be derived from it, or were, sorted."""
    commands = tuple(("SMEMBERS", keys.motif_derived(source)) for source in sources)
    return Operation(commands, lambda replies: [sorted(map(_text, items)) for items in replies])


def remove_derived(keys: Keys, source: str, items: Sequence[str]) -> Operation[None]:
    """Note that ``items`` are not derived from ``source``."""
    return Operation((("SREM", keys.motif_derived(source), *items),), nothing)


def remove_item(keys: Keys, item: str) -> Operation[None]:
    """Note that it has none."""
    return Operation((("ZREM", keys.motif_items, item),), nothing)


def items_after(keys: Keys, marker: str, limit: int = PAGE) -> Operation[list[str]]:
    """Items that may have motifs, in the order of their names, behind ``marker``."""
    start = f"({marker}" if marker else "-"
    command = ("ZRANGEBYLEX", keys.motif_items, start, "+", "LIMIT", 0, limit)
    return Operation((command,), lambda replies: [_text(one) for one in replies[0]])


def is_complete(keys: Keys) -> Operation[bool]:
    """Whether all items and dependents are known."""
    return scripted(IS_COMPLETE, (keys.motif_scan,), (), bool)


def current_run(keys: Keys) -> Operation[str]:
    """What tells this run of Redis from others; a scan asks before it begins."""
    return scripted(RUN, (), (), _text)


def set_complete(keys: Keys, run: str) -> Operation[bool]:
    """A scan has noted all items and dependents; False when ``run``, in which it began, has ended."""
    return scripted(COMPLETE, (keys.motif_scan,), (run,), bool)


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")
