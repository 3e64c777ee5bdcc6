"""Jails for the tenants of a supervisor: numbered, each with a user and a control group, one of them ready."""

from __future__ import annotations

import asyncio
import logging
import os
from dataclasses import dataclass, field
from pathlib import Path

from sluice_core.errors import SluiceError
from sluice_sandbox.jail import root
from sluice_sandbox.jail.jail import ControlGroups, Jail
from sluice_sandbox.limits import Limits
from sluice_sandbox.process.tenant import PYTHON, JailedWorker, last_error_line, start_jailed_worker

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Settings:
    """What a supervisor is started with.

    ``folder`` holds the sockets, ``cache`` the jail's root.  ``owner`` is the user who may connect (Swift's),
    None for the one who starts it.  Started as root, tenants run as ``first_uid`` and following.
    """

    folder: Path
    cache: Path
    limits: Limits = field(default_factory=Limits)
    packages: tuple[str, ...] = tuple(root.PACKAGES)
    owner: int | None = None
    first_uid: int = 400000


class JailPool:
    """Makes jails.

    ``slots`` are the numbers in use, ``root`` is the root file system of all jails, ``groups`` their control groups.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._limits = settings.limits
        self.slots: set[int] = set()
        self.groups = ControlGroups()
        self.root = Path()
        #: A jail with a worker for the next tenant, so that nobody waits for one to start.
        self._spare: tuple[Jail, JailedWorker] | None = None
        self._preparing = asyncio.Lock()

    async def open(self) -> None:
        """Build the root, try a jail, prepare the first worker.

        :raises JailUnavailable: when this machine cannot hold a jail
        """
        self.root = await asyncio.to_thread(root.build, self._settings.cache, self._settings.packages)
        self.groups.open()
        self._try_jail()
        await self.prepare()

    def _jail(self, slot: int, group: bool = True) -> Jail:
        made = self.groups.group(str(slot), self._limits) if group and self.groups.available else None
        uid = self._settings.first_uid + slot if os.getuid() == 0 else None
        return Jail(self.root, self._limits, uid, made, slot)

    def _try_jail(self) -> None:
        """Run nothing in a jail: a machine that cannot do it says so now, not to a tenant."""
        heard, errors = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            process = self._jail(0, group=False).start([*PYTHON, "-c", "pass"], [], errors)
            if process.wait(timeout=30):
                raise root.JailUnavailable(f"the jail does not work here: {last_error_line(heard)}")
        finally:
            os.close(heard)
            os.close(errors)

    def take_spare(self) -> tuple[Jail, JailedWorker] | None:
        """The jail that is ready, with its worker, if there is one."""
        spare, self._spare = self._spare, None
        return spare

    def acquire(self) -> tuple[Jail, JailedWorker | None]:
        """The jail of the next tenant, and a worker where one is ready."""
        return self.take_spare() or (self._next_jail(), None)

    def _next_jail(self) -> Jail:
        """The jail of the lowest free number."""
        slot = next(number for number in range(len(self.slots) + 1) if number not in self.slots)
        self.slots.add(slot)
        return self._jail(slot)

    async def prepare(self) -> None:
        """Start a worker for the next tenant, if possible."""
        async with self._preparing:
            if self._spare is not None:
                return
            jail = self._next_jail()
            try:
                self._spare = jail, await start_jailed_worker(jail)
            except SluiceError as error:
                # a tenant that comes will try again, and be told
                _log.warning("no spare worker: %s", error)
                self.slots.discard(jail.slot)
