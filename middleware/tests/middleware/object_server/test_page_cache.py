"""The kernel's replies about the page cache."""

import errno
import os
import platform

import pytest

from sluice_middleware.object_server import page_cache

PAGE = os.sysconf("SC_PAGE_SIZE")
#: Whether this kernel has ``cachestat``.
TELLS = tuple(int(one) for one in platform.release().split(".")[:2]) >= (6, 5)


@pytest.fixture
def descriptor(monkeypatch):
    """A file whose written bytes are in the page cache, on any file system; some lack ``RWF_NOWAIT``."""
    read = os.preadv
    monkeypatch.setattr(os, "preadv", lambda file, rooms, offset, flags: read(file, rooms, offset))
    found = os.memfd_create("file")
    yield found
    os.close(found)


def test_a_sparse_file_is_cached_where_it_was_written(descriptor):
    os.truncate(descriptor, 8 * PAGE)
    os.pwrite(descriptor, b"x" * 3 * PAGE, 2 * PAGE)
    for offset, length, there in (
        (2 * PAGE, 3 * PAGE, True),
        (2 * PAGE + 1, 3 * PAGE - 1, True),
        (3 * PAGE - 1, 2, True),
        (2 * PAGE - 1, 2, False),
        (5 * PAGE - 1, 2, False),
        (0, 8 * PAGE, False),
        (7 * PAGE, 1, False),
    ):
        assert page_cache.is_cached(descriptor, offset, length) is (there or not TELLS), (offset, length)


def test_pages_being_read_are_not_cached(descriptor, monkeypatch):
    def wait(*given):
        assert given[2:] == (2 * PAGE - 1, os.RWF_NOWAIT)
        raise BlockingIOError(errno.EAGAIN, "would wait")

    os.pwrite(descriptor, b"x" * 2 * PAGE, 0)
    assert page_cache.is_cached(descriptor, 0, 2 * PAGE)
    monkeypatch.setattr(os, "preadv", wait)
    assert not page_cache.is_cached(descriptor, 0, 2 * PAGE)


def test_nothing_is_cached_behind_the_end(descriptor):
    os.pwrite(descriptor, b"x" * 10, 0)
    assert page_cache.is_cached(descriptor, 0, 10)
    assert not page_cache.is_cached(descriptor, 0, 11)


def test_without_cachestat_the_last_byte_decides(descriptor, monkeypatch):
    monkeypatch.setattr(page_cache, "_CALL", 1 << 20)
    os.pwrite(descriptor, b"x", 4 * PAGE)
    assert page_cache.is_cached(descriptor, 0, 4 * PAGE + 1)
    assert not page_cache.is_cached(descriptor, 0, 4 * PAGE + 2)
