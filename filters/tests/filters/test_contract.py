"""Every built-in filter, and toys for tests of chains, against the contract suite."""

from __future__ import annotations

import io
import random

import pytest
from PIL import Image

from sluice_filters.api import Hint, HostServices
from sluice_filters.basic.bitrev import BitReverse
from sluice_filters.basic.noop import Noop
from sluice_filters.basic.sanitise import Sanitise
from sluice_filters.basic.thumbnail import Thumbnail
from sluice_filters.basic.xor import Xor
from sluice_filters.compression.compression import Compression
from sluice_filters.csv.select import CsvSelect
from sluice_filters.csv.tables.index import CsvIndex
from sluice_filters.csv.tables.parquet import CsvToParquet
from sluice_filters.csv.tables.sort import CsvSort
from sluice_filters.encryption.checksum import Checksum
from sluice_filters.encryption.encryption import Encryption
from sluice_filters.registry import BUILT_IN
from sluice_filters.testing import FilterContract
from sluice_filters.testing.fake_filters import FakeKeyRing, HeadedXor
from sluice_filters.timeseries.downsample import Downsample
from sluice_filters.timeseries.upsample import Upsample

_WORDS = [f"{word}{number}" for word in ("alpha", "beta", "gamma") for number in range(40)]


def text(size: int, seed: int = 7) -> bytes:
    """Compressible text without two equal frames."""
    rng = random.Random(seed)
    return " ".join(rng.choice(_WORDS) for _ in range(size)).encode()[:size]


def noise(size: int) -> bytes:
    return random.Random(3).randbytes(size)


def picture() -> bytes:
    """A small PNG."""
    out = io.BytesIO()
    Image.new("RGB", (4, 3), "red").save(out, "PNG")
    return out.getvalue()


#: Around the boundaries of frames of 1 KiB; a raw frame in the middle; one that needs padding.
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


class TestHeadedXor(FilterContract):
    filter = HeadedXor
    checked = False


class TestXor(FilterContract):
    filter = Xor
    params = {"key": 3}
    checked = False


class TestBitReverse(FilterContract):
    filter = BitReverse
    checked = False


#: Around the boundaries of segments of 64 bytes.
SEGMENTS = (b"", b"x", noise(63), noise(64), noise(65), noise(128), noise(300))


class TestEncryption(FilterContract):
    filter = Encryption.bound(HostServices(FakeKeyRing()))
    repeatable = False
    samples = SEGMENTS

    @classmethod
    def setup_class(cls):
        cls.filter.segment = 64


class ShortSegments(Checksum):
    segment = 64


class TestChecksumCrc(FilterContract):
    filter = ShortSegments
    samples = SEGMENTS


class TestChecksumSha(FilterContract):
    filter = ShortSegments
    params = {"digest": "sha256"}
    samples = SEGMENTS


class TestCompressionAsItComes(FilterContract):
    filter = Compression
    samples = (b"", b"x", text(300), text(4095), text(4096))


TABLES = (
    b"",
    b"a,b\n",
    b'a,b,c\n1,2,3\n4,"x,\ny",6\n7,8,9\n',
    b"a,b\r\n1,2\r\n3,4",
    b"a,b\n" + b"".join(b"%d,%d\n" % (number, number * number) for number in range(30)),
)
SERIES = (b"", b"t,v\n", b"t,v\n2026-01-01T00:00:00Z,1\n2026-01-01T00:00:30Z,3\n2026-01-01T00:02:00Z,5\n")


class TestCsvSelect(FilterContract):
    filter = CsvSelect
    params = {"columns": "a", "where": "a > 1"}
    samples = TABLES


class TestCsvSort(FilterContract):
    filter = CsvSort
    params = {"by": "a"}
    samples = TABLES


class TestCsvIndex(FilterContract):
    filter = CsvIndex
    params = {"column": "a"}
    samples = TABLES


class TestCsvToParquet(FilterContract):
    filter = CsvToParquet
    samples = TABLES


class TestThumbnail(FilterContract):
    filter = Thumbnail
    params = {"width": 2}
    hint = Hint(name="a.png")
    samples = (b"", picture())


class TestDownsample(FilterContract):
    filter = Downsample
    params = {"time": "t", "interval": 60.0, "values": "v"}
    samples = SERIES


class TestUpsample(FilterContract):
    filter = Upsample
    params = {"time": "t", "interval": 10.0, "values": "v"}
    samples = SERIES


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


class TestSanitise(FilterContract):
    filter = Sanitise
    params = {"otherwise": "pass"}
    hint = Hint(name="a.jpg")
    samples = SAMPLES[:3]


class TestIndexAtTheTail(FilterContract):
    """With an inline limit of zero every index goes to the tail."""

    filter = Compression
    params = SMALL
    samples = SAMPLES

    @classmethod
    def setup_class(cls):
        cls.patch = pytest.MonkeyPatch()
        cls.patch.setattr("sluice_filters.compression.layout.INLINE_INDEX", 0)

    @classmethod
    def teardown_class(cls):
        cls.patch.undo()


def test_every_built_in_that_changes_content_has_its_suite():
    suites = [one for name, one in globals().items() if name.startswith("Test")]
    tried = {one.filter.info.keyword for one in suites}
    assert {one.info.keyword for one in BUILT_IN if one.info.changes_content} <= tried


@pytest.mark.parametrize("built_in", BUILT_IN, ids=lambda one: one.info.keyword)
def test_every_built_in_describes_itself_consistently(built_in):
    suite = type("Suite", (FilterContract,), {"filter": built_in})()
    suite.test_the_description_is_consistent()
    suite.test_unknown_parameters_are_refused()


def test_code_that_was_uploaded_before_finds_the_names_that_it_imports():
    from sluice_core import describe
    from sluice_filters import api

    assert (api.Surroundings, api.Team, api.TeamStream) == (api.HostServices, api.FilterEnvironment, api.GroupEncoder)
    assert describe.WORLDS is describe.RESOURCE_TYPES
