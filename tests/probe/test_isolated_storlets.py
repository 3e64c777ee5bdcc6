"""The storlets that come with Sluice, in real containers, beside native filters in one pipeline."""

import hashlib
import os
import struct
from pathlib import Path

import pytest
from tests.support.sandbox.docker import Bench
from tests.support.sandbox.storlets import ACCOUNT, read_through, through

from sluice_filters.api import Hint
from sluice_filters.chain import ChainEncoder, chain_decoder, plain_size
from sluice_filters.compression.compression import Compression
from sluice_filters.compression.layout import write_record
from sluice_filters.csv.bundle import bundle
from sluice_filters.csv.select import CsvSelect
from sluice_filters.testing import cut, run
from sluice_sandbox.storlets.invocation import invocation_filter

SOURCES = Path(__file__).parents[2] / "filters" / "storlets"
HINT = Hint(account=ACCOUNT)
TEXT = b"".join(b"%d the quick brown fox\n" % number for number in range(100_000))
PARAMETERS = [
    {"name": "level", "type": "int", "default": 1, "minimum": 1, "maximum": 9},
    {"name": "frame_size", "type": "size", "default": 524288, "minimum": 1024},
]


@pytest.fixture(scope="module")
def bench():
    with Bench.open() as opened:
        yield opened


@pytest.fixture(scope="module")
def filters(bench):
    uploads = [
        bench.upload("same", (SOURCES / "identity_storlet.py").read_bytes(), "identity_storlet.Identity", reverse=True),
        bench.upload("copy", (SOURCES / "identity_storlet.py").read_bytes(), "identity_storlet.Identity"),
        bench.upload(
            "squeeze",
            (SOURCES / "compression_storlet.py").read_bytes(),
            "compression_storlet.Compression",
            reverse=True,
            info={"parameters": PARAMETERS},
        ),
    ]
    return {**bench.filters(bench.team(), uploads), "compression": Compression}


def native_record(stored, frame, size):
    """The record that the native filter would have for these stored bytes."""
    lengths, place = [], 0
    while place < len(stored) and struct.unpack_from("<I", stored, place)[0] == len(lengths):
        lengths.append(16 + (struct.unpack_from("<I", stored, place + 8)[0] & 0x7FFF_FFFF))
        place += lengths[-1]
    record, behind = write_record("gzip", size, frame, lengths)
    assert stored[place:] == behind
    return record


@pytest.mark.parametrize("size", [1, 100_000, 10_000_000])
def test_bytes_come_back_as_they_went_in(filters, size):
    data = os.urandom(size)
    chain = ChainEncoder([filters["same"]()], Hint(size=size, account=ACCOUNT))
    stored = run(chain, cut(data, 65536))
    assert stored == data
    assert plain_size(chain.records()) == size
    assert run(chain_decoder(chain.records(), filters, HINT), cut(stored, 65536)) == data


@pytest.mark.parametrize("frame", [1024, 65536, 524288])
def test_the_native_filter_reads_what_the_compression_storlet_wrote(filters, frame):
    stored = through(filters["squeeze"]({"frame_size": frame}), TEXT)
    assert len(stored) < len(TEXT) / 2
    decoder = Compression().decoder(native_record(stored, frame, len(TEXT)))
    assert run(decoder, cut(stored, 65536)) == TEXT


@pytest.mark.parametrize("frame", [1024, 65536])
def test_the_compression_storlet_reads_what_the_native_filter_wrote(bench, filters, frame):
    encoder = Compression({"engine": "gzip", "frame_size": frame}).encoder(Hint(size=len(TEXT)))
    stored = run(encoder, [TEXT])
    code = (SOURCES / "compression_storlet.py").read_bytes() + (
        b"\nclass Restore(Compression):\n    def __call__(self, ins, outs, params):\n"
        b"        super().__call__(ins, outs, {**params, 'sluice_direction': 'undo'})\n"
    )
    upload = bench.upload("restore", code, "compression_storlet.Restore", info={"on_put": True})
    assert through(bench.filters(bench.team(), [upload])["restore"](), stored) == TEXT


def test_native_and_isolated_filters_in_one_pipeline(filters):
    steps = [filters["same"](), Compression({"engine": "zstd"}), filters["squeeze"](), filters["same"]()]
    chain = ChainEncoder(steps, Hint(size=len(TEXT), account=ACCOUNT))
    stored = run(chain, cut(TEXT, 100_000))
    records = chain.records()
    assert [one["f"] for one in records] == ["same", "compression", "squeeze", "same"]
    assert run(chain_decoder(records, filters, HINT), cut(stored, 10_000)) == TEXT


def test_csv_select_gives_the_same_bytes_as_a_storlet(bench):
    archive = bundle()
    digest = hashlib.sha256(archive).hexdigest()
    bench.store.add(archive, digest)
    info = {"parameters": [{"name": name, "type": "str"} for name in ("columns", "where", "select")]}
    code = (SOURCES / "csv_select_storlet.py").read_bytes()
    main, more = "csv_select_storlet.CsvSelect", {"info": info, "dependencies": {"csv_select.zip": digest}}
    isolated = bench.filters(bench.team(), [bench.upload("select", code, main, **more)])["select"]
    table = b"id,name,size\n" + b"".join(b"%d,name %d,%d\n" % (n, n % 7, n * 13 % 1000) for n in range(20_000))
    for params in ({"columns": "name,id", "where": "size > 500"}, {"where": "name LIKE '%3'"}, {"columns": "size"}):
        native = CsvSelect(params)
        expected = run(native.reader(Hint(size=len(table))), cut(table, 65536))
        assert 0 < len(expected) < len(table)
        assert read_through(isolated(params), table) == expected


def test_a_client_may_ask_for_what_the_policy_allows(filters):
    explicit = invocation_filter(filters)({"allow": "copy"})
    assert read_through(explicit, TEXT, {"X-Run-Storlet": "identity_storlet.py"}) == TEXT
