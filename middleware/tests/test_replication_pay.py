"""rsync under a cap: what it is told, what it moved, and who may run when."""

import os
import shutil
import subprocess
import time
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st
from swift.common.concurrency import GreenPool
from swift.common.ring import RingBuilder

from sluice_aio.services import Server, ask, free_port
from sluice_core.options import OptionError
from sluice_middleware import credit_line, green
from sluice_middleware.credit_line import CreditLine
from sluice_middleware.disk_testing import Log, swift_conf
from sluice_middleware.replication import ObjectReplicator
from sluice_middleware.replication_credit import FLOW, MOST_DEBT, LinePayer
from sluice_middleware.rsync_pay import RUN_SECONDS, Turns, bytes_of, in_runs, limited, sizes_of
from sluice_middleware.swift_disk_door import POLICIES
from sluice_middleware.testing_credit import FakeAgent, free, plenty

KB = 1024
MB = 1024 * 1024
ARGUMENTS = ["rsync", "--recursive", "--bwlimit=0", "/srv/node/sda/objects/7/abc", "rsync://there/object/sda/objects/7"]
HOST = "127.0.0.1"


# -- the command line ---------------------------------------------------------------------------------


def told(rate, configured="0"):
    made = limited([one.replace("=0", f"={configured}") for one in ARGUMENTS], rate, "/tmp/log")  # noqa: S108
    return next(one for one in made if one.startswith("--bwlimit")).removeprefix("--bwlimit=")


@pytest.mark.parametrize(
    ("rate", "configured", "expected"),
    [
        (None, "0", "0"),
        (None, "1.5m", "1.5m"),
        (5e6, "0", "4882"),
        (5e6, "100", "100"),
        (5e6, "1GB", "4882"),
        (5e6, "what", "4882"),
        (100.0, "0", "1"),
        (0.0, "0", "1"),
    ],
)
def test_the_smaller_of_the_rate_and_what_is_configured_goes_on_the_command_line(rate, configured, expected):
    assert told(rate, configured) == expected


def test_what_is_added_stands_before_sources_and_target():
    made = limited(ARGUMENTS, 1e6, "/tmp/log")  # noqa: S108
    assert made[0] == "rsync"
    assert made[-2:] == ARGUMENTS[-2:]
    assert [one for one in made if "log-file" in one] == made[1:3]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", None),
        ("", None),
        ("x", None),
        ("1000", 1024e3),
        ("1.5m", 1.5 * MB),
        ("2MB", 2e6),
        ("3KiB", 3072),
        ("512b", 512),
    ],
)
def test_limits_are_read_as_rsync_reads_them(text, expected):
    assert bytes_of(text) == expected


# -- runs -----------------------------------------------------------------------------------------------


@given(st.dictionaries(st.text(min_size=1), st.integers(0, 10**9)), st.floats(1, 1e9))
def test_runs_hold_every_suffix_once_and_last_no_longer_than_they_should(sizes, rate):
    runs = list(in_runs(sizes, rate))
    assert [suffix for run in runs for suffix in run] == list(sizes)
    for run in runs:
        assert len(run) == 1 or sum(sizes[suffix] for suffix in run) <= rate * RUN_SECONDS


def test_sizes_are_those_of_all_files_and_what_is_gone_is_left_out(tmp_path):
    (tmp_path / "abc" / "hash").mkdir(parents=True)
    (tmp_path / "abc" / "hash" / "1.data").write_bytes(b"x" * 1000)
    (tmp_path / "abc" / "hash" / "1.meta").write_bytes(b"")
    (tmp_path / "def").mkdir()
    assert sizes_of(tmp_path, ["abc", "gone", "def"]) == {"abc": 1000, "def": 0}


def test_turns_go_in_the_order_of_coming_and_who_is_killed_leaves_the_queue():
    turns, order = Turns(), []

    def go(name):
        with turns:
            order.append(name)
            green.Nap().wait(0.01)
            order.append(name)

    threads = [green.run(go, name) for name in "abcd"]
    green.Nap().wait(0.005)
    threads[1].kill()
    for one in (threads[0], *threads[2:]):
        one.wait()
    assert order == list("aaccdd")


# -- whole jobs, with a real rsync --------------------------------------------------------------------


class RsyncServer(Server):
    """An rsync daemon whose module ``object`` is ``target``."""

    name = "rsync"

    def __init__(self, port, folder, target):
        super().__init__(port, folder)
        uid = f"uid = {os.getuid()}\ngid = {os.getgid()}\n" if os.getuid() == 0 else ""
        text = f"use chroot = no\n{uid}[object]\npath = {target}\nread only = false\n"
        (folder / "rsyncd.conf").write_text(text)

    def argv(self):
        address = [f"--address={HOST}", f"--port={self.port}"]
        return ["rsync", "--daemon", "--no-detach", *address, f"--config={self.folder / 'rsyncd.conf'}"]

    def answers(self):
        return ask(self.port, b"").startswith(b"@RSYNCD:")


@pytest.fixture(scope="module", autouse=True)
def policies(tmp_path_factory):
    with swift_conf(tmp_path_factory.mktemp("etc")):
        yield


@pytest.fixture
def agent(tmp_path):
    made = FakeAgent(path_of(tmp_path))
    yield made
    made.close()
    made.settle()


@pytest.fixture
def line(tmp_path, agent, monkeypatch):
    made = CreditLine(path_of(tmp_path), "storage_node")
    made.tick()
    monkeypatch.setattr(credit_line, "current", lambda path, **more: made)
    yield made
    agent.settle()  # what was asked last
    made.hang_up()
    agent.settle()


@pytest.fixture
def target(tmp_path):
    folder = tmp_path / "there"
    (folder / "sda" / "objects").mkdir(parents=True)
    return folder


@pytest.fixture
def rsync(tmp_path, target):
    assert shutil.which("rsync"), "rsync is not installed, run `tools/bootstrap everything`"
    (tmp_path / "etc").mkdir()
    server = RsyncServer(free_port(), tmp_path / "etc", target)
    server.start()
    try:
        server.wait_ready()
        yield server
    finally:
        server.stop()


def path_of(folder):
    return os.path.relpath(folder / "agent.sock")


def ring(folder):
    builder = RingBuilder(2, 1, 1)
    builder.add_dev(
        {"id": 0, "region": 1, "zone": 1, "weight": 1.0, "device": "sda", "ip": HOST, "port": 6200}
        | {"replication_ip": HOST, "replication_port": 6200}
    )
    builder.rebalance()
    builder.get_ring().save(str(folder / "object.ring.gz"))


def replicator_of(tmp_path, monkeypatch, port=1, agent_socket="named", **options):
    ring(tmp_path)
    POLICIES[0].object_ring = None
    conf = {"devices": str(tmp_path / "here"), "mount_check": "false", "swift_dir": str(tmp_path), "log_name": "test"}
    conf |= {"rsync_module": f"rsync://{HOST}:{port}/object", "sluice_agent_socket": agent_socket, **options}
    found = ObjectReplicator(conf, Log("object-replicator"))
    # the other node is asked for hashes afterwards; there is none
    monkeypatch.setattr("swift.obj.replicator.http_connect", lambda *a, **k: Answered())
    return found


class Answered:
    def getresponse(self):
        return self

    def read(self):
        return b""

    def close(self):
        """Nothing is open."""


def job_of(tmp_path, sizes, partition="7"):
    """Files of these sizes, one in each suffix; the job that sends them."""
    path = tmp_path / "here" / "sda" / "objects" / partition
    for number, size in enumerate(sizes):
        folder = path / f"{number:03x}" / f"hash{number}"
        folder.mkdir(parents=True)
        (folder / "1.data").write_bytes(os.urandom(size))
    return {
        "path": str(path),
        "device": "sda",
        "policy": POLICIES[0],
        "partition": partition,
        "delete": False,
        "region": 1,
    }


NODE = {"device": "sda", "region": 1, "replication_ip": HOST, "replication_port": 1, "ip": HOST, "port": 1}


def send(replicator, job):
    """The job's outcome, and the seconds that it took."""
    began = time.monotonic()
    suffixes = sorted(os.listdir(job["path"]))
    outcome = green.run(replicator.rsync, NODE, job, suffixes).wait()
    return outcome, time.monotonic() - began


def moved(line):
    return line._tallies.find(FLOW, "sda").moved


def same(job, target):
    there = target / "sda" / "objects" / job["partition"]
    return subprocess.run(["diff", "-r", job["path"], there], check=False).returncode == 0


@contextmanager
def commands(replicator, monkeypatch):
    """What rsync is run with."""
    found = []
    above = type(replicator).__mro__[1]._rsync
    monkeypatch.setattr(
        type(replicator).__mro__[1], "_rsync", lambda self, args: (found.append(args), above(self, args))[1]
    )
    yield found


def limits(found):
    return [one.removeprefix("--bwlimit=") for args in found for one in args if one.startswith("--bwlimit=")]


def test_without_a_cap_a_job_is_one_run_as_configured_and_counted(tmp_path, agent, line, rsync, target, monkeypatch):
    agent.answer = free
    replicator = replicator_of(tmp_path, monkeypatch, rsync.port)
    job = job_of(tmp_path, [MB] * 4)
    with commands(replicator, monkeypatch) as found:
        outcome, _ = send(replicator, job)
    assert outcome == (True, {})
    assert limits(found) == ["0"]
    assert same(job, target)
    assert 4 * MB <= moved(line) <= 4.1 * MB


def test_without_an_agent_a_job_is_as_swift_does_it(tmp_path, rsync, target, monkeypatch):
    replicator = replicator_of(tmp_path, monkeypatch, rsync.port, agent_socket="")
    job = job_of(tmp_path, [MB])
    with commands(replicator, monkeypatch) as found:
        assert send(replicator, job)[0] == (True, {})
    assert limits(found) == ["0"]
    assert same(job, target)


def test_a_wrong_option_of_ours_keeps_the_daemon_from_starting():
    with pytest.raises(OptionError, match="did you mean `sluice_agent_socket`"):
        LinePayer({"sluice_agent_sockets": "x"})


def test_under_a_cap_a_job_is_sent_in_runs_and_as_slowly_as_it_must(tmp_path, agent, line, rsync, target, monkeypatch):
    agent.pace(FLOW, 1e6)
    replicator = replicator_of(tmp_path, monkeypatch, rsync.port)
    replicator.payer.leave()  # as if it had copied just now
    job = job_of(tmp_path, [2 * MB] * 4)
    with commands(replicator, monkeypatch) as found:
        outcome, seconds = send(replicator, job)
    assert outcome == (True, {})
    assert same(job, target)
    assert len(found) == 2  # two suffixes of 2 MiB are what 5 s allow
    assert limits(found) == ["976"] * 2
    assert 8 * MB / seconds <= 1.1e6
    assert 8 * MB / seconds >= 0.75e6
    assert 8 * MB <= moved(line) <= 8.2 * MB


def test_a_run_takes_the_rate_of_its_time(tmp_path, agent, line, rsync, monkeypatch):
    agent.pace(FLOW, 2e6)
    replicator = replicator_of(tmp_path, monkeypatch, rsync.port)
    replicator.payer.leave()
    job = job_of(tmp_path, [6 * MB] * 2)
    with commands(replicator, monkeypatch) as found:
        sent = green.run(replicator.rsync, NODE, job, sorted(os.listdir(job["path"])))
        agent.until(lambda: found)
        agent.pace(FLOW, 8e6)
        assert sent.wait() == (True, {})
    assert limits(found) == ["1953", "7812"]


def test_jobs_at_once_share_one_limit(tmp_path, agent, line, rsync, target, monkeypatch):
    agent.pace(FLOW, 2e6)
    replicator = replicator_of(tmp_path, monkeypatch, rsync.port)
    replicator.payer.leave()
    jobs = [job_of(tmp_path, [MB], str(number)) for number in range(4)]
    pool = GreenPool()
    began = time.monotonic()
    outcomes = list(pool.imap(lambda job: replicator.rsync(NODE, job, ["000"]), jobs))
    assert outcomes == [(True, {})] * 4
    assert all(same(job, target) for job in jobs)
    assert 4 * MB / (time.monotonic() - began) <= 1.1 * 2e6


def test_who_begins_waits_for_his_share_and_says_so(tmp_path, agent, line, rsync, monkeypatch):
    agent.pace(FLOW, 1e5)
    replicator = replicator_of(tmp_path, monkeypatch, rsync.port)
    job = job_of(tmp_path, [2 * MB])
    with commands(replicator, monkeypatch) as found:
        sent = green.run(replicator.rsync, NODE, job, ["000"])
        agent.until(lambda: line._tallies.find(FLOW, "sda").waiting)
        agent.pace(FLOW, 4e6)  # what the dividing host makes of it
        assert sent.wait() == (True, {})
    assert limits(found) == ["3906"]


def test_what_is_gone_since_the_job_was_made_is_as_in_swift(tmp_path, agent, line, rsync, target, monkeypatch):
    agent.pace(FLOW, 1e8)
    replicator = replicator_of(tmp_path, monkeypatch, rsync.port)
    job = job_of(tmp_path, [KB, KB])
    assert replicator.rsync(NODE, job, ["000", "fff"]) == (True, {})
    assert replicator.rsync(NODE, job, ["fff"]) == (False, {})
    assert (target / "sda/objects/7/000/hash0/1.data").exists()


def test_a_run_that_fails_ends_the_job(tmp_path, agent, line, monkeypatch):
    agent.pace(FLOW, 1e6)
    replicator = replicator_of(tmp_path, monkeypatch, port=free_port())
    replicator.payer.leave()
    job = job_of(tmp_path, [4 * MB, 4 * MB])
    with commands(replicator, monkeypatch) as found:
        assert send(replicator, job)[0] == (False, {})
    assert len(found) == 1


# -- what is owed ---------------------------------------------------------------------------------------


def test_a_debt_is_bounded_and_all_is_counted(agent, line):
    agent.answer = plenty
    payer = LinePayer({"sluice_agent_socket": "named"})
    with payer.open("sda") as payment:
        assert payment.rate() == 1e9
        payment._transfer.till.account.rate = 1e6
        payment.owe(int(1e12))
        assert -payment._transfer.till.account.credit <= MOST_DEBT * 1e6
    assert moved(line) >= 1e12
