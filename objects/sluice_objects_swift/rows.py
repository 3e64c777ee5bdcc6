"""The row of an object in the listing of its container.

Object servers write it when they store a state, as for a PUT of a proxy server: each writes to one container server,
and keeps what it cannot write (``async_pending``).  An object that changes often would write a row a commit, so that
only the first row of a second is written; creations, deletions and the first state of a home always are.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from sluice_objects.state.records import DELETED, ObjectState

#: Seconds between the rows of an object.
PERIOD: Final = 1.0


class Rows:
    """
    :param servers: partition and nodes of the container
    """

    def __init__(
        self, servers: Callable[[], tuple[int, Sequence[Mapping[str, Any]]]], now: Callable[[], float] = time.monotonic
    ) -> None:
        self._servers = servers
        self._now = now
        self._written: tuple[bool, float] | None = None

    def headers(self, state: ObjectState, devices: int) -> list[dict[str, str]]:
        """The headers for each of the devices that store ``state``; empty ones when its row can wait."""
        exists, now = state.kind != DELETED, self._now()
        if self._written is not None and self._written[0] == exists and now - self._written[1] < PERIOD:
            return [{}] * devices
        self._written = (exists, now)
        partition, nodes = self._servers()
        return [_headers(partition, nodes[number % len(nodes)]) for number in range(devices)]


def _headers(partition: int, node: Mapping[str, Any]) -> dict[str, str]:
    return {
        "X-Container-Partition": str(partition),
        "X-Container-Host": f"{node['ip']}:{node['port']}",
        "X-Container-Device": str(node["device"]),
    }
