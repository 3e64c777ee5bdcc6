"""Streams from the page cache: no thread, no hand-over; from the first missing byte on, only a thread."""

import errno
import itertools
import os
import random
import threading

import pytest
from tests.support.middleware.object_server import REPLICATED, Log, StorageNode, swift_conf

from sluice_core.messages.bandwidth import GET, NO_CLASS, Flow
from sluice_filters.testing.fake_filters import HeadedXor
from sluice_middleware.bandwidth.io_levels import AgentState
from sluice_middleware.object_server import page_cache, stream_scheduler
from sluice_middleware.object_server.diskfile import streams as diskfile_streams
from sluice_middleware.object_server.diskfile.streams import StreamFile
from sluice_middleware.object_server.stream_scheduler import STEP, StreamScheduler
from sluice_middleware.swift import green
from sluice_middleware.swift.diskfile_api import POLICIES

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

BODY = random.Random(5).randbytes(3 * STEP + 12345)
FLOW = Flow("a", GET, 0, "c")


class Levels:
    """An agent state that tests change."""

    def __init__(self, on=True):
        self.on = on

    def __call__(self):
        return self

    @property
    def active(self):
        return self.on

    def level(self, flow):
        return NO_CLASS


class Noting:
    """A file that records which thread reads at which offset."""

    def __init__(self, file, places):
        self._file = file
        self._places = places

    def read(self, size):
        self._places.append((self._file.tell(), threading.get_native_id()))
        return self._file.read(size)

    def __getattr__(self, name):
        return getattr(self._file, name)


def streams(mode="always", standings=None):
    return StreamScheduler({"sluice_io_threads": mode, "sluice_io_threads_most": 128}, standings or AgentState, Log())


@pytest.fixture(scope="module", autouse=True)
def policies(tmp_path_factory):
    with swift_conf(tmp_path_factory.mktemp("etc")):
        yield


@pytest.fixture(autouse=True)
def anew(monkeypatch):
    monkeypatch.setattr(stream_scheduler, "_threads", {})


@pytest.fixture
def make(tmp_path):
    def node(**options):
        return StorageNode(tmp_path / "node", {"sluice_io_threads": "always", **options}, filters=[HeadedXor])

    return node


def threads():
    return sum(len(found) for found, _ in stream_scheduler._threads.values())


def test_cached_pages_are_read_without_a_thread(make, monkeypatch):
    node = make(sluice_io_threads="objective")
    node.manager().scheduler.agent_state = Levels(on=False)
    node.put(BODY)
    node.manager().scheduler.agent_state = Levels()
    monkeypatch.setattr(page_cache, "is_cached", lambda *range: True)
    node.files()[0].read_bytes()
    assert node.get().body == BODY
    assert threads() == 0


@pytest.mark.parametrize("known", [0, 1, STEP, STEP + 1, 3 * STEP])
def test_after_the_cached_pages_a_thread_reads(tmp_path, monkeypatch, known):
    (tmp_path / "file").write_bytes(BODY)
    monkeypatch.setattr(page_cache, "is_cached", lambda descriptor, offset, length: offset + length <= known)
    at_once, read = [], os.pread
    monkeypatch.setattr(os, "pread", lambda *given: at_once.append(given[2]) or read(*given))
    places = []

    file = StreamFile(Noting((tmp_path / "file").open("rb"), places), len(BODY), streams(), FLOW)
    assert b"".join(iter(lambda: file.read(65536), b"")) == BODY
    begin = known // STEP * STEP
    assert at_once == list(range(0, begin, 65536))
    by_thread = [place for place, thread in places if thread != threading.get_native_id()]
    assert by_thread == list(range(begin, len(BODY), STEP))
    assert threads() == 1
    file.close()


def test_a_read_error_behind_cached_pages_is_raised(make, monkeypatch):
    node = make()
    node.put(BODY)
    read = os.pread

    def bad(descriptor, size, offset):
        if offset >= STEP:
            raise OSError(errno.EIO, "bad sector")
        return read(descriptor, size, offset)

    monkeypatch.setattr(page_cache, "is_cached", lambda *range: True)
    monkeypatch.setattr(os, "pread", bad)
    got = []
    with pytest.raises(OSError, match="bad sector"):
        got.extend(node.manager().get_diskfile("sda", "0", "a", "c", "o", POLICIES[REPLICATED]).open().reader())
    assert b"".join(got) == BODY[:STEP]
    assert len(node.quarantined()) == 1


def test_streams_out_of_the_page_cache_take_turns(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(BODY)
    monkeypatch.setattr(page_cache, "is_cached", lambda *range: True)
    monkeypatch.setattr(diskfile_streams, "_TURN", STEP)
    turns = []

    def stream(name):
        file = StreamFile((tmp_path / "file").open("rb"), len(BODY), streams(), FLOW)
        while file.read(65536):
            turns.append(name)
        file.close()

    for one in [green.start_green(stream, name) for name in "ab"]:
        one.wait()
    assert [name for name, _ in itertools.groupby(turns)] == list("abababab")


def test_a_seek_after_reads_from_the_page_cache_counts_without_a_thread_too(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(BODY)
    monkeypatch.setattr(page_cache, "is_cached", lambda *range: True)
    levels = Levels()
    file = StreamFile((tmp_path / "file").open("rb"), len(BODY), streams("objective", standings=levels), FLOW)
    assert file.read(65536) == BODY[:65536]
    file.seek(7)
    levels.on = False
    assert file.read(5) == BODY[7:12]
    levels.on = True
    assert file.read(5) == BODY[12:17]
    levels.on = False
    file.seek(STEP - 3)
    assert file.read(5) == BODY[STEP - 3 : STEP + 2]
    assert file.tell() == STEP + 2
    assert threads() == 0
    file.close()
