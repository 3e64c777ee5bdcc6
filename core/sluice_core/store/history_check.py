"""Whether the change stream that a follower reads is still the same history.

Redis replicates asynchronously: a server that takes over after a failover may lack the last changes.  While it is at a
smaller epoch, every follower sees that.  After others have written to it, its epoch may be the same or larger again,
with other changes under the numbers of the lost ones.  So a follower remembers the time of the change that it is at,
and compares it with the time of the change that the stream has under this number.

A change that was trimmed from the stream cannot be compared; a follower that far back loads everything anyway.
"""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path
from typing import Final

from sluice_core.messages.policies import Change
from sluice_core.store.keys import Keys
from sluice_core.store.operation import Operation, scripted
from sluice_core.store.records import Head
from sluice_core.store.scripts import Script

#: How the document of change ARGV[1] begins, enough of it to hold its time; nothing when it is not in the stream.
#: A change may be megabytes, and many ask each second.
BEGINNING: Final = Script("""
local found = redis.call('XRANGE', KEYS[1], ARGV[1], ARGV[1])[1]
if not found then return '' end
for i = 1, #found[2], 2 do
  if found[2][i] == 'change' then return string.sub(found[2][i + 1], 1, 64) end
end
return ''
""")

# documents are written with their keys in order, and this is the first of a change
_AT: Final = re.compile(rb'\{"at":([0-9.eE+-]+)[,}]')


def change_time(keys: Keys, epoch: int) -> Operation[float | None]:
    """The unix time of change ``epoch``; None when it is not in the stream."""
    return scripted(BEGINNING, (keys.changes,), (f"{epoch}-0",), _parse_beginning)


def _parse_beginning(beginning: bytes) -> float | None:
    match = _AT.match(beginning)
    return None if match is None else float(json.loads(match[1]))


class HistoryCheck:
    """The history, epoch and time of the change that one follower is at."""

    def __init__(self) -> None:
        self._known: tuple[str, int, float] | None = None

    def follow(self, change: Change) -> None:
        """Remember ``change`` as the one that the follower is at."""
        self._known = (change.history, change.epoch, change.at)

    def broken(self, position: Head, found: float | None) -> bool:
        """True when the stream has another change under the follower's epoch.

        :param found: result of :func:`change_time`; it is remembered when nothing is known of ``position`` yet
        """
        if found is None:
            return False
        if self._known is None or self._known[:2] != (position.history, position.epoch):
            self._known = (position.history, position.epoch, found)
        return self._known[2] != found

    def save(self, path: Path) -> None:
        """Write this to a file beside the follower's state, for :meth:`restore`.

        :raises OSError: when it cannot be written
        """
        fresh = path.with_name(f"{path.name}.new")
        fresh.write_text(json.dumps(self._known))
        fresh.replace(path)

    def restore(self, path: Path) -> None:
        """Read what :meth:`save` wrote.  It is dropped later when it is about another position.

        A file that cannot be read, or holds something else, is ignored.
        """
        with contextlib.suppress(OSError, ValueError, TypeError):
            history, epoch, at = json.loads(path.read_text())
            self._known = (str(history), int(epoch), float(at))

    def restart(self, position: Head, found: float | None) -> None:
        """Everything was loaded again, at ``position``; ``found`` is the result of :func:`change_time`."""
        self._known = None
        self.broken(position, found)
