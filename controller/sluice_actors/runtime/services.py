"""The services of a host, tasks that repeat until the host ends, and the ownership of names by hosts."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Final, Protocol

from sluice_core.errors import PeerError
from sluice_core.store import fencing

log = logging.getLogger(__name__)


class Ownership(Protocol):
    """Which host owns a name; a team of hosts divides the names (``sluice_actors.hosts.team``).

    Every object that must have one actor in the cluster has a name here: policies their id, global controllers
    ``controller/<name>``, services names of their own.
    """

    def owns(self, name: str) -> bool:
        """True when this host owns the name now; must be cheap."""

    def owns_slot(self, slot: str) -> bool:
        """The same for all names of a slot (``sluice_core.store.fencing``)."""

    def fence(self, names: Iterable[str]) -> dict[str, str]:
        """The ownership that a change decided for these names carries (``Draft.fence``)."""

    @property
    def acting(self) -> bool:
        """False while this host must not write."""

    def refused(self, slot: str) -> None:
        """The store refused a change because another host owns ``slot``."""


_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 2.0

#: Runs a coroutine as a task until the host closes.
Spawn = Callable[[Coroutine[Any, Any, None]], None]


def owned_term(ownership: Ownership, name: str) -> int:
    """The term under which this host owns ``name``, 1 if it does not; receivers of messages compare owners by it."""
    return max(map(fencing.owner_term, ownership.fence((name,)).values()), default=1)


class Service:
    """A part of a host that works on its own.  The host starts its services in order and closes them in reverse.

    By default both methods do nothing.
    """

    def start(self, spawn: Spawn) -> None:
        """Begin, on the running loop, and pass ``spawn`` the tasks that the host is to run."""

    async def close(self) -> None:
        """End; the tasks were cancelled before."""


async def repeat_forever(what: str, step: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Repeat ``step`` in a task named ``what``; with growing pauses while a peer is unreachable."""
    task = asyncio.current_task()
    assert task is not None
    task.set_name(what)
    pause = _FIRST_PAUSE
    while True:
        try:
            await step()
        except PeerError as error:
            if pause == _FIRST_PAUSE:
                log.warning("%s: %s", what, error)
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 - jitter
            pause = min(pause * 2, _LONGEST_PAUSE)
        else:
            pause = _FIRST_PAUSE


async def repeat_while_owned(
    what: str, ownership: Ownership, name: str, step: Callable[[], Coroutine[Any, Any, None]], seconds: float
) -> None:
    """Repeat ``step`` every ``seconds`` while this host owns ``name``."""

    async def owned() -> None:
        if ownership.owns(name):
            await step()
        await asyncio.sleep(seconds)

    await repeat_forever(what, owned)


async def wait_at_most(event: asyncio.Event, seconds: float) -> None:
    """Wait until ``event`` is set, or ``seconds`` have passed."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
