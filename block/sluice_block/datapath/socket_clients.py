"""The clients of a unix socket on which a process of Sluice listens.

The server's own ends of the connections are inspected: its file descriptors are duplicated for a moment
(pidfd_getfd(2)), and the kernel reports the process at the other end of each (``SO_PEERCRED``).  So clients in other
network namespaces are found, too, whose sockets ``/proc/net/unix`` does not list.
"""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from sluice_block.datapath import processes
from sluice_block.datapath.processes import ProcessRecord
from sluice_core.errors import Conflict, PeerError

#: pidfd_getfd(2), of which Python has no function.
_PIDFD_GETFD: Final = 438
#: ``struct ucred``: pid, user, group.
_CREDENTIALS: Final = struct.Struct("3i")
#: Seconds for which a program that only inspects the export (nbdinfo) may be connected.
_LOOKED_AT: Final = 1.0


def check_unused(path: Path, server: ProcessRecord) -> None:
    """Refuse while clients are connected; wait for a client that only inspects.

    :param server: the process that listens on the socket at ``path``
    :raises Conflict: naming the processes that are connected to it
    :raises PeerError: when the kernel does not report the clients
    """
    held: list[str] = []

    def is_unused() -> bool:
        held[:] = clients(path, server)
        return not held

    if not processes.wait_until(is_unused, _LOOKED_AT):
        raise Conflict(f"`{path}` is in use: {', '.join(held)}")


def clients(path: Path, server: ProcessRecord) -> list[str]:
    """Return the processes that are connected to the socket at ``path``, on which ``server`` listens.

    :raises PeerError: when the kernel does not report the clients
    """
    handle = server.open()
    if handle is None:
        return []
    try:
        pids = {pid for end in _sockets(handle, server.pid) if (pid := _peer(end, str(path))) is not None}
    except OSError as error:
        raise PeerError(f"who is connected to `{path}` cannot be found out: {error}") from error
    finally:
        os.close(handle)
    return [f"connected by process {pid} ({_command(pid)})" for pid in sorted(pids)]


def _sockets(handle: int, pid: int) -> Iterator[socket.socket]:
    """Yield the sockets of a process, each open during its inspection.

    :raises OSError: when the kernel refuses
    """
    for descriptor_link in Path(f"/proc/{pid}/fd").iterdir():
        try:
            is_socket = os.readlink(descriptor_link).startswith("socket:")
        except FileNotFoundError:  # closed meanwhile
            continue
        descriptor = _duplicate(handle, int(descriptor_link.name)) if is_socket else None
        if descriptor is not None:
            with socket.socket(fileno=descriptor) as end:
                yield end


def _duplicate(handle: int, descriptor: int) -> int | None:
    """Return a duplicate of another process' descriptor; None when it was closed meanwhile."""
    libc = ctypes.CDLL(None, use_errno=True)
    found = int(libc.syscall(_PIDFD_GETFD, handle, descriptor, 0))
    if found >= 0:
        return found
    number = ctypes.get_errno()
    if number == errno.EBADF:
        return None
    raise OSError(number, os.strerror(number))


def _peer(end: socket.socket, path: str) -> int | None:
    """Return the process at the other end, if this is a connection that was accepted at ``path``."""
    if end.family != socket.AF_UNIX or end.getsockname() != path:
        return None
    if end.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        return None
    pid, _, _ = _CREDENTIALS.unpack(end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    return int(pid)


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:  # in another container, or it passed its connection on and ended
        return "of an unknown name"
