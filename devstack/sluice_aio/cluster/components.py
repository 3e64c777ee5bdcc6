"""The services of a cluster: their programs, start and readiness."""

from __future__ import annotations

import difflib
import os
import socket
import sys
import tempfile
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Final

from sluice_aio.base.backing_servers import MemcachedServer, RabbitServer, RedisServer
from sluice_aio.base.layout import OBJECT_DEVICES, OBJECT_HOMES, STORAGE_AGENTS, Layout
from sluice_aio.base.ports import HOST, probe
from sluice_aio.base.server import Server
from sluice_aio.cinder import backends, konnector
from sluice_aio.conf import collectd, horizon
from sluice_aio.conf.storage import DAEMONS, kind_of
from sluice_aio.conf.swift import PROXIES
from sluice_aio.errors import LaunchError
from sluice_aio.keystone import barbican, venv
from sluice_sandbox import files

#: A daemon of Swift beside one server is a service: ``object-replicator@object1``.
DAEMON_SERVICES: Final = tuple(f"{name}@{conf}" for name, confs in DAEMONS.items() for conf in confs)
#: Rewriters of stored objects, on the first and the second node.
REWRITERS: Final = ("rewriter", "rewriter2")
#: Daemons that make the bytes of contracted objects, beside the proxy of the first and the second node.
MOTIF_DAEMONS: Final = ("motifs", "motifs2")
#: Of the first and the second node, each beside its agent.
KONNECTORS: Final = ("konnector", "konnector2")
#: Started in this order, wave by wave, and stopped in the reverse one.
WAVES: Final = (
    ("keystone", "barbican", "redis", "rabbit", "memcached", "rsync", "account", "container", *OBJECT_DEVICES),
    ("agent", "agent2", *STORAGE_AGENTS, "actors", "api", "api2", "sandbox", "cinder", *KONNECTORS),
    PROXIES,
    (*OBJECT_HOMES, *DAEMON_SERVICES, *REWRITERS, *MOTIF_DAEMONS, "horizon", "collectd"),
)
ALL: Final = tuple(name for wave in WAVES for name in wave)
#: The services of ``up``: one node of each kind with Sluice.
DEFAULT: Final = frozenset(
    {"redis", "rabbit", "memcached", "account", "container", *OBJECT_DEVICES, "agent", "actors", "api", "proxy"}
)
#: Additional services of a profile of ``up``.
PROFILES: Final = {
    "block": frozenset({"cinder", "konnector"}),
    "horizon": frozenset({"horizon", "sandbox", "collectd"}),
}
#: A second proxy with an agent of its own, as another node would have.
SECOND_NODE: Final = frozenset({"agent2", "proxy2"})
#: Replicas of the API: they share only Redis.
APIS: Final = ("api", "api2")
#: Services with HTTP.
HTTP: Final = frozenset({"account", "container", *OBJECT_DEVICES, *APIS, *PROXIES})
#: Swift without Sluice in its pipeline.
PLAIN_SWIFT: Final = frozenset({"memcached", "account", "container", *OBJECT_DEVICES, "plain"})

_HEALTHCHECK: Final = b"GET /healthcheck HTTP/1.0\r\n\r\n"
_HEALTH: Final = b"GET /health HTTP/1.0\r\n\r\n"
_VERSION: Final = b"GET /v3 HTTP/1.0\r\n\r\n"
_VERSIONS: Final = b"GET / HTTP/1.0\r\n\r\n"
_LOGIN: Final = b"GET /auth/login/ HTTP/1.0\r\n\r\n"
#: Ports of a service besides the one of its own name.
_MORE_PORTS: Final = {"rabbit": ("rabbit_dist", "epmd")}


class Program(Server):
    """A program of this environment (Swift's or Sluice's) with its log in the common folder."""

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

    :raises LaunchError: if it is not installed
    """
    path = Path(sys.executable).with_name(name)
    if not path.exists():
        raise LaunchError(f"`{name}` is not installed beside `{sys.executable}`, run `tools/bootstrap`")
    return str(path)


def ports_of(name: str) -> tuple[str, ...]:
    """Names of the ports that service ``name`` listens on; agents, actors and daemons have none."""
    daemons = (*DAEMON_SERVICES, *REWRITERS, *MOTIF_DAEMONS, "sandbox", "collectd")
    if name in ("agent", "agent2", *STORAGE_AGENTS, "actors", *daemons):
        return ()
    return (name, *_MORE_PORTS.get(name, ()))


def check_ports(layout: Layout, names: Collection[str]) -> None:
    """Check that all needed ports are free.

    :raises LaunchError: names the port, the service and the option
    """
    for name in [port for service in ALL if service in names for port in ports_of(service)]:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((layout.address(name), layout.ports[name]))
            except OSError as error:
                raise LaunchError(
                    f"port {layout.ports[name]} (for {name}) is taken: {os.strerror(error.errno or 0).lower()}, "
                    "choose other ports with SLUICE_PORT_BASE"
                ) from error


def _status(port: int, question: bytes, host: str = HOST) -> bytes:
    """The three digits of the answer's status, empty without an answer."""
    answer = probe(port, question, host=host)
    return answer[9:12] if answer.startswith(b"HTTP/1.") else b""


def swift_command(layout: Layout, program: str, *arguments: str) -> list[str]:
    """The command line of Swift's ``program``, with the swift.conf of this cluster.

    :raises LaunchError: if it is not installed
    """
    script(program)
    # -P: files in the present folder must not be imported
    return [sys.executable, "-P", "-m", "sluice_aio.conf.swift_program", str(layout.swift_dir), program, *arguments]


def _swift(layout: Layout, name: str) -> Server:
    kind = "proxy" if name in PROXIES else kind_of(name)
    host, port = layout.address(name), layout.ports[name]
    # -v sends the log to the terminal, hence to the log file; without it, it needs a syslog daemon
    command = swift_command(layout, f"swift-{kind}-server", str(layout.swift_dir / f"{name}.conf"), "-v")
    return Program(name, port, layout.logs, command, lambda: _status(port, _HEALTHCHECK, host) == b"200")


def _daemon(layout: Layout, name: str) -> Server:
    daemon, _, conf = name.partition("@")
    command = swift_command(layout, f"swift-{daemon}", str(layout.swift_dir / f"{conf}.conf"), "-v")
    return Program(name, 0, layout.logs, command, lambda: True)


def _objectd(layout: Layout, name: str) -> Server:
    port = layout.ports[name]
    command = swift_command(layout, "sluice-objectd", str(layout.swift_dir / f"{name}.conf"), "-v")
    # it serves objects alone: any other path is refused
    return Program(name, port, layout.logs, command, lambda: _status(port, _VERSIONS) == b"400")


def _rewriter(layout: Layout, name: str) -> Server:
    command = swift_command(layout, "sluice-rewriter", "--config", str(layout.configs / f"{name}.conf"))
    return Program(name, 0, layout.logs, command, lambda: True)


def _motif_daemon(layout: Layout, name: str) -> Server:
    node = layout.second_node() if name == "motifs2" else layout
    command = swift_command(layout, "sluice-motifs", "--config", str(layout.configs / f"{name}.conf"))
    return Program(name, 0, layout.logs, command, lambda: _listens(node.motif_socket))


def _listens(path: Path) -> bool:
    """Whether a process listens on a unix socket."""
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(str(path)) == 0


def _rsync(layout: Layout) -> Server:
    port = layout.ports["rsync"]
    command = ["rsync", "--daemon", "--no-detach", f"--address={HOST}", f"--port={port}"]
    command.append(f"--config={layout.swift_dir / 'rsyncd.conf'}")
    return Program("rsync", port, layout.logs, command, lambda: probe(port, b"").startswith(b"@RSYNCD:"))


def _sandbox(layout: Layout) -> Server:
    """The supervisor of jailed filters; its cache must be in a folder that all users can read."""
    cache = files.cache_folder() if os.geteuid() else Path(tempfile.gettempdir()) / f"sluice-jail-{os.getuid()}"
    command = [script("sluice-sandbox"), "serve", "--folder", str(layout.sandbox), "--cache", str(cache)]
    return Program("sandbox", 0, layout.logs, command, (layout.sandbox / "control").exists)


def _ours(layout: Layout, name: str) -> Server:
    program = "agent" if name in STORAGE_AGENTS else name.removesuffix("2")
    command = [script(f"sluice-{program}"), "--config", str(layout.configs / f"{name}.conf")]
    if name in APIS:
        port = layout.ports[name]
        # a 503 comes from a running API without another service, which is waited for separately
        return Program(name, port, layout.logs, command, lambda: _status(port, _HEALTH) in (b"200", b"503"))
    ready = layout.node_of(name).agent_socket.exists if program == "agent" else lambda: True
    return Program(name, 0, layout.logs, command, ready)


def _konnector(layout: Layout, name: str) -> Server:
    command = [script("sluice-konnector"), "--config", str(layout.configs / f"{name}.conf")]
    path = konnector.run_folder(layout.node_of(name)) / "api.sock"

    return Program(name, 0, layout.logs, command, lambda: _listens(path))


def _keystone(layout: Layout) -> Server:
    port = layout.ports["keystone"]
    program = Path(__file__).parents[1] / "keystone" / "keystone_program.py"
    # isolated: files of the present folder and of this environment must not be imported
    command = [str(venv.python()), "-I", str(program), str(layout.data / "keystone"), str(port)]
    return Program("keystone", port, layout.logs, command, lambda: _status(port, _VERSION) == b"200")


def _barbican(layout: Layout) -> Server:
    port = layout.ports["barbican"]
    program = Path(__file__).parents[1] / "keystone" / "barbican_program.py"
    python = venv.python(service="barbican")
    command = [str(python), "-I", str(program), str(barbican.folder(layout)), str(port)]
    return Program("barbican", port, layout.logs, command, lambda: _status(port, _VERSIONS) == b"300")


def _cinder(layout: Layout) -> Server:
    port = layout.ports["cinder"]
    program = Path(__file__).parents[1] / "cinder" / "cinder_program.py"
    python = venv.python(service="cinder")
    # the folder of the driver's package, and nothing else of Sluice
    block = Path(__file__).resolve().parents[3] / "block"
    command = [str(python), "-I", str(program), str(backends.folder(layout)), str(block)]
    return Program("cinder", port, layout.logs, command, lambda: _status(port, _VERSIONS) == b"300")


def _horizon(layout: Layout) -> Server:
    port = layout.ports["horizon"]
    command = horizon.command(layout, venv.python(service="horizon"))
    return Program("horizon", port, layout.logs, command, lambda: _status(port, _LOGIN) == b"200")


def _server(layout: Layout, name: str) -> Server:
    ports = layout.ports
    if name == "keystone":
        return _keystone(layout)
    if name == "barbican":
        return _barbican(layout)
    if name == "cinder":
        return _cinder(layout)
    if name == "horizon":
        return _horizon(layout)
    if name in KONNECTORS:
        return _konnector(layout, name)
    if name == "redis":
        return RedisServer(ports["redis"], layout.data / "redis")
    if name == "rabbit":
        return RabbitServer(ports["rabbit"], ports["rabbit_dist"], ports["epmd"], layout.data / "rabbit")
    if name == "memcached":
        return MemcachedServer(ports["memcached"], layout.data / "memcached")
    if name == "rsync":
        return _rsync(layout)
    if name == "sandbox":
        return _sandbox(layout)
    if name == "collectd":
        command = [collectd.PROGRAM, "-f", "-C", str(layout.collectd / "collectd.conf")]
        return Program("collectd", 0, layout.logs, command, lambda: True)
    if name in DAEMON_SERVICES:
        return _daemon(layout, name)
    if name in OBJECT_HOMES:
        return _objectd(layout, name)
    if name in REWRITERS:
        return _rewriter(layout, name)
    if name in MOTIF_DAEMONS:
        return _motif_daemon(layout, name)
    return (_ours if name in WAVES[1] else _swift)(layout, name)


def make_servers(layout: Layout, names: Collection[str]) -> dict[str, Server]:
    """The servers called ``names``, in starting order; none is started.

    :raises LaunchError: for an unknown service, or a program that is not installed
    """
    unknown = sorted(set(names) - set(ALL))
    if unknown:
        near = "".join(f", did you mean `{one}`" for one in difflib.get_close_matches(unknown[0], ALL, 1))
        plain = ", ".join(name for name in ALL if name not in DAEMON_SERVICES)
        raise LaunchError(f"no service `{unknown[0]}`, expected one of {plain}, or a daemon{near}")
    return {name: _server(layout, name) for name in ALL if name in names}
