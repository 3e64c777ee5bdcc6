"""TCP ports of 127.0.0.1: free ones, and whether a server answers."""

from __future__ import annotations

import contextlib
import random
import socket
from pathlib import Path
from typing import Final

from sluice_core.errors import PeerError

HOST: Final = "127.0.0.1"
#: Higher than what an all-in-one takes by default, and a few beside it.
_FIRST_FREE: Final = 20_000
#: First and last port that the kernel takes for outgoing connections.
_OUTGOING: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_port() -> int:
    """A TCP port of 127.0.0.1 that nobody listens on now; see :func:`free_ports`."""
    return free_ports(1)[0]


def free_ports(count: int) -> list[int]:
    """Different TCP ports of 127.0.0.1 that nobody listens on now.

    They lie below those that the kernel gives to outgoing connections: a server may start (again) on one much later,
    and must not find a connection of somebody else there.

    :raises PeerError: when there are not enough of them
    """
    first_outgoing = int(_OUTGOING.read_text("ascii").split()[0])
    candidates = range(_FIRST_FREE, first_outgoing)
    found: list[int] = []
    for port in random.sample(candidates, len(candidates)):  # two who look at once find different ones
        if len(found) == count:
            break
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind((HOST, port))
            found.append(port)
    if len(found) < count:
        raise PeerError(f"{len(found)} ports from {_FIRST_FREE} to {first_outgoing - 1} are free, expected {count}")
    return found


def probe(port: int, question: bytes, size: int = 64, timeout: float = 1.0) -> bytes:
    """The first bytes that the server on ``port`` answers to ``question``; empty when there is none."""
    try:
        with socket.create_connection((HOST, port), timeout) as connection:
            connection.sendall(question)
            return connection.recv(size)
    except OSError:
        return b""
