"""The cost of the file-system shim for files without motifs, compared with a loopback by the same binding.

    python -m benchmarks --only motif_file_system

Three mounts stand beside each other, two of them loopbacks (``loopback``).  Each workload runs on all three, one right
after the other and in every order; ratios are taken within such a cycle.  In the shim's folder a hundred files have
motifs, which no workload touches.
"""

from __future__ import annotations

import mailbox
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from benchmarks.harness.cpu import cpu_seconds
from benchmarks.harness.figures import Figure, at_most
from benchmarks.harness.pairs import INSTANCES, SLUICE, compare, rotated
from benchmarks.harness.scale import Scale, say

TARGET: Final = 1.05
ITEMS: Final = 100
_SIZE: Final = 64 << 20
_BLOCK: Final = 1 << 20
_HEADERS: Final = Path("/usr/include")
_PROGRAM: Final = "#include <linux/fs.h>\n#include <stdio.h>\n#include <stdlib.h>\nint f{0}(void) {{ return {0}; }}\n"

Workload = Callable[[Path], None]


def sequential_write(folder: Path) -> None:
    """32 MB, 1 MB at a time."""
    block = os.urandom(_BLOCK)
    with (folder / "written").open("wb", buffering=0) as file:
        for _ in range(_SIZE // _BLOCK // 2):
            file.write(block)


def sequential_read(folder: Path) -> None:
    """64 MB of a file that the kernel does not have."""
    file = os.open(folder / "large", os.O_RDONLY)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    while os.read(file, _BLOCK):
        pass
    os.close(file)


def random_read(folder: Path) -> None:
    """4 KiB at 2,000 places of a file that the kernel does not have."""
    drawn = random.Random(1)
    file = os.open(folder / "large", os.O_RDONLY)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_RANDOM)
    for _ in range(2000):
        os.pread(file, 4096, drawn.randrange(_SIZE // 4096) * 4096)
    os.close(file)


def create_unlink(folder: Path) -> None:
    """300 empty files made, and deleted."""
    for number in range(300):
        (folder / f"file{number}").touch()
    for number in range(300):
        (folder / f"file{number}").unlink()


def extract(folder: Path) -> None:
    """Extract an archive of headers by tar."""
    subprocess.run(["tar", "-xf", folder / "headers.tar", "-C", folder / "extracted"], check=True)


def search(folder: Path) -> None:
    """grep -r and find in headers."""
    subprocess.run(["grep", "-rc", "no such word", folder / "headers"], stdout=subprocess.DEVNULL, check=False)
    subprocess.run(["find", folder / "headers", "-size", "+100k"], stdout=subprocess.DEVNULL, check=True)


def compile_sources(folder: Path) -> None:
    """Compile eight C files and link them."""
    sources = [folder / f"source{number}.c" for number in range(8)]
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", folder / "library", *sources], check=True)


def database(folder: Path) -> None:
    """SQLite: 20 transactions, and 2,000 look-ups."""
    drawn = random.Random(2)
    with sqlite3.connect(folder / "database") as connection:
        connection.execute("CREATE TABLE rows (number INTEGER PRIMARY KEY, content BLOB)")
    for _ in range(20):
        with connection:
            rows = ((drawn.randrange(10**12), drawn.randbytes(200)) for _ in range(50))
            connection.executemany("INSERT OR REPLACE INTO rows VALUES (?, ?)", rows)
    for _ in range(2000):
        connection.execute("SELECT content FROM rows WHERE number >= ?", (drawn.randrange(10**12),)).fetchone()
    connection.close()


def mail(folder: Path) -> None:
    """A Maildir: 50 messages delivered, read, moved to another folder and some deleted."""
    inbox = mailbox.Maildir(folder / "mail")
    seen = inbox.add_folder("seen")
    drawn = random.Random(3)
    for number in range(50):
        inbox.add(f"Subject: {number}\n\n{'text ' * drawn.randrange(50, 2000)}")
    for key in list(inbox.keys()):
        seen.add(inbox[key])
        inbox.remove(key)
    for key in list(seen.keys())[::3]:
        seen.remove(key)


WORKLOADS: Final[Mapping[str, Workload]] = {
    one.__name__: one
    for one in (
        *(sequential_read, sequential_write, random_read, create_unlink),
        *(extract, search, compile_sources, database, mail),
    )
}


def measure(scale: Scale) -> list[Figure]:
    """The time of each workload, as a multiple of a loopback's."""
    cycles: dict[str, list[dict[str, float]]] = {name: [] for name in WORKLOADS}
    used: dict[str, list[dict[str, float]]] = {name: [] for name in WORKLOADS}
    with ExitStack() as stack:
        mounts = {name: stack.enter_context(mounted(scale.folder / name, name == SLUICE)) for name in INSTANCES}
        for number in range(scale.pick(18, 1)):
            for name, workload in WORKLOADS.items():
                times, cpu = {}, {}
                for instance in rotated(number):
                    folder, pid = mounts[instance]
                    times[instance], cpu[instance] = _timed(workload, folder, pid)
                cycles[name].append(times)
                used[name].append(cpu)
            say(f"motif_file_system: cycle {number + 1}")
    figures = []
    for name, workload in WORKLOADS.items():
        found, processor = compare(cycles[name]), compare(used[name])
        beside = f"CPU × {processor.ratio:.3f}; {found.beside()}; {found.milliseconds()}"
        what = (workload.__doc__ or "").rstrip(".")
        figures.append(at_most(f"file system: {name}", f"{what}, × loopback", found.ratio, TARGET, "×", beside))
    return figures


def _timed(workload: Workload, folder: Path, pid: int) -> tuple[float, float]:
    begin, used = time.perf_counter(), cpu_seconds([pid])
    workload(folder)
    taken = time.perf_counter() - begin, cpu_seconds([pid]) - used
    for made in ("written", "database", "library", "mail", "extracted"):
        path = folder / made
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    (folder / "extracted").mkdir()
    return taken


@contextmanager
def mounted(folder: Path, shim: bool) -> Iterator[tuple[Path, int]]:
    """A folder with the files of the workloads, mounted by the shim or a loopback; with the process."""
    source, mount = folder / "source", folder / "mount"
    for one in (source, mount, source / "extracted"):
        one.mkdir(parents=True)
    (source / "large").write_bytes(os.urandom(_SIZE))
    shutil.copytree(_HEADERS / "linux", source / "headers", symlinks=True)
    subprocess.run(["tar", "-cf", source / "headers.tar", "-C", _HEADERS, "linux"], check=True)
    for number in range(8):
        (source / f"source{number}.c").write_text(_PROGRAM.format(number))
    module = ["sluice_motifs_fs", "mount"] if shim else ["benchmarks.motifs.loopback"]
    with serving([*module, str(source), str(mount)], mount, folder / "log") as pid:
        if shim:
            _attach(mount)
        yield mount, pid


@contextmanager
def serving(command: Sequence[str], mount: Path, log: Path) -> Iterator[int]:
    """The process of a Python module that has mounted a file system.

    :raises OSError: if it ends before
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with log.open("wb") as said:
        process = subprocess.Popen([sys.executable, "-m", *command], stderr=said, env=environment)
    try:
        while not mount.is_mount():
            if process.poll() is not None:
                raise OSError(f"the mount ended: {log.read_text()}")
            time.sleep(0.05)
        yield process.pid
    finally:
        process.terminate()
        process.wait()


def _attach(mount: Path) -> None:
    (mount / "items").mkdir()
    for number in range(ITEMS):
        for name in (f"source{number}", f"item{number}"):
            (mount / "items" / name).write_bytes(b"content")
        described = b'{"template": "concat", "params": {"of": "items/source%d"}}' % number
        os.setxattr(mount / f"items/item{number}", "user.sluice.motif", described)
