"""The bytes that servers of this machine have read from their clients' connections.

The kernel takes bytes long before a server does: some hundred kilobytes for each connection, and in waves, since a
full receive buffer drops packets and the sender retries later and later.  So the bytes that a client could send in a
second differ from those that the server read in it.  Both ends are on this machine, so the kernel shows the bytes that
wait in between (proc(5), ``/proc/net/tcp``: ``tx_queue`` of the sender and ``rx_queue`` of the receiver).  That table
is read line by line, not at one moment; so senders are read before receivers, and bytes that move meanwhile count twice
as waiting rather than as taken.
"""

from __future__ import annotations

import socket
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_TABLE: Final = Path("/proc/net/tcp")
_ESTABLISHED: Final = "01"


@dataclass(slots=True, eq=False)
class Link:
    """One connection: ``sent`` are the bytes that the kernel took, which its sender counts."""

    here: str
    there: str
    sent: int = 0
    taken: int = 0


class Sent:
    """The connections of some clients, each of which sends in its own thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._links: set[Link] = set()
        #: Bytes that were read by servers since the last sample, as their senders know.
        self._known = 0

    def add(self, connection: socket.socket) -> Link:
        """A new connection, over IPv4."""
        link = Link(_named(connection.getsockname()), _named(connection.getpeername()))
        with self._lock:
            self._links.add(link)
        return link

    def taken(self, link: Link) -> None:
        """Its server has read all sent bytes, since it has responded."""
        with self._lock:
            self._known += link.sent - link.taken
            link.taken = link.sent

    def drop(self, link: Link) -> None:
        """It is closed: waiting bytes are lost, and those that a server read since the last sample are unknown."""
        with self._lock:
            self._links.discard(link)

    def newly_taken(self) -> int:
        """Bytes that servers read since the last sample."""
        with self._lock:
            found, self._known = self._known, 0
            sent = [(link, link.sent) for link in self._links if link.sent > link.taken]
            # after that: bytes sent meanwhile count the next time
            senders, receivers = (_waiting(), _waiting()) if sent else ({}, {})
            for link, size in sent:
                left = (
                    senders.get((link.here, link.there), (0, 0))[0] + receivers.get((link.there, link.here), (0, 0))[1]
                )
                fresh = max(0, size - left - link.taken)
                link.taken += fresh
                found += fresh
            return found


def _named(address: tuple[str, int]) -> str:
    """The address in the format of the kernel's table."""
    return f"{int.from_bytes(socket.inet_aton(address[0]), sys.byteorder):08X}:{address[1]:04X}"


def _waiting() -> dict[tuple[str, str], tuple[int, int]]:
    """Local and remote address of each end → bytes that wait there to be taken by the other one, and to be read."""
    found = {}
    for line in _TABLE.read_text("ascii").splitlines()[1:]:
        _, here, there, state, queues, *_ = line.split()
        if state == _ESTABLISHED:
            out, into = queues.split(":")
            found[here, there] = (int(out, 16), int(into, 16))
    return found


__all__ = ["Link", "Sent"]
