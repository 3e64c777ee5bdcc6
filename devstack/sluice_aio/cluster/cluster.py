"""One whole cluster: start, wait, stop, and operations of tests on its processes.

The process that started a cluster may have ended when the cluster is stopped, so :func:`shutdown.stop_recorded` uses
the records in the cluster's folder, and :class:`Cluster` itself stops in the same way.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Final, Self

from sluice_aio.base.backing_servers import RabbitServer, RedisServer
from sluice_aio.base.layout import OBJECT_DEVICES, STORAGE_AGENTS, Layout
from sluice_aio.base.processes import ProcessId
from sluice_aio.base.server import Server
from sluice_aio.base.setup import KEYSTONE, Setup
from sluice_aio.cinder import backends, konnector
from sluice_aio.cinder.conf import seed_cinder, write_cinder
from sluice_aio.cluster import components
from sluice_aio.cluster.readiness import START_LIMIT, wait_until_healthy, wait_until_serving
from sluice_aio.cluster.records import STOP_LIMIT, Record, Records, locked, stop_all, uninterrupted
from sluice_aio.conf import collectd, common
from sluice_aio.conf.horizon import write_horizon
from sluice_aio.conf.sluice import ensure_token, write_sluice
from sluice_aio.conf.swift import build_rings, write_swift
from sluice_aio.errors import LaunchError
from sluice_aio.keystone import barbican, seed, venv
from sluice_aio.keystone.http import KeystoneHttp
from sluice_core.errors import PeerError

#: Seconds between two measurements of CollectD.
COLLECTD_INTERVAL: Final = 5


class Cluster:
    """The services ``names`` of the cluster at ``layout``; has no effect before :meth:`start`.

    Without a ``setup`` Swift gets all of Sluice, unless no agent is among the services.
    """

    def __init__(
        self,
        layout: Layout,
        names: Collection[str] = components.DEFAULT,
        plain: bool = False,
        setup: Setup | None = None,
    ) -> None:
        self.layout = layout
        self._names = frozenset(names) | ({"plain"} if plain else frozenset())
        self.setup = setup or (Setup() if "agent" in self._names else Setup.plain())
        if self.setup.auth == KEYSTONE:
            self._names |= {"keystone"}
        if "barbican" in self._names and "keystone" not in self._names:
            raise LaunchError('barbican asks Keystone who asks it, use a set-up with `auth="keystone"`')
        if "horizon" in self._names and "keystone" not in self._names:
            raise LaunchError('horizon asks Keystone who logs in, use a set-up with `auth="keystone"`')
        if "cinder" in self._names:
            if "keystone" not in self._names:
                raise LaunchError('cinder asks Keystone who asks it, use a set-up with `auth="keystone"`')
            self._names |= {"rabbit"}  # receives its notifications
        self._servers: dict[str, Server] = {}
        self._records = Records(layout.run)
        self._token = ""

    def start(self, say: Callable[[str], None] = lambda line: None) -> None:
        """Write the configurations, start all services and wait until they serve.

        On any failure, Ctrl-C included, all started services are stopped again.

        :raises LaunchError: if it runs already, a port is taken or a service does not serve
        """
        with locked(self._records):
            self.refuse_when_running()
            components.check_ports(self.layout, self._names)
            for service in sorted(self._names & {"keystone", "barbican", "cinder", "horizon"}):
                venv.python(say, service=service)
            if "cinder" in self._names:
                backends.check_programs()
            self._servers = components.make_servers(self.layout, self._names)
            self._configure()
            try:
                if "cinder" in self._names:
                    backends.prepare(self.layout)
                for wave in components.WAVES:
                    self._start_wave([name for name in wave if name in self._servers], say)
                wait_until_serving(self._servers, say)
                if "keystone" in self._servers:
                    seed.seed(self.layout)
                if self.setup.swift_users:
                    common.seed_users(self.layout)
                if "barbican" in self._servers:
                    barbican.seed_barbican(self.layout)
                if "cinder" in self._servers:
                    seed_cinder(self.layout)
                wait_until_healthy(self.api_url, self._servers, say)
            except PeerError as error:
                self._stop()
                raise LaunchError(str(error)) from error
            except BaseException:
                self._stop()
                raise

    def refuse_when_running(self) -> None:
        """Check that no cluster runs in the folder.

        :raises LaunchError: if one does
        """
        if any(record.alive() for record in self._records.load().values()):
            raise LaunchError(f"a cluster runs in `{self.layout.folder}` already, stop it with `make down`")

    def stop(self) -> None:
        """Stop everything that this cluster started; harmless if nothing runs."""
        with locked(self._records):
            self._stop()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def add(self, names: Collection[str]) -> None:
        """Start those of ``names`` that do not run, in a running cluster, and wait until they serve.

        :raises LaunchError: like :meth:`start`
        """
        fresh = components.make_servers(self.layout, set(names) - self._servers.keys())
        components.check_ports(self.layout, fresh.keys())
        self._servers |= fresh
        try:
            for wave in components.WAVES:
                self._start_wave([name for name in wave if name in fresh], lambda line: None)
            wait_until_serving(fresh, lambda line: None)
        except PeerError as error:
            raise LaunchError(str(error)) from error

    def remove(self, name: str) -> None:
        """Stop service ``name`` for good."""
        self._end(name)
        self._servers.pop(name, None)
        self._record()

    def restart(self, name: str) -> None:
        """Stop service ``name`` (running or not), start it again and wait until it serves."""
        self._end(name)
        server = self._servers[name]
        server.start()
        self._record()
        server.wait_ready(START_LIMIT)

    def kill(self, name: str, number: int = signal.SIGKILL) -> None:
        """Send signal ``number``; SIGKILL goes to the service with all its workers and is waited for."""
        process = self.process(name)
        if number != signal.SIGKILL:
            process.signal(number)
            return
        for member in [process, *process.session()]:
            member.signal(signal.SIGKILL)
            member.wait(STOP_LIMIT)
        self._servers[name].kill()

    def process(self, name: str) -> ProcessId:
        """The main process of service ``name``.

        :raises LaunchError: if the service is not part of this cluster
        """
        record = self._records.load().get(name)
        if record is None:
            raise LaunchError(f"service `{name}` was not started here")
        return record.processes[0]

    def workers(self, name: str) -> list[ProcessId]:
        """The live processes that service ``name`` forked."""
        main = self.process(name)
        return [member for member in main.session() if member != main]

    @property
    def proxy_url(self) -> str:
        """The Swift proxy with Sluice."""
        return self.layout.url("proxy")

    @property
    def plain_url(self) -> str:
        """The Swift proxy without Sluice, over the same storage."""
        return self.layout.url("plain")

    @property
    def api_url(self) -> str:
        """The REST API."""
        return self.layout.url("api")

    @property
    def keystone_url(self) -> str:
        """Keystone, if the set-up has it."""
        return self.layout.keystone_url

    @property
    def redis_url(self) -> str:
        """Redis."""
        return self._redis().url

    @property
    def amqp_url(self) -> str:
        """The broker."""
        return self._rabbit().url

    @property
    def token(self) -> str:
        """The admin token of the API; with Keystone the same one each time.

        :raises PeerError: if Keystone refuses it
        """
        if self.setup.auth != KEYSTONE:
            return ensure_token(self.layout)
        if not self._token:
            login = KeystoneHttp(self.keystone_url).login
            self._token = login(seed.ADMIN, seed.password(self.layout, seed.ADMIN), seed.ADMIN).id
        return self._token

    @property
    def device_folders(self) -> tuple[Path, ...]:
        """The folders that stand for the object servers' disks."""
        return tuple(self.layout.device(server) for server in OBJECT_DEVICES)

    def log(self, name: str) -> str:
        """The whole log of service ``name``."""
        return self._servers[name].log.read_text(encoding="utf-8", errors="replace")

    def _redis(self) -> RedisServer:
        return RedisServer(self.layout.ports["redis"], self.layout.data / "redis")

    def _rabbit(self) -> RabbitServer:
        ports = self.layout.ports
        return RabbitServer(ports["rabbit"], ports["rabbit_dist"], ports["epmd"], self.layout.data / "rabbit")

    def _configure(self) -> None:
        for folder in (self.layout.logs, self.layout.run, self.layout.data, self.layout.configs):
            folder.mkdir(parents=True, exist_ok=True)
        self.layout.agent_socket.unlink(missing_ok=True)  # its existence means that the agent is ready
        for agent in ("agent2", *STORAGE_AGENTS):
            self.layout.node_of(agent).agent_socket.unlink(missing_ok=True)
        if "keystone" in self._names:
            seed.password(self.layout, seed.ADMIN)
        if self.setup.swift_users:
            common.write_projects(self.layout)
        if "barbican" in self._names:
            barbican.write_barbican(self.layout)
        if "horizon" in self._names:
            write_horizon(self.layout)
        if "cinder" in self._names:
            python = venv.python(service="cinder")
            write_cinder(self.layout, self._rabbit().url, python, self.setup.ceph_conf)
        for name in self._names & set(components.KONNECTORS):
            konnector.write_konnector(self.layout.node_of(name), self.setup)
        if "collectd" in self._names:
            text = collectd.configuration(
                self.layout.node, self._rabbit().url, self.layout.collectd, COLLECTD_INTERVAL, ["lo"]
            )
            collectd.write_collectd(self.layout.collectd, text)
        write_swift(self.layout, self.setup)
        write_sluice(self.layout, self._redis().url, self._rabbit().url, self.setup, "cinder" in self._names)
        build_rings(self.layout)

    def _start_wave(self, names: Collection[str], say: Callable[[str], None]) -> None:
        if not names:
            return
        say(f"starting {', '.join(names)}")
        for name in names:
            self._servers[name].start()
            self._record()
        if "redis" in names:  # the next command reads it first
            self._servers["redis"].wait_ready(START_LIMIT)

    def _record(self) -> None:
        records = []
        for name, server in self._servers.items():
            processes = [ProcessId.find(pid) for pid in server.pids]
            running = tuple(process for process in processes if process is not None)
            if running:
                port = server.port or None
                records.append(Record(name, port, running))
        self._records.save(records)

    def _end(self, name: str) -> None:
        with contextlib.suppress(LaunchError):
            self.process(name).end(STOP_LIMIT)
        self._servers[name].stop()

    def _stop(self) -> None:
        with uninterrupted():
            self._record_started()
            stop_all(self._records)
            for server in self._servers.values():
                server.stop()  # reaps this process' children
            konnector.release(self.layout)
            backends.release(self.layout)

    def _record_started(self) -> None:
        """Include processes that were started after the last record, for example when Ctrl-C arrived in between."""
        if self._servers:
            self._record()
