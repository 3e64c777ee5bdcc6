"""Free TCP ports of 127.0.0.1, and a check whether a server answers."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import itertools
import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from sluice_core.errors import PeerError

HOST: Final = "127.0.0.1"
#: Above the default ports of an all-in-one, and some beside it.
_FIRST_FREE: Final = 20_000
#: First and last port that the kernel uses for outgoing connections.
_OUTGOING: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")
#: Processes of a user that may search for free ports at the same time.
_SLICES: Final = 32


def free_port() -> int:
    """A TCP port of 127.0.0.1 without a listener; see :func:`free_ports`."""
    return free_ports(1)[0]


def free_ports(count: int) -> list[int]:
    """Different TCP ports of 127.0.0.1 without a listener.

    A port is free until a server listens on it, which may be much later.  Three rules protect it until then:

    * The ports lie below those that the kernel gives to outgoing connections.
    * No other process of this user gets them: each takes a slice of the ports, with a lock, until it ends.
    * This process returns a port again only after all others of its slice.

    :raises PeerError: if there are not enough of them
    """
    ports, turn = _slice(os.getpid())
    ports_free: list[int] = []
    for port in itertools.islice(turn, len(ports)):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind((HOST, port))
            ports_free.append(port)
            if len(ports_free) == count:
                return ports_free
    raise PeerError(f"{len(ports_free)} ports from {ports[0]} to {ports[-1]} are free, expected {count}")


@functools.lru_cache(maxsize=1)
def _slice(process: int) -> tuple[range, Iterator[int]]:
    """The ports reserved for ``process``, which is this one (a fork takes others), in turn."""
    first_outgoing = int(_OUTGOING.read_text("ascii").split()[0])
    size = (first_outgoing - _FIRST_FREE) // _SLICES
    if size < 1:
        raise PeerError(f"outgoing connections take ports from {first_outgoing}, expected {_FIRST_FREE + _SLICES}")
    path = Path(tempfile.gettempdir()) / f"sluice-ports-{os.getuid()}.lock"
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)  # open, hence locked, until the end
    for number in range(_SLICES):
        with contextlib.suppress(OSError):
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, number)
            ports = range(_FIRST_FREE + number * size, _FIRST_FREE + (number + 1) * size)
            return ports, itertools.cycle(ports)
    os.close(lock)
    raise PeerError(f"{_SLICES} processes look for free ports already, see `{path}`")


def probe(port: int, question: bytes, size: int = 64, timeout: float = 1.0, host: str = HOST) -> bytes:
    """The first bytes of the answer of the server on ``port`` to ``question``; empty if there is none."""
    try:
        with socket.create_connection((host, port), timeout) as connection:
            connection.sendall(question)
            return connection.recv(size)
    except OSError:
        return b""
