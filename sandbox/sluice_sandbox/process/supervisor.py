"""The supervisor of a node's warm workers: starts, watches, replaces and ends them.  One process, asyncio.

Theory of operation.  Each tenant with work has a listening socket in the folder and one or more jailed
workers that inherited it; streams do not pass through the supervisor.  A host sends it a request when a tenant has no
socket (``start``) or a busy one (``more``); a worker's end is reported by its process descriptor: the worker is
replaced at once while the tenant is open, unless it ended right after its start.

Twice a second it reads the page that each worker shares with it: code that has not returned for ``patience`` seconds is
killed with its worker, and so are all workers of a tenant that accept no streams.  A tenant without streams for
``idle`` seconds is closed in two steps, first its socket, half a second later its workers, so that hosts with a
connection are still served.  When too many tenants are open the longest idle one is closed.
"""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import time
from collections.abc import Callable, Coroutine
from typing import Any, Final

from sluice_core.errors import SluiceError
from sluice_sandbox.jail.root import JailUnavailable
from sluice_sandbox.process.jail_pool import JailPool, Settings
from sluice_sandbox.process.session import CONTROL, tenant_socket
from sluice_sandbox.process.tenant import JailedWorker, Tenant, restrict_socket

LOOK: Final = 0.5
#: A worker that ran for less than this is replaced only at the next request.
_SHORT: Final = 1.0
_MAX_LINE: Final = 4096
_TRIES: Final = 10
_log = logging.getLogger(__name__)


class Supervisor:
    """Serves until :meth:`close`; constructed in its event loop."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._limits = settings.limits
        self._tenants: dict[str, Tenant] = {}
        self._leaving: list[Tenant] = []
        self._server: asyncio.Server | None = None
        self._looking: asyncio.Task[None] | None = None
        self._jails = JailPool(settings)
        self._tasks: set[asyncio.Task[Any]] = set()

    async def open(self) -> None:
        """Build the root, try the jail, listen.

        :raises JailUnavailable: when this machine cannot run a jail
        """
        folder = self._settings.folder
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        for left in (*folder.glob("t-*"), folder / CONTROL):
            left.unlink(missing_ok=True)
        await self._jails.open()
        self._server = await asyncio.start_unix_server(self._answer, folder / CONTROL, limit=_MAX_LINE)
        restrict_socket(folder / CONTROL, self._settings.owner)
        self._looking = asyncio.create_task(self._look_again())
        available = self._jails.groups.available
        _log.info("sandbox at `%s`, root `%s`, groups for %s", folder, self._jails.root, available)

    async def close(self) -> None:
        """End everything."""
        if self._looking is not None:
            self._looking.cancel()
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()
        (self._settings.folder / CONTROL).unlink(missing_ok=True)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        spare = self._jails.take_spare()
        if spare is not None:
            jail, member = spare
            self._leaving.append(Tenant("", self._settings.folder, jail, spare=member))
        for tenant in [*self._tenants.values(), *self._leaving]:
            self._close_tenant(tenant)
        self._tenants.clear()
        self._leaving.clear()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            told = json.loads(await reader.readline())
            error = await self._do(str(told["op"]), str(told["tenant"]))
            writer.write(json.dumps({"error": error}).encode() + b"\n")
            await writer.drain()
        except (ValueError, KeyError, TypeError) as error:
            _log.warning("not understood: %s", error)
        except ConnectionError:
            # a host that wants `more` does not wait for the answer
            return
        finally:
            writer.close()

    async def _do(self, op: str, name: str) -> str:
        """Return the reason why it was not done, or an empty string."""
        try:
            if op == "start":
                await self._start(name)
            elif op == "more":
                await self._more(name)
            else:
                return f"`{op}` is not known, expected start or more"
        except (SluiceError, OSError) as error:
            _log.warning("tenant `%s`: %s", name, error)
            return str(error)
        return ""

    async def _start(self, name: str) -> None:
        if name not in self._tenants:
            await self._room()
        tenant = self._tenants.get(name)
        if tenant is None:
            tenant = self._tenants[name] = self._admit(name)
        async with tenant.lock:
            if tenant.named and tenant.socket_is_shut():
                _log.warning("tenant `%s`: its socket was shut", name)
                self._dismiss(tenant)
            if not tenant.named:
                # closed, just now or during the wait
                await self._start(name)
                return
            try:
                if not tenant.workers:
                    await self._hire(tenant)
            except SluiceError:
                # the waiting host receives the error, and the next one tries again
                self._dismiss(tenant)
                raise

    async def _more(self, name: str) -> None:
        tenant = self._tenants.get(name)
        if tenant is None:
            return
        async with tenant.lock:
            if tenant.has_waiting_streams() and len(tenant.workers) < self._limits.workers:
                await self._hire(tenant)

    async def _room(self) -> None:
        """Wait a moment for a free slot: workers end their streams a little later than hosts see it."""
        for _ in range(_TRIES):
            if len(self._tenants) < self._limits.tenants or not all(map(self._busy, self._tenants.values())):
                return
            await asyncio.sleep(LOOK / _TRIES)

    def _admit(self, name: str) -> Tenant:
        """Add a tenant, if necessary in place of the one that has been idle longest."""
        if len(self._tenants) >= self._limits.tenants:
            free = [one for one in self._tenants.values() if not self._busy(one)]
            if not free:
                raise JailUnavailable(f"all {self._limits.tenants} places for tenants are taken")
            self._dismiss(min(free, key=lambda one: one.active))
        jail, spare = self._jails.acquire()
        tenant = Tenant(name, tenant_socket(self._settings.folder, name), jail, spare=spare)
        tenant.listen(self._settings.owner)
        self._spawn(self._jails.prepare())
        return tenant

    async def _hire(self, tenant: Tenant) -> None:
        member = await tenant.start_worker()
        ended: Callable[..., Any] = self._ended
        asyncio.get_running_loop().add_reader(member.descriptor, ended, tenant, member)

    def _ended(self, tenant: Tenant, member: JailedWorker) -> None:
        """Handle the end of a worker; a waiting stream is served by another."""
        self._release(tenant, member)
        lived = time.monotonic() - member.started
        _log.info("tenant `%s` lost worker %d after %.1f s", tenant.name, member.process.pid, lived)
        if tenant.named and not tenant.workers and (lived > _SHORT or tenant.has_waiting_streams()):
            self._spawn(self._do("start", tenant.name))

    def _release(self, tenant: Tenant, member: JailedWorker) -> None:
        asyncio.get_running_loop().remove_reader(member.descriptor)
        tenant.workers.remove(member)
        member.close()

    def _close_tenant(self, tenant: Tenant) -> None:
        tenant.kill()
        for member in list(tenant.workers):
            self._release(tenant, member)
        tenant.close()

    def _spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _look_again(self) -> None:
        while True:
            await asyncio.sleep(LOOK)
            now = time.monotonic()
            for tenant in list(self._tenants.values()):
                self._look(tenant, now)
            for tenant in list(self._leaving):
                self._see_off(tenant, now)

    def _busy(self, tenant: Tenant) -> bool:
        serves = any(member.counters.read()[2] for member in tenant.workers)
        return tenant.has_waiting_streams() or tenant.lock.locked() or serves

    def _look(self, tenant: Tenant, now: float) -> None:
        looks = [member.observe(now) for member in tenant.workers]
        waiting = tenant.has_waiting_streams()
        if waiting or tenant.lock.locked() or any(moved or streams for moved, streams in looks):
            tenant.active = now
        elif now - tenant.active > self._limits.idle:
            self._dismiss(tenant)
            return
        self._kill_still(tenant, now, waiting)

    def _kill_still(self, tenant: Tenant, now: float, waiting: bool) -> None:
        for member in tenant.workers:
            # or no stream is accepted: code that controls the worker may have overwritten the page
            if now - member.still > self._limits.patience and (member.runs_code() or waiting):
                _log.warning("tenant `%s`: worker %d stood still", tenant.name, member.process.pid)
                member.process.kill()

    def _dismiss(self, tenant: Tenant) -> None:
        """Remove the tenant's socket; see :meth:`_see_off`."""
        tenant.unlink_socket()
        if self._tenants.get(tenant.name) is tenant:
            del self._tenants[tenant.name]
            self._leaving.append(tenant)

    def _see_off(self, tenant: Tenant, now: float) -> None:
        """End the tenant's service, then, when no stream is left, its workers."""
        for member in tenant.workers:
            member.observe(now)
        self._kill_still(tenant, now, tenant.has_waiting_streams())
        if tenant.workers and self._busy(tenant):
            return
        self._close_tenant(tenant)
        self._jails.slots.discard(tenant.jail.slot)
        self._leaving.remove(tenant)


async def serve(
    settings: Settings,
    ready: Callable[[], None] = lambda: None,
    keep_alive: Callable[[], Coroutine[Any, Any, None]] | None = None,
) -> None:
    """Run a supervisor until SIGTERM or SIGINT.

    :param keep_alive: runs beside the supervisor
    """
    supervisor = Supervisor(settings)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    try:
        await supervisor.open()
        ready()
        watched = None if keep_alive is None else asyncio.create_task(keep_alive())
        await stop.wait()
        if watched is not None:
            watched.cancel()
    finally:
        await supervisor.close()
