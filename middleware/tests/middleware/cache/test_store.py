"""The store of whole objects: room, crashes, damage, and several processes at once."""

import errno
import io
import logging
import os
import subprocess
import sys
import textwrap
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice_core.cache.write_marks import object_digest, open_write_marks
from sluice_middleware.cache import files as cache_files
from sluice_middleware.cache import store as cache_store
from sluice_middleware.cache.files import DataFiles
from sluice_middleware.cache.index import LFU, LRU, IndexEntry, open_table
from sluice_middleware.cache.store import open_store

log = logging.getLogger(__name__)
HEADERS = {"Content-Type": "text/plain", "Etag": "e"}


def key(number):
    return object_digest(b"a/c/%d" % number)


def opened(folder, limit=1 << 20, policy=LRU):
    return open_store(folder, open_write_marks(folder), limit, policy, log)


@pytest.fixture
def store(tmp_path):
    found = opened(tmp_path)
    yield found
    found.close()


def keep(store, number, size=1000, body=None):
    given_body = [bytes([number % 256]) * size] if body is None else body
    return store.keep(key(number), store.snapshot(key(number)), HEADERS, given_body)


def read(store, number):
    """The body, None when the store does not have it."""
    entry = store.table.find(key(number))
    content = entry and store.files.open(entry.key, entry.serial)
    if content is None:
        return None
    try:
        assert content.headers == HEADERS
        assert content.is_intact()
        return b"".join(content.read(0, content.length))
    finally:
        content.close()


def files(folder):
    return [path for path in (folder / "objects").rglob("*") if path.is_file()]


def touch(store, number, times=1, last=None):
    for _ in range(times):
        store.table.touch(store.table.find(key(number)))
    if last is not None:
        store.table.put(store.table.find(key(number))._replace(last=last))


@settings(deadline=None)
@given(st.lists(st.binary(max_size=5000), max_size=5), st.dictionaries(st.text(max_size=20), st.text(max_size=99)))
def test_a_stored_object_reads_back_unchanged(tmp_path_factory, body, headers):
    kept = DataFiles(tmp_path_factory.mktemp("files"))
    kept.write(key(1), 7, headers, body)
    content = kept.open(key(1), 7)
    assert content.headers == headers
    assert b"".join(content.read(0, content.length)) == b"".join(body)
    assert content.is_intact()
    content.close()


def test_the_index_counts_and_finds_many_entries(tmp_path):
    table = open_table(tmp_path / "table", 4096, LRU)
    for number in range(500):
        assert table.put(IndexEntry(key(number), 1, 2, number + 1, 10, 3, 4, 5)) is None
    assert [table.find(key(number)).serial for number in range(500)] == list(range(1, 501))
    assert table.find(key(2000)) is None
    assert table.used == 5_000
    assert table.drop(table.find(key(7)))
    assert table.find(key(7)) is None
    assert table.used == 4_990
    assert sum(1 for _ in table.entries()) == 499
    table.recount()
    assert table.used == 4_990
    table.close()  # no view holds the memory


def test_a_full_bucket_evicts_its_least_worthy_entry(tmp_path):
    table = open_table(tmp_path / "table", 8, LRU)
    for number in range(8):
        table.put(IndexEntry(key(number), 0, 0, 1, 1, 1, 0, last=100 + number))
    gone = table.put(IndexEntry(key(8), 0, 0, 1, 1, 1, 0, last=200))
    assert gone.key == key(0)
    assert {one.key for one in table.entries()} == {key(number) for number in range(1, 9)}


def test_an_entry_that_was_replaced_is_not_dropped(tmp_path):
    table = open_table(tmp_path / "table", 8, LRU)
    table.put(IndexEntry(key(1), 0, 0, 1, 1, 1, 0, 0))
    old = table.find(key(1))
    table.put(IndexEntry(key(1), 0, 0, 2, 1, 1, 0, 0))
    assert not table.drop(old)
    assert table.find(key(1)).serial == 2


def test_the_store_never_outgrows_its_limit(tmp_path):
    store = opened(tmp_path, limit=100_000)
    for number in range(300):
        assert keep(store, number, size=3000)
        assert store.table.used <= 100_000
    assert read(store, 299) == bytes([299 % 256]) * 3000
    assert sum(os.stat(path).st_size for path in files(tmp_path)) == store.table.used
    assert store.table.counts()["evictions"] > 200


def test_an_object_larger_than_the_store_is_not_kept(tmp_path):
    store = opened(tmp_path, limit=10_000)
    keep(store, 1)
    assert not keep(store, 2, size=10_001)
    assert read(store, 1) is not None


@pytest.mark.parametrize(("policy", "stays", "goes"), [(LRU, 2, 1), (LFU, 1, 2)])
def test_the_cache_policy_decides_which_object_is_evicted(tmp_path, monkeypatch, policy, stays, goes):
    monkeypatch.setattr(cache_store, "_FEWEST", 8)  # so that all entries are checked
    monkeypatch.setattr(cache_store, "_BYTES_PER_PLACE", 1 << 20)
    store = opened(tmp_path, limit=25_000, policy=policy)
    keep(store, 1, size=9000)
    keep(store, 2, size=9000)
    touch(store, 1, times=50, last=int(time.time()) - 100)
    touch(store, 2, times=2)
    for _ in range(9):
        store.sketch.add(key(3))
    assert keep(store, 3, size=9000)
    assert read(store, stays) is not None
    assert read(store, goes) is None


def test_lfu_does_not_evict_frequently_used_objects_for_a_new_one(tmp_path):
    store = opened(tmp_path, limit=12_000, policy=LFU)
    keep(store, 1, size=9000)
    touch(store, 1, times=5)
    store.sketch.add(key(2))
    assert not keep(store, 2, size=9000)
    store.table.age()
    store.table.age()
    for _ in range(3):
        store.sketch.add(key(2))
    assert keep(store, 2, size=9000)


def test_a_write_seen_during_a_read_prevents_storing_the_body(store):
    before = store.snapshot(key(1))
    store.marks.end(key(1), 5)
    assert not store.keep(key(1), before, HEADERS, [b"old"])
    assert store.table.find(key(1)) is None


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS])
def test_a_full_disk_makes_the_store_smaller(tmp_path, monkeypatch, code):
    store = opened(tmp_path)
    for number in range(50):
        keep(store, number, size=5000)
    used = store.table.used

    class Full(io.FileIO):
        def write(self, data):
            raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch:
        patch.setattr(cache_files, "open", Full, raising=False)
        assert not keep(store, 99, size=5000)
    assert store.table.used <= used * 0.91
    assert not os.path.exists(store.files.path(key(99)))
    assert keep(store, 99, size=5000)
    assert read(store, 99) is not None


def test_a_disk_without_room_for_the_index_leaves_no_store(tmp_path, monkeypatch):
    def full(descriptor, offset, size):
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(cache_store.PeerError, match="full"):
        opened(tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("offset", [0, 8, 30, 70, -1])
def test_a_flipped_bit_is_detected(tmp_path, store, offset):
    keep(store, 1)
    path = files(tmp_path)[0]
    raw = bytearray(path.read_bytes())
    raw[offset] ^= 1
    path.write_bytes(raw)
    entry = store.table.find(key(1))
    content = store.files.open(key(1), entry.serial)
    assert content is None or not content.is_intact()
    if content is not None:
        content.close()


@pytest.mark.parametrize("length", [0, 10, 63, 64, 100, 1200])
def test_a_truncated_file_is_detected(tmp_path, store, length):
    keep(store, 1)
    path = files(tmp_path)[0]
    os.truncate(path, length)
    content = store.files.open(key(1), store.table.find(key(1)).serial)
    assert content is None or not content.is_intact()
    if content is not None:
        content.close()


def test_an_open_reader_keeps_reading_the_replaced_file(store):
    keep(store, 1, body=[b"old" * 1000])
    content = store.files.open(key(1), store.table.find(key(1)).serial)
    keep(store, 1, body=[b"newer" * 1000])
    assert b"".join(content.read(0, content.length)) == b"old" * 1000
    content.close()
    assert read(store, 1) == b"newer" * 1000


def test_a_file_with_another_serial_is_a_miss(store):
    keep(store, 1)
    entry = store.table.find(key(1))
    assert store.files.open(key(1), entry.serial + 2) is None
    assert store.files.open(key(2), entry.serial) is None


def test_a_restart_removes_files_without_an_entry(tmp_path, store):
    keep(store, 1)
    keep(store, 2)
    store.table.drop(store.table.find(key(2)))
    for path in (store.files.path(key(2)), store.files.path(key(1))):
        os.utime(path, (1, 1))
    store.sweep()
    assert [path.name for path in files(tmp_path)] == [key(1).hex()]
    assert store.table.used == os.stat(store.files.path(key(1))).st_size


def test_a_fresh_file_without_an_entry_is_not_removed(tmp_path, store):
    keep(store, 1)
    store.table.drop(store.table.find(key(1)))
    store.sweep()
    assert len(files(tmp_path)) == 1


WORKER = textwrap.dedent(
    """
    import logging, pathlib, random, sys
    from sluice_core.cache.write_marks import object_digest, open_write_marks
    from sluice_middleware.cache.store import open_store

    folder = pathlib.Path(sys.argv[1])
    store = open_store(folder, open_write_marks(folder), 300_000, "lru", logging.getLogger())
    chance = random.Random(int(sys.argv[2]))
    hits = 0
    for turn in range(1500):
        number = chance.randrange(60)
        key = object_digest(b"%d" % number)
        entry = store.table.find(key)
        content = entry and store.files.open(key, entry.serial)
        if content:
            body = b"".join(content.read(0, content.length))
            content.close()
            assert content.headers == {"n": str(number)}
            assert body == body[:1] * len(body) and body[0] == number, number
            store.table.touch(entry)
            hits += 1
        elif chance.random() < 0.9:
            store.keep(key, store.snapshot(key), {"n": str(number)}, [bytes([number]) * chance.randrange(1, 20_000)])
        if chance.random() < 0.02:
            store.marks.end(key, 0)
    assert hits > 100, hits
    """
)


def test_several_processes_share_a_store_and_one_may_be_killed(tmp_path):
    command = [sys.executable, "-c", WORKER, str(tmp_path)]
    workers = [subprocess.Popen([*command, str(seed)], stderr=subprocess.PIPE) for seed in range(4)]
    workers[3].kill()
    for worker in workers[:3]:
        _, errors = worker.communicate(timeout=120)
        assert worker.returncode == 0, errors.decode()
    workers[3].communicate()
    store = opened(tmp_path, limit=300_000)
    store.table.recount()
    assert 0 < store.table.used <= 400_000
