"""Redis, RabbitMQ and memcached as child processes: started, waited for, stopped, killed.

Used by the all-in-one launcher and by tests.  Each server keeps everything (data, log, settings)
in a folder of its own, listens on 127.0.0.1 only and is known by its process id; nothing that
another installation on the same machine does is read or touched.  With ``tied=True`` the kernel
kills the server when the *thread* that started it ends, so that a test run cut short leaves nothing;
start a tied server in the main thread, not through ``asyncio.to_thread``.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Self

from sluice_core.errors import PeerError

HOST: Final = "127.0.0.1"
_POLL: Final = 0.05
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


def ask(port: int, question: bytes, size: int = 64, timeout: float = 1.0) -> bytes:
    """The first bytes that the server on ``port`` answers to ``question``; empty when there is none."""
    try:
        with socket.create_connection((HOST, port), timeout) as connection:
            connection.sendall(question)
            return connection.recv(size)
    except OSError:
        return b""


class Child:
    """One process of ours: never a shell, known by its id, with its output in a log file."""

    def __init__(self, argv: Sequence[str], log: Path, env: Mapping[str, str] | None = None, tied: bool = False):
        self.argv = list(argv)
        self.log = log
        self.env = env
        self.tied = tied
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """Its process id, also after its end; None before the first start."""
        return None if self._process is None else self._process.pid

    @property
    def running(self) -> bool:
        """True while the process lives."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start it, unless it runs already.

        :raises PeerError: when the program is not installed
        """
        if self.running:
            return
        argv = ["setpriv", "--pdeathsig", "KILL", "--", *self.argv] if self.tied else self.argv
        with open(self.log, "ab") as log:
            try:
                self._process = subprocess.Popen(
                    argv,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=None if self.env is None else dict(self.env),
                    start_new_session=True,  # Ctrl-C is for whoever started us; we are stopped in order
                )
            except OSError as error:
                raise PeerError(f"cannot start `{argv[0]}`: {error.strerror}") from error

    def stop(self, timeout: float = 10.0) -> None:
        """SIGTERM, and SIGKILL when it still lives after ``timeout`` seconds."""
        if self._process is None:
            return
        if self.running:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout)
        self.kill()

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        if self._process is None:
            return
        if self.running:
            self._process.kill()
        self._process.wait()

    def tail(self, size: int = 2000) -> str:
        """The end of its log, for error messages."""
        try:
            return self.log.read_bytes()[-size:].decode("utf-8", "replace")
        except OSError:
            return ""


class Server:
    """What all servers share: start, wait until it answers, stop, kill, start again.

    Also a context manager that starts, waits and stops.
    """

    name = ""
    patience = 30.0

    def __init__(self, port: int, folder: str | Path, tied: bool = False) -> None:
        self.port = port
        self.folder = Path(folder)
        self.tied = tied
        self._child: Child | None = None

    @property
    def pid(self) -> int | None:
        """Process id of the server; None before the first start."""
        return None if self._child is None else self._child.pid

    @property
    def pids(self) -> tuple[int, ...]:
        """Ids of all processes that were started for this server, to be stopped in this order."""
        return () if self.pid is None else (self.pid,)

    @property
    def running(self) -> bool:
        """True while its process lives."""
        return self._child is not None and self._child.running

    @property
    def log(self) -> Path:
        """The log file."""
        return self.folder / f"{self.name}.log"

    def argv(self) -> list[str]:
        """The command line."""
        raise NotImplementedError

    def env(self) -> dict[str, str] | None:
        """The environment; None means ours."""
        return None

    def answers(self) -> bool:
        """True when the server serves."""
        raise NotImplementedError

    def start(self) -> None:
        """Start the process; :meth:`wait_ready` says when it serves."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if self._child is None or not self._child.running:
            self._child = Child(self.argv(), self.log, self.env(), self.tied)
            self._child.start()

    def wait_ready(self, timeout: float | None = None) -> None:
        """Return as soon as the server serves.

        :raises PeerError: when it ended, or does not serve within ``timeout`` seconds
        """
        limit = self.patience if timeout is None else timeout
        deadline = time.monotonic() + limit
        while not self.answers():
            if not self.running:
                raise PeerError(f"{self.name} ended instead of serving: {self._tail()}")
            if time.monotonic() > deadline:
                raise PeerError(f"{self.name} does not serve on port {self.port} after {limit:g} s: {self._tail()}")
            time.sleep(_POLL)

    def stop(self, timeout: float = 20.0) -> None:
        """SIGTERM, after ``timeout`` seconds SIGKILL; nothing of this server is left."""
        if self._child is not None:
            self._child.stop(timeout)

    def kill(self) -> None:
        """SIGKILL, as a fault would; data stay, :meth:`start` brings it back."""
        if self._child is not None:
            self._child.kill()

    def restart(self) -> None:
        """Stop, start and wait."""
        self.stop()
        self.start()
        self.wait_ready()

    def __enter__(self) -> Self:
        try:
            self.start()
            self.wait_ready()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _tail(self) -> str:
        return "never started" if self._child is None else self._child.tail()


class RedisServer(Server):
    """Redis with an append-only file."""

    name = "redis"

    @property
    def url(self) -> str:
        """What clients connect to."""
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
        return ask(self.port, b"PING\r\n").startswith(b"+PONG")


class MemcachedServer(Server):
    """memcached with 64 MB."""

    name = "memcached"

    @property
    def address(self) -> str:
        """``host:port``, as Swift's ``memcache_servers`` wants it."""
        return f"{HOST}:{self.port}"

    @property
    def url(self) -> str:
        """The same as a URL."""
        return f"memcached://{self.address}"

    def argv(self) -> list[str]:
        # as root memcached insists on a user to change to
        user = ["-u", "nobody"] if os.geteuid() == 0 else []
        return ["memcached", "-l", HOST, "-p", str(self.port), "-U", "0", "-m", "64", *user]

    def answers(self) -> bool:
        return ask(self.port, b"version\r\n").startswith(b"VERSION")


class RabbitServer(Server):
    """RabbitMQ without plugins, with an epmd of its own (Erlang's port mapper, normally one per machine).

    Started past Debian's wrapper script, so that it runs as whoever we are and writes only to
    ``folder``; ``exec`` all the way down, so that ``pid`` is the broker itself.
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
        """What clients connect to."""
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
            "-mnesia core_dir false",  # else a broker that is cut short writes into whatever folder we are in
        ]
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "LANG": "C.UTF-8",
            "HOME": str(home),  # the Erlang cookie goes there
            "ERL_EPMD_PORT": str(self.epmd_port),
            "ERL_EPMD_ADDRESS": HOST,
            "RUNNING_UNDER_SYSTEMD": "true",  # makes the script exec the broker instead of guarding it
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
        return ask(self.port, b"AMQP\x00\x00\x09\x01").startswith(b"\x01\x00\x00")

    def _wait_epmd(self, limit: float = 10.0) -> None:
        deadline = time.monotonic() + limit
        while not ask(self.epmd_port, b"\x00\x01n"):
            if self._epmd is None or not self._epmd.running or time.monotonic() > deadline:
                raise PeerError(f"epmd does not serve on port {self.epmd_port}")
            time.sleep(_POLL)
