"""``sluice-konnector --config-file FILE``: the service on each machine that uses volumes."""

from __future__ import annotations

import contextlib
import logging
import os
import select
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final, Protocol

from cheroot import wsgi

from sluice_block.konnector.agent_link import AgentLink
from sluice_block.konnector.api import KonnectorApi
from sluice_block.konnector.https_api import make_server, parse_bind
from sluice_block.konnector.konnector import Konnector
from sluice_block.konnector.policies import Policies, VolumeShares
from sluice_block.konnector.settings import OPTIONS, SECTION
from sluice_block.stack.build import build
from sluice_block.uploaded.catalogue import REFUSALS, Refusals, UploadedFilters
from sluice_block.uploaded.sandbox import Confinement
from sluice_code.code_store import CodeStore
from sluice_core.connections.service_manager import ServiceManager
from sluice_core.messages.uploads import Upload
from sluice_core.options import OptionError, read_files, sample_section
from sluice_core.process.command_line import run_daemon
from sluice_core.process.logs import start_logging
from sluice_core.snapshot.reader import SnapshotReader

log = logging.getLogger("sluice_block.konnector")

#: Seconds after which all volumes are checked, without an event.
_INTERVAL: Final = 1.0


class Supervisor:
    """A thread in which the konnector checks its volumes.

    :param on_progress: called after each volume, and after all of them
    """

    def __init__(self, konnector: Konnector, on_progress: Callable[[], None] = lambda: None) -> None:
        self._konnector = konnector
        self._on_progress = on_progress
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="supervisor", daemon=True)

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def stop(self) -> None:
        """Stop, and wait for a check in progress."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._wait()
            if not self._stopping.is_set():
                self._konnector.check(self._on_progress)
                self._on_progress()

    def _wait(self) -> None:
        """Wait until a process ends, or for a while."""
        opened = [one for volume in self._konnector.volumes() for one in volume.processes()]
        try:
            poll = select.poll()
            for descriptor in opened:
                poll.register(descriptor, select.POLLIN)
            poll.poll(int(_INTERVAL * 1000))
        finally:
            for descriptor in opened:
                os.close(descriptor)


#: Greatest length of the sockets' folder: a volume's id and a socket's name are appended.
_LONGEST: Final = 107 - len("/00000000-0000-0000-0000-000000000000/luks/stack-0.sock")


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM or SIGINT; volumes stay attached.  Return 0 after an orderly end."""
    return run_daemon(
        argv,
        _run,
        lambda: sample_section(SECTION, OPTIONS),
        prog="sluice-konnector",
        description="attaches volumes to this machine through their filters, see docs/admin/volumes/konnector.md",
        config="the configuration, an ini file with a section [konnector]",
    )


def _run(config: Sequence[Path]) -> None:
    values = read_files(OPTIONS, config, SECTION)
    start_logging(values["log_level"], values["log_format"])
    serve(values, config)


def serve(values: dict[str, Any], sources: Sequence[Path]) -> None:
    """
    :param values: of :data:`OPTIONS`
    :param sources: the files of these values
    :raises SluiceError: when it cannot start
    """
    run = Path(values["run_dir"])
    _make_folder(run)
    filters = _uploaded_filters(values)
    state, built, logs = Path(values["state_dir"]), build(Path(values["cache_dir"])), Path(values["log_dir"])
    konnector = Konnector(state, run, built, logs, filters)
    address = parse_bind(values["bind"]) if values["bind"] else ("127.0.0.1", 0)
    ip = values["my_ip"] or _own_address(address[0])
    api = KonnectorApi(konnector, values["node"] or socket.gethostname(), ip)
    manager = ServiceManager.from_environment()
    supervisor = Supervisor(konnector, manager.alive)
    url = f"https://{_in_url(ip)}:{address[1]}"
    services = [supervisor, *_services(values, konnector, api, sources, url)]
    server = wsgi.Server(str(run / "api.sock"), api, server_name="sluice-konnector")
    konnector.adopt()
    stopping = threading.Event()

    def stop(*_: object) -> None:
        stopping.set()
        threading.Thread(target=server.stop).start()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    server.prepare()
    if stopping.is_set():  # cheroot ignores a stop before it is prepared
        server.stop()
    for service in services:
        service.start()
    log.info("konnector serves at `%s`, with %d volumes", run / "api.sock", len(konnector.volumes()))
    manager.ready()
    server.serve()
    manager.stopping()
    for service in reversed(services):
        service.stop()


class _Service(Protocol):
    def start(self) -> None: ...

    def stop(self) -> None: ...


def _services(
    values: dict[str, Any], konnector: Konnector, api: KonnectorApi, sources: Sequence[Path], url: str
) -> Iterator[_Service]:
    """Return the services besides the API on the unix socket, by the options; ``url`` is that of the API over TLS.

    :raises OptionError: when an option cannot be used
    """
    policies: Policies | None = None
    if values["snapshot_dir"]:
        policies = Policies(
            konnector, SnapshotReader(values["snapshot_dir"]), VolumeShares(Path(values["snapshot_dir"]))
        )
        yield policies
    if values["bind"]:
        yield make_server(values, api, *sources)
    if values["agent_socket"]:
        snapshot_id = policies.snapshot_id if policies is not None else str
        yield AgentLink(values["agent_socket"], konnector, url if values["bind"] else "", snapshot_id)


def _own_address(host: str) -> str:
    """
    :raises OptionError: when the host in ``bind`` means all addresses
    """
    with contextlib.suppress(ValueError):  # a name raises it
        if ip_address(host).is_unspecified:
            raise OptionError(f"option `my_ip` is empty, expected this machine's address: `bind` is `{host}`")
    return host


def _in_url(ip: str) -> str:
    return f"[{ip}]" if ":" in ip else ip


def _uploaded_filters(values: dict[str, Any]) -> UploadedFilters:
    bounds = Confinement(values["filter_memory"], values["filter_seconds"], values["filter_uid"])
    uploads = _snapshot_uploads(values["snapshot_dir"]) if values["snapshot_dir"] else tuple
    return UploadedFilters(
        uploads, CodeStore(values["code_dir"]), Refusals(Path(values["state_dir"]) / REFUSALS), bounds
    )


def _snapshot_uploads(folder: str) -> Callable[[], Sequence[Upload]]:
    """Return the registered uploads in the agent's snapshot in ``folder``."""
    reader, lock = SnapshotReader(folder), threading.Lock()

    def read() -> Sequence[Upload]:
        with lock:
            reader.refresh()
            return reader.uploads

    return read


def _make_folder(run: Path) -> None:
    """Make the folder of the socket, closed to other users: cheroot lets every user open the socket."""
    if len(os.fsencode(run)) > _LONGEST:
        raise OptionError(
            f"option `run_dir`: `{run}` is {len(os.fsencode(run))} bytes long, expected {_LONGEST} at most: "
            "a unix socket's path has 107"
        )
    try:
        run.mkdir(mode=0o700, parents=True, exist_ok=True)
        if run.stat().st_mode & 0o077 or run.stat().st_uid != os.geteuid():
            raise OptionError(f"option `run_dir`: `{run}` can be entered by others, expected mode 0700")
    except OSError as error:
        raise OptionError(f"option `run_dir`: {error}") from error
