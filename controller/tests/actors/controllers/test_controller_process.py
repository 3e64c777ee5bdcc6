"""A controller's process, and the frames in its pipes."""

import asyncio
import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.actors.controllers import code_of
from tests.support.actors.host import run_scenario

from sluice_actors.controllers import ipc
from sluice_actors.controllers.controller_process import ControllerCode, ControllerEnded, ControllerError, start_process
from sluice_core.control import Assign, Observation, Rate
from sluice_core.errors import DecodeError

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text(), VALUES, max_size=5))
def test_a_frame_decodes_to_what_was_encoded(message):
    frame = ipc.pack(message)
    assert ipc.length(frame[: ipc.HEAD_SIZE]) == len(frame) - ipc.HEAD_SIZE
    assert ipc.unpack(frame[ipc.HEAD_SIZE :]) == message


@given(st.binary(max_size=50))
def test_any_bytes_are_a_message_or_a_decode_error(body):
    try:
        found = ipc.unpack(body)
    except DecodeError as error:
        found = {"error": str(error)}
    assert isinstance(found, dict)


@pytest.mark.parametrize("message", [{"a": object()}, {"a": 2**64}, {"a": "\ud800"}])
def test_values_that_msgpack_cannot_hold_are_refused(message):
    with pytest.raises(DecodeError, match="no data"):
        ipc.pack(message)


def test_a_frame_that_is_too_long_is_refused():
    with pytest.raises(DecodeError, match="a frame of 4294967295 bytes"):
        ipc.length(b"\xff" * 4)


def asked(body, limit=20.0, memory=256 << 20):
    """One answer of a controller with this body."""

    async def story():
        child = await start_process(ControllerCode("busy", 1, "", "0" * 64, code_of(body), memory))
        try:
            return await child.observe(Observation(1000.0, {"PUTS_SEC": {"tenant": {"AUTH_a": 8.0}}}), limit)
        finally:
            await child.close()

    return run_scenario(story(), 60)


def test_a_controller_process_answers_with_assignments():
    found = asked("for path in observation.values('PUTS_SEC'): yield Assign(path, 'noop', {'n': 1.5}, 'proxy')")
    assert found == ([Assign("AUTH_a", "noop", {"n": 1.5}, "proxy")], ())


def test_rates_come_beside_assignments():
    found = asked("from sluice_core.control import Rate\nyield Rate('n1', 'AUTH_a', 'GET', 1e6)")
    assert found == ([], (Rate("n1", "AUTH_a", "GET", 1e6),))


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("exit(3)", "line 7: SystemExit: 3"),
        ("yield 7", "a `int`, expected an Assign or a Rate"),
        ("return 7", "TypeError: 'int' object is not iterable"),
        ("yield Assign('AUTH_a', 'noop', {'a': object()})", "no data"),
        ("while True: yield Assign('AUTH_a', 'noop')", "more than 10000 assignments"),
        ("bytearray(1 << 30)", "MemoryError"),
        ("open('FILE', 'x').write('x' * 100000)", "File too large"),
        ("raise ValueError('x' * 10000)", "ValueError: xxx"),
    ],
)
def test_an_invalid_answer_is_reported_and_the_process_goes_on(body, reason, tmp_path):
    with pytest.raises(ControllerError, match=reason) as raised:
        asked(body.replace("FILE", f"{tmp_path}/file"))
    assert not isinstance(raised.value, ControllerEnded)
    assert len(str(raised.value)) <= 500


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("__import__('os')._exit(0)", "ended, with status 0"),
        ("__import__('os').abort()", "SIGABRT"),
        ("import os\nos.closerange(3, 9)\nos.write(1, b'x')", "ended"),
    ],
)
def test_the_end_of_a_process_is_reported(body, reason):
    with pytest.raises(ControllerEnded, match=reason):
        asked(body)


def test_a_process_that_hangs_times_out():
    with pytest.raises(ControllerEnded, match=r"did not answer within 0\.2 seconds"):
        asked("while True: pass", 0.2)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (b"import nothing_of_that_name", "No module named"),
        (b"x = 1", "has no subclass of Controller"),
        (b"exit(1)", "SystemExit"),
        (code_of("return ()").replace(b"    info", b"    inf"), "no `info` that is a ControllerInfo"),
        (code_of("return ()") + b"\n    def __init__(self): raise OSError('no')\n", "created: line 8: OSError"),
    ],
)
def test_code_that_is_no_controller_is_not_loaded(code, reason):
    with pytest.raises(ControllerError, match=reason):
        run_scenario(start_process(ControllerCode("busy", 1, "", "0" * 64, code, 256 << 20)), 60)


def test_a_process_ends_with_its_children_when_its_input_ends(tmp_path):
    marker = tmp_path / "pids"
    os.mkfifo(marker)
    body = f"""\
import os, subprocess
started = subprocess.Popen(["/bin/sleep", "600"])
with open({str(marker)!r}, "w") as out: print(os.getpid(), started.pid, file=out)
while True: pass
"""
    said = {"main": "", "sha256": "0" * 64, "code": code_of(body), "memory": 1 << 30}
    process = subprocess.Popen(
        [sys.executable, "-I", "-m", "sluice_actors.controllers.controller_main"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    with process:
        process.stdin.write(ipc.pack(said))
        process.stdin.write(ipc.pack({"observation": Observation(1000.0).encode()}))
        process.stdin.flush()
        own, started = map(int, marker.read_text().split())
        assert own == process.pid
        process.stdin.close()
        assert process.wait(30) == -9

    async def gone():
        with contextlib.suppress(OSError):
            while " Z " not in Path(f"/proc/{started}/stat").read_text():
                await asyncio.sleep(0.01)

    run_scenario(gone())
