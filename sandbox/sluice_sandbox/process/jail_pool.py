"""Jails for the tenants of a supervisor: numbered, each with a user and a control group, one of them in reserve."""

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
    """The settings of a supervisor.

    ``folder`` holds the sockets, ``cache`` the jail's root.  ``owner`` is the user who may connect (Swift's),
    None for the user of this process.  Started as root, tenants run as ``first_uid`` and following.
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
        #: A jail with a worker for the next tenant, so that it does not wait for the start.
        self._spare: tuple[Jail, JailedWorker] | None = None
        self._preparing = asyncio.Lock()

    async def open(self) -> None:
        """Build the root, try a jail, start the first worker.

        :raises JailUnavailable: when this machine cannot run a jail
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
        """Run nothing in a jail, to detect an unsuitable machine before the first tenant."""
        heard, errors = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            process = self._jail(0, group=False).start([*PYTHON, "-c", "pass"], [], errors)
            if process.wait(timeout=30):
                raise root.JailUnavailable(f"the jail does not work here: {last_error_line(heard)}")
        finally:
            os.close(heard)
            os.close(errors)

    def take_spare(self) -> tuple[Jail, JailedWorker] | None:
        """Return the jail in reserve with its worker; None when there is none."""
        spare, self._spare = self._spare, None
        return spare

    def acquire(self) -> tuple[Jail, JailedWorker | None]:
        """Return the jail of the next tenant, and a worker if one is ready."""
        return self.take_spare() or (self._next_jail(), None)

    def _next_jail(self) -> Jail:
        """Return the jail of the lowest free number."""
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
                # the next tenant tries again and reports the error
                _log.warning("no spare worker: %s", error)
                self.slots.discard(jail.slot)
