"""Whether the change stream that somebody follows is still the one that it followed.

Replication is asynchronous: a Redis that takes over after a failover may lack the last changes.  While it stands at
a smaller epoch, everybody sees that.  Once others have written to it, its epoch may be the same or larger again,
with other changes under the numbers of those that were lost.  So whoever follows remembers when the change was made
that it stands at, and compares that with what the stream holds under the same number.

What was trimmed from the stream cannot be compared; who stands there loads everything anyway.
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
    """When change ``epoch`` was made; None when it is not in the stream."""
    return scripted(BEGINNING, (keys.changes,), (f"{epoch}-0",), _parse_beginning)


def _parse_beginning(beginning: bytes) -> float | None:
    match = _AT.match(beginning)
    return None if match is None else float(json.loads(match[1]))


class HistoryCheck:
    """What one follower remembers of the change that it stands at."""

    def __init__(self) -> None:
        self._known: tuple[str, int, float] | None = None

    def follow(self, change: Change) -> None:
        """``change`` is the one that we stand at."""
        self._known = (change.history, change.epoch, change.at)

    def broken(self, position: Head, found: float | None) -> bool:
        """True when another change has the number of the one that we stand at.

        :param found: what :func:`change_time` says of it; learned when nothing is known of ``position`` yet
        """
        if found is None:
            return False
        if self._known is None or self._known[:2] != (position.history, position.epoch):
            self._known = (position.history, position.epoch, found)
        return self._known[2] != found

    def save(self, path: Path) -> None:
        """Keep this beside what was applied, for :meth:`restore`.

        :raises OSError: when it cannot be written
        """
        fresh = path.with_name(f"{path.name}.new")
        fresh.write_text(json.dumps(self._known))
        fresh.replace(path)

    def restore(self, path: Path) -> None:
        """Remember what was saved; that of another place is of no use, and forgotten when we look.

        A file that cannot be read, or holds something else, is like none.
        """
        with contextlib.suppress(OSError, ValueError, TypeError):
            history, epoch, at = json.loads(path.read_text())
            self._known = (str(history), int(epoch), float(at))

    def restart(self, position: Head, found: float | None) -> None:
        """Everything was taken anew, at ``position``, of which :func:`change_time` says ``found``."""
        self._known = None
        self.broken(position, found)
