"""Storlets that violate their contract, in real containers.

Each time the request fails with a reason that names the filter, a good filter of the same tenant works
right after it, and a running stream of another tenant completes.
"""

import pytest
from tests.support.sandbox.docker import Bench
from tests.support.sandbox.storlets import python_storlet, through

from sluice_filters.api import FilterError, Hint
from sluice_sandbox.limits import Limits

DATA = bytes(range(256)) * 4096  # 1 MiB
COPY = """
    while data := source.read(65536):
        target.write(data)
"""
LIMITS = Limits(patience=2.0, memory=96 * 1024 * 1024, slack=2 * 1024 * 1024, growth=2.0)

#: The filter's behaviour → a part of the reason.
MISBEHAVIOUR = {
    "raises at once": ("raise ValueError(source.read(10))", "failed: it raised ValueError"),
    "raises midway": ("target.write(source.read(300000)); target.flush(); raise OSError()", "it raised OSError"),
    "exits like a program": ("target.write(source.read()); sys.exit(0)", "it raised SystemExit"),
    "exits without a word": ("target.write(source.read()); target.flush(); os._exit(0)", "it was killed"),
    "is killed": ("target.write(source.read(9)); os.kill(os.getpid(), signal.SIGKILL)", "it was killed"),
    "never reads": ("time.sleep(600)", "did nothing for 2 s"),
    "stalls at the end": ("source.read(); time.sleep(600)", "did nothing for 2 s"),
    "loops": ("while True: pass", "did nothing for 2 s"),
    "eats memory": ("held = []\nwhile True: held.append(b'x' * 2**20)", "it "),
    "eats memory in children": (
        "for _ in range(3):\n    if os.fork() == 0:\n        held = [b'x' * 2**20 for _ in range(60)]\n"
        "        time.sleep(600)\nheld = [b'x' * 2**20 for _ in range(60)]\ntime.sleep(600)",
        "it was killed",
    ),
    "forks without end": (
        "while True:\n    try: os.fork()\n    except OSError: time.sleep(0.01)",
        "did nothing for 2 s",
    ),
    "forks away from us": (
        "while True:\n    try:\n        if os.fork() == 0: os.setsid()\n    except OSError: time.sleep(0.01)",
        "did nothing for 2 s",
    ),
    "leaves a child with its output": (
        COPY.replace("\n    ", "\n") + "if os.fork() == 0: time.sleep(600)",
        None,  # the run ended; its child is killed with it
    ),
    "writes without end": ("while True: target.write(bytes(65536))", "made"),
    "ends before its input": ("target.write(source.read(1000))", "ended before its input"),
    "closes early": ("target.close(); source.close()", "ended before its input"),
    "closes its output descriptor": ("os.close(target.obj_fd); source.read()", ""),
    "hides what it reads": ("os.read(source.obj_fd, 1000); source.read()", "ended after"),
    "kills its daemon": ("os.kill(os.getppid(), signal.SIGKILL); time.sleep(600)", ""),
    "kills everything": ("os.kill(-1, signal.SIGKILL); time.sleep(600)", "it was killed"),
    "stops its daemon": (
        "os.kill(os.getppid(), signal.SIGSTOP); source.read(); time.sleep(600)",
        "did nothing for 2 s",
    ),
    "stops the factory": (
        "for pid in filter(str.isdigit, os.listdir('/proc')):\n"
        "    if b'factory' in open(f'/proc/{pid}/cmdline', 'rb').read() and pid != '1':\n"
        "        os.kill(int(pid), signal.SIGSTOP)\ntime.sleep(600)",
        "did nothing for 2 s",
    ),
    "removes the sockets": (
        "[os.unlink('/mnt/channels/' + name) for name in os.listdir('/mnt/channels')]; time.sleep(600)",
        "did nothing for 2 s",
    ),
    "replaces the sockets by links": (
        "for name in os.listdir('/mnt/channels'):\n    os.unlink('/mnt/channels/' + name)\n"
        "    os.symlink('/dev/null', '/mnt/channels/' + name)\ntime.sleep(600)",
        "did nothing for 2 s",
    ),
    "writes garbage to its daemon": (
        "channel = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\nchannel.setblocking(False)\n"
        "for name in os.listdir('/mnt/channels'):\n    for n in range(20):\n"
        "        try: channel.sendto(bytes([n]) * 50 * n, '/mnt/channels/' + name)\n"
        "        except OSError: pass\ntime.sleep(600)",
        "did nothing for 2 s",
    ),
    "logs without end": ("while True: self.logger.info('x' * 10000)", "did nothing for 2 s"),
    "floods its status": ("while True: os.write(max(int(n) for n in os.listdir('/proc/self/fd')) - 1, b'x')", ""),
}
LOADING = {
    "fails while loaded": "raise RuntimeError",
    "exits while loaded": "sys.exit(1)",
    "kills while loaded": "os.kill(os.getpid(), signal.SIGKILL)",
    "has another name": "del Storlet",
}


@pytest.fixture(scope="module")
def bench():
    with Bench.open() as opened:
        yield opened


@pytest.fixture(scope="module")
def team(bench):
    return bench.team(LIMITS, runs=4)


@pytest.fixture(scope="module")
def good(bench, team):
    upload = bench.upload("good", python_storlet(COPY), "storlet.Storlet", reverse=True)
    return bench.filters(team, [upload])["good"]


@pytest.mark.parametrize("what", MISBEHAVIOUR)
def test_a_misbehaving_storlet_harms_its_own_request_only(bench, team, good, what):
    body, reason = MISBEHAVIOUR[what]
    upload = bench.upload("bad", python_storlet(body), "storlet.Storlet", reverse=True)
    bad = bench.filters(team, [upload])["bad"]
    other = team.encoder([good()], Hint(account="AUTH_other"))
    begun = other.feed(DATA[:1000])

    if reason is None:
        assert through(bad(), DATA) == DATA
    else:
        with pytest.raises(FilterError, match=f"`bad`.*{reason}"):
            through(bad(), DATA)

    assert through(good(), DATA) == DATA
    assert begun + other.feed(DATA[1000:]) + other.finish() == DATA


@pytest.mark.parametrize("what", LOADING)
def test_a_storlet_that_cannot_be_loaded_says_so(bench, team, good, what):
    code = python_storlet(COPY) + LOADING[what] + "\n"
    bad = bench.filters(team, [bench.upload("bad", code, "storlet.Storlet", reverse=True)])["bad"]
    with pytest.raises(FilterError, match="cannot be loaded"):
        through(bad(), DATA)
    assert through(good(), DATA) == DATA


def test_in_a_chain_the_culprit_is_named(bench, team, good):
    body, _ = MISBEHAVIOUR["raises midway"]
    upload = bench.upload("bad", python_storlet(body), "storlet.Storlet", reverse=True)
    bad = bench.filters(team, [upload])["bad"]
    for steps in ([good(), bad()], [bad(), good()], [good(), bad(), good()]):
        with pytest.raises(FilterError, match="filter `bad` failed: it raised OSError"):
            through(steps, DATA)
    assert through([good(), good()], DATA) == DATA


def test_a_daemon_that_hangs_is_replaced_and_what_it_did_not_begin_begins_anew(bench, team):
    body = (
        "if params['stop'] == 'true':\n    os.kill(os.getppid(), signal.SIGSTOP)\n    time.sleep(600)"
        + COPY.replace("\n    ", "\n")
    )
    info = {"parameters": [{"name": "stop", "type": "bool", "default": False}]}
    upload = bench.upload("moody", python_storlet(body), "storlet.Storlet", reverse=True, info=info)
    moody = bench.filters(team, [upload])["moody"]
    with pytest.raises(FilterError, match="did nothing"):
        through(moody({"stop": True}), DATA)
    assert through(moody(), DATA) == DATA


def test_a_dropped_stream_takes_its_processes_along(bench, team, good):
    for _ in range(3 * team.place.runs):
        team.encoder([good()], Hint(account="AUTH_test")).feed(DATA[:1000])
    assert through(good(), DATA) == DATA


def test_more_runs_than_allowed_wait_for_their_turn(bench, team, good):
    streams = [team.encoder([good()], Hint(account="AUTH_test")) for _ in range(team.place.runs + 3)]
    begun = [one.feed(DATA[:100_000]) for one in streams]
    for one, first in zip(streams, begun, strict=True):
        assert first + one.feed(DATA[100_000:]) + one.finish() == DATA
