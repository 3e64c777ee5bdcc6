import gzip

import pytest
import zstandard

from sluice_core.errors import NotFound
from sluice_motifs.api import PRESERVING, ExpansionError
from sluice_motifs.dependencies.freshness import is_exact
from sluice_motifs.storage.records import Motif
from sluice_motifs.templates import compressed, decompressed
from sluice_motifs.templates.concat import Concat
from sluice_motifs.templates.derive import Derive
from sluice_motifs.templates.duplicate_of import DuplicateOf
from sluice_motifs.templates.registry import load_templates, unfit
from sluice_motifs.testing.template_suite import CallOfTest, TemplateContract

TEXT = b"a line of a log, and another one\n" * 500


class TestConcat(TemplateContract):
    template = Concat
    params = {"of": "b,a"}
    contents = {"a": b"second", "b": b"first, "}
    made = b"first, second"


class TestDuplicate(TemplateContract):
    template = DuplicateOf
    params = {"source": "a"}
    contents = {"a": TEXT}
    made = TEXT


class TestSelection(TemplateContract):
    template = Derive
    params = {"of": "a,b", "filter": "xor", "options": "key=1"}
    contents = {"a": b"\x00\x01", "b": b"\x02"}
    made = b"\x01\x00\x03"


class TestZstd(TemplateContract):
    template = compressed.Compressed
    params = {"source": "a"}
    contents = {"a": TEXT}

    def test_everybody_reads_it(self):
        packed = self.expanded(7, self.contents)
        assert zstandard.ZstdDecompressor().decompressobj().decompress(packed) == TEXT
        assert len(packed) < len(TEXT) / 10


class TestGzip(TemplateContract):
    template = compressed.Compressed
    params = {"source": "a", "engine": "gzip"}
    contents = {"a": TEXT}

    def test_everybody_reads_it(self):
        assert gzip.decompress(self.expanded(7, self.contents)) == TEXT


class TestUnpackedZstd(TemplateContract):
    template = decompressed.Decompressed
    params = {"source": "a"}
    contents = {"a": zstandard.compress(TEXT)}
    made = TEXT


class TestUnpackedGzip(TemplateContract):
    template = decompressed.Decompressed
    params = {"source": "a", "engine": "gzip"}
    contents = {"a": gzip.compress(TEXT)}
    made = TEXT


@pytest.mark.parametrize("engine", compressed.ENGINES)
def test_damaged_sources_are_named(engine):
    template = decompressed.Decompressed({"source": "a", "engine": engine})
    with pytest.raises(ExpansionError, match=f"`a` is damaged, or no {engine}"):
        list(template.expand(CallOfTest("item", {"a": TEXT}, 0, 100)))


def test_a_filter_that_is_not_installed_is_named():
    with pytest.raises(NotFound, match="no filter `rotate` is installed"):
        list(Derive({"of": "a", "filter": "rotate"}).expand(CallOfTest("item", {"a": b""}, 0, 1)))


def test_a_preserving_template_that_is_not_exact_is_left_out():
    class Roughly(DuplicateOf):
        exact = False

    assert Roughly.relation == PRESERVING
    assert unfit(Roughly) == "a preserving template must be exact and keep a copy"


def test_ours_are_found_by_their_keywords():
    assert set(load_templates()) >= {"concat", "duplicate_of", "derive", "compressed", "decompressed"}


@pytest.mark.parametrize(
    ("keyword", "code", "exact"),
    [
        ("csv_sort", "", True),
        ("thumbnail", "", False),
        ("compression", "", False),
        ("encryption", "", False),
        ("thumbnail", "ab" * 32, True),
        ("not_installed", "", True),
    ],
)
def test_derive_is_exact_unless_its_filter_depends_on_a_library(keyword, code, exact):
    motif = Motif("derive", {"of": "a", "filter": keyword, "code": code})
    assert is_exact(motif, "item", load_templates()) is exact
