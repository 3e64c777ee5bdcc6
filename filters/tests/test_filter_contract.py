"""Every built-in filter, and toys with which chains are tested, against the contract suite."""

from __future__ import annotations

import random

import pytest

from sluice_filters.compression import Compression
from sluice_filters.noop import Noop
from sluice_filters.registry import BUILT_IN
from sluice_filters.testing import FilterContract
from sluice_filters.toys import Xor

_WORDS = [f"{word}{number}" for word in ("alpha", "beta", "gamma") for number in range(40)]


def text(size: int, seed: int = 7) -> bytes:
    """Compressible, but no two frames alike."""
    rng = random.Random(seed)
    return " ".join(rng.choice(_WORDS) for _ in range(size)).encode()[:size]


def noise(size: int) -> bytes:
    return random.Random(3).randbytes(size)


#: Around the boundaries of frames of 1 KiB; a raw frame in the middle; one that must be padded.
SAMPLES = (
    b"",
    b"x",
    text(300),
    text(1023),
    text(1024),
    text(1025),
    text(2500),
    text(1024) + noise(1024) + text(100),
    text(1024) + bytes(1024),
)
SMALL = {"frame_size": 1024, "min_size": 0}


class TestNoop(FilterContract):
    filter = Noop


class TestXorToy(FilterContract):
    filter = Xor
    checked = False


class TestCompressionAsItComes(FilterContract):
    filter = Compression
    samples = (b"", b"x", text(300), text(4095), text(4096))


class TestZstd(FilterContract):
    filter = Compression
    params = SMALL
    samples = SAMPLES


class TestGzip(FilterContract):
    filter = Compression
    params = {**SMALL, "engine": "gzip"}
    samples = SAMPLES


class TestLz4(FilterContract):
    filter = Compression
    params = {**SMALL, "engine": "lz4"}
    samples = SAMPLES


class TestIndexAtTheTail(FilterContract):
    """With an inline limit of nothing every index goes to the tail."""

    filter = Compression
    params = SMALL
    samples = SAMPLES

    @classmethod
    def setup_class(cls):
        cls.patch = pytest.MonkeyPatch()
        cls.patch.setattr("sluice_filters.layout.INLINE_INDEX", 0)

    @classmethod
    def teardown_class(cls):
        cls.patch.undo()


def test_every_built_in_has_its_suite():
    tried = {one.filter for one in FilterContract.__subclasses__()}
    assert set(BUILT_IN) <= tried
