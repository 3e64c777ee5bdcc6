"""The corpus that the benchmarks compress."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from sluice_filters.compression.compression import Compression
from sluice_filters.testing import encode

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def log_corpus():
    spec = importlib.util.spec_from_file_location("corpus", ROOT / "benchmarks" / "harness" / "corpus.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.log_corpus


def test_the_same_seed_gives_the_same_bytes_and_another_one_others(log_corpus):
    assert log_corpus(300_000, 7) == log_corpus(300_000, 7)
    assert log_corpus(300_000, 7) != log_corpus(300_000, 8)


def test_a_shorter_corpus_is_the_beginning_of_a_longer_one(log_corpus):
    assert log_corpus(2_000_000).startswith(log_corpus(100_001))


def test_lines_are_those_of_logs_and_no_two_are_alike(log_corpus):
    lines = log_corpus(1_000_000).split(b"\n")[:-1]
    assert 100 < 1_000_000 / len(lines) < 250
    assert len(set(lines)) > 0.99 * len(lines)


def test_it_compresses_as_logs_do(log_corpus):
    data = log_corpus(3_000_000)
    for engine, low, high in (("zstd", 0.10, 0.35), ("gzip", 0.10, 0.35), ("lz4", 0.15, 0.40)):
        out, _ = encode([Compression({"engine": engine})], data)
        assert low < len(out) / len(data) < high
