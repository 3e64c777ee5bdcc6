"""Streams with threads of their own, on one storage node: the same objects, responses and errors."""

import errno
import hashlib
import os
import random
import threading

import pytest
from swift.common.utils import Timestamp
from tests.support.middleware.object_server import CODED, REPLICATED, Log, StorageNode, swift_conf

from sluice_core.messages.bandwidth import GET, NO_CLASS, PUT, Flow
from sluice_core.messages.credit import IDLE
from sluice_core.options import OptionError
from sluice_filters.testing.fake_filters import HeadedXor
from sluice_middleware.bandwidth.io_levels import AgentState
from sluice_middleware.object_server import stream_scheduler
from sluice_middleware.object_server.diskfile.streams import StreamFile
from sluice_middleware.object_server.stream_scheduler import STEP, StreamScheduler
from sluice_middleware.swift import green
from sluice_middleware.swift.diskfile_api import POLICIES

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

BODY = random.Random(5).randbytes(3 * STEP + 12345)
FLOW = Flow("a", GET, 0, "c")


class Levels:
    """An agent state that tests change."""

    def __init__(self, on=True, **levels):
        self.on = on
        self.levels = levels
        self.asked = []

    def __call__(self):
        return self

    @property
    def active(self):
        return self.on

    def level(self, flow):
        self.asked.append(flow)
        return self.levels.get(flow.account, NO_CLASS)


def streams(mode="always", most=128, standings=None):
    options = {"sluice_io_threads": mode, "sluice_io_threads_most": most}
    return StreamScheduler(options, standings or AgentState, Log())


@pytest.fixture(scope="module", autouse=True)
def policies(tmp_path_factory):
    with swift_conf(tmp_path_factory.mktemp("etc")):
        yield


@pytest.fixture(autouse=True)
def anew(monkeypatch):
    monkeypatch.setattr(stream_scheduler, "_threads", {})
    monkeypatch.setattr(stream_scheduler, "_said", set())


@pytest.fixture
def uncached(monkeypatch):
    """Bytes that all come from the disk."""
    monkeypatch.setattr(StreamFile, "_cached", lambda self, size: b"")


@pytest.fixture
def make(tmp_path):
    def node(**options):
        given = {name: str(value) for name, value in options.items()}
        return StorageNode(tmp_path / "node", {"sluice_io_threads": "always", **given}, filters=[HeadedXor])

    return node


def threads():
    return sum(len(found) for found, _ in stream_scheduler._threads.values())


def settled():
    """Wait until all threads have run their steps, and can be lent again."""
    for pool, _ in stream_scheduler._threads.values():
        while len(pool._resting) < len(pool):
            green.sleep(0.001)


def test_objects_and_etags_are_unchanged_with_threads(make):
    node = make()
    answer = node.put(BODY)
    assert answer.status == "201 Created"
    assert answer.headers["Etag"] == f'"{hashlib.md5(BODY).hexdigest()}"'
    settled()
    found = node.get()
    assert found.body == BODY
    assert found.headers["Etag"] == answer.headers["Etag"]
    assert threads() == 1


def test_an_etag_that_is_wrong_is_refused_and_nothing_is_stored(make):
    node = make()
    assert node.put(BODY, headers={"ETag": hashlib.md5(b"").hexdigest()}).status.startswith("422")
    assert node.files() == []


@pytest.mark.parametrize("chain", [(), ("xor",)], ids=str)
def test_an_objective_gives_the_next_step_a_thread(make, uncached, chain):
    node = make(sluice_io_threads="objective")
    levels = node.manager().scheduler.agent_state = Levels(on=False, a=0)
    node.put(BODY, *chain)
    assert node.get().body == BODY
    assert threads() == 0
    with node.manager().get_diskfile("sda", "0", "a", "c", "o", POLICIES[REPLICATED]).open() as file:
        pieces = iter(file.reader())
        first = next(pieces)
        assert threads() == 0
        levels.on = True
        assert first + b"".join(pieces) == BODY
    assert threads() == 1
    assert set(levels.asked) == {FLOW}


@pytest.mark.parametrize("size", [0, 10_000, STEP])
def test_a_short_upload_gets_a_thread_only_while_an_objective_is_in_force(make, size):
    node = make(sluice_io_threads="objective")
    levels = node.manager().scheduler.agent_state = Levels(on=False)
    for levels.on in (False, True):
        assert node.put(BODY[:size]).status == "201 Created"
        assert threads() == (levels.on and size > 0)
        assert node.get().body == BODY[:size]


def test_what_daemons_open_by_its_hash_gets_no_thread(make, uncached):
    node = make()
    node.put(BODY)
    before = threads()
    (file,) = node.files()
    found = node.manager().get_diskfile_from_hash("sda", "0", file.parent.name, POLICIES[REPLICATED])
    with found.open():
        assert b"".join(found.reader()) == BODY
    assert threads() == before


def test_reads_and_writes_work_with_the_level_of_their_flow(make, monkeypatch, uncached):
    set_levels = []
    monkeypatch.setattr(stream_scheduler, "set_level", set_levels.append)
    node = make()
    levels = node.manager().scheduler.agent_state = Levels(a=2, b=7)
    node.put(BODY)
    node.get()
    node.put(BODY, name="b/c/o")
    assert set(set_levels) == {2, 7}
    assert set(levels.asked) == {FLOW, FLOW._replace(method=PUT), Flow("b", PUT, 0, "c")}


def test_a_stream_whose_level_changes_gets_another_thread(tmp_path, uncached):
    (tmp_path / "file").write_bytes(BODY)
    levels, places = Levels(a=0), []

    class Noting(Disk):
        def read(self, size):
            places.append(threading.get_native_id())
            return self._file.read(size)

    lend = streams(standings=levels)
    file = StreamFile(Noting((tmp_path / "file").open("rb"), 0), len(BODY), lend, FLOW)
    got = file.read(STEP)
    levels.levels["a"] = IDLE
    while piece := file.read(STEP):
        got += piece
    file.close()
    assert got == BODY
    first, ahead, *others = places[:4]  # the second step was started with the first
    assert first == ahead
    assert first not in others
    assert len(set(others)) == 1
    assert threads() == 2


def test_a_machine_without_priorities_says_so_once(make, monkeypatch, caplog):
    def refuse(level):
        raise OSError(errno.ENOSYS, "none here")

    monkeypatch.setattr(stream_scheduler, "set_level", refuse)
    node = make()
    node.manager().scheduler.agent_state = Levels(a=2, b=7)
    assert node.put(BODY).status == "201 Created"
    assert node.put(BODY, name="b/c/o").status == "201 Created"
    assert [one.message for one in caplog.records].count(
        "sluice: streams go without priorities: [Errno 38] none here"
    ) == 1


def test_streams_beyond_the_limit_get_no_thread(make, caplog):
    node = make(sluice_io_threads_most=1)
    lane = node.manager().scheduler.lend(FLOW)
    assert node.put(BODY).status == "201 Created"
    assert node.get().body == BODY
    assert "all 1 threads for streams are lent" in caplog.text
    lane.release()


def test_mode_never_lends_no_thread_and_unknown_modes_are_refused(make):
    node = make(sluice_io_threads="never")
    node.put(BODY)
    assert node.get().body == BODY
    assert threads() == 0
    with pytest.raises(OptionError, match="`sometimes`, expected objective, always, never"):
        make(sluice_io_threads="sometimes")
    with pytest.raises(OptionError, match="1 at least"):
        make(sluice_io_threads_most=0)


class Disk:
    """A file whose disk fails after this many bytes."""

    def __init__(self, file, after):
        self._file = file
        self._after = after

    def read(self, size):
        if self._file.tell() >= self._after:
            raise OSError(errno.EIO, "bad sector")
        return self._file.read(min(size, self._after - self._file.tell()))

    def __getattr__(self, name):
        return getattr(self._file, name)


def test_a_read_error_in_a_thread_quarantines_the_object(make, uncached):
    node = make()
    node.put(BODY)
    file = node.manager().get_diskfile("sda", "0", "a", "c", "o", POLICIES[REPLICATED])
    file.open()
    file._fp = Disk(file._fp, STEP)
    got = []
    with pytest.raises(OSError, match="bad sector"):
        got.extend(file.reader())
    assert b"".join(got) == BODY[:STEP]
    assert len(node.quarantined()) == 1


def test_bytes_that_changed_on_the_disk_are_noticed_at_the_end(make):
    node = make()
    node.put(BODY)
    (path,) = node.files()
    with path.open("r+b") as file:
        file.seek(2 * STEP)
        file.write(b"changed")
    node.get()
    assert len(node.quarantined()) == 1


def test_a_full_disk_ends_an_upload_and_leaves_nothing(make, monkeypatch):
    node = make()
    write = os.write

    def full(descriptor, data):
        if len(data) > 65536:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, data)

    monkeypatch.setattr("swift.obj.diskfile.os.write", full)
    assert not node.put(BODY).status.startswith("2")
    monkeypatch.undo()
    assert node.files() == []


def test_a_seek_discards_read_ahead(tmp_path):
    (tmp_path / "file").write_bytes(BODY)
    file = StreamFile((tmp_path / "file").open("rb"), len(BODY), streams(), FLOW)
    assert file.read(65536) == BODY[:65536]
    assert file.tell() == 65536
    file.seek(7, 10)
    assert file.read(65536) == BODY[7:10]
    assert file.read(5) == BODY[10:15]
    file.seek(len(BODY) - 3)
    assert file.read(65536) + file.read(1) == BODY[-3:]
    file.close()


def test_nothing_is_read_beyond_the_end_of_a_range(tmp_path, uncached):
    (tmp_path / "file").write_bytes(BODY)
    sizes = []

    class Noting(Disk):
        def read(self, size):
            sizes.append(size)
            return self._file.read(size)

    file = StreamFile(Noting((tmp_path / "file").open("rb"), 0), len(BODY), streams(), FLOW)
    file.seek(100, STEP + 200)
    got = b""
    while len(got) < STEP + 100:
        got += file.read(65536)
    file.close()
    settled()
    assert got == BODY[100 : STEP + 200]
    assert sizes == [STEP, 100]


@pytest.mark.parametrize("chain", [(), ("xor",), ("compression",)], ids=str)
def test_abandoned_streams_leak_no_descriptor(make, chain):
    node = make()
    node.put(BODY, *chain)
    manager = node.manager()

    def half():
        file = manager.get_diskfile("sda", "0", "a", "c", "o", POLICIES[REPLICATED])
        with file.open():
            pieces = file.reader()
            next(iter(pieces))
            pieces.close()
        with manager.get_diskfile("sda", "0", "a", "c", "new", POLICIES[REPLICATED]).create(size=len(BODY)) as writer:
            for at in range(0, len(BODY), 65536):
                writer.write(BODY[at : at + 65536])

    half()
    settled()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        half()
    settled()
    assert len(os.listdir("/proc/self/fd")) <= before + 1
    assert threads() <= 10  # of forty streams: a thread that still runs its last step cannot be lent yet
    assert node.get().body == BODY


def test_devices_without_priorities_are_logged_once(make, monkeypatch, caplog):
    caplog.set_level("INFO")
    monkeypatch.setattr(stream_scheduler, "honours_priorities", lambda folder: (folder.name == "sda", "so it is"))
    make()
    make()
    said = [one.message for one in caplog.records if "heed" in one.message]
    assert said == [
        "sluice: device `sda` heeds I/O priorities: so it is",
        "sluice: device `sdb` does not heed I/O priorities: so it is, expected bfq",
    ]


def test_a_fragment_is_made_durable_by_the_streams_thread(make):
    node = make()
    manager = node.manager(CODED)
    file = manager.get_diskfile("sda", "0", "a", "c", "o", POLICIES[CODED], frag_index=1)
    stamp = Timestamp(1_800_000_000)
    with file.create(size=len(BODY)) as writer:
        for at in range(0, len(BODY), 65536):
            writer.write(BODY[at : at + 65536])
        size, etag = writer.chunks_finished()
        assert (size, etag) == (len(BODY), hashlib.md5(BODY).hexdigest())
        writer.put({"X-Timestamp": stamp.internal, "ETag": etag, "Content-Length": str(size)})
        writer.commit(stamp)
    (path,) = node.files()
    assert path.name == f"{stamp.internal}#1#d.data"
    assert path.read_bytes() == BODY
    assert threads() == 1
