"""Large reads of a block device are answered from the pages of its file, counted and limited like others."""

import mmap
import os
import random
from contextlib import contextmanager

import pytest
from tests.support.block.nbd import serve

from sluice_block.datapath.processes import wait_until
from sluice_block.stack.page import Limits

pytestmark = pytest.mark.service

MIB = 1 << 20
SIZE = 8 * MIB
#: The kernel's largest read.
REQUEST = 512 * 1024
SOURCE, OTHER = (random.Random(seed).randbytes(SIZE) for seed in (1, 2))


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "source"
    path.write_bytes(SOURCE)
    return path


@contextmanager
def device(folder, built, keeper, page_file, source, file):
    """A descriptor of the device over ``source`` that answers large reads from ``file``."""
    ready = folder / "open"
    options = [f"fuse-keeper={keeper}", f"fuse-ready={ready}", f"fuse-file={file}"]
    options += [f"{name}-page={page_file}" for name in ("nop", "throttle")]
    with serve(folder, built, ["fuse", "nop", "throttle"], "file", str(source), *options):
        assert wait_until(ready.exists, 10)
        descriptor = os.open(folder / "image", os.O_RDWR)
        try:
            yield descriptor
        finally:
            os.close(descriptor)


def read(descriptor, count, offset):
    """Read into whole pages: else the kernel reads a part of a page less at a time."""
    with mmap.mmap(-1, count) as room:
        return room[: os.preadv(descriptor, [room], offset)]


@pytest.mark.parametrize(
    ("offset", "count"),
    [(0, SIZE), (REQUEST, REQUEST), (4096, 64 << 10), (512, MIB), (SIZE - 100_000, 200_000), (SIZE - MIB, MIB)],
)
def test_a_read_has_the_bytes_of_the_file(tmp_path, built, keeper, page_file, source, offset, count):
    with device(tmp_path, built, keeper, page_file, source, source) as descriptor:
        assert read(descriptor, count, offset) == SOURCE[offset : offset + count]


def test_what_was_written_is_read(tmp_path, built, keeper, page_file, source):
    with device(tmp_path, built, keeper, page_file, source, source) as descriptor:
        for number in range(8):
            assert os.pwrite(descriptor, OTHER[:MIB], number * MIB) == MIB
            assert read(descriptor, 2 * MIB, number * MIB) == (OTHER[:MIB] + SOURCE[(number + 1) * MIB :])[: 2 * MIB]
    assert source.read_bytes() == OTHER[:MIB] * 8


def test_only_large_reads_pass_by_the_plugin(tmp_path, built, keeper, page_file, source):
    other = tmp_path / "other"
    other.write_bytes(OTHER)
    with device(tmp_path, built, keeper, page_file, source, other) as descriptor:
        assert read(descriptor, REQUEST, 0) == OTHER[:REQUEST]
        assert read(descriptor, 4096, 0) == SOURCE[:4096]


@pytest.mark.parametrize("size", [0, 100_000])
def test_a_file_without_these_bytes_is_read_by_the_plugin(tmp_path, built, keeper, page_file, page, source, size):
    short = tmp_path / "short"
    short.write_bytes(OTHER[:size])
    with device(tmp_path, built, keeper, page_file, source, short) as descriptor:
        for _ in range(3):
            assert read(descriptor, REQUEST, 0) == SOURCE[:REQUEST]
    assert page.counters().reads == 1 + 3  # the first one failed before it was repeated


def test_large_reads_are_counted_and_held_to_limits(tmp_path, built, keeper, page_file, page, source):
    with device(tmp_path, built, keeper, page_file, source, source) as descriptor:
        read(descriptor, SIZE, 0)
        counters = page.counters()
        assert (counters.reads, counters.read_bytes) == (SIZE // REQUEST, SIZE)
        assert (counters.under_way, counters.waited) == (0, 0)
        assert sum(counters.read_latency.buckets) == SIZE // REQUEST
        page.set_limits(Limits(read_bytes=16 * MIB))
        read(descriptor, SIZE, 0)
        assert page.counters().waited > 0


def test_a_file_that_is_not_there_is_said(tmp_path, built, keeper, page_file, source):
    options = [f"fuse-keeper={keeper}", f"fuse-ready={tmp_path}/open", f"fuse-file={tmp_path}/none"]
    with serve(tmp_path, built, ["fuse"], "file", str(source), *options) as server:
        assert server.process.wait(10)
    assert f"fuse-file: cannot open `{tmp_path}/none`: No such file" in (tmp_path / "volume.log").read_text()
