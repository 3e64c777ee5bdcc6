"""What uploaded code in a worker can reach, and its worst effects on others: every trial tries, and reports."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.support.sandbox.process import NOOP, XOR, jailed, supervisor, uploaded

from sluice_code.code_store import CodeStore
from sluice_filters.api import FilterError, Hint
from sluice_filters.testing import cut, run
from sluice_sandbox.limits import Limits
from sluice_sandbox.process.session import CONTROL, ProcessTeam, tenant_socket

TRIAL = """
import json, os, sys
REPORT = {}
def attempt(name, action):
    try:
        REPORT[name] = repr(action())
    except BaseException as error:
        REPORT[name] = type(error).__name__
class Trial:
    def __init__(self, params, direction): pass
    def feed(self, data):
        %s
        return b""
    def finish(self): return json.dumps(REPORT).encode()
"""
LIMITS = Limits(patience=2.0, memory=128 * 1024 * 1024)


@pytest.fixture(scope="module")
def folder():
    with supervisor(LIMITS) as opened:
        yield opened


@pytest.fixture(scope="module")
def team(folder, tmp_path_factory):
    return ProcessTeam(CodeStore(tmp_path_factory.mktemp("code")), folder, Limits(patience=10))


@pytest.fixture(scope="module")
def good(team):
    return uploaded(team._store, team, NOOP, "good", "Noop")


def reported(team, lines, tenant="AUTH_trial"):
    code = TRIAL % "\n        ".join(lines)
    trial = uploaded(team._store, team, code.encode(), "trial", "Trial")
    return json.loads(run(trial().reader(Hint(account=tenant)), [b"x"]))


def test_there_is_no_network(team):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert reported(
            team,
            [
                "import socket",
                f"attempt('tcp', lambda: socket.create_connection(('127.0.0.1', {port}), 2))",
                "attempt('unix', lambda: socket.socket(socket.AF_UNIX))",
                "attempt('pair', lambda: socket.socketpair())",
                "attempt('raw', lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW))",
                "attempt('names', lambda: socket.getaddrinfo('localhost', 80))",
            ],
        ) == {
            "tcp": "PermissionError",
            "unix": "PermissionError",
            "pair": "PermissionError",
            "raw": "PermissionError",
            "names": "gaierror",
        }


def test_there_are_no_files_of_the_host_nor_any_way_to_write(team, folder, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("of the host")
    found = reported(
        team,
        [
            *(
                f"attempt({path!r}, lambda: os.listdir({path!r}))"
                for path in ("/etc", "/root", "/home", "/var", "/run", "/sys", "/usr", str(folder), str(tmp_path))
            ),
            "attempt('write', lambda: open('/new', 'w'))",
            "attempt('overwrite', lambda: open('/sluice/sluice_sandbox/worker.py', 'w'))",
            "attempt('remove', lambda: os.unlink('/python/bin/python3'))",
            "attempt('mount', lambda: os.chroot('/python'))",
        ],
    )
    assert {found.pop(name) for name in ("write", "overwrite")} == {"OSError"}
    assert {found.pop(name) for name in ("remove", "mount")} == {"PermissionError"}
    assert set(found.values()) == {"FileNotFoundError"}


def test_there_are_no_processes_to_see_trace_or_kill(team):
    host = os.getpid()
    assert reported(
        team,
        [
            "attempt('proc', lambda: os.listdir('/proc'))",
            f"attempt('kill', lambda: os.kill({host}, 9))",
            "attempt('kill all', lambda: os.kill(-1, 9))",
            "attempt('fork', os.fork)",
            "attempt('run', lambda: os.posix_spawn('/python/bin/python3', ['python3'], {}))",
            "attempt('limits', lambda: __import__('resource').setrlimit(7, (99999, 99999)))",
            "attempt('identity', lambda: os.setuid(0))",
            "REPORT['who'] = [os.getpid(), os.getuid()]",
        ],
    ) == {
        "proc": "FileNotFoundError",
        "kill": "PermissionError",
        "kill all": "PermissionError",
        "fork": "PermissionError",
        "run": "PermissionError",
        "limits": "ValueError",  # Python's word for EPERM here
        "identity": "PermissionError",
        "who": [1, 65534],
    }


def test_a_tracer_gets_nowhere(team):
    lines = [
        "import _ctypes",
        "from ctypes import CDLL, get_errno",
        "libc = CDLL(None, use_errno=True)",
        "for name, call in (('ptrace', (101, 16, 1, 0, 0)), ('process_vm_readv', (310, 1, 0, 0, 0, 0)),"
        " ('bpf', (321, 0, 0, 0)), ('io_uring_setup', (425, 1, 0)), ('userfaultfd', (323, 0)),"
        " ('unshare', (272, 0x10000000)), ('keyctl', (250, 0, 0)), ('memfd_create', (319, 0, 0))):",
        "    REPORT[name] = [libc.syscall(*call), get_errno()]",
    ]
    assert set(map(tuple, reported(team, lines).values())) == {(-1, 1)}


def test_a_tenant_sees_nothing_of_another_one(team):
    uploaded_secret = uploaded(team._store, team, XOR, "secret", "Xor", reverse=True)
    run(uploaded_secret().encoder(Hint(account="AUTH_first")), [b"secret"])
    lines = ["REPORT['modules'] = [name for name in sys.modules if name.startswith('filter_')]"]
    assert len(reported(team, lines, "AUTH_second")["modules"]) == 1


WORST = {
    "fork bomb": "while True:\n            try: os.fork()\n            except OSError: pass",
    "memory bomb": "held = []\n        while True: held.append(b'x' * (1 << 24))",
    "endless loop": "while True: pass",
    "all descriptors": "while True:\n            try: os.dup(0)\n            except OSError: pass",
    "endless output": "while True:\n            try: os.write(7, b'\\xff' * 65536)\n            except OSError: pass",
}


@pytest.mark.parametrize("name", WORST)
def test_the_worst_of_one_tenant_is_not_noticed_by_another(team, good, name):
    bomb = uploaded(team._store, team, (TRIAL % WORST[name]).encode(), "bomb", "Trial")
    faults = []

    def explode():
        try:
            run(bomb().reader(Hint(account="AUTH_bad")), [b"x"])
        except FilterError as error:
            faults.append(str(error))

    bombs = [threading.Thread(target=explode) for _ in range(3)]
    for one in bombs:
        one.start()
    rounds = 0
    while any(one.is_alive() for one in bombs) or not rounds:
        data = os.urandom(200_000)
        assert run(good().reader(Hint(account="AUTH_good")), cut(data, 65536)) == data
        rounds += 1
    assert len(faults) == 3
    assert all("`bomb`" in fault for fault in faults)
    assert run(good().reader(Hint(account="AUTH_bad")), [b"again"]) == b"again"


def test_garbage_on_the_sockets_of_the_host_harms_nobody(team, good, folder):
    run(good().reader(Hint(account="AUTH_good")), [b"x"])
    for path in (folder / CONTROL, tenant_socket(folder, "AUTH_good")):
        for garbage in (b"", b"\xff" * 100, b"\0\0\0\x02{}", b'{"op": 1}\n', b"[]\n", b"x" * 200_000):
            with socket.socket(socket.AF_UNIX) as line:
                line.connect(str(path))
                try:
                    line.sendall(garbage)
                except (BrokenPipeError, ConnectionResetError):
                    continue  # disconnected before its end
    assert run(good().reader(Hint(account="AUTH_good")), [b"good"]) == b"good"
    assert run(good().reader(Hint(account="AUTH_new")), [b"new"]) == b"new"


def test_a_worker_killed_in_the_middle_fails_its_streams_and_the_next_one_works(team, good, folder):
    stream = good().reader(Hint(account="AUTH_good"))
    while not stream.feed(b"x" * 100_000):  # until a worker has started with it
        pass
    for one in jailed(folder):
        with contextlib.suppress(ProcessLookupError):  # it ended with the one before
            os.kill(one, signal.SIGKILL)
    with pytest.raises(FilterError, match="the worker of filter `good` died"):
        run(stream, [b"x" * 100_000] * 100)
    assert run(good().reader(Hint(account="AUTH_good")), [b"again"]) == b"again"


def test_nothing_leaks_over_many_streams_finished_or_given_up(team, good):
    def go():
        for number in range(200):
            stream = good().reader(Hint(account="AUTH_good"))
            stream.feed(b"x" * 1000)
            if number % 2:
                stream.finish()

    go()
    before = len(os.listdir("/proc/self/fd"))
    go()
    assert len(os.listdir("/proc/self/fd")) == before


def inside(folder):
    """Process and status of the processes in jails."""
    for one in jailed(folder):
        lines = Path(f"/proc/{one}/status").read_text().splitlines()
        status = {name: value.split() for name, _, value in (line.partition(":") for line in lines)}
        if status["Name"] == ["python3"]:
            yield one, status


def test_every_descriptor_in_a_jail_is_one_that_was_given(team, folder, good):
    run(good().reader(Hint(account="AUTH_good")), [b"x"])
    known = ("/dev/null", "socket:", "pipe:", "anon_inode:[eventpoll]", "/memfd:page", "/memfd:seccomp")
    shown = [os.readlink(entry) for one, _ in inside(folder) for entry in Path(f"/proc/{one}/fd").iterdir()]
    assert shown
    assert [link for link in shown if not link.startswith(known)] == []


def test_what_runs_in_a_jail_has_no_rights(folder, good):
    run(good().reader(Hint(account="AUTH_good")), [b"x"])
    seen = [[status[name] for name in ("CapEff", "CapBnd", "NoNewPrivs", "Seccomp")] for _, status in inside(folder)]
    assert seen
    assert all(rights == [["0" * 16], ["0" * 16], ["1"], ["2"]] for rights in seen)
    users = {status["Uid"][0] for _, status in inside(folder)}
    assert os.getuid() != 0 or "0" not in users


def test_a_slow_filter_does_not_stop_the_green_threads_of_its_host(team, folder):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.probe.green_host", str(folder)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout.split()) == (0, ["5", "5", "True"]), done.stderr
