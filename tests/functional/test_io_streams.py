"""Objects read by threads of streams and by Swift's own disk files: the same requests, the responses compared."""

from __future__ import annotations

import gc
import os
import platform
import random
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.support.cluster import slow_disk
from tests.support.middleware.object_server import CODED, REPLICATED, Log, StorageNode, swift_conf

from sluice_filters.testing.fake_filters import HeadedXor
from sluice_middleware.object_server import page_cache, stream_scheduler
from sluice_middleware.object_server.controller import ObjectController
from sluice_middleware.swift import green
from sluice_middleware.swift.diskfile_api import POLICIES

MIB = 1 << 20
SIZES = (1, 65_535, 65_536, 65_537, MIB - 1, MIB, MIB + 1, 2 * MIB, 2 * MIB + 77)
FRAGMENT = {
    "X-Object-Sysmeta-Ec-Frag-Index": "1",
    "X-Object-Sysmeta-Ec-Etag": "plain",
    "X-Object-Sysmeta-Ec-Content-Length": "1",
    "X-Backend-Fragment-Preferences": "[]",
}
#: Whether this kernel reports the contents of the page cache.
TELLS = tuple(int(one) for one in platform.release().split(".")[:2]) >= (6, 5)
#: The parts of a response that must be equal.
HEADERS = ("Etag", "Content-Length", "Content-Range", "Content-Type", "X-Timestamp", "X-Backend-Timestamp")


def fragments(data):
    policy = POLICIES[CODED]
    size = policy.ec_segment_size
    return b"".join(policy.pyeclib_driver.encode(data[at : at + size])[1] for at in range(0, len(data), size))


def ranges(size):
    """Ranges that begin and end around every border of pieces and steps."""
    around = {at + by for at in (65_536, MIB, 2 * MIB) for by in (-1, 0, 1)}
    borders = sorted({0, 1, size // 2, size - 1, size} | around)
    places = [place for place in borders if 0 <= place <= size]
    yield from (f"{start}-{stop - 1}" for start in places for stop in places if start < stop)
    yield from (f"{start}-" for start in places)
    yield from ("-1", f"-{size}", f"-{size + 5}", "0-0,-1", f"0-9,{size // 2}-{size // 2 + 70_000},{size - 1}-", "5-4")


@dataclass
class Twins:
    """One storage node, read by Swift's own disk files and by Sluice's with a thread for every stream."""

    plain: StorageNode
    ours: StorageNode

    def same(self, byte_range="", **kwargs):
        found, expected = self.ours.get(byte_range, **kwargs), self.plain.get(byte_range, **kwargs)
        assert found.status == expected.status
        if "multipart" in expected.headers.get("Content-Type", ""):
            assert parts(found) == parts(expected)
        else:
            assert found.body == expected.body
            assert headers(found) == headers(expected)
        return found


def headers(answer):
    return {name: answer.headers.get(name) for name in HEADERS}


def parts(answer):
    """The body without its random boundary."""
    boundary = answer.headers["Content-Type"].partition("boundary=")[2].encode()
    return answer.body.replace(boundary, b"BOUNDARY")


class PlainNode(StorageNode):
    """A node with Swift's own disk files."""

    def __post_init__(self):
        self.log = Log()
        self.server = ObjectController(self.conf, self.log)


@pytest.fixture(scope="module")
def twins(tmp_path_factory):
    folder = tmp_path_factory.mktemp("streams")
    with swift_conf(folder / "etc", "swift"):
        plain = PlainNode(folder / "node")
        with swift_conf(folder / "etc"):
            yield Twins(plain, StorageNode(folder / "node", {"sluice_io_threads": "always"}, filters=[HeadedXor]))


def body_of(size):
    return random.Random(size).randbytes(size)


@pytest.mark.parametrize("size", SIZES)
def test_all_ranges_of_objects_are_those_of_swifts_own_disk_files(twins, size):
    name = f"a/c/{size}"
    assert twins.ours.put(body_of(size), name=name).status == "201 Created"
    assert twins.same(name=name).body == body_of(size)
    for byte_range in ranges(size):
        twins.same(byte_range, name=name)


@pytest.mark.parametrize("size", SIZES)
def test_all_ranges_of_fragments_are_those_of_swifts_own_disk_files(twins, size):
    data, where = fragments(body_of(size)), {"name": f"a/c/{size}", "policy": CODED, "headers": FRAGMENT}
    assert twins.ours.request("PUT", body=data, **where).status == "201 Created"
    assert twins.same(**where).body == data
    for byte_range in ranges(len(data)):
        headers = {**FRAGMENT, "Range": f"bytes={byte_range}"}
        twins.same(name=where["name"], policy=CODED, headers=headers)


@pytest.mark.parametrize("chain", [("xor",), ("compression",), ("compression", "xor")], ids=str)
@pytest.mark.parametrize("size", [MIB, 2 * MIB + 77])
def test_all_ranges_of_transformed_objects_are_those_of_the_plain_one(twins, size, chain):
    body = (body_of(size // 2) + bytes(size))[:size]
    word = f"{size}-{len(chain)}{chain[0]}"
    kept, transformed = f"a/plain/{word}", f"a/c/{word}"
    twins.plain.clock = twins.ours.clock = 2_000_000_000.0 + size
    stored = twins.plain.put(body, name=kept)
    answer = twins.ours.put(body, *chain, name=transformed)
    assert answer.headers["Etag"] == stored.headers["Etag"]
    for byte_range in ("", *ranges(size)):
        expected, found = twins.plain.get(byte_range, name=kept), twins.ours.get(byte_range, name=transformed)
        assert found.status == expected.status
        if "multipart" in expected.headers.get("Content-Type", ""):
            assert parts(found) == parts(expected)
        else:
            assert found.body == expected.body
            assert headers(found) == headers(expected)


def test_neither_ended_nor_broken_off_requests_leave_descriptors(twins):
    name, body = "a/c/leak", body_of(3 * MIB)
    twins.ours.put(body, name=name)
    manager = twins.ours.manager()

    def work():
        twins.ours.get(name=name)
        twins.ours.put(body, name=name)
        pieces = manager.get_diskfile("sda", "0", "a", "c", "leak", POLICIES[REPLICATED]).open().reader()
        next(iter(pieces))
        pieces.close()

    def descriptors():
        for pool, _ in stream_scheduler._threads.values():
            while len(pool._resting) < len(pool):
                green.sleep(0.001)
        gc.collect()
        return len(os.listdir("/proc/self/fd"))

    work()
    before = descriptors()
    for _ in range(30):
        work()
    assert descriptors() <= before + 2
    assert twins.same(name=name).body == body


@pytest.mark.parametrize("speed", [None, slow_disk.Speed()], ids=["fast", "slow"])
def test_a_loop_device_with_bfq_heeds_priorities(tmp_path, speed):
    assert not slow_disk.missing()
    with slow_disk.disk(tmp_path, size=400 << 20, speed=speed) as disk:
        assert stream_scheduler.honours_priorities(disk.folder) == (True, f"{disk.device} has the scheduler bfq")
        disk.queue("scheduler", "none")
        assert stream_scheduler.honours_priorities(disk.folder) == (False, f"{disk.device} has the scheduler none")
    assert not list(tmp_path.glob("*.img"))


def test_to_ask_for_the_page_cache_asks_no_disk(tmp_path):
    assert not slow_disk.missing()
    with slow_disk.disk(tmp_path, size=400 << 20) as disk:
        path = disk.folder / "file"
        path.write_bytes(bytes(2 * MIB))
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

            def reads():
                return Path(f"/sys/block/{disk.device}/stat").read_text(encoding="ascii").split()[0]

            before = reads()
            assert not page_cache.is_cached(file.fileno(), 0, MIB)
            assert reads() == before or not TELLS
            os.pread(file.fileno(), MIB, 0)
            assert reads() != before
            assert page_cache.is_cached(file.fileno(), 0, MIB)
