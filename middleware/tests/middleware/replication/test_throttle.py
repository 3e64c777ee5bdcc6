"""rsync under a cap: the bytes that it moved, the charges, and how closely it follows the cap."""

import os
import shutil
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from swift.common.concurrency import GreenPool
from swift.common.ring import RingBuilder
from tests.support.middleware.credit_agent import FakeAgent, grant_free, grant_nothing
from tests.support.middleware.object_server import Log, swift_conf

from sluice_aio.base.ports import free_port, probe
from sluice_aio.base.server import Server
from sluice_core.messages.bandwidth import REPLICATION_FLOW
from sluice_core.messages.credit import CreditGrant, Grant
from sluice_core.options import OptionError
from sluice_middleware.bandwidth import agent_client, client_registry
from sluice_middleware.bandwidth.agent_client import CreditClient
from sluice_middleware.replication import replication_throttle, rsync_throttle
from sluice_middleware.replication.daemons import ObjectReplicator
from sluice_middleware.replication.replication_throttle import MOST_SAVED, AgentThrottle
from sluice_middleware.replication.rsync_throttle import suffix_sizes
from sluice_middleware.swift import green
from sluice_middleware.swift.diskfile_api import POLICIES

pytestmark = pytest.mark.service

KB = 1024
MB = 1024 * 1024
HOST = "127.0.0.1"


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
        return probe(self.port, b"").startswith(b"@RSYNCD:")


@pytest.fixture(scope="module", autouse=True)
def policies(tmp_path_factory):
    with swift_conf(tmp_path_factory.mktemp("etc")):
        yield


@pytest.fixture
def agent(tmp_path):
    made = FakeAgent(path_of(tmp_path))
    yield made
    made.close()
    made.wait_briefly()


@pytest.fixture
def line(tmp_path, agent, monkeypatch):
    made = CreditClient(path_of(tmp_path), "storage_node")
    made.tick()
    monkeypatch.setattr(client_registry, "shared_client", lambda path, **more: made)
    yield made
    agent.wait_briefly()  # the last request
    made.disconnect()
    agent.wait_briefly()


@pytest.fixture
def short_runs(monkeypatch):
    """Runs and leads half as long: at twice the rate they move as many bytes in half the time."""
    monkeypatch.setattr(rsync_throttle, "RUN_SECONDS", rsync_throttle.RUN_SECONDS / 2)
    monkeypatch.setattr(rsync_throttle, "LEAD", rsync_throttle.LEAD / 2)


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
    # hashes are requested from the other node afterwards; there is none
    monkeypatch.setattr("swift.obj.replicator.http_connect", lambda *a, **k: Answered())
    return found


class Answered:
    def getresponse(self):
        return self

    def read(self):
        return b""

    def close(self):
        """Do nothing."""


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
    outcome = green.start_green(replicator.rsync, NODE, job, suffixes).wait()
    return outcome, time.monotonic() - began


def moved(line):
    line._update_counters()
    return line._counters.counter(REPLICATION_FLOW, "sda").moved


def same(job, target):
    there = target / "sda" / "objects" / job["partition"]
    return subprocess.run(["diff", "-r", job["path"], there], check=False).returncode == 0


@contextmanager
def commands(replicator, monkeypatch):
    """The command lines of rsync."""
    found = []
    above = type(replicator).__mro__[1]._rsync
    monkeypatch.setattr(
        type(replicator).__mro__[1], "_rsync", lambda self, args: (found.append(args), above(self, args))[1]
    )
    yield found


def limits(found):
    return [one.removeprefix("--bwlimit=") for args in found for one in args if one.startswith("--bwlimit=")]


def test_without_a_cap_a_job_is_one_run_as_configured_and_counted(tmp_path, agent, line, rsync, target, monkeypatch):
    agent.answer = grant_free
    replicator = replicator_of(tmp_path, monkeypatch, rsync.port)
    job = job_of(tmp_path, [MB] * 4)
    with commands(replicator, monkeypatch) as found:
        outcome, _ = send(replicator, job)
    assert outcome == (True, {})
    assert limits(found) == ["0"]
    assert same(job, target)
    assert 4 * MB <= moved(line) <= 4.1 * MB


def test_without_an_agent_a_job_runs_as_in_swift(tmp_path, rsync, target, monkeypatch):
    replicator = replicator_of(tmp_path, monkeypatch, rsync.port, agent_socket="")
    job = job_of(tmp_path, [MB])
    with commands(replicator, monkeypatch) as found:
        assert send(replicator, job)[0] == (True, {})
    assert limits(found) == ["0"]
    assert same(job, target)


def test_an_invalid_sluice_option_stops_the_daemon():
    with pytest.raises(OptionError, match="did you mean `sluice_agent_socket`"):
        AgentThrottle({"sluice_agent_sockets": "x"})


@pytest.mark.usefixtures("short_runs")
def test_a_capped_job_is_split_into_runs_at_the_rate(tmp_path, agent, line, rsync, target, monkeypatch):
    agent.set_rate(REPLICATION_FLOW, 2e6)
    replicator = replicator_of(tmp_path, monkeypatch, rsync.port)
    replicator.throttle.copy_closed()  # as if it had copied just now
    job = job_of(tmp_path, [2 * MB] * 4)
    with commands(replicator, monkeypatch) as found:
        outcome, seconds = send(replicator, job)
    assert outcome == (True, {})
    assert same(job, target)
    assert len(found) == 2  # two suffixes of 2 MiB are what 2.5 s allow
    # 2.1 s that may end a quarter of a second early
    assert limits(found) == ["2217"] * 2
    assert 2e6 * (seconds + rsync_throttle.LEAD + MOST_SAVED) >= 8 * MB
    assert 1e6 * seconds <= 8 * MB  # a machine may be busy
    assert 8 * MB <= moved(line) <= 8.2 * MB


@pytest.mark.usefixtures("short_runs")
def test_a_run_uses_the_rate_current_at_its_start(tmp_path, agent, line, rsync, monkeypatch):
    agent.set_rate(REPLICATION_FLOW, 4e6)
    replicator = replicator_of(tmp_path, monkeypatch, rsync.port)
    replicator.throttle.copy_closed()
    job = job_of(tmp_path, [6 * MB] * 2)
    with commands(replicator, monkeypatch) as found:
        sent = green.start_green(replicator.rsync, NODE, job, sorted(os.listdir(job["path"])))
        agent.wait_until(lambda: found)
        agent.set_rate(REPLICATION_FLOW, 16e6)
        assert sent.wait() == (True, {})
    assert limits(found) == ["4644", "42900"]


@pytest.mark.usefixtures("short_runs")
def test_the_last_rate_stays_when_the_agent_dies(tmp_path, agent, line, rsync, target, monkeypatch):
    agent.set_rate(REPLICATION_FLOW, 2e6)
    replicator = replicator_of(tmp_path, monkeypatch, rsync.port)
    replicator.throttle.copy_closed()
    job = job_of(tmp_path, [3 * MB] * 2)
    with commands(replicator, monkeypatch) as found:
        sent = green.start_green(send, replicator, job)
        agent.wait_until(lambda: found)
        agent.close()
        outcome, seconds = sent.wait()
    assert outcome == (True, {})
    assert same(job, target)
    assert limits(found) == ["2322"] * 2  # the second one starts without an agent
    assert 2e6 * (seconds + rsync_throttle.LEAD + MOST_SAVED) >= 6 * MB
    assert 1e6 * seconds <= 6 * MB  # a machine may be busy


@pytest.mark.usefixtures("short_runs")
def test_concurrent_jobs_share_one_rate(tmp_path, agent, line, rsync, target, monkeypatch):
    agent.set_rate(REPLICATION_FLOW, 4e6)
    replicator = replicator_of(tmp_path, monkeypatch, rsync.port)
    replicator.throttle.copy_closed()
    jobs = [job_of(tmp_path, [MB], str(number)) for number in range(4)]
    pool = GreenPool()
    began = time.monotonic()
    outcomes = list(pool.imap(lambda job: replicator.rsync(NODE, job, ["000"]), jobs))
    assert outcomes == [(True, {})] * 4
    assert all(same(job, target) for job in jobs)
    assert 4e6 * (time.monotonic() - began + rsync_throttle.LEAD + MOST_SAVED) >= 4 * MB


def test_an_idle_node_waits_for_its_share_before_a_large_job(tmp_path, agent, line, rsync, monkeypatch):
    monkeypatch.setattr(replication_throttle, "SETTLING", replication_throttle.SETTLING / 2)
    agent.set_rate(REPLICATION_FLOW, 1e5)
    replicator = replicator_of(tmp_path, monkeypatch, rsync.port)
    job = job_of(tmp_path, [2 * MB])
    with commands(replicator, monkeypatch) as found:
        sent = green.start_green(replicator.rsync, NODE, job, ["000"])
        agent.wait_until(lambda: line._counters.counter(REPLICATION_FLOW, "sda").waiting)
        agent.set_rate(REPLICATION_FLOW, 4e6)  # the share from the host that divides the cap
        assert sent.wait() == (True, {})
    assert limits(found) == ["15625"]


def test_a_suffix_deleted_after_job_creation_is_handled_as_in_swift(tmp_path, agent, line, rsync, target, monkeypatch):
    agent.set_rate(REPLICATION_FLOW, 1e8)
    replicator = replicator_of(tmp_path, monkeypatch, rsync.port)
    job = job_of(tmp_path, [KB, KB])
    assert replicator.rsync(NODE, job, ["000", "fff"]) == (True, {})
    assert replicator.rsync(NODE, job, ["fff"]) == (False, {})
    assert (target / "sda/objects/7/000/hash0/1.data").exists()


def test_a_run_that_fails_ends_the_job(tmp_path, agent, line, monkeypatch):
    agent.set_rate(REPLICATION_FLOW, 1e6)
    replicator = replicator_of(tmp_path, monkeypatch, port=free_port())
    replicator.throttle.copy_closed()
    job = job_of(tmp_path, [4 * MB, 4 * MB])
    with commands(replicator, monkeypatch) as found:
        assert send(replicator, job)[0] == (False, {})
    assert len(found) == 1


# -- the order of runs, with an agent that grants by hand and an rsync that ends by hand ---------------

RATE = 1e6


class Runs:
    """The runs of rsync, each until it is ended; ``there``: the other node has all files already."""

    def __init__(self):
        self.begun = []
        self.there = False

    def run(self, daemon, args):
        named = [Path(one) for one in args if one.startswith(daemon.devices_dir)]
        size = 0 if self.there else sum(sum(suffix_sizes(one.parent, [one.name]).values()) for one in named)
        nap = green.InterruptibleSleep()
        self.begun.append(nap)
        nap.wait(60)
        log = Path(next(one for one in args if one.startswith("--log-file=")).removeprefix("--log-file="))
        log.write_text(f"0 0 [0] sent {size} bytes  received 0\n")
        return 0


@pytest.fixture
def runs(agent, line, monkeypatch):
    made = Runs()
    monkeypatch.setattr(ObjectReplicator.__mro__[1], "_rsync", lambda self, args: made.run(self, args))
    monkeypatch.setattr(agent_client, "SILENCE", 60.0)
    agent.answer = grant_nothing
    return made


def give(agent, size):
    agent.wait_until(lambda: agent.workers)
    agent.send(Grant((CreditGrant("", "", REPLICATION_FLOW.method, REPLICATION_FLOW.policy, size, RATE),)))
    agent.wait_briefly()


def sending(replicator, tmp_path, *sizes):
    """Jobs of one file each, all started."""
    jobs = [job_of(tmp_path, [size], str(number)) for number, size in enumerate(sizes)]
    return [green.start_green(replicator.rsync, NODE, job, ["000"]) for job in jobs]


@pytest.fixture
def replicator(tmp_path, runs, monkeypatch):
    made = replicator_of(tmp_path, monkeypatch)
    made.throttle.copy_closed()  # as if it had copied just now
    return made


def test_short_runs_overlap_once_charged(tmp_path, agent, runs, replicator):
    sent = sending(replicator, tmp_path, 400_000, 400_000)
    give(agent, 1000)
    agent.wait_until(lambda: runs.begun)
    give(agent, 300_000)
    assert len(runs.begun) == 1
    give(agent, 200_000)
    agent.wait_until(lambda: len(runs.begun) == 2)  # though the first has not ended
    for one in runs.begun:
        one.wake()
    agent.join(*sent)


def test_reserved_bytes_that_did_not_move_delay_no_other_run(tmp_path, agent, line, runs, replicator):
    runs.there = True
    sent = sending(replicator, tmp_path, 400_000, 400_000)
    give(agent, 1000)
    for count in (1, 2):
        agent.wait_until(lambda expected=count: len(runs.begun) == expected)
        agent.wait_briefly()
        assert len(runs.begun) == count
        runs.begun[-1].wake()
    agent.join(*sent)
    assert moved(line) < 1000


def test_long_runs_are_serialized_and_counted_as_waiting(tmp_path, agent, line, runs, replicator):
    tally = line._counters.counter(REPLICATION_FLOW, "sda")
    sent = sending(replicator, tmp_path, 600_000, 600_000)
    give(agent, 1000)
    agent.wait_until(lambda: runs.begun)
    give(agent, 10_000_000)
    assert len(runs.begun) == 1
    assert tally.waiting == 1
    runs.begun[0].wake()
    agent.wait_until(lambda: len(runs.begun) == 2)
    runs.begun[1].wake()
    agent.join(*sent)
    assert not tally.waiting
