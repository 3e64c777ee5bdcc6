"""Readers of an item during writes of its source see the content of one version, none older than the last close."""

import errno
import mmap
import os
import threading
import time

import pytest

SECONDS = float(os.environ.get("SLUICE_MOTIF_FS_SECONDS", "4"))
READERS = 4
#: Seconds without writes, so that a contracted item is also read when it is fresh.
PAUSE = 0.05


def content(number):
    """The content of a source after this many writes: of another length each, longer than one read of the kernel."""
    return (b"%07d\n" % number) * (20_000 + number % 7 * 9_000)


def truncate_and_write(path, data):
    with path.open("wb") as file:
        for begin in range(0, len(data), 60_000):
            file.write(data[begin : begin + 60_000])


def write_in_place(path, data):
    with path.open("r+b", buffering=0) as file:
        for begin in range(0, len(data), 70_001):
            file.write(data[begin : begin + 70_001])
        file.truncate(len(data))


def replace(path, data):
    new = path.with_name("new")
    new.write_bytes(data)
    new.rename(path)


def read_at_once(path):
    return path.read_bytes()


def read_in_pieces(path):
    with path.open("rb", buffering=0) as file:
        return b"".join(iter(lambda: file.read(50_000), b""))


def read_mapped(path):
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        return bytes(mapped)


def read_as_large_as_it_was(path):
    file = os.open(path, os.O_RDONLY)
    try:
        return os.pread(file, os.fstat(file).st_size, 0)
    finally:
        os.close(file)


class Watched:
    """The contents that the writer has closed, and those that its readers saw."""

    def __init__(self):
        self.closed = 0
        self.begun = 0
        self.slowest = 0.0
        self.seen = set()
        self.wrong = []
        self.over = threading.Event()

    def check(self, path, read):
        """Read once."""
        closed = self.closed
        try:
            found = read(path)
        except OSError as error:
            self.wrong.append(f"{read.__name__}: {errno.errorcode[error.errno]}")
            return
        number = int(found[:7] or b"-1")
        self.seen.add(number)
        if found != content(number):
            self.wrong.append(f"{read.__name__}: {len(found)} bytes are mixed, {number} at their begin")
        elif not closed <= number <= self.begun:
            self.wrong.append(f"{read.__name__}: {number} is older than {closed}")


@pytest.mark.parametrize("write", [truncate_and_write, pytest.param(write_in_place, marks=pytest.mark.probe), replace])
@pytest.mark.parametrize(
    "contracted", [pytest.param(False, marks=pytest.mark.probe), True], ids=["stale", "contracted"]
)
def test_readers_see_one_version(mount, write, contracted):
    source, item = mount.path / "source", mount.path / "item"
    source.write_bytes(content(0))
    item.write_bytes(content(0))
    mount.attach("item", "concat", of="source")
    check(mount, source, item, write, ["item"] if contracted else [])


def test_readers_see_one_version_of_what_is_made_from_an_item(mount):
    source, between, item = (mount.path / name for name in ("source", "between", "item"))
    for path in (source, between, item):
        path.write_bytes(content(0))
    mount.attach("between", "concat", of="source")
    mount.attach("item", "concat", of="between")
    check(mount, source, item, truncate_and_write, ["between", "item"])


def check(mount, source, item, write, contracted):
    """Write the source, contract some items, and read one in all ways."""
    watched = Watched()

    def read_on(read):
        while not watched.over.is_set():
            watched.check(item, read)

    def contract_on(name):
        while not watched.over.is_set():
            try:
                mount.contract(name)
            except OSError as error:
                if error.errno not in (errno.EBUSY, errno.EINVAL):
                    watched.wrong.append(f"contract: {error}")

    ways = (read_at_once, read_in_pieces, read_mapped, read_as_large_as_it_was)
    threads = [threading.Thread(target=read_on, args=(ways[number % 4],)) for number in range(READERS)]
    threads += [threading.Thread(target=contract_on, args=(name,)) for name in contracted]
    for thread in threads:
        thread.start()
    timer = threading.Timer(SECONDS, watched.over.set)
    timer.start()
    while not watched.over.is_set() and not watched.wrong:
        watched.begun += 1
        began = time.monotonic()
        write(source, content(watched.begun))
        watched.slowest = max(watched.slowest, time.monotonic() - began)
        watched.closed = watched.begun
        if watched.begun % 3 == 0:
            time.sleep(PAUSE)
    timer.cancel()
    watched.over.set()
    for thread in threads:
        thread.join()
    # a writer that pauses until a file counts as settled shows the content written until then
    assert not watched.wrong, f"the slowest write took {watched.slowest:.2f} s"
    assert len(watched.seen) > 3, f"{watched.closed} writes, of which readers saw {len(watched.seen)}"
    assert item.read_bytes() == source.read_bytes()
