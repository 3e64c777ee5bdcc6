"""Tenants' objectives set the priority with which threads of object servers read disks, in all their workers."""

import contextlib
import ctypes
import os
import platform

import pytest
from tests.support.cluster.bandwidth_cluster import Capacity, Stage, Terms
from tests.support.cluster.bandwidth_observer import CLOSE, settled

from sluice_aio.base.layout import OBJECT_DEVICES

pytestmark = pytest.mark.alone

MB = 1_000_000
#: Low enough for a busy machine.
GET = 6 * MB
WORKERS = 2
#: ``BELOW`` requests so little that it neither reaches its floor nor is ever throttled, ``ABOVE`` as much as it can.
BELOW, ABOVE = "AUTH_t1", "AUTH_t2"
LITTLE, MUCH = 1_000, 250_000
#: Seconds in which every worker gets a stream to read, and in which unused threads end, which keep their level.
LIMIT = 90.0

#: Number of the system call ``ioprio_get``, and its results (``linux/ioprio.h``).
CALLS = {"x86_64": 252, "aarch64": 31}
BEST_EFFORT, IDLE = 2 << 13, 3 << 13
FIRST, GOLD = BEST_EFFORT, BEST_EFFORT | 1
LEVELS = {FIRST, GOLD, IDLE}


@pytest.fixture(scope="module")
def stage(tmp_path_factory):
    terms = Terms(
        side="storage_node",
        capacity=Capacity(get=GET),
        sizes=(MUCH,),
        storage_workers=WORKERS,
        # else Swift drops the bytes that a client with a token read from the page cache
        storage_options={"keep_cache_private": "yes"},
    )
    with Stage(tmp_path_factory.mktemp("s"), terms) as found:
        found.fill(BELOW, sizes=(LITTLE, MUCH))
        found.fill(ABOVE)
        yield found


@pytest.fixture(scope="module", autouse=True)
def promised(stage):
    stage.say(f"FOR TENANT {BELOW} DO SET bandwidth WITH get_bw=3MBps ON STORAGE_NODE")
    stage.say(f"FOR TENANT {ABOVE} DO SET bandwidth WITH get_bw=1MBps class=gold ON STORAGE_NODE")


@pytest.fixture
def loads(stage):
    """Starts clients, which stop with the test."""
    with contextlib.ExitStack() as stack:
        yield lambda account, count, **more: stack.enter_context(stage.load(account, count, **more))


def workers_of(stage):
    found = [worker for name in OBJECT_DEVICES for worker in stage.cluster.workers(name)]
    assert len(found) == WORKERS * len(OBJECT_DEVICES)
    return found


def levels_of(worker):
    """Those among ``LEVELS`` that any thread of ``worker`` has."""
    libc, call = ctypes.CDLL(None, use_errno=True), CALLS[platform.machine()]
    return LEVELS & {libc.syscall(call, 1, int(thread)) for thread in os.listdir(f"/proc/{worker.pid}/task")}


class Seen:
    """Checks whether each worker has only had threads of ``level`` while objects of ``size`` are read from disks."""

    def __init__(self, stage, size, level):
        self._stage = stage
        self._size = size
        self._level = level
        #: Those that have not, and their last levels.
        self._others = dict.fromkeys(workers_of(stage), LEVELS)

    def __call__(self):
        self._stage.forget((self._size,))
        found = {worker: levels_of(worker) for worker in self._others}
        self._others = {worker: levels for worker, levels in found.items() if levels != {self._level}}
        return not self._others

    def __repr__(self):
        return f"level {self._level:#x} for objects of {self._size}, not so {self._others}"


def test_all_workers_of_an_object_server_share_one_budget(stage, loads):
    found = [loads(BELOW, 48), loads(ABOVE, 48)]
    expected = [4 * MB, 2 * MB]
    assert settled(found, expected) == pytest.approx(expected, rel=CLOSE)
    assert [load.errors() for load in found] == [(0, "")] * 2


def test_who_is_below_its_floor_reads_first_and_who_is_above_takes_what_disks_leave(stage, loads, eventually):
    above = loads(ABOVE, 24)
    eventually(Seen(stage, MUCH, GOLD), LIMIT)
    with stage.keep((LITTLE,)):  # or else the others read from disks, too, when the kernel needs memory
        below = loads(BELOW, 8, sizes=(LITTLE,))
        eventually(Seen(stage, MUCH, IDLE), LIMIT)
    with stage.keep((MUCH,)):
        eventually(Seen(stage, LITTLE, FIRST), LIMIT)
    below.stop()
    eventually(Seen(stage, MUCH, GOLD), LIMIT)
    assert [load.errors() for load in (above, below)] == [(0, "")] * 2
