"""The storage daemons of this node that run Sluice's disk files.

A stock daemon quarantines every transformed object that it reads.  So a daemon that runs Sluice's disk files sends a
hello, and until every required one has sent it, this node refuses assignments that transform objects on its disks.

Theory of operation.  Some daemons run only at times (an auditor started by cron), so hellos are kept in a file in
the snapshot's folder; after a downgrade, delete that file.  The result is written to another file, beside the agent's
socket.  Object servers read it before they transform an object, so a proxy with an old state does no harm.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from sluice_core.errors import DecodeError, PeerError
from sluice_core.messages.nodes import STORAGE_STATE_SUFFIX, Hello, StorageState

log = logging.getLogger(__name__)

#: The file of hellos in the snapshot's folder.
STATE_FILE: Final = "storage-daemons.json"
READY: Final = "ready"
OBJECT_SERVER: Final = "object-server"


class StorageDaemons:
    """The daemons that ``required`` names, and their hellos."""

    def __init__(self, required: Sequence[str] = (), folder: str = "", socket: str = "") -> None:
        """
        :param folder: for the file of hellos; empty: no file
        :param socket: the agent's socket, beside which the result is written; empty: no file
        """
        self._required = tuple(required)
        self._state_file = Path(folder) / STATE_FILE if folder else None
        self._verdict_file = Path(socket + STORAGE_STATE_SUFFIX) if socket else None
        self._known: dict[str, Hello] = {}

    def open(self) -> None:
        """Read the hellos, and write the result.

        :raises PeerError: when a file cannot be written
        """
        if self._state_file is not None and self._state_file.exists():
            try:
                state = StorageState.decode(self._state_file.read_bytes())
                self._known = {role: Hello.from_data(data) for role, data in state.daemons.items()}
            except (OSError, DecodeError, TypeError, AttributeError) as error:
                log.error("`%s` cannot be read, storage daemons must say hello again: %s", self._state_file, error)
        self._write()

    def add(self, hello: Hello) -> bool:
        """Add a hello.

        :return: whether the capabilities of this node have changed

        :raises PeerError: when a file cannot be written
        """
        if not hello.disk_file:
            return False
        before = self._known.get(hello.role)
        self._known[hello.role] = hello
        now = (hello.actions, hello.stored, hello.plugins)
        changed = before is None or (before.actions, before.stored, before.plugins) != now
        if changed:
            log.info("%s runs disk files of version %d", hello.role, hello.disk_file)
            self._write()
        return changed

    @property
    def hellos(self) -> tuple[Hello, ...]:
        """The last hello of each daemon."""
        return tuple(self._known.values())

    def waiting(self) -> tuple[str, ...]:
        """Required daemons that have not reported Sluice's disk files."""
        return tuple(role for role in self._required if role not in self._known)

    def report(self) -> str:
        """As of ``NodeReport.storage``."""
        if not self._required:
            return ""
        waiting = self.waiting()
        return f"waiting for {', '.join(waiting)}" if waiting else READY

    def refuse(self, keyword: str) -> str:
        """Return why this node's disks cannot take a filter; empty when they can, or when the node has no disks."""
        if not self._required:
            return ""
        server = self._known.get(OBJECT_SERVER)
        if server is not None and keyword in server.actions and keyword not in server.stored:
            return ""  # it changes no stored bytes, so the other daemons are not concerned
        waiting = self.waiting()
        if waiting:
            return (
                f"these do not run disk files of Sluice here: {', '.join(waiting)} (restart them with the "
                "`diskfile_module` of Sluice, or take those that never run here out of the agent's `storage_daemons`)"
            )
        without = [role for role in self._required if keyword not in self._known[role].actions]
        return f"filter `{keyword}` is not installed in {', '.join(without)}" if without else ""

    def _write(self) -> None:
        daemons = {role: hello.to_data() for role, hello in sorted(self._known.items())}
        raw = StorageState(daemons, self.waiting()).encode()
        for path in (self._state_file, self._verdict_file):
            if path is None:
                continue
            fresh = path.with_name(f".{path.name}.new")
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                fresh.write_bytes(raw)
                fresh.chmod(0o644)
                fresh.replace(path)
            except OSError as error:
                raise PeerError(f"cannot write `{path}`: {error}") from error
