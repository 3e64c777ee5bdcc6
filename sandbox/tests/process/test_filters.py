"""Python filters in jailed workers: the contract of all filters, adjacent filters, tenants, what a jail offers."""

from __future__ import annotations

import json
import secrets

import pytest
from tests.support.sandbox.process import NOOP, XOR, supervisor, upload, uploaded

from sluice_code.code_store import BadUpload, CodeStore
from sluice_filters.api import FilterError, Hint
from sluice_filters.chain import ChainEncoder, chain_decoder, chain_reader
from sluice_filters.testing import FilterContract, cut, run
from sluice_filters.testing.fake_filters import HeadedXor as NativeXor
from sluice_sandbox.api import load_filter
from sluice_sandbox.limits import Limits
from sluice_sandbox.process.session import ProcessTeam

KEY = {"name": "key", "type": "int", "minimum": 0, "maximum": 255, "default": 90}
UPPER = b"""
class Upper:
    def __init__(self, params, direction):
        self.tail = params["tail"].encode()

    def feed(self, data):
        return bytearray(data.upper())

    def finish(self):
        return self.tail
"""
AES = b"""
import os
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

class Aes:
    def __init__(self, params, direction):
        self.undo = direction == "undo"
        self.head = b"" if self.undo else os.urandom(16)
        self.cipher = None if self.undo else self.start(self.head)

    def start(self, nonce):
        cipher = Cipher(algorithms.AES(bytes(32)), modes.CTR(nonce))
        return cipher.decryptor() if self.undo else cipher.encryptor()

    def feed(self, data):
        if self.undo and self.cipher is None:
            self.head += data
            if len(self.head) < 16:
                return b""
            self.cipher, data = self.start(self.head[:16]), self.head[16:]
            return self.cipher.update(data)
        head, self.head = (b"" if self.undo else self.head), b""
        return head + self.cipher.update(data)

    def finish(self):
        return b"" if self.undo else self.head
"""
STATE = b"""
SEEN = []

class Count:
    def __init__(self, params, direction):
        SEEN.append(1)

    def feed(self, data):
        return b""

    def finish(self):
        return b"%d" % len(SEEN)
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return CodeStore(tmp_path_factory.mktemp("code"))


@pytest.fixture(scope="module")
def team(store):
    with supervisor(Limits(patience=30)) as folder:
        yield ProcessTeam(store, folder, Limits(patience=30))


class TestUploadedXor(FilterContract):
    params = {"key": 7}

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def made(cls, store, team):
        cls.filter = uploaded(store, team, XOR, "shift", "Xor", reverse=True, info={"parameters": [KEY]})


class TestUploadedNoop(FilterContract):
    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def made(cls, store, team):
        info = {"changes_content": False, "changes_length": False, "on_put": True}
        cls.filter = uploaded(store, team, NOOP, "nothing", "Noop", info=info)


def read(filters, data, tenant="AUTH_a", piece=65536):
    return run(chain_reader(filters, Hint(account=tenant)), cut(data, piece))


@pytest.fixture(scope="module")
def upper(store, team):
    info = {"parameters": [{"name": "tail", "type": "str", "default": "!"}]}
    return uploaded(store, team, UPPER, "upper", "Upper", info=info)


@pytest.mark.parametrize("size", [0, 1, 10_000, 5_000_000])
def test_bytes_of_every_size_go_through(upper, size):
    data = b"abcdefgh" * (size // 8 + 1)
    assert read([upper({"tail": "end"})], data[:size]) == data[:size].upper() + b"end"


def test_neighbours_share_one_entry_and_the_last_on_put_reads_first(store, team, upper):
    assert read([upper({"tail": "a"}), upper({"tail": "b"})], b"x") == b"XBa"
    assert len(chain_reader([upper(), upper()], Hint(account="AUTH_a"))._stages) == 1


def test_an_encoder_of_neighbours_leaves_a_record_for_each_and_is_undone(store, team):
    aes = uploaded(store, team, AES, "aes", "Aes", reverse=True)
    shift = uploaded(store, team, XOR, "shift2", "Xor", reverse=True, info={"parameters": [KEY]})
    data = secrets.token_bytes(300_000)
    chain = ChainEncoder([shift({"key": 3}), aes(), NativeXor()], Hint(len(data), account="AUTH_a"))
    stored = run(chain, cut(data, 65536))
    records = json.loads(json.dumps(chain.records()))
    assert [(one["f"], one["r"]["size"]) for one in records] == [
        ("shift2", 300_000),
        ("aes", 300_000),
        ("xor", 300_016),
    ]
    known = {"aes": aes, "shift2": shift, "xor": NativeXor}
    assert run(chain_decoder(records, known, Hint(account="AUTH_a")), cut(stored, 10_000)) == data
    assert data not in stored


def test_streams_of_one_tenant_share_a_worker_and_tenants_do_not(store, team):
    count = uploaded(store, team, STATE, "count", "Count")
    assert [read([count()], b"x", tenant) for tenant in ("AUTH_b", "AUTH_b", "AUTH_c")] == [b"1", b"2", b"1"]


def test_many_slow_streams_at_once_do_not_block_each_other(upper):
    streams = [chain_reader([upper()], Hint(account="AUTH_slow")) for _ in range(50)]
    out = [stream.feed(b"a" * 1000) for stream in streams]
    out = [before + stream.feed(b"b" * 1000) + stream.finish() for before, stream in zip(out, streams, strict=True)]
    assert out == [b"A" * 1000 + b"B" * 1000 + b"!"] * 50


def test_a_stream_that_nobody_finishes_leaves_nothing_open(upper, team):
    stream = chain_reader([upper()], Hint(account="AUTH_a"))
    stream.feed(b"x" * 3_000_000)
    connection = stream._stages[0]._through._session._connection
    del stream
    assert connection.__class__.__name__ == "_Socket"
    assert read([upper()], b"next") == b"NEXT!"


def test_older_code_undoes_what_it_did_after_a_new_revision(store, team):
    old = uploaded(store, team, XOR, "evolves", "Xor", reverse=True)
    encoder = ChainEncoder([old()], Hint(account="AUTH_a"))
    stored = run(encoder, [b"written by the first"])
    other = XOR.replace(b"Xor", b"Xor2").replace(b"90", b"17")
    new = uploaded(store, team, other, "evolves", "Xor2", reverse=True, revision=2)
    assert run(ChainEncoder([new()], Hint(account="AUTH_a")), [b"written by the first"]) != stored
    undone = chain_decoder(encoder.records(), {"evolves": new}, Hint(account="AUTH_a"))
    assert run(undone, [stored]) == b"written by the first"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"language": "java"}, "language `java` in environment `process`, expected `python`"),
        ({"main": "no name"}, "main class `no name` is no name"),
        ({"dependencies": {"more.py": "0" * 64}}, "takes one file"),
    ],
)
def test_an_upload_that_can_never_run_is_refused(store, team, change, reason):
    odd = upload(NOOP, **{"keyword": "odd", "main": "Noop", **change})
    store.add(NOOP, odd.sha256)
    with pytest.raises(BadUpload, match=reason):
        load_filter(odd, store, team)


def test_code_that_does_not_compile_is_refused(store, team):
    code = b"class Broken(:\n"
    store.add(code, upload(code, "broken", "Broken").sha256)
    with pytest.raises(BadUpload, match="code of filter `broken` does not compile"):
        load_filter(upload(code, "broken", "Broken"), store, team)


def test_a_missing_supervisor_is_reported(store, tmp_path):
    lonely = uploaded(store, ProcessTeam(store, tmp_path), NOOP, "lonely", "Noop")
    with pytest.raises(FilterError, match="filter `lonely` cannot run: no sandbox supervisor at"):
        lonely().reader(Hint(account="AUTH_a"))
