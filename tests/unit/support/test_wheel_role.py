"""Programs of a role end with their test, whatever came of it."""

import os
import select
import sys

import pytest
from tests.support.wheel import role

#: Ignores the signal to end, and so does its worker.
PROGRAM = f"""\
#!{sys.executable}
import os, signal, socket, subprocess
signal.signal(signal.SIGTERM, signal.SIG_IGN)
worker = subprocess.Popen(["sleep", "600"])
open("worker", "w").write(str(worker.pid))
socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"READY=1", os.environ["NOTIFY_SOCKET"].replace("@", chr(0), 1))
worker.wait()
"""


@pytest.fixture
def made(tmp_path, monkeypatch):
    monkeypatch.setattr(role, "_GRACE", 0.1)
    program = tmp_path / "bin" / "program"
    program.parent.mkdir()
    program.write_text(PROGRAM)
    program.chmod(0o755)
    return role.Role("none", tmp_path)


def run_with(made, use):
    """Run the program, and use it when it is ready."""
    with made.running("program") as daemon:
        daemon.wait_ready()
        use(daemon)


def test_a_failed_test_leaves_neither_a_program_nor_its_worker(made):
    used = []

    def fail(daemon):
        used.extend((daemon.process, os.pidfd_open(int((made.folder / "worker").read_text()))))
        raise RuntimeError("failed")

    with pytest.raises(RuntimeError, match="failed"):
        run_with(made, fail)
    process, worker = used
    try:
        assert process.returncode < 0
        assert select.select([worker], [], [], 10)[0], "the worker runs"
    finally:
        os.close(worker)


def test_a_program_that_does_not_end_fails_its_test_with_its_log(made, monkeypatch):
    with pytest.raises(AssertionError, match=r"has not ended after 0\.2 s"):
        run_with(made, lambda daemon: monkeypatch.setattr(role, "_PATIENCE", 0.2))
