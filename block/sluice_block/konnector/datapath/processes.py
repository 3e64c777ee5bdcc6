"""Programs that the konnector starts: in sessions of their own, so that they outlive it.

nbdkit, qemu-storage-daemon and nbdfuse serve a volume's I/O whether the konnector runs or not.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from sluice_block.konnector.datapath.process_records import ProcessRecord
from sluice_core.errors import PeerError

#: Seconds within which a program that goes into the background must serve.
_DAEMON: Final = 20.0
#: Bytes of a log that an error quotes, from its end.
_QUOTED: Final = 2000


def start(command: Sequence[str], log: Path, descriptors: Sequence[int] = ()) -> ProcessRecord:
    """Start ``command`` in a session of its own, its output in ``log``.

    :param descriptors: file descriptors that it inherits, under the same numbers
    :raises PeerError: when the program cannot be started
    """
    process = _popen(command, log, descriptors)
    process.returncode = 0  # it is waited for by its record, not by this object
    return ProcessRecord.of(process.pid)


def start_until_ready(
    command: Sequence[str], log: Path, ready: Path, seconds: float, descriptors: Sequence[int] = ()
) -> ProcessRecord:
    """Start ``command`` and wait for the file ``ready``, which it writes once it serves.

    :raises PeerError: with what it said, when it ends before that, or does not write it in ``seconds``
    """
    record = start(command, log, descriptors)
    wait_until(lambda: ready.exists() or not record.is_alive(), seconds)
    if ready.exists() and record.is_alive():
        return record
    record.end()
    said = last_lines(log)
    raise PeerError(f"`{command[0]}` does not serve: {said or f'no word in {seconds:g} s'}")


def start_daemon(command: Sequence[str], log: Path, pidfile: Path, descriptors: Sequence[int] = ()) -> ProcessRecord:
    """Run ``command``, which goes into the background by itself once it serves, and writes ``pidfile``.

    :raises PeerError: with what it said, when it does not
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
    """The output of a command that ends by itself.

    :param what: what it is to do, for the error
    :param given: its input
    :raises PeerError: with what it said, when it fails or does not end in time
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
    """The end of a log, for an error."""
    try:
        return log.read_bytes()[-_QUOTED:].decode("utf-8", "replace").strip()
    except OSError:
        return ""


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    """Whether ``condition`` became true within ``seconds``."""
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
    """The number in a pid file; None until it is there as a whole."""
    try:
        text = path.read_text(encoding="ascii")
    except FileNotFoundError:
        return None
    return int(text) if text.endswith("\n") and text.strip().isdecimal() else None


def _environment() -> dict[str, str]:
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C.UTF-8"}
