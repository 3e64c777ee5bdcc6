"""The services of a cluster: what is started, how, and how one sees that it serves."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Final

from sluice_aio.errors import LaunchError
from sluice_aio.layout import OBJECT_DEVICES, Layout
from sluice_aio.services import MemcachedServer, RabbitServer, RedisServer, Server, ask

#: Started in this order, wave by wave, and stopped in the reverse one.
WAVES: Final = (
    ("redis", "rabbit", "memcached", "account", "container", *OBJECT_DEVICES),
    ("agent", "actors", "api"),
    ("proxy", "plain"),
)
ALL: Final = tuple(name for wave in WAVES for name in wave)
#: What ``up`` brings up: everything but the plain twin of the proxy.
DEFAULT: Final = frozenset(ALL) - {"plain"}
#: Those that speak HTTP.
HTTP: Final = frozenset({"account", "container", *OBJECT_DEVICES, "api", "proxy", "plain"})
#: Swift without anything of ours in its pipeline.
PLAIN_SWIFT: Final = frozenset({"memcached", "account", "container", *OBJECT_DEVICES, "plain"})

_HEALTHCHECK: Final = b"GET /healthcheck HTTP/1.0\r\n\r\n"
_HEALTH: Final = b"GET /health HTTP/1.0\r\n\r\n"
#: Ports that a service takes beside the one of its own name.
_MORE_PORTS: Final = {"rabbit": ("rabbit_dist", "epmd")}


class Program(Server):
    """A program of this environment (Swift's or ours), its log in the common folder."""

    def __init__(self, name: str, port: int, log_folder: Path, command: Sequence[str], ready: Callable[[], bool]):
        super().__init__(port, log_folder)
        self.name = name
        self._command = list(command)
        self._ready = ready

    def argv(self) -> list[str]:
        return self._command

    def answers(self) -> bool:
        return self._ready()


def script(name: str) -> str:
    """Path of a program that is installed beside the running Python.

    :raises LaunchError: when it is not
    """
    path = Path(sys.executable).with_name(name)
    if not path.exists():
        raise LaunchError(f"`{name}` is not installed beside `{sys.executable}`, run `tools/bootstrap`")
    return str(path)


def ports_of(name: str) -> tuple[str, ...]:
    """Names of the ports that service ``name`` listens on; the agent and the actors have none."""
    if name in ("agent", "actors"):
        return ()
    return (name, *_MORE_PORTS.get(name, ()))


def _status(port: int, question: bytes) -> bytes:
    """The three digits of the answer's status, empty without one."""
    answer = ask(port, question)
    return answer[9:12] if answer.startswith(b"HTTP/1.") else b""


def _swift(layout: Layout, name: str) -> Server:
    kind = "proxy" if name == "plain" else name.rstrip("0123456789")
    port = layout.ports[name]
    # -v sends the log to the terminal, hence to our file; without it, it needs a syslog daemon
    command = [script(f"swift-{kind}-server"), str(layout.swift_dir / f"{name}.conf"), "-v"]
    return Program(name, port, layout.logs, command, lambda: _status(port, _HEALTHCHECK) == b"200")


def _ours(layout: Layout, name: str) -> Server:
    command = [script(f"sluice-{name}"), "--config", str(layout.configs / f"{name}.conf")]
    if name == "api":
        port = layout.ports["api"]
        # a 503 comes from a living API that misses somebody else, who is waited for by himself
        return Program(name, port, layout.logs, command, lambda: _status(port, _HEALTH) in (b"200", b"503"))
    ready = layout.agent_socket.exists if name == "agent" else lambda: True
    return Program(name, 0, layout.logs, command, ready)


def make_servers(layout: Layout, names: Collection[str]) -> dict[str, Server]:
    """The servers called ``names``, in starting order; nothing is started.

    :raises LaunchError: for a name that is no service, or a program that is not installed
    """
    unknown = sorted(set(names) - set(ALL))
    if unknown:
        raise LaunchError(f"no service `{unknown[0]}`, expected one of {', '.join(ALL)}")
    servers: dict[str, Server] = {}
    ports = layout.ports
    for name in ALL:
        if name not in names:
            continue
        if name == "redis":
            servers[name] = RedisServer(ports["redis"], layout.data / "redis")
        elif name == "rabbit":
            folder = layout.data / "rabbit"
            servers[name] = RabbitServer(ports["rabbit"], ports["rabbit_dist"], ports["epmd"], folder)
        elif name == "memcached":
            servers[name] = MemcachedServer(ports["memcached"], layout.data / "memcached")
        else:
            servers[name] = (_ours if name in WAVES[1] else _swift)(layout, name)
    return servers
