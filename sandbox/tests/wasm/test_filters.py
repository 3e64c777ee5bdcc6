"""WebAssembly filters: the contract of all filters, adjacent filters, refused code, the private cache."""

from __future__ import annotations

import codecs
import re

import pytest
import wasmtime
from tests.support.sandbox.process import compiled, upload, uploaded

from sluice_code.code_store import BadUpload, CodeStore
from sluice_filters.api import Hint
from sluice_filters.chain import ChainEncoder, chain_decoder, chain_reader
from sluice_filters.testing import FilterContract, cut, run
from sluice_sandbox.api import load_filter
from sluice_sandbox.wasm.session import PIECE, WasmTeam

KEY = {"name": "key", "type": "int", "minimum": 0, "maximum": 255, "default": 90}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return CodeStore(tmp_path_factory.mktemp("code"))


@pytest.fixture(scope="module")
def team(store):
    return WasmTeam(store)


class TestWasmXor(FilterContract):
    params = {"key": 7}

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def register(cls, store, team):
        info = {"parameters": [KEY]}
        cls.filter = uploaded(store, team, compiled("xor"), "wxor", "xor", reverse=True, info=info)


class TestWasmIdentity(FilterContract):
    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def register(cls, store, team):
        info = {"changes_content": False, "changes_length": False, "on_put": True}
        cls.filter = uploaded(store, team, compiled("identity"), "wnoop", "identity", info=info)


class TestWasmRot13(FilterContract):
    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def register(cls, store, team):
        cls.filter = uploaded(store, team, compiled("rot13"), "wrot", "rot13", reverse=True)


@pytest.fixture(scope="module")
def rot13(store, team):
    return uploaded(store, team, compiled("rot13"), "rot13", "rot13")


@pytest.mark.parametrize("size", [0, 1, PIECE - 1, PIECE, PIECE + 1, 5 * PIECE + 7])
def test_pieces_of_every_size_go_through(rot13, size):
    data = (b"Hello, World! " * (size // 14 + 1))[:size]
    assert run(chain_reader([rot13()], Hint()), cut(data, 300_000)).decode() == codecs.encode(data.decode(), "rot13")


def test_neighbours_are_one_stream_and_are_undone_backwards(store, team, rot13):
    shift = uploaded(store, team, compiled("xor"), "shift", "xor", reverse=True, info={"parameters": [KEY]})
    turn = uploaded(store, team, compiled("rot13"), "turn", "rot13", reverse=True)
    chain = ChainEncoder([turn(), shift({"key": 32})], Hint())
    stored = run(chain, [b"Hello"])
    assert stored == bytes(value ^ 32 for value in b"Uryyb")
    assert len(chain._stages) == 1
    assert run(chain_decoder(chain.records(), {"shift": shift, "turn": turn}), cut(stored, 1)) == b"Hello"


def test_code_that_computes_long_for_its_bytes_gets_a_thread(store, team, rot13):
    quick = uploaded(store, team, compiled("identity"), "quick", "identity")
    assert (quick().heavy, rot13().heavy) == (False, True)


FUNCTIONS = {
    "alloc": '(func (export "alloc") (param i32) (result i32) i32.const 0)',
    "feed": '(func (export "feed") (param i32 i32) (result i64) i64.const 0)',
    "finish": '(func (export "finish") (result i64) i64.const 0)',
}
MEMORY = '(memory (export "memory") 4)'


def module(**changed):
    parts = {"imports": "", "memory": MEMORY, **FUNCTIONS, **changed}
    return bytes(wasmtime.wat2wasm(f"(module {' '.join(parts.values())})"))


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (b"(module)", "no WebAssembly module; text format is compiled before"),
        (b"\0asm\1\0\0\0garbage", "does not compile"),
        (module(memory=""), "exports no `memory`"),
        (module(feed=""), "exports no function `feed(i32, i32) -> i64`"),
        (
            module(alloc='(func (export "alloc") (result i32) i32.const 0)'),
            "`alloc` is () -> i32, expected (i32) -> i32",
        ),
        (module(start='(func (export "start"))'), "`start` is () -> , expected (i32, i32, i32) -> i32"),
        (
            module(imports='(import "wasi_snapshot_preview1" "fd_write" (func (param i32)))'),
            "imports `wasi_snapshot_preview1.fd_write`, expected no imports",
        ),
    ],
)
def test_a_module_that_cannot_be_a_filter_is_refused_with_the_reason(store, team, code, reason):
    one = upload(code, "odd", "odd", "wasm", "wasm")
    store.add(code, one.sha256)
    with pytest.raises(BadUpload, match=re.escape(reason)):
        load_filter(one, store, team)


def test_compiled_code_is_kept_in_a_private_folder_and_used_again(store, tmp_path):
    cache = tmp_path / "cache"
    uploaded(store, WasmTeam(store, cache), compiled("xor"), "kept", "xor")
    (kept,) = cache.iterdir()
    assert cache.stat().st_mode & 0o777 == 0o700
    before = kept.stat().st_mtime_ns, kept.stat().st_ino
    again = uploaded(store, WasmTeam(store, cache), compiled("xor"), "kept", "xor")
    assert run(again().reader(Hint()), [b"\x5a"]) == b"\0"
    assert (kept.stat().st_mtime_ns, kept.stat().st_ino) == before


def test_compiled_code_that_is_none_is_made_anew(store, tmp_path, caplog):
    cache = tmp_path / "cache"
    uploaded(store, WasmTeam(store, cache), compiled("xor"), "kept", "xor")
    (kept,) = cache.iterdir()
    good = kept.read_bytes()
    kept.write_bytes(b"nothing of the kind")
    again = uploaded(store, WasmTeam(store, cache), compiled("xor"), "kept", "xor")
    assert run(again().reader(Hint()), [b"\x5a"]) == b"\0"
    assert "is made anew" in caplog.text
    assert len(kept.read_bytes()) == len(good)


def test_compiled_code_is_not_kept_where_others_could_write(store, tmp_path, caplog):
    cache = tmp_path / "open"
    cache.mkdir()
    cache.chmod(0o770)
    uploaded(store, WasmTeam(store, cache), compiled("xor"), "kept", "xor")
    assert list(cache.iterdir()) == []
    assert "is not a folder of this user alone (0700)" in caplog.text


def test_a_process_that_forked_has_an_engine_of_its_own(store, monkeypatch):
    team = WasmTeam(store)
    kept = uploaded(store, team, compiled("xor"), "kept", "xor")
    before = team._modules.engine
    monkeypatch.setattr("sluice_sandbox.wasm.modules.os.getpid", lambda: -1)
    assert run(kept().reader(Hint()), [b"\x5a"]) == b"\0"
    assert team._modules.engine is not before
