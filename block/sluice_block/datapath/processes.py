"""Programs that the konnector starts: in sessions of their own, so that they keep running when it ends.

nbdkit, qemu-storage-daemon and nbdfuse serve a volume's I/O with or without the konnector.

Sluice's processes are found again by pid and start time.  A reused pid has another start time, so that no foreign
process is waited for or ended.  All waiting is on pid file descriptors (pidfd_open(2)), which work for children of an
earlier konnector, too.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, TypeVar

from sluice_core.errors import DecodeError, PeerError
from sluice_core.messages.base import Message

R = TypeVar("R", bound=Message)

#: Seconds between SIGTERM and SIGKILL of a process that does not end.
PATIENCE: Final = 10.0


@cache
def boot_id() -> str:
    """Return an identifier of this boot of the machine."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


@dataclass(frozen=True, slots=True)
class ProcessRecord(Message):
    """One process; ``started`` is its start time in clock ticks since the boot ``boot``."""

    pid: int
    started: int
    boot: str

    @classmethod
    def of(cls, pid: int) -> ProcessRecord:
        """
        :raises ProcessLookupError: when the process does not exist
        """
        return cls(pid, _stat(pid)[1], boot_id())

    def is_alive(self) -> bool:
        """Whether exactly this process runs."""
        try:
            state, started = _stat(self.pid)
        except ProcessLookupError:
            return False
        return state not in "ZX" and started == self.started and self.boot == boot_id()

    def open(self) -> int | None:
        """Return a pid file descriptor, which becomes readable when the process ends; None when it has ended."""
        try:
            descriptor = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return None
        if self.is_alive():  # checked after the descriptor was opened, so that the descriptor is of this process
            return descriptor
        os.close(descriptor)
        return None

    def wait(self, seconds: float) -> bool:
        """Wait until the process has ended; return False when it still runs after ``seconds``."""
        with _opened(self) as descriptor:
            if descriptor is not None and not _readable(descriptor, seconds):
                return False
        reap(self.pid)
        return True

    def terminate(self) -> None:
        """Send SIGTERM, and do not wait."""
        with _opened(self) as descriptor:
            if descriptor is not None:
                signal.pidfd_send_signal(descriptor, signal.SIGTERM)

    def end(self, patience: float = PATIENCE) -> None:
        """Send SIGTERM, after ``patience`` seconds SIGKILL, and wait until the process has ended.

        :param patience: with 0 only SIGKILL is sent; after SIGTERM a server may answer with errors before SIGKILL
        :raises PeerError: when the kernel does not end it (it waits for a device)
        """
        with _opened(self) as descriptor:
            if descriptor is None:
                return
            asked = ((signal.SIGTERM, patience),) if patience else ()
            for number, seconds in (*asked, (signal.SIGKILL, PATIENCE)):
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(descriptor, number)
                if _readable(descriptor, seconds):
                    reap(self.pid)
                    return
        raise PeerError(f"process `{self.pid}` does not end")


def write_record(path: Path, record: Message) -> None:
    """Write the record of a process to ``path``."""
    fresh = path.with_name(path.name + ".new")
    fresh.write_bytes(record.encode())
    fresh.replace(path)


def read_record(path: Path, kind: type[R]) -> R | None:
    """Read the record at ``path``; return None when none can be read."""
    try:
        return kind.decode(path.read_bytes())
    except (FileNotFoundError, DecodeError):
        return None


def read_living(path: Path) -> ProcessRecord | None:
    """Return the process whose record is at ``path``; None when it does not run."""
    record = read_record(path, ProcessRecord)
    return record if record is not None and record.is_alive() else None


def end_recorded(path: Path, patience: float = PATIENCE) -> None:
    """End the process whose record is at ``path``, and remove the record.

    :raises PeerError: when it does not end
    """
    record = read_record(path, ProcessRecord)
    if record is not None:
        record.end(patience)
    path.unlink(missing_ok=True)


def reap(pid: int) -> None:
    """Collect the exit status of ``pid`` if it is a child of this process, so that it does not stay as a zombie."""
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def _stat(pid: int) -> tuple[str, int]:
    """Return state and start time of a process: fields 3 and 22 of /proc/<pid>/stat (proc(5)).

    :raises ProcessLookupError: when the process does not exist
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError) as error:
        raise ProcessLookupError(pid) from error
    fields = text.rpartition(")")[2].split()  # the name in field 2 may hold spaces and parentheses
    return fields[0], int(fields[19])


@contextlib.contextmanager
def _opened(record: ProcessRecord) -> Iterator[int | None]:
    descriptor = record.open()
    try:
        yield descriptor
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _readable(descriptor: int, seconds: float) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(int(seconds * 1000)))


#: Seconds within which a program that runs in the background must serve.
_DAEMON: Final = 20.0
#: Bytes at the end of a log that an error quotes.
_QUOTED: Final = 2000


def start(command: Sequence[str], log: Path, descriptors: Sequence[int] = ()) -> ProcessRecord:
    """Start ``command`` in a session of its own, with its output in ``log``.

    :param descriptors: file descriptors that it inherits, under the same numbers
    :raises PeerError: when the program cannot be started
    """
    process = _popen(command, log, descriptors)
    process.returncode = 0  # its record is used for waiting, not this object
    return ProcessRecord.of(process.pid)


def start_until_ready(
    command: Sequence[str], log: Path, ready: Path, seconds: float, descriptors: Sequence[int] = ()
) -> ProcessRecord:
    """Start ``command`` and wait for the file ``ready``, which it writes once it serves.

    :raises PeerError: with its output, when it ends before that, or does not write it in ``seconds``
    """
    record = start(command, log, descriptors)
    wait_until(lambda: ready.exists() or not record.is_alive(), seconds)
    if ready.exists() and record.is_alive():
        return record
    record.end()
    said = last_lines(log)
    raise PeerError(f"`{command[0]}` does not serve: {said or f'no word in {seconds:g} s'}")


def start_daemon(command: Sequence[str], log: Path, pidfile: Path, descriptors: Sequence[int] = ()) -> ProcessRecord:
    """Run ``command``, which moves into the background once it serves, and writes ``pidfile``.

    :raises PeerError: with its output, when it does not
    """
    pidfile.unlink(missing_ok=True)
    process = _popen(command, log, descriptors)
    try:
        failed = process.wait(_DAEMON)
    except subprocess.TimeoutExpired as error:
        process.kill()
        process.wait()
        raise PeerError(f"`{command[0]}` does not serve after {_DAEMON:g} s: {last_lines(log)}") from error
    if failed:
        raise PeerError(f"`{command[0]}` does not serve: {last_lines(log) or f'it ended with {failed}'}")
    if not wait_until(lambda: _pid_in(pidfile) is not None, _DAEMON):
        raise PeerError(f"`{command[0]}` wrote no `{pidfile}`")
    pid = _pid_in(pidfile)
    try:
        return ProcessRecord.of(pid or 0)
    except ProcessLookupError as error:
        raise PeerError(f"`{command[0]}` ended at once: {last_lines(log)}") from error


def run(
    command: Sequence[str], what: str, seconds: float = 30.0, descriptors: Sequence[int] = (), given: str = ""
) -> str:
    """Return the output of a command that ends by itself.

    :param what: its purpose, for the error
    :param given: its input
    :raises PeerError: with its output, when it fails or does not end in time
    """
    try:
        done = subprocess.run(
            command,
            input=given,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            pass_fds=descriptors,
            env=_environment(),
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise PeerError(f"{what}: `{command[0]}` has not ended after {seconds:g} s") from error
    except OSError as error:
        raise PeerError(f"{what}: `{command[0]}` cannot be started: {error}") from error
    if done.returncode:
        said = (done.stderr or done.stdout).strip()[-_QUOTED:]
        raise PeerError(f"{what}: {said or f'`{command[0]}` ended with {done.returncode}'}")
    return done.stdout


def last_lines(log: Path) -> str:
    """Return the end of a log, for an error."""
    try:
        return log.read_bytes()[-_QUOTED:].decode("utf-8", "replace").strip()
    except OSError:
        return ""


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    """Wait until ``condition()`` is true; return False after ``seconds``."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True


def _popen(command: Sequence[str], log: Path, descriptors: Sequence[int]) -> subprocess.Popen[bytes]:
    with open(log, "wb") as output:
        try:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=descriptors,
                env=_environment(),
                start_new_session=True,
            )
        except OSError as error:
            raise PeerError(f"`{command[0]}` cannot be started: {error}") from error


def _pid_in(path: Path) -> int | None:
    """Return the number in a pid file; None until it is complete."""
    try:
        text = path.read_text(encoding="ascii")
    except FileNotFoundError:
        return None
    return int(text) if text.endswith("\n") and text.strip().isdecimal() else None


def _environment() -> dict[str, str]:
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C.UTF-8"}


def is_mounted(place: Path) -> bool:
    """Whether a file system is mounted at ``place`` (proc(5): field 5 of mountinfo)."""
    lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    wanted = str(place).replace(" ", "\\040")
    return any(line.split(" ")[4] == wanted for line in lines)


def unmount(place: Path) -> None:
    """Remove a mount at ``place``, if there is one.

    :raises PeerError: when it is in use
    """
    if is_mounted(place):
        run(["umount", str(place)], f"`{place}` stays mounted")
