"""A real Swift, started and stopped: the assumptions of tests and ``make up``."""

from __future__ import annotations

import contextlib
import io
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from sluice_aio import cli
from sluice_aio.base.layout import Layout
from sluice_aio.base.ports import HOST
from sluice_aio.base.processes import ProcessId
from sluice_aio.base.swift_http import SwiftHttp
from sluice_aio.cluster import components, disks
from sluice_aio.cluster.cluster import Cluster
from sluice_aio.cluster.components import check_ports
from sluice_aio.cluster.records import Record, Records, stop_recorded
from sluice_aio.errors import LaunchError

pytestmark = pytest.mark.functional


@pytest.fixture(scope="module")
def folder():
    path = Path(tempfile.mkdtemp(prefix="sluice-"))  # pytest's own folders are too deep for unix sockets
    yield path
    shutil.rmtree(path)


@pytest.fixture(scope="module")
def cluster(folder):
    running = Cluster(Layout.free(folder / "one"), components.PLAIN_SWIFT | {"redis"})
    running.start()
    yield running
    running.stop()


@pytest.fixture
def swift(cluster):
    client = SwiftHttp(cluster.plain_url).login("test:tester", "testing")
    yield client
    client.close()


def test_an_object_comes_back_and_lies_on_three_disks(cluster, swift):
    body = b"sluice " * 2000
    assert swift.request("PUT", "box").status in (201, 202)
    assert swift.request("PUT", "box/a name", body).status == 201
    assert swift.request("GET", "box/a name").body == body
    assert [(row["name"], row["bytes"]) for row in swift.listing("box")] == [("a name", len(body))]
    assert disks.stored_sizes(cluster.device_folders, "AUTH_test/box") == {"a name": [len(body)] * 3}
    assert disks.stored_bytes(cluster.device_folders) == 3 * len(body)


def test_the_proxy_has_two_workers_and_gets_a_killed_one_back(cluster, swift):
    before = cluster.workers("plain")
    assert len(before) == 2
    before[0].signal(signal.SIGKILL)
    assert before[0].wait(10)
    assert before[1].alive()
    deadline = time.monotonic() + 20
    while len(cluster.workers("plain")) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    after = cluster.workers("plain")
    assert len(after) == 2
    assert before[0] not in after
    swift.close()  # the kept connection may have been to the killed worker
    assert swift.request("GET", "").status in (200, 204)


def test_a_killed_service_comes_back_with_its_data(cluster, swift):
    swift.request("PUT", "kept")
    for name in ("container", "plain"):
        old = cluster.process(name)
        cluster.kill(name)
        assert not old.alive()
        assert not old.session()
        cluster.restart(name)
        assert cluster.process(name) != old
    assert SwiftHttp(cluster.plain_url).login("test:tester", "testing").request("HEAD", "kept").status == 204


def test_logs_are_kept_although_there_is_no_syslog(cluster, swift):
    swift.request("PUT", "logged")
    assert "/v1/AUTH_test/logged" in cluster.log("plain")


def test_a_second_cluster_in_the_same_folder_is_refused(cluster):
    with pytest.raises(LaunchError, match=r"runs in .* already"):
        Cluster(cluster.layout).start()
    assert cluster.process("plain").alive()


def test_a_taken_port_is_named_with_the_option_that_moves_it(folder):
    layout = Layout.free(folder / "taken")
    with socket.socket() as stranger:
        stranger.bind((HOST, layout.ports["container"]))
        stranger.listen()
        with pytest.raises(LaunchError, match=rf"{layout.ports['container']} \(for container\).*SLUICE_PORT_BASE"):
            Cluster(layout, components.PLAIN_SWIFT).start()
    assert Records(layout.run).load() == {}
    check_ports(layout, components.ALL)


def test_a_service_that_does_not_start_stops_the_others_and_shows_its_log(folder, monkeypatch):
    layout = Layout.free(folder / "broken")
    make = components.make_servers

    def broken(where, names):
        servers = make(where, names)
        (layout.swift_dir).mkdir(parents=True, exist_ok=True)
        servers["container"]._command[-2] = str(layout.swift_dir / "missing.conf")
        return servers

    monkeypatch.setattr(components, "make_servers", broken)
    cluster = Cluster(layout, {"memcached", "container"})
    with pytest.raises(LaunchError, match=r"(?s)container ended.*missing\.conf"):
        cluster.start()
    assert Records(layout.run).load() == {}
    check_ports(layout, {"memcached", "container"})  # no process listens any more


def test_another_command_finds_what_runs_and_stops_it(folder):
    layout = Layout.free(folder / "two")
    cluster = Cluster(layout, {"memcached", "redis", "account"})
    cluster.start()
    processes = [record.processes[0] for record in Records(layout.run).load().values()]
    assert all(process.alive() for process in processes)
    with contextlib.redirect_stdout(io.StringIO()) as output:
        assert cli.show_status(layout) == cli.RUNNING
    assert "redis" in output.getvalue()
    cluster.kill("redis")
    with contextlib.redirect_stdout(io.StringIO()):
        assert cli.show_status(layout) == cli.PARTLY
    assert set(stop_recorded(layout)) == {"memcached", "account"}
    assert not any(process.alive() for process in processes)
    with contextlib.redirect_stdout(io.StringIO()):
        assert cli.show_status(layout) == cli.STOPPED
    assert stop_recorded(layout) == []
    cluster.stop()  # reaps


def test_a_recycled_pid_is_left_alone_by_down(folder):
    layout = Layout.free(folder / "recycled")
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as popen:
        stranger = ProcessId.find(popen.pid)
        recycled = ProcessId(stranger.pid, stranger.started - 1)
        Records(layout.run).save([Record("redis", 1, (recycled,))])
        assert stop_recorded(layout) == []
        assert stranger.alive()
        popen.kill()


def test_ctrl_c_while_starting_leaves_nothing(folder):
    layout = Layout.free(folder / "interrupted")
    started = []

    def interrupt(line):
        if line.startswith("waiting"):
            started.extend(record.processes[0] for record in Records(layout.run).load().values())
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Cluster(layout, {"memcached", "redis", "account"}).start(interrupt)
    assert len(started) == 3
    assert not any(process.alive() for process in started)
    assert Records(layout.run).load() == {}
