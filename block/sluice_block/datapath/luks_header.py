"""LUKS headers: created once, for a volume that was never used, and opened before nbdkit is.

nbdkit's filter ``luks`` creates no header and reads an existing one only when a client connects, so the front would be
the first to find a wrong passphrase.  A qemu-storage-daemon therefore opens it first, and creates it if that is
permitted: the volume is *fresh*, and its first bytes, in the source, were read and are all zero.  Otherwise it is
refused; existing data is never formatted.

The header passes the filters behind ``luks`` in the stack, like all data that ``luks`` stores.

A passphrase is passed as the number of a descriptor; the file behind it is in memory and has no name.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sluice_block.datapath import processes
from sluice_block.datapath.qemu_daemon import QemuDaemon, nbd_client
from sluice_block.datapath.stack_server import StackServer
from sluice_core.errors import CallerError, Conflict, PeerError

log = logging.getLogger(__name__)

#: Bytes that must be zero; a header with its key slots takes 2 MiB.
_LOOKED_AT: Final = 4 << 20
#: Milliseconds of PBKDF2.  Passphrases are random keys of a key manager.
_ITERATION: Final = 100
#: QEMU measures the speed of PBKDF2, and sometimes fails ("Unable to get accurate CPU usage"); five attempts in a row
#: have failed on an idle machine.  Probably the clock of the CPU's usage is too coarse for such a short measurement.
_ATTEMPTS: Final = 40
_FORMAT: Final = {
    "driver": "luks",
    "file": "target",
    "size": 0,  # the header does not contain it
    "key-secret": "passphrase",
    "cipher-alg": "aes-256",
    "cipher-mode": "xts",
    "ivgen-alg": "plain64",
    "hash-alg": "sha256",
    "iter-time": _ITERATION,
}
_JOB: Final = "format"


@contextlib.contextmanager
def open_passphrase(secret: str) -> Iterator[int]:
    """Yield a descriptor from which the passphrase can be read, once."""
    descriptor = os.memfd_create("passphrase")
    try:
        os.write(descriptor, secret.encode())
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)


@dataclass(frozen=True, slots=True)
class LuksHeader:
    """The header of one volume; temporary files are in ``folder``."""

    folder: Path

    def prepare(self, source: Sequence[str], below: Sequence[str], secret: str, fresh: bool) -> None:
        """Open the header with ``secret``, after its creation if that is permitted.

        :param source: nbdkit's plugin and its parameters
        :param below: nbdkit's arguments for the source with the filters behind ``luks``
        :param fresh: whether the volume was never used
        :raises CallerError: when the secret does not open it
        :raises Conflict: when there is no header, and none may be created
        :raises PeerError: when the source cannot be read, or a program does not start
        """
        self.end()
        self.folder.mkdir(mode=0o700, exist_ok=True)
        try:
            if fresh and self._is_empty(source):
                self._make(below, secret)
            self._check(below, secret)
        finally:
            self.end()

    def end(self) -> None:
        """End processes that an ended konnector left here.

        :raises PeerError: when one does not end
        """
        self._daemon.end()
        self._server.end()

    def _is_empty(self, source: Sequence[str]) -> bool:
        """Whether the source begins with zeros.

        :raises PeerError: when it cannot be read
        """
        place = self.folder / "beginning"
        self._server.start(["--filter=truncate", *source, f"truncate={_LOOKED_AT}"])
        try:
            uri = f"nbd+unix:///?socket={self._server.socket()}"
            processes.run(["nbdcopy", uri, str(place)], "the first bytes of the volume cannot be read")
            data = place.read_bytes()
        finally:
            place.unlink(missing_ok=True)
            self._server.end()
        if len(data) != _LOOKED_AT:
            raise PeerError(f"of the first {_LOOKED_AT} bytes of the volume {len(data)} could be read")
        return not any(data)

    def _make(self, below: Sequence[str], secret: str) -> None:
        """Create it over zeros; repeat this over the result of a failed attempt."""
        with self._started(below, secret):
            for left in reversed(range(_ATTEMPTS)):
                try:
                    self._daemon.run(self._format())
                    break
                except PeerError as error:
                    if not left:
                        raise
                    log.info("a LUKS header is tried again: %s", error)

    async def _format(self) -> None:
        async with self._daemon.connected() as client:
            with client.listener("JOB_STATUS_CHANGE") as events:
                await client.execute("blockdev-create", {"job-id": _JOB, "options": _FORMAT})
                async for event in events:
                    data: Any = event["data"]
                    if data["status"] == "concluded":
                        break
            jobs: Any = await client.execute("query-jobs")
            await client.execute("job-dismiss", {"id": _JOB})
        failed = [str(job["error"]) for job in jobs if "error" in job]
        if failed:
            raise PeerError(f"no LUKS header can be made: {failed[0]}")

    def _check(self, below: Sequence[str], secret: str) -> None:
        plain = {"driver": "luks", "node-name": "plain", "file": "target", "key-secret": "passphrase"}
        try:
            with self._started(below, secret, plain):
                pass
        except PeerError as error:
            if "Invalid password" in str(error):
                raise CallerError("`secret` does not open the LUKS header of the volume") from error
            if "not in LUKS format" in str(error):
                raise Conflict(
                    "the volume has no LUKS header; one is made for a volume that is `fresh` and begins with zeros"
                ) from error
            raise

    @contextlib.contextmanager
    def _started(self, below: Sequence[str], secret: str, *nodes: dict[str, Any]) -> Iterator[None]:
        """Run a qemu-storage-daemon whose node ``target`` is the storage below ``luks``."""
        self._server.start(below)
        try:
            target = nbd_client("target", {"type": "unix", "path": str(self._server.socket())})
            with open_passphrase(secret) as descriptor:
                given = [f"secret,id=passphrase,file=/proc/self/fd/{descriptor}"]
                self._daemon.start([target, *nodes], "", given, (descriptor,))
            yield
        finally:
            self._daemon.end()
            self._server.end()

    @property
    def _daemon(self) -> QemuDaemon:
        return QemuDaemon(self.folder, "header")

    @property
    def _server(self) -> StackServer:
        return StackServer(self.folder)
