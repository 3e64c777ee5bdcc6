"""NBD exports of volumes: one nbdkit for each attachment, and a record by which a restarted driver finds it.

Rules of this file:

* The record is written before nbdkit starts and removed before it ends, so that a process without a record was left by
  a crash and may be ended, and a record without a process is an export that ended unexpectedly and may be started
  again.
* An export keeps its socket, port and key as long as its attachment exists: a client that lost the connection connects
  again.  The next attachment has others, so that a former client cannot reach the volume by connecting again.
* Only the owner may enter the folder, so only the owner (and root) reaches a unix socket in it.  The key of an export
  over
  TCP is in a file there, and never on a command line.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlencode

from sluice_block.cinder_nbd.nbdkit_process import NbdkitProcess
from sluice_block.cinder_nbd.pools import Run

#: Bytes of a pre-shared key.
_KEY_SIZE: Final = 32
#: Threads of a connection, each of which processes one request: for a connection with several requests at a time, and
#: for one with one at a time, where further threads would only be woken.
SHARED: Final = 4
SINGLE: Final = 1
#: Number of attempts to choose a port, since another program may take it before nbdkit does.
_PORT_TRIES: Final = 10
#: Linux refuses unix socket paths of more than 107 bytes.
_SOCKET_PATH_LIMIT: Final = 107


class ExportInUse(Exception):
    """The volume has an export for another consumer."""


@dataclass(frozen=True, slots=True)
class Export:
    """The export of one consumer: ``port`` is None for a unix socket; ``key`` is hexadecimal, empty without TLS.

    ``serial`` makes the path of the socket unique; empty for exports of a version without it.
    """

    volume_id: str
    name: str
    path: str
    consumer: str
    readonly: bool
    address: str = ""
    port: int | None = None
    serial: str = ""
    threads: int = SHARED
    key: str = field(default="", repr=False)


class Exports:
    """All exports of one back end, whose files are in ``folder``."""

    def __init__(self, folder: Path, address: str, ports: range, run: Run) -> None:
        self._folder = folder
        self._address = address
        self._ports = ports
        self._run = run

    def prepare(self) -> None:
        """Make the folder, which only its owner may enter.

        :raises ValueError: when the paths of sockets in it would be too long
        """
        longest = self._folder / f"{'0' * 36}.sock"
        if len(os.fsencode(longest)) > _SOCKET_PATH_LIMIT:
            raise ValueError(f"the path of `{self._folder}` is too long for a unix socket in it, use a shorter one")
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._folder.chmod(0o700)

    def _socket_path(self, export: Export) -> Path:
        """The socket of an export without a port."""
        name = f"{_digits(export.volume_id)}{export.serial}" if export.serial else export.volume_id
        return self._folder / f"{name}.sock"

    def find(self, volume_id: str) -> Export | None:
        """Return the export of the volume, running or not."""
        try:
            record = json.loads(self._record(volume_id).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        return Export(**record, key=self._read_key(volume_id) if record["port"] else "")

    def uri(self, export: Export) -> str:
        """The NBD URI, without the key."""
        name = quote(export.name)
        if export.port is None:
            return f"nbd+unix:///{name}?{urlencode({'socket': self._socket_path(export)}, safe='/')}"
        host = f"[{export.address}]" if ":" in export.address else export.address
        return f"nbds://{quote(export.volume_id)}@{host}:{export.port}/{name}"

    def open(
        self, volume_id: str, name: str, path: Path, consumer: str, readonly: bool, tls: bool, threads: int = SHARED
    ) -> Export:
        """Return the export of the file ``path`` for ``consumer``: the running one, else a new one.

        :param tls: over TCP with a pre-shared key in place of a unix socket
        :param threads: number per connection
        :raises ExportInUse: when another consumer has one, running or not, since that is restarted
        :raises OSError: when nbdkit does not start
        """
        known = self.find(volume_id)
        if known is not None:
            if known.consumer != consumer:
                raise ExportInUse(f"`{name}` is exported for another connector until its attachment is deleted")
            if self.alive(volume_id) and (known.readonly, known.port is not None) == (readonly, tls):
                return known
        self.close(volume_id)
        for tries_left in reversed(range(_PORT_TRIES)):
            port = self._free_port() if tls else None
            key = secrets.token_hex(_KEY_SIZE) if tls else ""
            address = self._address if tls else ""
            serial = "" if tls else secrets.token_urlsafe(3)
            export = Export(volume_id, name, str(path), consumer, readonly, address, port, serial, threads, key)
            self._write(export)
            try:
                self._start(export)
            except OSError:
                self.close(volume_id)
                if not tls or not tries_left:
                    raise
            else:
                return export
        raise AssertionError("the last try returns or raises")

    def close(self, volume_id: str) -> None:
        """End the export of the volume and return when it has ended; do nothing without one."""
        self._record(volume_id).unlink(missing_ok=True)
        self._process(volume_id).end()
        for stem in (volume_id, f"{_digits(volume_id)}????"):
            for path in self._folder.glob(f"{stem}.sock"):
                path.unlink(missing_ok=True)
        self._key_file(volume_id).unlink(missing_ok=True)

    def alive(self, volume_id: str) -> bool:
        """True while nbdkit runs for the volume."""
        return self._process(volume_id).pid() is not None

    def restore(self, volume_id: str) -> None:
        """Restore the export of an attached volume: start an ended process, resume one that a crash left paused.

        :raises OSError: when nbdkit does not start
        """
        export = self.find(volume_id)
        if export is None:
            self.close(volume_id)
        elif self.alive(volume_id):
            self._process(volume_id).resume()
        else:
            self._start(export)

    def known(self) -> list[str]:
        """Ids of the volumes that have a record or a process."""
        return sorted({path.stem for end in ("json", "pid") for path in self._folder.glob(f"*.{end}")})

    @contextlib.contextmanager
    def paused(self, volume_id: str) -> Iterator[None]:
        """Within this block no write reaches the volume; its consumer waits."""
        process = self._process(volume_id)
        process.pause()
        try:
            yield
        finally:
            process.resume()

    def _start(self, export: Export) -> None:
        listen = [f"--unix={self._socket_path(export)}"]
        if export.port is not None:
            listen = [f"--ipaddr={export.address}", f"--port={export.port}", "--tls=require"]
            listen.append(f"--tls-psk={self._key_file(export.volume_id)}")
        self._socket_path(export).unlink(missing_ok=True)  # nbdkit does not remove it
        mode = ["--readonly"] if export.readonly else []
        options = [f"--exportname={export.name}", f"--threads={export.threads}", *mode, *listen]
        self._process(export.volume_id).start([*options, "file", f"file={export.path}"], self._run)

    def _free_port(self) -> int:
        """Return a port without a listener.

        :raises OSError: when all ports are in use
        """
        family = socket.AF_INET6 if ":" in self._address else socket.AF_INET
        for port in secrets.SystemRandom().sample(self._ports, len(self._ports)):
            with socket.socket(family) as trial, contextlib.suppress(OSError):
                trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                trial.bind((self._address, port))
                return port
        raise OSError(f"no port from {self._ports[0]} to {self._ports[-1]} of `{self._address}` is free")

    def _write(self, export: Export) -> None:
        record = asdict(export)
        key = record.pop("key")
        if key:
            self._replace(self._key_file(export.volume_id), f"{export.volume_id}:{key}\n")
        self._replace(self._record(export.volume_id), json.dumps(record))

    @staticmethod
    def _replace(path: Path, text: str) -> None:
        fresh = path.with_suffix(".new")
        fresh.unlink(missing_ok=True)
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)

    def _read_key(self, volume_id: str) -> str:
        return self._key_file(volume_id).read_text(encoding="ascii").strip().partition(":")[2]

    def _record(self, volume_id: str) -> Path:
        return self._folder / f"{volume_id}.json"

    def _key_file(self, volume_id: str) -> Path:
        return self._folder / f"{volume_id}.psk"

    def _process(self, volume_id: str) -> NbdkitProcess:
        return NbdkitProcess(self._folder / f"{volume_id}.pid")


def _digits(volume_id: str) -> str:
    """Return the id without its hyphens, for a shorter socket path."""
    return volume_id.replace("-", "")
