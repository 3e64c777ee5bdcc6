"""Only started processes are stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

from sluice_aio.base.processes import ProcessId, end_all
from sluice_aio.cluster.records import Record, Records
from sluice_aio.errors import LaunchError

QUIET = "import signal; print('ready', flush=True); signal.pause()"
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); signal.pause()"
PARENT = (
    "import subprocess, sys, signal\n"
    "child = subprocess.Popen([sys.executable, '-c', 'import signal; signal.pause()'])\n"
    "print(child.pid, flush=True)\n"
    "signal.pause()\n"
)


@pytest.fixture
def start():
    running = []

    def begin(program):
        popen = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, start_new_session=True)
        running.append(popen)
        first = popen.stdout.readline().strip()
        return popen, first

    yield begin
    for popen in running:
        popen.kill()
        popen.wait()
        popen.stdout.close()


def test_a_process_is_known_by_pid_and_start(start):
    popen, _ = start(QUIET)
    process = ProcessId.find(popen.pid)
    assert process.alive()
    assert process == ProcessId.find(popen.pid)
    popen.kill()
    assert process.wait(5)
    assert not process.alive()  # a zombie still has the pid
    popen.wait()
    assert ProcessId.find(popen.pid) is None


def test_a_stranger_with_the_same_pid_gets_no_signal(start):
    popen, _ = start(QUIET)
    process = ProcessId.find(popen.pid)
    earlier = ProcessId(process.pid, process.started - 1)
    assert not earlier.alive()
    assert earlier.signal(signal.SIGKILL) is False
    assert process.alive()


def test_ending_twice_is_harmless(start):
    popen, _ = start(QUIET)
    process = ProcessId.find(popen.pid)
    assert process.end(5) is True
    assert process.end(5) is True
    assert popen.wait() == -signal.SIGTERM


def test_a_process_that_ignores_sigterm_is_killed(start):
    popen, _ = start(DEAF)
    process = ProcessId.find(popen.pid)
    assert process.end(0.2) is False
    assert popen.wait() == -signal.SIGKILL


def test_what_a_service_forked_ends_with_it(start):
    popen, first = start(PARENT)
    child = ProcessId.find(int(first))
    process = ProcessId.find(popen.pid)
    assert {one.pid for one in process.session()} == {popen.pid, child.pid}
    end_all([process], 5)
    assert not child.alive()
    assert not process.alive()


def test_orphans_of_a_killed_service_are_ended_too(start):
    popen, first = start(PARENT)
    child = ProcessId.find(int(first))
    process = ProcessId.find(popen.pid)
    popen.kill()
    popen.wait()
    assert child.alive()
    process.end(5)
    assert not child.alive()


def test_records_come_back_as_they_were_written(tmp_path):
    records = Records(tmp_path / "run")
    assert records.load() == {}
    mine = Record("proxy", 15500, (ProcessId.find(os.getpid()),))
    agent = Record("agent", None, (ProcessId(1, 2), ProcessId(3, 4)))
    records.save([mine, agent])
    assert list(records.load().values()) == [mine, agent]
    assert mine.alive()
    assert not agent.alive()


def test_a_spoilt_record_is_named(tmp_path):
    records = Records(tmp_path)
    (tmp_path / "processes.json").write_text("{")
    with pytest.raises(LaunchError, match=r"processes\.json"):
        records.load()


def test_two_commands_at_once_in_one_folder_are_refused(tmp_path):
    first = Records(tmp_path / "run").lock()
    with pytest.raises(LaunchError, match="another command"):
        Records(tmp_path / "run").lock()
    os.close(first)
    os.close(Records(tmp_path / "run").lock())


def test_the_record_is_replaced_in_one_step(tmp_path):
    records = Records(tmp_path)
    records.save([Record("a", 1, (ProcessId(1, 1),))])
    records.save([])
    assert json.loads((tmp_path / "processes.json").read_text()) == {}
    assert [path.name for path in tmp_path.iterdir()] == ["processes.json"]
