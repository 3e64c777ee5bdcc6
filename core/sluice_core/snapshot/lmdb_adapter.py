"""The only module that opens LMDB, and the layout of a snapshot folder.

    folder/current -> gen-3-1f2e3d4c          swapped by rename, never written in place
    folder/gen-3-1f2e3d4c/data.mdb, lock.mdb

LMDB's traps, and what is done about each:

* *Opening an environment twice in one process* drops the first one's locks: environments are shared
  through a register.  One that came *through a fork* can be neither used nor closed (that would free
  the parent's slots) nor opened anew, so whoever forks must open afterwards; the register knows.
* *A truncated file* kills whoever reads past its end with SIGBUS: the size is compared with the last
  page in use before anything but the two head pages is looked at.
* *Commits are not synced* (they need not be: a killed writer leaves whole transactions, and Redis has
  everything).  After the machine went down pages may be missing, so the folder's name carries the id
  of the boot that it was written in, and one of another boot is never opened.
* *126 readers* are the default limit; each reading process takes one slot.
* *A map that grew* in one process must be resized in the others: :func:`read_transaction`.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, TypeVar

import lmdb

from sluice_core.errors import PeerError

CURRENT: Final = "current"
FIRST_MAP_SIZE: Final = 64 << 20
MAX_READERS: Final = 4096
LOCK_MODE: Final = 0o666  # readers write their slot there, under whatever user Swift runs

T = TypeVar("T")

_open: dict[str, tuple[int, Any, int]] = {}  # path → process id, environment, users


class SnapshotError(PeerError):
    """The snapshot cannot be read or written; the message says why.  The last good state stays."""


def boot_id() -> str:
    """Eight characters that change with each boot of this machine."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")[:8]


def current_generation(folder: Path, boot: str) -> Path:
    """The generation in use.

    :raises SnapshotError: when there is none, or it was written before the machine was started
    """
    try:
        name = os.readlink(folder / CURRENT)
    except OSError as error:
        raise SnapshotError(f"no snapshot in `{folder}`: {error.strerror}") from error
    if not name.endswith(f"-{boot}"):
        raise SnapshotError(f"snapshot `{name}` in `{folder}` is from before this boot and may have holes")
    return folder / name


def next_generation(folder: Path, boot: str) -> Path:
    """The path of a generation that is newer than all in ``folder``."""
    words = (path.name.split("-")[1] for path in folder.glob("gen-*-*"))
    numbers = [int(word) for word in words if word.isdecimal()]
    return folder / f"gen-{max(numbers, default=0) + 1}-{boot}"


def make_current(path: Path) -> None:
    """Give the generation at ``path`` to readers, in one step.

    :raises SnapshotError: when that cannot be
    """
    with lmdb_errors(path):
        link = path.with_name(f".{CURRENT}")
        link.unlink(missing_ok=True)
        link.symlink_to(path.name)
        link.replace(path.with_name(CURRENT))


def remove_old_generations(folder: Path) -> None:
    """Remove what is not current; readers that have it open keep what they mapped."""
    with contextlib.suppress(OSError):
        current = os.readlink(folder / CURRENT)
        for path in folder.glob("gen-*"):
            if path.name != current:
                shutil.rmtree(path, ignore_errors=True)


def claim_folder(folder: Path) -> int:
    """Lock ``folder``, which has one writer; the lock ends with the process, or when the answered file is closed.

    :raises SnapshotError: when another process has it
    """
    lock = os.open(folder / ".writer", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(lock)
        raise SnapshotError(f"snapshot folder `{folder}` belongs to another running agent") from error
    return lock


def open_to_readers(path: Path, group: str) -> None:
    """Let every user read the generation at ``path``; its lock file goes to ``group`` unless that is empty.

    :raises SnapshotError: when that cannot be
    """
    with lmdb_errors(path):
        path.chmod(0o755)
        (path / "data.mdb").chmod(0o644)
        (path / "lock.mdb").chmod(LOCK_MODE)
        if group:
            shutil.chown(path / "lock.mdb", group=group)


def open_environment(path: Path, *, write: bool = False) -> Any:
    """The LMDB environment in ``path``; give it back with :func:`release`.

    :raises SnapshotError: when it is missing, truncated or no environment
    """
    name = os.path.realpath(path)
    opened = _open.get(name)
    if opened is not None and opened[0] != os.getpid():
        raise SnapshotError(f"snapshot `{path}` was opened before this process was forked, open it only afterwards")
    if opened is not None:
        process, environment, users = opened
    else:
        process, environment, users = os.getpid(), _open_checked(path, write), 0
    if write and environment.flags()["readonly"]:
        raise SnapshotError(f"snapshot `{path}` is open for reading in this process already")
    _open[name] = (process, environment, users + 1)
    return environment


def release(path: Path) -> None:
    """No longer use the environment in ``path``; the last user in this process closes it."""
    name = os.path.realpath(path)
    opened = _open.get(name)
    if opened is None or opened[0] != os.getpid():
        return
    process, environment, users = opened
    if users > 1:
        _open[name] = (process, environment, users - 1)
        return
    del _open[name]
    environment.close()


def _open_checked(path: Path, write: bool) -> Any:
    with lmdb_errors(path):
        if write:
            # lmdb would give the folder the mode of its files, so that root alone can enter it
            path.mkdir(mode=0o755, exist_ok=True)
        environment = lmdb.open(
            str(path),
            map_size=FIRST_MAP_SIZE if write else 0,
            readonly=not write,
            create=write,
            mode=0o644,
            max_readers=MAX_READERS,
            sync=False,
            metasync=False,
            readahead=False,
        )
    problem = _truncated(path, environment)
    if problem:
        environment.close()
        raise SnapshotError(problem)
    return environment


def _truncated(path: Path, environment: Any) -> str:
    size = (path / "data.mdb").stat().st_size
    wanted = (environment.info()["last_pgno"] + 1) * environment.stat()["psize"]
    return f"snapshot `{path}` is truncated: {size} bytes, expected {wanted}" if size < wanted else ""


@contextlib.contextmanager
def lmdb_errors(path: Path) -> Iterator[None]:
    """Turn faults of LMDB and of the file system into :class:`SnapshotError`, but for a full or resized map."""
    try:
        yield
    except (lmdb.MapFullError, lmdb.MapResizedError):
        raise
    except (lmdb.Error, OSError) as error:
        raise SnapshotError(f"snapshot `{path}`: {error}{_space_left(path)}") from error


def _space_left(path: Path) -> str:
    """LMDB calls a write cut short by a full disk an input/output error; say what the disk has left."""
    with contextlib.suppress(OSError):
        return f" ({shutil.disk_usage(path).free >> 20} MiB free on its disk)"
    return ""


def read_transaction(environment: Any, work: Callable[[Any], T]) -> T:
    """What ``work`` makes of a read transaction, on a map as large as the writer made it."""
    try:
        with environment.begin(buffers=True) as transaction:
            return work(transaction)
    except lmdb.MapResizedError:
        environment.set_mapsize(0)
        with environment.begin(buffers=True) as transaction:
            return work(transaction)


def read_value(environment: Any, key: bytes) -> bytes:
    """The value under ``key``; empty when there is none."""
    return read_transaction(environment, lambda transaction: bytes(transaction.get(key) or b""))


def write_transaction(path: Path, environment: Any, work: Callable[[Any], T]) -> T:
    """What ``work`` makes of a write transaction, begun anew on a larger map when the map is full.

    :raises SnapshotError: when it cannot be written
    """
    with lmdb_errors(path):
        while True:
            try:
                with environment.begin(write=True) as transaction:
                    return work(transaction)
            except lmdb.MapFullError:
                environment.set_mapsize(environment.info()["map_size"] * 2)
