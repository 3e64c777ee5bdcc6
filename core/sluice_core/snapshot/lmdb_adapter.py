"""The only module that opens LMDB, and the layout of a snapshot folder.

    folder/current -> gen-3-1f2e3d4c          swapped by rename, never written in place
    folder/gen-3-1f2e3d4c/data.mdb, lock.mdb

LMDB's traps, and the measure against each:

* *Opening an environment twice in one process* drops the first one's locks: environments are shared
  through a register.  An environment from *before a fork* can be neither used nor closed (that would free
  the parent's slots) nor opened again, so a process must open it after its fork; the register checks this.
* *A truncated file* kills a process that reads past its end with SIGBUS: the size is compared with the last page in use
  before any page but the two head pages is read.
* *Commits are not synced* (they need not be: a killed writer leaves whole transactions, and Redis holds
  all data).  After a crash of the machine pages may be missing, so the folder's name carries the id
  of the boot that it was written in, and a folder of another boot is not opened.
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
LOCK_MODE: Final = 0o666  # readers write their slot there, under the user of Swift

T = TypeVar("T")

_open: dict[str, tuple[int, Any, int]] = {}  # path → process id, environment, users


class SnapshotError(PeerError):
    """The snapshot cannot be read or written; the message has the reason.  The last good state stays."""


def boot_id() -> str:
    """Eight characters that change with each boot of this machine."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")[:8]


def current_generation(folder: Path, boot: str) -> Path:
    """Return the generation in use.

    :raises SnapshotError: when there is none, or it was written before the last boot
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
    """Make the generation at ``path`` the current one for readers, atomically.

    :raises SnapshotError: when that fails
    """
    with lmdb_errors(path):
        link = path.with_name(f".{CURRENT}")
        link.unlink(missing_ok=True)
        link.symlink_to(path.name)
        link.replace(path.with_name(CURRENT))


def remove_old_generations(folder: Path) -> None:
    """Remove all generations except the current one; readers that have one open keep what they mapped."""
    with contextlib.suppress(OSError):
        current = os.readlink(folder / CURRENT)
        for path in folder.glob("gen-*"):
            if path.name != current:
                shutil.rmtree(path, ignore_errors=True)


def claim_folder(folder: Path) -> int:
    """Lock ``folder``, which has one writer; the lock ends with the process, or when the returned file is closed.

    :raises SnapshotError: when another process holds the lock
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

    :raises SnapshotError: when that fails
    """
    with lmdb_errors(path):
        path.chmod(0o755)
        (path / "data.mdb").chmod(0o644)
        (path / "lock.mdb").chmod(LOCK_MODE)
        if group:
            shutil.chown(path / "lock.mdb", group=group)


def open_environment(path: Path, *, write: bool = False) -> Any:
    """Return the LMDB environment in ``path``; return it with :func:`release`.

    :raises SnapshotError: when it is missing, truncated or not an environment
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
    """Release the environment in ``path``; the last user in this process closes it."""
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
            # lmdb would give the folder the mode of its files, so that only root could enter it
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
    """Turn faults of LMDB and of the file system into :class:`SnapshotError`, except a full or resized map."""
    try:
        yield
    except (lmdb.MapFullError, lmdb.MapResizedError):
        raise
    except (lmdb.Error, OSError) as error:
        raise SnapshotError(f"snapshot `{path}`: {error}{_space_left(path)}") from error


def _space_left(path: Path) -> str:
    """LMDB reports a write that a full disk cut short as an input/output error; return the free space of the disk."""
    with contextlib.suppress(OSError):
        return f" ({shutil.disk_usage(path).free >> 20} MiB free on its disk)"
    return ""


def read_transaction(environment: Any, work: Callable[[Any], T]) -> T:
    """Return the result of ``work`` in a read transaction, on a map of the writer's size."""
    try:
        with environment.begin(buffers=True) as transaction:
            return work(transaction)
    except lmdb.MapResizedError:
        environment.set_mapsize(0)
        with environment.begin(buffers=True) as transaction:
            return work(transaction)


def read_value(environment: Any, key: bytes) -> bytes:
    """Return the value under ``key``; empty when there is none."""
    return read_transaction(environment, lambda transaction: bytes(transaction.get(key) or b""))


def write_transaction(path: Path, environment: Any, work: Callable[[Any], T]) -> T:
    """Return the result of ``work`` in a write transaction, repeated on a larger map when the map is full.

    :raises SnapshotError: when it cannot be written
    """
    with lmdb_errors(path):
        while True:
            try:
                with environment.begin(write=True) as transaction:
                    return work(transaction)
            except lmdb.MapFullError:
                environment.set_mapsize(environment.info()["map_size"] * 2)
