"""Redis, RabbitMQ and memcached as child processes."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import Final

from sluice_aio.base.ports import HOST, probe
from sluice_aio.base.server import Child, Server
from sluice_core.errors import PeerError

_POLL_SECONDS: Final = 0.05


class RedisServer(Server):
    """Redis with an append-only file."""

    name = "redis"

    @property
    def url(self) -> str:
        """The URL for clients."""
        return f"redis://{HOST}:{self.port}/0"

    def argv(self) -> list[str]:
        settings = {
            "port": str(self.port),
            "bind": HOST,
            "dir": str(self.folder),
            "appendonly": "yes",
            "appendfsync": "everysec",
            "save": "",
            "daemonize": "no",
        }
        return ["redis-server", *(word for name, value in settings.items() for word in (f"--{name}", value))]

    def answers(self) -> bool:
        return probe(self.port, b"PING\r\n").startswith(b"+PONG")


class MemcachedServer(Server):
    """memcached with 64 MB."""

    name = "memcached"

    @property
    def address(self) -> str:
        """``host:port``, in the form of Swift's ``memcache_servers``."""
        return f"{HOST}:{self.port}"

    @property
    def url(self) -> str:
        """The address as a URL."""
        return f"memcached://{self.address}"

    def argv(self) -> list[str]:
        # memcached started by root requires the name of another user
        user = ["-u", "nobody"] if os.geteuid() == 0 else []
        return ["memcached", "-l", HOST, "-p", str(self.port), "-U", "0", "-m", "64", *user]

    def answers(self) -> bool:
        return probe(self.port, b"version\r\n").startswith(b"VERSION")


class RabbitServer(Server):
    """RabbitMQ without plugins, with an epmd of its own (Erlang's port mapper, normally one per machine).

    It is started without Debian's wrapper script, so it runs as the present user and writes only to
    ``folder``.  Every process on the way uses ``exec``, so ``pid`` is the broker itself.
    """

    name = "rabbitmq"
    patience = 90.0
    script = "/usr/lib/rabbitmq/bin/rabbitmq-server"

    def __init__(self, port: int, dist_port: int, epmd_port: int, folder: str | Path, tied: bool = False) -> None:
        super().__init__(port, folder, tied)
        self.dist_port = dist_port
        self.epmd_port = epmd_port
        self._epmd: Child | None = None

    @property
    def url(self) -> str:
        """The URL for clients."""
        return f"amqp://guest:guest@{HOST}:{self.port}/%2F"

    @property
    def pids(self) -> tuple[int, ...]:
        epmd = () if self._epmd is None or self._epmd.pid is None else (self._epmd.pid,)
        return (*super().pids, *epmd)

    def argv(self) -> list[str]:
        return [self.script]

    def env(self) -> dict[str, str]:
        home = self.folder.resolve()
        arguments = [
            "+S 2:2",
            "-start_epmd false",
            "-kernel inet_dist_use_interface {127,0,0,1}",
            "-mnesia core_dir false",  # otherwise a broker that is killed writes into the present folder
        ]
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "LANG": "C.UTF-8",
            "HOME": str(home),  # place of the Erlang cookie
            "ERL_EPMD_PORT": str(self.epmd_port),
            "ERL_EPMD_ADDRESS": HOST,
            "RUNNING_UNDER_SYSTEMD": "true",  # makes the script exec the broker instead of supervising it
            "RABBITMQ_CONF_ENV_FILE": str(home / "rabbitmq-env.conf"),
            "RABBITMQ_CONFIG_FILE": str(home / "rabbitmq.conf"),
            "RABBITMQ_ADVANCED_CONFIG_FILE": str(home / "advanced.config"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(home / "enabled_plugins"),
            "RABBITMQ_NODENAME": f"sluice{self.port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": HOST,
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(self.dist_port),
            "RABBITMQ_MNESIA_BASE": str(home / "data"),
            "RABBITMQ_LOG_BASE": str(home),
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_SCHEDULER_BIND_TYPE": "u",
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": " ".join(arguments),
        }

    def settings(self) -> str:
        """The lines of rabbitmq.conf."""
        return "log.console.level = warning\nheartbeat = 10\ndisk_free_limit.absolute = 50MB\n"

    def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "enabled_plugins").write_text("[].\n")
        (self.folder / "advanced.config").write_text("[].\n")
        (self.folder / "rabbitmq-env.conf").write_text("")
        (self.folder / "rabbitmq.conf").write_text(self.settings())
        if self._epmd is None or not self._epmd.running:
            epmd = shutil.which("epmd") or "epmd"
            argv = [epmd, "-address", HOST, "-port", str(self.epmd_port)]
            self._epmd = Child(argv, self.folder / "epmd.log", tied=self.tied)
            self._epmd.start()
            self._wait_epmd()
        super().start()

    def stop(self, timeout: float = 20.0) -> None:
        super().stop(timeout)
        if self._epmd is not None:
            self._epmd.stop()

    def answers(self) -> bool:
        # the broker greets with Connection.Start: a method frame on channel 0
        return probe(self.port, b"AMQP\x00\x00\x09\x01").startswith(b"\x01\x00\x00")

    def _wait_epmd(self, limit: float = 10.0) -> None:
        deadline = time.monotonic() + limit
        while not probe(self.epmd_port, b"\x00\x01n"):
            if self._epmd is None or not self._epmd.running or time.monotonic() > deadline:
                raise PeerError(f"epmd does not serve on port {self.epmd_port}")
            time.sleep(_POLL_SECONDS)
