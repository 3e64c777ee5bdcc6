"""The object ring of a storage policy, and those that other nodes may still use.

A new ring reaches the nodes one after the other.  A home that creates an object asks the primaries of the rings of the
last day (``sluice_objects.protocol.home``), so each ring that this node had is kept as a copy: also one that is
replaced while the daemon does not run.
"""

from __future__ import annotations

import os
import shutil
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from sluice_core.errors import SluiceError
from sluice_middleware.swift import internal_api as swift

#: Seconds for which nodes may use a replaced ring.
KEPT: Final = 86_400.0
#: Seconds between two looks at the file, as Swift's servers have it.
_CHECK: Final = 15.0


class RingError(SluiceError):
    """A ring cannot be read, or its copy not written."""


class Rings:
    """The rings of one storage policy.

    :param file: of the present ring
    :param copies: the folder of the copies, which this object owns
    """

    def __init__(self, file: Path, copies: Path, now: Callable[[], float] = time.time) -> None:
        self._file = file
        self._copies = copies
        self._now = now
        self._rings: list[tuple[Path, Any]] = []
        self._seen = (0, 0)
        self._next_check = 0.0

    def primaries(self, account: str, container: str, name: str) -> list[list[dict[str, Any]]]:
        """The devices of an object by the present ring, and by earlier ones that name others.

        :raises RingError: when a ring cannot be read
        """
        named: dict[tuple[str, ...], list[dict[str, Any]]] = {}
        for _, ring in self._present():
            _, nodes = ring.get_nodes(account, container, name)
            named.setdefault(tuple(sorted(map(device_name, nodes))), nodes)
        return list(named.values())

    def partition(self, account: str, container: str, name: str) -> int:
        """The partition of an object by the present ring."""
        _, ring = self._present()[0]
        return int(ring.get_part(account, container, name))

    def _present(self) -> Sequence[tuple[Path, Any]]:
        if self._now() >= self._next_check:
            self._next_check = self._now() + _CHECK
            try:
                found = os.stat(self._file)
                if (found.st_mtime_ns, found.st_ino) != self._seen:
                    self._keep_copy()
                    self._seen = (found.st_mtime_ns, found.st_ino)
                recent = self._recent()
                if [path for path, _ in self._rings] != recent:
                    self._rings = [(path, swift.Ring(str(path))) for path in recent]
            except (OSError, ValueError, zlib.error) as error:
                raise RingError(f"the ring `{self._file}` cannot be used: {error}") from error
        return self._rings

    def _keep_copy(self) -> None:
        """Copy the ring, unless the newest copy is the same; the time of a copy is when it was made."""
        self._copies.mkdir(parents=True, exist_ok=True)
        newest = next(self._newest_first(), None)
        if newest is not None and newest.read_bytes() == self._file.read_bytes():
            return
        unfinished = self._copies / f"unfinished-{os.getpid()}"
        shutil.copyfile(self._file, unfinished)
        swift.Ring(str(unfinished))  # a ring that cannot be read must not become one of the rings
        unfinished.replace(self._copies / f"{time.time_ns():020d}.ring.gz")

    def _recent(self) -> list[Path]:
        """The copies, the present one first; one that was replaced more than :data:`KEPT` seconds ago is deleted."""
        recent: list[Path] = []
        replaced = self._now()
        for path in self._newest_first():
            if self._now() - replaced > KEPT:
                path.unlink(missing_ok=True)
            else:
                recent.append(path)
            replaced = int(path.name.partition(".")[0]) / 1e9
        return recent

    def _newest_first(self) -> Iterator[Path]:
        return iter(sorted(self._copies.glob("*.ring.gz"), reverse=True))


def device_name(node: dict[str, Any]) -> str:
    """The name of a device for the protocol: address of its object server and name."""
    return f"{node['ip']}:{node['port']}/{node['device']}"
