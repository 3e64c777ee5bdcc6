"""What the roles with daemons bring, started: each daemon says that it is ready, does something, and ends in order."""

from __future__ import annotations

import contextlib
import http.client
import json
import shutil
import socket
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import requests
from tests.support.wheel.role import Daemon, Role, Servers

from sluice_aio.base.layout import Layout
from sluice_aio.base.ports import HOST, free_port
from sluice_aio.base.setup import Setup
from sluice_aio.conf.sluice import write_sluice
from sluice_aio.conf.swift import build_rings, write_swift

_TIMEOUT: Final = 60
#: A stream through a worker in the jail: the folder of the supervisor, and one for the code.
_JAILED: Final = """\
import hashlib, sys
from pathlib import Path
from sluice_code.code_store import CodeStore
from sluice_core.messages.uploads import Upload
from sluice_filters.api import Hint
from sluice_sandbox.api import load_filter
from sluice_sandbox.process.session import ProcessTeam

CODE = b'''
class Upper:
    def __init__(self, params, direction):
        pass

    def feed(self, data):
        return data.upper()

    def finish(self):
        return b""
'''
store, digest = CodeStore(Path(sys.argv[2])), hashlib.sha256(CODE).hexdigest()
store.add(CODE, digest)
upload = Upload("upper", "process", "python", "Upper", digest, len(CODE))
encoder = load_filter(upload, store, ProcessTeam(store, Path(sys.argv[1])))({}).encoder(Hint(account="acme"))
print((encoder.feed(b"words") + encoder.finish()).decode())
"""


def _write(role: Role, section: str, options: Mapping[str, object]) -> Path:
    """A configuration file in the role's folder."""
    path = role.folder / f"{section}.conf"
    path.touch(mode=0o600)
    path.write_text(f"[{section}]\n" + "".join(f"{name} = {value}\n" for name, value in options.items()))
    return path


def run_agent(role: Role, servers: Servers) -> None:
    """An agent serves its workers while Redis is away."""
    options = {
        "node": "n1",
        "redis_url": f"redis://{HOST}:{free_port()}/0",
        "amqp_url": "",
        "log_format": "json",
        "socket": role.folder / "agent.sock",
        "snapshot_dir": role.folder / "snapshot",
        "code_dir": role.folder / "code",
    }
    with role.running("sluice-agent", "--config-file", _write(role, "agent", options)) as agent:
        agent.wait_ready()
        assert '"agent of node `n1` starts"' in agent.log.read_text()
        assert (role.folder / "agent.sock").is_socket()


def run_actors(role: Role, servers: Servers) -> None:
    """An actor host."""
    options = {"redis_url": servers.redis, "amqp_url": servers.amqp, "code_dir": role.folder / "code"}
    with role.running("sluice-actors", "--config-file", _write(role, "actors", {"host": "h1", **options})) as host:
        host.wait_ready()
        assert "actor host `h1` started" in host.log.read_text()


def serve_api(role: Role, servers: Servers) -> None:
    """The API, which reaches Redis."""
    url = f"{HOST}:{free_port()}"
    token = role.folder / "token"
    token.touch(mode=0o600)
    token.write_text("a-token-of-this-test")
    options = {"bind": url, "auth": "token", "token_file": token, "redis_url": servers.redis}
    with role.running("sluice-api", "--config-file", _write(role, "api", options)) as api:
        api.wait_ready()
        assert requests.get(f"http://{url}/", timeout=_TIMEOUT).status_code == 200
        health = requests.get(f"http://{url}/health", timeout=_TIMEOUT).json()
        assert health["dependencies"]["redis"] == "ok"


def run_konnector(role: Role, servers: Servers) -> None:
    """A konnector, which builds the filters of volumes out of the wheel's sources."""
    with _short_folder() as short:
        options = {
            "node": "n1",
            "run_dir": short / "run",
            "state_dir": role.folder / "state",
            "cache_dir": role.folder / "nbdkit",
            "log_dir": role.folder / "volumes",
            "code_dir": role.folder / "code",
            "agent_socket": "",
            "snapshot_dir": "",
        }
        with role.running("sluice-konnector", "--config-file", _write(role, "konnector", options)) as konnector:
            konnector.wait_ready()
            assert len(list((role.folder / "nbdkit").glob("*/nbdkit-sluice-*.so"))) > 3
            assert _ask(short / "run" / "api.sock", "/health")["node"] == "n1"


def run_sandbox(role: Role, servers: Servers) -> None:
    """The supervisor of jailed workers, and bytes through one of them."""
    with _short_folder() as short:
        short.chmod(0o755)  # workers are other users
        words = ("serve", "--folder", short / "run", "--cache", short / "cache")
        with role.running("sluice-sandbox", *words) as sandbox:
            sandbox.wait_ready()
            assert role.run("python", "-c", _JAILED, short / "run", role.folder / "code") == "WORDS\n"


def run_node(role: Role, servers: Servers) -> None:
    """A node of Swift: agent, object server, its replicator, rewriter, motif daemon and proxy server."""
    layout = Layout.free(role.folder / "n")
    # a server without workers of its own does not handle SIGTERM
    write_swift(layout, Setup(proxy_workers=1, storage_workers=1))
    build_rings(layout)
    write_sluice(layout, servers.redis, servers.amqp)
    ours = _write(role, "agent", {"swift_python": role.python, "wasm": "false"})
    with contextlib.ExitStack() as running:

        def start(name: str, *words: str | Path) -> Daemon:
            daemon = running.enter_context(role.running(name, *words))
            daemon.wait_ready()
            return daemon

        def start_swift(name: str, *words: str | Path) -> None:
            start("python", "-P", "-m", "sluice_aio.conf.swift_program", layout.swift_dir, name, *words)

        start("sluice-agent", "--config-file", layout.configs / "agent.conf", "--config-file", ours)
        start_swift("swift-object-server", layout.swift_dir / "object1.conf", "-v")
        for name in ("sluice-object-replicator", "sluice-object-reconstructor"):
            start_swift(name, layout.swift_dir / "object1.conf", "-v")
        for name in ("rewriter", "motifs"):
            start_swift(f"sluice-{name}", "--config-file", layout.configs / f"{name}.conf")
        start_swift("swift-proxy-server", layout.swift_dir / "proxy.conf", "-v")
        assert requests.get(f"{layout.url('object1')}/healthcheck", timeout=_TIMEOUT).text == "OK"
        assert "sluice" in requests.get(f"{layout.url('proxy')}/info", timeout=_TIMEOUT).json()


def run_cluster(role: Role, servers: Servers) -> None:
    """A whole cluster on this machine, with servers of its own."""
    words = ("--folder", role.folder / "c")
    try:
        role.run("sluice-aio", *words, "--ports", "free", "up")
        assert "motifs" in role.run("sluice-aio", *words, "status")
    finally:
        stopped = role.run("sluice-aio", *words, "down")
    assert "motifs" in stopped


@contextlib.contextmanager
def _short_folder() -> Iterator[Path]:
    """A folder for unix sockets, whose path is short, and which other users may be let into."""
    folder = Path(tempfile.mkdtemp(prefix="sluice-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def _ask(path: Path, question: str) -> dict[str, object]:
    """The answer to a GET on a unix socket."""
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(_TIMEOUT)
        line.connect(str(path))
        connection = http.client.HTTPConnection("localhost")
        connection.sock = line
        connection.request("GET", question)
        return json.loads(connection.getresponse().read())
