"""Machines of a team: Redis and RabbitMQ on one, ``sluice-actors`` on each of the others, which lose power or cable."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from tests.support.hosts.lab import Lab, write_file

from sluice_core.store.store import AsyncStore

SERVICES: Final = "services"
_ADDRESS: Final = "192.0.2.11"
ADDRESSES: Final = {SERVICES: _ADDRESS, "h1": "192.0.2.21", "h2": "192.0.2.22", "h3": "192.0.2.23"}
REDIS_URL: Final = f"redis://{_ADDRESS}:6379/0"
AMQP_URL: Final = f"amqp://guest:guest@{_ADDRESS}:5672/%2F"
_FILES: Final = {
    "/etc/redis/redis.conf": 'bind 0.0.0.0\nprotected-mode no\nsave ""\ndir /var/lib/redis\n',
    "/etc/rabbitmq/rabbitmq.conf": "loopback_users = none\n",
}
#: Its log is on a disk, where it outlives the machine.
_UNIT: Final = """\
[Service]
ExecStart=/bin/sh -c "exec {python} -m sluice_actors --config /etc/sluice/actors.conf 2>> /srv/actors.log"
"""


@contextlib.contextmanager
def machines_with_services(folder: Path) -> Iterator[Lab]:
    """Machines of which the first serves Redis and RabbitMQ; inside, this thread is in its network."""
    with Lab(folder, ADDRESSES) as lab:
        services = lab.host(SERVICES)
        for path, text in _FILES.items():
            write_file(services, path, text)
        lab.add(services)
        services.run("systemctl", "start", "redis-server", "rabbitmq-server")
        with lab.network_of(SERVICES):
            yield lab


class Machine:
    """The real ``sluice-actors``, as the one of a team that runs on this machine."""

    def __init__(self, lab: Lab, name: str, store: AsyncStore, **options: Any) -> None:
        self.name = name
        self._lab = lab
        self._store = store
        self._options: Mapping[str, Any] = {"host": name, "redis_url": REDIS_URL, "amqp_url": AMQP_URL, **options}
        self._log = lab.folder / name / "srv" / "actors.log"
        self._log.unlink(missing_ok=True)

    async def switch_on(self) -> None:
        """Let it boot and start the host of actors; its reports say when that is at work."""
        await asyncio.to_thread(self._boot)

    def _boot(self) -> None:
        machine = self._lab.host(self.name)
        lines = [f"{option} = {value}" for option, value in self._options.items()]
        write_file(machine, "/etc/sluice/actors.conf", "\n".join(["[actors]", *lines, ""]))
        write_file(machine, "/etc/systemd/system/sluice-actors.service", _UNIT.format(python=sys.executable))
        self._lab.add(machine).run("systemctl", "start", "sluice-actors")

    async def switch_off(self) -> None:
        """Cut its power: its connections are not closed."""
        if self.name in self._lab.hosts:
            await asyncio.to_thread(self._lab.cut_power, self.name)

    def signal(self, number: signal.Signals) -> None:
        """Send the host of actors a signal."""
        machine = self._lab.hosts[self.name]
        machine.run("kill", f"-{number.value}", machine.run("cat", "/run/units/sluice-actors.service.pid"))

    def unplug(self) -> None:
        """Pull its cable: all that it sends and all that is sent to it is lost."""
        self._lab.unplug(self.name)

    def plug(self) -> None:
        """Plug it in again."""
        self._lab.plug(self.name)

    async def report(self) -> dict[str, Any]:
        """The last report of its actor host."""
        return (await self._store.hosts()).get(self.name, {})

    def log(self) -> str:
        """Its log, including that before power cuts."""
        return self._log.read_text() if self._log.exists() else ""
