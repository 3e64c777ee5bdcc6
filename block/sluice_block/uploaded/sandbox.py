"""The nbdkit of an uploaded filter, confined: its start, and the reason of its end.

It runs with a user and groups of its own, without capabilities, in mount, process, network, IPC and host name
namespaces of its own (bubblewrap), with a read-only root that has only ``/usr`` and the filter, with limits and an
allow-list of system calls (``native/confine.c``, which is loaded before the filter).  It opens no socket: the listening
socket and the connection to its source are passed to it.

The filter's code is passed to it, too, as the bytes whose digest was verified.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sluice_block.datapath.processes import ProcessRecord, last_lines, wait_until
from sluice_block.stack.build import confinement
from sluice_block.uploaded.nbd_client import NbdClient
from sluice_core.errors import PeerError

#: Requests that it processes at a time; the client sends 16 at most.
_THREADS: Final = 16
#: Address space of nbdkit with its libraries and threads, without filters.
_BASE: Final = 512 << 20
#: Seconds within which its export must appear.
_START: Final = 10.0
#: Seconds within which bubblewrap ends after nbdkit.
_END: Final = 1.0
#: Numbers of the descriptors of passed sockets begin here.
_FIRST_DESCRIPTOR: Final = 50
#: Its user inside, and outside without a given one.
NOBODY: Final = 65534


@dataclass(frozen=True, slots=True)
class Confinement:
    """The limits of an uploaded filter: bytes of ``memory``, and ``seconds`` for one request.

    ``uid`` and the following numbers are its users, when root starts it: a number for each volume.  With ``lasting`` it
    keeps running when the process that started it ends.
    """

    memory: int = 256 << 20
    seconds: float = 30.0
    uid: int = NOBODY
    lasting: bool = True


@dataclass(frozen=True, slots=True)
class Sandboxed:
    """A started nbdkit: its process, and the pid of bubblewrap's, which ends with it."""

    process: ProcessRecord
    outer: int


def start(
    code: bytes, arguments: Sequence[str], listening: Path, source: Path, built: Path, bounds: Confinement, log: Path
) -> Sandboxed:
    """Start it over the NBD server at ``source``; it serves its export at ``listening`` when this returns.

    :param code: of the filter
    :param arguments: the filter's parameters, ``key=value``
    :param built: folder of the confinement library (:mod:`sluice_block.stack.build`)
    :param log: file of its output, of which 1 MiB is kept
    :raises PeerError: with its output, when it does not start
    """
    told, telling = os.pipe()
    with open(told, "rb") as information:
        with contextlib.ExitStack() as given:
            given.callback(os.close, telling)
            server = given.enter_context(_listening(listening))
            client = given.enter_context(_connected(source))
            sockets = [_above(given, one.fileno()) for one in (server, client)]
            files = [_memory(given, data) for data in (code, confinement(built).read_bytes())]
            command = _command(sockets, files, telling, bounds, arguments)
            outer = _popen(command, [*sockets, *files, telling], bounds, log)
        pid = _inner_pid(information.read())
    try:
        return Sandboxed(_checked(pid, outer, listening, log), outer)
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid or outer, signal.SIGKILL)
        how_it_ended(outer)
        raise


def how_it_ended(outer: int) -> str:
    """Return how nbdkit ended, in words; reaps bubblewrap, which reports it only to its parent."""
    status = 0

    def has_ended() -> bool:
        nonlocal status
        pid, status = os.waitpid(outer, os.WNOHANG)
        return pid != 0

    try:
        if not wait_until(has_ended, _END):
            return "it ended"
    except ChildProcessError:
        return "it ended"
    code = os.waitstatus_to_exitcode(status)
    number = -code if code < 0 else code - 128  # as bubblewrap passes it on
    with contextlib.suppress(ValueError):
        return f"it was ended by {signal.Signals(number).name}"
    return f"it ended with status {code}"


def memory_in_use(pid: int) -> int:
    """Return the bytes of its own memory; 0 when it has ended."""
    try:
        fields = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return (int(fields[1]) - int(fields[2])) * os.sysconf("SC_PAGE_SIZE")


def _command(
    sockets: Sequence[int], files: Sequence[int], telling: int, bounds: Confinement, arguments: Sequence[str]
) -> list[str]:
    nbdkit = _program("nbdkit", "nbdkit")
    listening, source = sockets
    return [
        _program("bwrap", "bubblewrap"),
        *("--unshare-all", "--as-pid-1", "--new-session", "--clearenv", "--cap-drop", "ALL"),
        *(() if bounds.lasting else ("--die-with-parent",)),
        *("--uid", str(NOBODY), "--gid", str(NOBODY), "--hostname", "filter", "--info-fd", str(telling)),
        *("--ro-bind", "/usr", "/usr", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64"),
        *("--dev-bind", "/dev/null", "/dev/null", "--dev-bind", "/dev/urandom", "/dev/urandom"),
        *("--perms", "0555", "--ro-bind-data", str(files[0]), "/filter.so"),
        *("--perms", "0555", "--ro-bind-data", str(files[1]), "/confine.so"),
        *("--remount-ro", "/", "--chdir", "/"),
        *("--setenv", "LC_ALL", "C.UTF-8", "--setenv", "LD_PRELOAD", "/confine.so"),
        *("--setenv", "MALLOC_ARENA_MAX", "2", "--setenv", "SLUICE_CONFINE", f"{listening} {bounds.memory + _BASE}"),
        *(nbdkit, "--foreground", "--threads", str(_THREADS), "--filter=/filter.so"),
        *("nbd", f"socket-fd={source}", *arguments),
    ]


def _popen(command: Sequence[str], descriptors: Sequence[int], bounds: Confinement, log: Path) -> int:
    become: dict[str, Any] = {}
    if os.geteuid() == 0:
        become = {"user": bounds.uid, "group": bounds.uid, "extra_groups": ()}
    log.unlink(missing_ok=True)
    try:
        with open(log, "ab") as output:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=output,
                pass_fds=descriptors,
                env={},
                cwd="/",
                start_new_session=True,
                **become,
            )
    except (OSError, subprocess.SubprocessError) as error:
        raise PeerError(f"`bwrap` cannot be started: {error}") from error
    process.returncode = 0  # it is reaped by its pid, not by this object
    return int(process.pid)


def _inner_pid(information: bytes) -> int:
    """Read the pid that bubblewrap reported; 0 when it ended before."""
    try:
        return int(json.loads(information)["child-pid"])
    except (ValueError, KeyError):
        return 0


def _checked(pid: int, outer: int, listening: Path, log: Path) -> ProcessRecord:
    """Return the process, after checking that it serves its export and is confined.

    :raises PeerError: when it does not, or is not
    """
    try:
        record = ProcessRecord.of(pid)
        NbdClient(listening, _START).close()
        status = dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text("utf-8").splitlines())
    except (PeerError, ProcessLookupError, FileNotFoundError) as error:
        # Its last log line comes before its end.  Without a pid the caller kills bubblewrap, which is not reaped here.
        ended = pid != 0 and wait_until(lambda: not Path(f"/proc/{pid}").exists(), _END)
        reason = last_lines(log) or (how_it_ended(outer) if ended else error)
        raise PeerError(f"the filter does not serve: {reason}") from error
    if (status["Seccomp"].strip(), status["NoNewPrivs"].strip()) != ("2", "1"):
        raise PeerError(f"the filter is not confined: {last_lines(log)}")
    return record


def _program(name: str, package: str) -> str:
    """Return the path of a program without links, since not all of them exist inside."""
    path = shutil.which(name)
    if path is None:
        raise PeerError(f"`{name}` is missing, which uploaded filters need: expected the Debian package {package}")
    return os.path.realpath(path)


@contextlib.contextmanager
def _listening(path: Path) -> Iterator[socket.socket]:
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        yield server


@contextlib.contextmanager
def _connected(path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(str(path))
        except OSError as error:
            raise PeerError(f"the source of the filter does not answer: {error}") from error
        yield client


def _memory(given: contextlib.ExitStack, data: bytes) -> int:
    """Return the descriptor of a file in memory with ``data``."""
    descriptor = os.memfd_create("sluice")
    given.callback(os.close, descriptor)
    with open(descriptor, "wb", closefd=False) as file:
        file.write(data)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _above(given: contextlib.ExitStack, descriptor: int) -> int:
    """Duplicate a socket to a number that is not used meanwhile (``confine.c`` needs number 3)."""
    other = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _FIRST_DESCRIPTOR)
    given.callback(os.close, other)
    return other
