"""SSYNC whose sender waits for credit before it sends a piece, so that a changed cap holds at once.

The sender is charged, the receiver is not.  A piece is charged after it was read and before it is sent, outside of
the time-outs that Swift sets for what goes over the wire; the other node waits as long as its ``client_timeout``, 60
seconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sluice_middleware.replication.replication_throttle import ThrottledCopy
from sluice_middleware.swift.daemon_api import RebuildingECDiskFileStream
from sluice_middleware.swift.daemon_api import Sender as SwiftSender


class Sender(SwiftSender):  # type: ignore[misc]
    """Swift's; its daemon has a ``throttle``."""

    _copy: ThrottledCopy

    def updates(self, connection: Any, response: Any, send_map: dict[str, Any]) -> None:
        """As of Swift's: send what the other node wants."""
        with self.daemon.throttle.open(self.job["device"]) as self._copy:
            super().updates(connection, response, send_map)

    def send_subrequest(self, connection: Any, method: str, url_path: str, headers: Any, df: Any) -> None:
        """As of Swift's, with ``df`` the object to send, or None."""
        if df:
            # a fragment that is built here was read from as many other nodes as hold data
            times = 1 + self.job["policy"].ec_ndata if isinstance(df, RebuildingECDiskFileStream) else 1
            df = ThrottledFile(df, self._copy, times)
        super().send_subrequest(connection, method, url_path, headers, df)


class ThrottledFile:
    """A disk file for a sender; each piece is charged ``times`` times."""

    def __init__(self, file: Any, copy: ThrottledCopy, times: int = 1) -> None:
        self._file = file
        self._copy = copy
        self._times = times

    @property
    def content_length(self) -> int:
        """Bytes that a reader gives."""
        size: int = self._file.content_length
        return size

    def reader(self) -> Iterator[bytes]:
        """The pieces of the disk file."""
        for piece in self._file.reader():
            self._copy.acquire(len(piece) * self._times)
            yield piece
