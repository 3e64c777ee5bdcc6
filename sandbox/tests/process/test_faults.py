"""Uploaded Python that misbehaves: its request fails with the reason, the next one works, other tenants are not
affected.
"""

from __future__ import annotations

import collections

import pytest
from tests.support.sandbox.process import NOOP, supervisor, uploaded

from sluice_code.code_store import CodeStore
from sluice_filters.api import FilterError, Hint
from sluice_filters.chain import chain_reader
from sluice_filters.testing import run
from sluice_sandbox.limits import Limits, SandboxFault
from sluice_sandbox.process.session import ProcessTeam

LIMITS = Limits(patience=2.5, cpu=0.3, cpu_per_mb=0.1, memory=128 * 1024 * 1024)
HOST = Limits(patience=5.0, slack=1024 * 1024, growth=10.0)
SECRET = b"the-secret-of-a-tenant"


@pytest.fixture(scope="module")
def team(tmp_path_factory):
    store = CodeStore(tmp_path_factory.mktemp("code"))
    with supervisor(LIMITS) as folder:
        yield ProcessTeam(store, folder, HOST)


@pytest.fixture(scope="module")
def good(team):
    return uploaded(team._store, team, NOOP, "good", "Noop")


def bad(team, body, keyword="bad", head=""):
    """A filter whose ``feed`` has ``body``."""
    lines = "\n        ".join(body.splitlines())
    code = f"""{head}
import os, sys, time
class Bad:
    def __init__(self, params, direction): pass
    def feed(self, data):
        {lines}
        return data
    def finish(self): return b""
"""
    return uploaded(team._store, team, code.encode(), keyword, "Bad")


FAULTS = {
    "raises": ("raise ValueError(data)", "filter `bad` raised `ValueError`$"),
    "leaves": ("sys.exit(0)", "filter `bad` raised `SystemExit`$"),
    "dies": ("os._exit(0)", "the worker of filter `bad` died$"),
    "crashes": ("os.abort()", "the worker of filter `bad` died$"),
    "loops": ("while True: pass", "the worker of filter `bad` died$|filter `bad` stood still for 5 s"),
    "sleeps": ("time.sleep(1000)", "the worker of filter `bad` died$|filter `bad` stood still for 5 s"),
    "eats memory": ("held = []\nwhile True: held.append(bytearray(1 << 20))", "raised `MemoryError`$|died$"),
    "forks": ("os.fork()", "raised `PermissionError`$"),
    "starts threads": ("import threading; threading.Thread(target=print).start()", "raised `RuntimeError`$"),
    "runs a program": ("import subprocess; subprocess.run(['/python/bin/python3'])", "raised `PermissionError`$"),
    "opens a socket": ("import socket; socket.socket()", "raised `PermissionError`$"),
    "takes all descriptors": ("while True: os.dup(0)", "raised `OSError`$"),
    "raises its limits": ("import resource; resource.setrlimit(resource.RLIMIT_AS, (-1, -1))", "raised `\\w+Error`$"),
    "gives back text": ("return 'text'", "filter `bad` gave back something else than bytes$"),
    "makes a bomb": ("return data * 100_000", r"filter `bad` made \d+ bytes out of 22, expected at most 1048796$"),
    "writes garbage": (
        "for fd in range(3, 60):\n    try: os.write(fd, b'\\xff' * 100)\n    except OSError: pass",
        "the worker of filter `bad` answers nonsense$",
    ),
    "announces too much": (
        "for fd in range(3, 60):\n    try: os.write(fd, b'\\x02\\xff\\xff\\xff\\xff')\n    except OSError: pass",
        "the worker of filter `bad` answers nonsense$",
    ),
    "lies about its end": (
        "for fd in range(3, 60):\n    try: os.write(fd, b'\\x02\\0\\0\\0\\x13{\"counts\":[[22,9]]}')\n"
        "    except OSError: pass",
        r"filter `bad` ended after \[22, 0\] bytes of \[22, 9\]$",
    ),
    "shuts the door": (
        "import _socket\nfor fd in range(3, 60):\n    try: _socket.socket(1, 1, 0, fd).shutdown(2)\n"
        "    except OSError: pass",
        "the worker of filter `bad` died$",
    ),
    "closes early": ("os.closerange(3, 60)\nos._exit(0)", "the worker of filter `bad` died$"),
    "closes and stays": ("os.closerange(3, 60)\nwhile True: time.sleep(1)", "died$"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_fails_its_own_request_only(team, good, name):
    body, message = FAULTS[name]
    other = good().reader(Hint(account="AUTH_other"))
    before = other.feed(b"first ")
    with pytest.raises(SandboxFault, match=message) as caught:
        run(chain_reader([bad(team, body)()], Hint(account="AUTH_bad")), [SECRET])
    assert SECRET.decode() not in str(caught.value)
    assert before + other.feed(b"second") + other.finish() == b"first second"
    assert run(good().reader(Hint(account="AUTH_bad")), [b"again"]) == b"again"


def test_code_that_uses_too_much_cpu_in_small_steps_is_ended(team, good):
    slow = bad(team, "end = time.process_time() + 0.03\nwhile time.process_time() < end: pass", "slow")
    with pytest.raises(SandboxFault, match="filter `slow` took too much processor time"):
        answered_one_by_one(slow().reader(Hint(account="AUTH_bad")), 100)
    assert run(good().reader(Hint(account="AUTH_bad")), [b"again"]) == b"again"


def answered_one_by_one(stream, count):
    for _ in range(count):
        stream.feed(b"x")
        stream._through._session._await([], writing=False)


@pytest.mark.parametrize(
    ("head", "main", "message"),
    [
        ("raise RuntimeError", "Bad", "filter `odd` has code that does not load: `RuntimeError`"),
        ("import pyarrow", "Bad", "filter `odd` has code that does not load: `ModuleNotFoundError`"),
        ("", "Worse", "filter `odd` has no class of the name that was registered"),
    ],
)
def test_code_that_does_not_load_is_reported_with_its_reason(team, head, main, message):
    one = uploaded(team._store, team, f"{head}\nclass Bad: pass\n".encode(), "odd", main)
    with pytest.raises(SandboxFault, match=message):
        run(one().reader(Hint(account="AUTH_bad")), [b"x"])


def test_a_fault_names_the_filter_that_failed(team, good):
    with pytest.raises(SandboxFault, match="filter `second` raised `KeyError`"):
        run(chain_reader([bad(team, "{}[1]", "second")(), good()], Hint(account="AUTH_bad")), [b"x"])


def test_a_worker_that_dies_while_the_host_still_sends_is_noticed_in_feed(team, good):
    stream = bad(team, "os._exit(0)")().reader(Hint(account="AUTH_bad"))
    with pytest.raises(FilterError, match="died"):
        collections.deque(map(stream.feed, [b"x" * 100_000] * 1000), maxlen=0)
