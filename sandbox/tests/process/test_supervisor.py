"""The supervisor of workers: the first start, more on demand, replacement, end, and clean-up."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest
from tests.support.sandbox.process import CACHE, jailed, supervisor, uploaded

from sluice_code.code_store import CodeStore
from sluice_core.errors import PeerError
from sluice_filters.api import FilterError, Hint
from sluice_filters.testing import run
from sluice_sandbox.limits import Limits
from sluice_sandbox.process.session import ProcessTeam, SupervisorClient, tenant_socket

WHO = b"""
import os
IN = [0]

class Who:
    def __init__(self, params, direction):
        self.name = b"%d" % id(IN)

    def feed(self, data):
        if data == b"compute":
            while True:
                pass
        if data == b"die":
            os._exit(1)
        IN[0] += 1
        return b""

    def finish(self):
        return b"%d" % IN[0]
"""


@pytest.fixture
def store(tmp_path):
    return CodeStore(tmp_path / "code")


def say(team, data, tenant="AUTH_a"):
    """Return how many streams the worker of this stream has served."""
    who = uploaded(team._store, team, WHO, "who", "Who")
    return int(run(who().reader(Hint(account=tenant)), [data]))


def until(holds):
    """Wait until ``holds()`` is true."""
    while not holds():
        time.sleep(0.01)


def computed(folder):
    """Processor seconds of processes in jails."""
    ticks = 0
    for one in jailed(folder):
        with contextlib.suppress(OSError):  # it ended meanwhile
            ticks += sum(map(int, Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


def test_a_second_worker_comes_when_the_first_is_busy(store):
    def keep_busy(team):
        with contextlib.suppress(FilterError, PeerError):  # the supervisor ends before the stream
            say(team, b"compute")

    with supervisor(Limits(workers=2, patience=600, cpu=600)) as folder:
        team = ProcessTeam(store, folder, Limits(patience=60, cpu=600))
        assert say(team, b"x") == 1
        before = computed(folder)
        busy = threading.Thread(target=keep_busy, args=(team,))
        busy.start()
        until(lambda: computed(folder) > before + 1)  # it has the first worker to itself
        assert say(team, b"x") == 1
        assert busy.is_alive()
    busy.join()


def test_a_worker_that_died_is_replaced(store):
    with supervisor() as folder:
        team = ProcessTeam(store, folder)
        assert [say(team, b"x"), say(team, b"x")] == [1, 2]
        with pytest.raises(FilterError, match="died"):
            say(team, b"die")
        assert say(team, b"x") == 1


def test_an_idle_tenant_is_closed_and_comes_again(store):
    with supervisor(Limits(idle=0.1)) as folder:
        team = ProcessTeam(store, folder)
        assert say(team, b"x") == 1
        until(lambda: not tenant_socket(folder, "AUTH_a").exists())
        assert say(team, b"x") == 1
        until(lambda: len(jailed(folder)) == 2)  # the worker in reserve


def test_an_idle_tenant_makes_room_and_a_busy_one_does_not(store):
    with supervisor(Limits(tenants=1)) as folder:
        team = ProcessTeam(store, folder)
        assert say(team, b"x", "AUTH_a") == 1
        assert say(team, b"x", "AUTH_b") == 1
        who = uploaded(store, team, WHO, "who", "Who")
        busy = who().reader(Hint(account="AUTH_b"))
        busy.feed(b"x")
        with pytest.raises(FilterError, match="all 1 places for tenants are taken"):
            say(team, b"x", "AUTH_c")
        assert busy.finish() == b"2"


@pytest.fixture
def short():
    """A folder with a name that is short enough for sockets."""
    folder = Path(tempfile.mkdtemp(prefix="sluice-sbx-"))
    yield folder
    shutil.rmtree(folder)


def test_everything_ends_with_the_supervisor_however_it_ends(store, short):
    folder = short
    command = [sys.executable, "-m", "sluice_sandbox.cli", "serve", "--folder", str(folder), "--cache", str(CACHE)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as keeper:
        assert keeper.stdout.readline() == b"ready\n"
        team = ProcessTeam(store, folder, Limits(patience=5))
        assert say(team, b"x") == 1
        inside = jailed(folder)
        assert len(inside) >= 2
        keeper.send_signal(signal.SIGKILL)
    until(lambda: not any(Path(f"/proc/{one}").exists() for one in inside))
    with pytest.raises(FilterError, match=r"no sandbox supervisor at|the worker of filter `who` died"):
        say(team, b"x")  # the host may not have detected it yet
    with pytest.raises(FilterError, match="no sandbox supervisor at"):
        say(team, b"x")


def test_a_supervisor_starts_after_one_that_was_killed(store):
    with supervisor() as folder:
        (folder / "t-left").touch()
        assert say(ProcessTeam(store, folder), b"x") == 1


def test_an_unknown_operation_is_refused(store):
    with supervisor() as folder, pytest.raises(PeerError, match="`dance` is not known, expected start or more"):
        SupervisorClient(folder).request("dance", "AUTH_a")


def test_a_folder_that_is_too_long_for_sockets_is_refused_at_once(tmp_path):
    with pytest.raises(PeerError, match="too long for unix sockets, expected 80 bytes at most"):
        SupervisorClient(tmp_path / ("x" * 100))


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        (("--packages", "cryptography,numpy"), "package `numpy`, expected some of cryptography, zstandard, lz4"),
        (("--owner", "nobody-of-that-name"), "no user `nobody-of-that-name` on this machine"),
        (("--folder", f"{__file__}/x"), "cannot be used: Not a directory\n"),
    ],
    ids=["a package", "an owner", "a folder"],
)
def test_invalid_options_are_reported(tmp_path, option, reason):
    command = [sys.executable, "-m", "sluice_sandbox.cli", "serve", "--folder", str(tmp_path), *option]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("sluice-sandbox: ")
    assert reason in done.stderr
