"""WebAssembly that misbehaves: the stream fails with the reason, the host's process continues."""

from __future__ import annotations

import pytest
import wasmtime
from tests.support.sandbox.process import compiled, uploaded

from sluice_code.code_store import CodeStore
from sluice_filters.api import Hint
from sluice_filters.testing import run
from sluice_sandbox.limits import Limits, SandboxFault
from sluice_sandbox.wasm.session import WasmTeam

LIMITS = Limits(memory=4 * 1024 * 1024, cpu=0.1, cpu_per_mb=0.1, slack=100_000, growth=10.0)


MEMORY = '(memory (export "memory") 4)'


@pytest.fixture(scope="module")
def team(tmp_path_factory):
    return WasmTeam(CodeStore(tmp_path_factory.mktemp("code")), limits=LIMITS)


def bad(team, feed="i64.const 0", finish="i64.const 0", more="", alloc="i32.const 0", keyword="bad", memory=MEMORY):
    text = f"""(module
      {memory}
      (func (export "alloc") (param i32) (result i32) {alloc})
      (func $feed (export "feed") (param $at i32) (param $size i32) (result i64) {feed})
      (func (export "finish") (result i64) {finish})
      {more})"""
    return uploaded(team._modules._store, team, bytes(wasmtime.wat2wasm(text)), keyword, "bad")


FAULTS = {
    "traps": ({"feed": "unreachable"}, "filter `bad` trapped: unreachable$"),
    "loops": ({"feed": "(loop $l (br $l)) i64.const 0"}, "filter `bad` took too much processor time$"),
    "loops at the end": ({"finish": "(loop $l (br $l)) i64.const 0"}, "filter `bad` took too much processor time$"),
    "calls itself": (
        {"feed": "(call $feed (local.get 0) (local.get 1))"},
        "trapped: stack overflow$|took too much processor time$",
    ),
    "divides by zero": ({"feed": "(i64.div_u (i64.const 1) (i64.const 0))"}, "trapped: integer division by zero$"),
    "reads outside": ({"feed": "(i64.load (i32.const -8))"}, "trapped: memory out of bounds$"),
    "fails": ({"feed": "i64.const -7"}, "filter `bad` failed with `7`$"),
    "points outside": ({"feed": "i64.const 0x7fffffff00000010"}, "filter `bad` points outside of its memory$"),
    "gives more than it has": ({"feed": "i64.const 0x7fffffff"}, "filter `bad` points outside of its memory$"),
    "takes input outside": ({"alloc": "i32.const -16"}, "filter `bad` points outside of its memory$"),
    "refuses its parameters": (
        {"more": '(func (export "start") (param i32 i32 i32) (result i32) i32.const 3)'},
        "filter `bad` refused its parameters with `3`$",
    ),
    "makes a bomb": (
        {"feed": "i64.const 262144"},
        r"filter `bad` made 262144 bytes out of 1, expected at most 100010$",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_fails_its_own_stream_only(team, name):
    parts, message = FAULTS[name]
    with pytest.raises(SandboxFault, match=message):
        run(bad(team, **parts)().reader(Hint(account="AUTH_bad")), [b"x"])
    good = uploaded(team._modules._store, team, compiled("rot13"), "good", "rot13")
    assert run(good().reader(Hint(account="AUTH_bad")), [b"nowhere"]) == b"abjurer"
    assert dict(team.held) == {}


def test_memory_cannot_grow_beyond_the_limit(team):
    # -1 is the answer of memory.grow at the limit
    grows = bad(team, feed="(i64.extend_i32_s (memory.grow (i32.const 1000)))", keyword="grows")
    with pytest.raises(SandboxFault, match="filter `grows` failed with `1`"):
        run(grows().reader(Hint()), [b"x"])


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({"alloc": "(loop $l (br $l)) i32.const 0"}, "filter `bad` took too much processor time"),
        ({"more": "(func $s (loop $l (br $l))) (start $s)"}, "filter `bad` took too much processor time"),
        ({"memory": '(memory (export "memory") 100)'}, "filter `bad` could not be called"),
    ],
)
def test_a_module_that_cannot_even_be_made_is_refused(team, parts, reason):
    with pytest.raises(SandboxFault, match=reason):
        bad(team, **parts)


def test_streams_of_one_tenant_hold_a_limited_amount_of_memory_together(team):
    grows = bad(team, feed="(drop (memory.grow (i32.const 58))) i64.const 0", keyword="holds")
    streams = []

    def one_more():
        streams.append(grows().reader(Hint(account="AUTH_bad")))
        return streams[-1].feed(b"x")

    with pytest.raises(SandboxFault, match="streams of tenant `AUTH_bad` hold too much memory"):
        assert [one_more() for _ in range(20)]
    assert grows().reader(Hint(account="AUTH_other")).feed(b"x") == b""
    streams.clear()
    assert grows().reader(Hint(account="AUTH_bad")).feed(b"x") == b""


def test_what_a_stream_may_compute_grows_with_its_bytes(team):
    # some 20 instructions for each byte: within the allowance for the bytes, far beyond that for one call
    work = """(local $left i32) (local.set $left (i32.mul (local.get $size) (i32.const 5)))
      (loop $l (br_if $l (local.tee $left (i32.sub (local.get $left) (i32.const 1)))))
      i64.const 0"""
    works = bad(team, feed=work, keyword="works")
    assert run(works().reader(Hint()), [bytes(100_000)] * 60) == b""
