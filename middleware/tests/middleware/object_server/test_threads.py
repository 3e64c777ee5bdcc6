"""Threads for streams: lent, bounded, ended; and their priorities."""

import gc
import os
import threading
from pathlib import Path

import pytest

from sluice_core.messages.bandwidth import NO_CLASS
from sluice_core.messages.credit import IDLE
from sluice_middleware.object_server import stream_scheduler
from sluice_middleware.object_server.io_threads import IoThreads

PATIENCE = 10.0


class Pool:
    """A pool, and the calls of its threads."""

    def __init__(self, most=4, idle_seconds=PATIENCE):
        self.levels = []
        self.ended = threading.Semaphore(0)
        self.started = 0
        self.threads = IoThreads(self.start, self.levels.append, most, idle_seconds)

    def start(self, function):
        def run():
            function()
            self.ended.release()

        self.started += 1
        threading.Thread(target=run, daemon=True).start()


def after(lane, function=lambda: None, level=NO_CLASS):
    """The result of a step, once it has ended."""
    over = threading.Event()
    step = lane.start(function, level, over)
    assert over.wait(PATIENCE)
    return step.wait()


def rested(pool, lane, level=NO_CLASS):
    """Return a thread and wait until it can be lent again."""
    over = threading.Event()
    lane.start(lambda: None, level)
    rest = pool.threads.return_thread
    pool.threads.return_thread = lambda thread: (rest(thread), over.set())
    lane.release()
    assert over.wait(PATIENCE)
    pool.threads.return_thread = rest


def test_a_step_is_done_in_another_thread_and_its_outcome_comes_back():
    lane = Pool().threads.lend()
    assert after(lane, threading.get_ident) != threading.get_ident()
    with pytest.raises(OSError, match="broken"):
        after(lane, lambda: os_error())
    assert after(lane, lambda: 7) == 7


def os_error():
    raise OSError(5, "broken")


def test_steps_are_done_in_the_order_in_which_they_were_started():
    lane, done = Pool().threads.lend(), []
    for number in range(100):
        lane.start(lambda number=number: done.append(number), NO_CLASS)
    after(lane)
    assert done == list(range(100))


def test_each_stream_has_its_own_thread_up_to_the_limit():
    pool = Pool(most=2)
    first, second = pool.threads.lend(), pool.threads.lend()
    assert pool.threads.lend() is None
    assert after(first, threading.get_ident) != after(second, threading.get_ident)
    rested(pool, first)
    third = pool.threads.lend()
    assert third is not None
    assert len(pool.threads) == pool.started == 2
    second.release()
    third.release()


def test_a_thread_that_waits_for_a_disk_keeps_no_other_from_working():
    pool, gate = Pool(), threading.Event()
    stuck, other = pool.threads.lend(), pool.threads.lend()
    stuck.start(gate.wait, NO_CLASS)
    assert after(other, lambda: "done") == "done"
    assert stuck.busy
    gate.set()
    after(stuck)
    assert not stuck.busy


def test_an_idle_thread_ends_and_a_lent_one_does_not():
    pool = Pool(idle_seconds=0.05)
    lent, idle = pool.threads.lend(), pool.threads.lend()
    after(lent)
    idle.release()
    assert pool.ended.acquire(timeout=PATIENCE)
    assert len(pool.threads) == 1
    assert after(lent, lambda: "still here") == "still here"
    lent.release()
    assert pool.ended.acquire(timeout=PATIENCE)
    assert len(pool.threads) == 0
    assert after(pool.threads.lend(), lambda: "a new one") == "a new one"


def test_the_last_call_waits_for_the_running_step():
    pool, gate, closed = Pool(), threading.Event(), threading.Event()
    lane = pool.threads.lend()
    lane.start(gate.wait, NO_CLASS)
    lane.release(closed.set)
    assert not closed.is_set()
    gate.set()
    assert closed.wait(PATIENCE)
    again = pool.threads.lend()
    closed.clear()
    again.release(closed.set)
    assert closed.is_set()
    with pytest.raises(ValueError, match="given back"):
        again.start(lambda: None, NO_CLASS)


def test_a_garbage_collected_stream_returns_its_thread():
    pool = Pool(most=1, idle_seconds=0.05)
    lane = pool.threads.lend()
    after(lane)
    del lane
    gc.collect()
    assert pool.ended.acquire(timeout=PATIENCE)


def test_streams_work_without_threads_when_none_can_start():
    def refuse(function):
        raise RuntimeError("can't start new thread")

    threads = IoThreads(refuse, lambda level: None, 4)
    assert threads.lend() is None
    assert len(threads) == 0


def test_a_thread_sets_its_io_level_only_on_change():
    pool = Pool()
    lane = pool.threads.lend()
    for level in (NO_CLASS, 0, 0, IDLE, IDLE, 0):
        after(lane, level=level)
    assert pool.levels == [0, IDLE, 0]


def test_a_thread_keeps_to_its_level_as_long_as_there_may_be_more():
    pool = Pool(most=2)
    first = pool.threads.lend(0)
    ident = after(first, threading.get_ident, 0)
    rested(pool, first, 0)
    idle = pool.threads.lend(IDLE)
    assert after(idle, threading.get_ident, IDLE) != ident
    again = pool.threads.lend(0)
    assert after(again, threading.get_ident, 0) == ident
    rested(pool, again, 0)
    any_one = pool.threads.lend(IDLE)  # there must be no third
    assert after(any_one, threading.get_ident, IDLE) == ident
    assert pool.threads.lend(IDLE) is None


@pytest.mark.parametrize(
    ("level", "value"), [(0, 2 << 13), (4, 2 << 13 | 4), (7, 2 << 13 | 7), (IDLE, 3 << 13), (-1, 2 << 13)]
)
def test_levels_map_to_kernel_ioprio_values(level, value):
    assert stream_scheduler.ioprio_value(level) == value


def test_a_priority_is_the_calling_threads_alone():
    get = {"x86_64": 252, "aarch64": 31}[os.uname().machine]

    def change():
        stream_scheduler.set_level(IDLE)
        return stream_scheduler._libc.syscall(get, 1, 0)

    before = stream_scheduler._libc.syscall(get, 1, 0)
    assert after(Pool().threads.lend(), change) == stream_scheduler.ioprio_value(IDLE)
    assert stream_scheduler._libc.syscall(get, 1, 0) == before


class Sys:
    """A folder like ``/sys``."""

    def __init__(self, folder):
        self.folder = folder

    def disk(self, name, schedulers, slaves=()):
        place = self.folder / "block" / name
        (place / "queue").mkdir(parents=True)
        (place / "queue" / "scheduler").write_text(schedulers)
        for slave in slaves:
            (place / "slaves").mkdir(exist_ok=True)
            (place / "slaves" / slave.name).symlink_to(slave)
        return place

    def partition(self, disk, name):
        place = disk / name
        place.mkdir()
        (place / "partition").write_text("1")
        return place

    def mounted(self, place, folder):
        """``folder`` is on ``place``."""
        number = folder.stat().st_dev
        devices = self.folder / "dev" / "block"
        devices.mkdir(parents=True)
        (devices / f"{os.major(number)}:{os.minor(number)}").symlink_to(place)
        return devices


@pytest.fixture
def system(tmp_path):
    return Sys(tmp_path)


@pytest.mark.parametrize(
    ("schedulers", "heeds", "word"),
    [
        ("none mq-deadline [bfq]\n", True, "bfq"),
        ("none [mq-deadline] bfq\n", False, "mq-deadline"),
        ("[none] bfq\n", False, "none"),
        ("none\n", False, "none"),
    ],
)
def test_only_bfq_honours_priorities(system, tmp_path, schedulers, heeds, word):
    disk = system.disk("sda", schedulers)
    assert stream_scheduler.honours_priorities(tmp_path, system.mounted(disk, tmp_path)) == (
        heeds,
        f"sda has the scheduler {word}",
    )


def test_the_scheduler_of_a_partition_is_that_of_its_disk(system, tmp_path):
    place = system.partition(system.disk("sda", "[bfq]"), "sda1")
    assert stream_scheduler.honours_priorities(tmp_path, system.mounted(place, tmp_path)) == (
        True,
        "sda has the scheduler bfq",
    )


def test_all_disks_below_a_volume_count(system, tmp_path):
    first, second = system.disk("sda", "[bfq]"), system.disk("sdb", "[none] bfq")
    volume = system.disk("dm-0", "none", [first, system.partition(second, "sdb2")])
    heeds, words = stream_scheduler.honours_priorities(tmp_path, system.mounted(volume, tmp_path))
    assert not heeds
    assert words == "sda has the scheduler bfq, sdb has the scheduler none"


def test_a_file_system_without_a_block_device_honours_no_priorities(tmp_path):
    assert stream_scheduler.honours_priorities(tmp_path, Path("/nowhere")) == (False, "no block device")
    with pytest.raises(FileNotFoundError):
        stream_scheduler.honours_priorities(tmp_path / "none")
