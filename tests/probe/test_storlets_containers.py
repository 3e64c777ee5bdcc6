"""Containers of storlets: started once, by the first request, and again after any fault."""

import multiprocessing
import os
import threading
from pathlib import Path

import pytest
from tests.support.sandbox.docker import Bench, kill
from tests.support.sandbox.storlets import python_storlet, through

from sluice_filters.api import FilterError, Hint
from sluice_sandbox import cli
from sluice_sandbox.docker.engine import DockerEngine
from sluice_sandbox.limits import Limits
from sluice_sandbox.storlets.container import Unavailable

DATA = bytes(range(256)) * 1024
COPY = "while data := source.read(65536): target.write(data)"
WHERE = "import socket\nsource.read()\ntarget.write(socket.gethostname().encode())"


@pytest.fixture(scope="module")
def bench():
    with Bench.open() as opened:
        yield opened


def make(bench, team, body=COPY, **more):
    upload = bench.upload("good", python_storlet(body), "storlet.Storlet", **{"reverse": True, **more})
    return bench.filters(team, [upload])["good"]


def where(bench, team, account="AUTH_test"):
    """Name of the container that serves ``account``."""
    return through(make(bench, team, WHERE, reverse=False, info={"on_put": True})(), b"x", account).decode()


def containers(team, **conditions):
    with team.container("AUTH_test")._engine() as client:
        return client.containers.list(
            all=True, sparse=True, filters={"label": [f"{k}={v}" for k, v in conditions.items()]}
        )


def test_many_first_requests_start_one_container(bench):
    team = bench.team(node="crowd")
    good, answers = make(bench, team), []
    threads = [threading.Thread(target=lambda: answers.append(through(good(), DATA))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [DATA] * 8
    assert len(containers(team, **{"sluice.node": "crowd"})) == 1


def _elsewhere(bench, answers):
    team = bench.team(node="processes")
    answers.put((through(make(bench, team)(), DATA) == DATA, where(bench, team)))


@pytest.mark.filterwarnings("ignore:Using fork:DeprecationWarning")  # of eventlet, which is loaded here
def test_processes_of_one_node_share_a_container(bench):
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    processes = [context.Process(target=_elsewhere, args=(bench, answers)) for _ in range(3)]
    for process in processes:
        process.start()
    found = [answers.get(timeout=60) for _ in processes]
    for process in processes:
        process.join()
    assert all(same for same, _ in found)
    assert len({name for _, name in found}) == 1


def test_nodes_of_one_engine_and_tenants_of_one_node_have_their_own(bench):
    first, second = bench.team(node="a"), bench.team(node="b")
    names = [
        where(bench, team, account)
        for team, account in [(first, "AUTH_x"), (first, "AUTH_y"), (second, "AUTH_x"), (first, "AUTH_x")]
    ]
    assert names[0] == names[3]
    assert len(set(names)) == 3


def test_a_container_that_was_killed_is_started_again(bench):
    team = bench.team()
    first = where(bench, team)
    for container in containers(team, **{"sluice.node": "node", "sluice.account": "AUTH_test"}):
        container.kill()
    assert through(make(bench, team)(), DATA) == DATA
    assert where(bench, team) != first


def test_a_daemon_without_work_ends_and_the_container_after_it(bench, eventually):
    team = bench.team(Limits(idle=0.4), node="idle")
    assert through(make(bench, team)(), DATA) == DATA
    eventually(lambda: not containers(team, **{"sluice.node": "idle"}))
    assert through(make(bench, team)(), DATA) == DATA


def test_a_run_that_takes_longer_than_the_idle_time_keeps_its_container(bench):
    team = bench.team(Limits(idle=0.3), node="long")
    stream = team.encoder([make(bench, team)()], Hint(account="AUTH_test"))
    out = stream.feed(DATA)
    barrier = threading.Event()
    barrier.wait(1.0)
    assert out + stream.feed(DATA) + stream.finish() == DATA + DATA


def test_a_missing_image_is_never_pulled(bench):
    team = bench.team(image="sluice-storlets:none", node="none")
    with pytest.raises(Unavailable, match="has no image `sluice-storlets:none`"):
        through(make(bench, team)(), DATA)


def test_no_more_tenants_than_allowed_have_containers(bench):
    team = bench.team(Limits(tenants=2), node="few")
    good = make(bench, team)
    for account in ("AUTH_a", "AUTH_b", "AUTH_a"):
        assert through(good(), DATA, account) == DATA
    with pytest.raises(Unavailable, match="2 tenants have containers on this node"):
        through(good(), DATA, "AUTH_c")
    team.container("AUTH_a").replace()
    assert through(good(), DATA, "AUTH_c") == DATA


def test_an_engine_that_is_away_is_an_error_and_its_return_is_enough(bench):
    team = bench.team(node="away")
    assert through(make(bench, team)(), DATA) == DATA
    bench.engine.stop()
    with pytest.raises(FilterError, match="cannot be started"):
        through(make(bench, team)(), DATA)
    bench.engine.start()
    bench.engine.wait_ready()
    assert through(make(bench, team)(), DATA) == DATA


def test_a_killed_engine_comes_back(bench):
    team = bench.team(node="killed")
    assert through(make(bench, team)(), DATA) == DATA
    pid = bench.engine.pid
    kill(bench.engine)
    assert not bench.engine.running
    bench.engine.start()
    bench.engine.wait_ready()
    assert bench.engine.pid != pid
    assert through(make(bench, team)(), DATA) == DATA


@pytest.mark.parametrize("killed", [False, True])
def test_an_engine_leaves_nothing_behind(killed):
    with Bench.open() as own:
        folder, pid = own.engine.folder, own.engine.pid
        assert DockerEngine(folder).pid == pid
        team = own.team()
        assert through(make(own, team)(), DATA) == DATA
        if killed:
            kill(own.engine)
    assert not own.engine.running
    assert not os.path.exists(f"/proc/{pid}")
    assert str(folder) not in Path("/proc/mounts").read_text()
    commands = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.parent.exists()]
    assert not [words for words in commands if str(folder).encode() in words]


def test_the_command_line_tries_the_whole(bench, tmp_path, capsys):
    options = ["--engine", bench.engine.url, "--state", str(tmp_path)]
    assert cli.main([*options, "check"]) == 0
    assert [line.partition(":")[0] for line in capsys.readouterr().out.splitlines()] == [
        "cold, 10 KB",
        "warm, 10 KB",
        "warm, 1 MB",
    ]
    assert cli.main([*options, "image", "list"]) == 0
    assert bench.place.image in capsys.readouterr().out
    assert [entry.name for entry in tmp_path.iterdir()] == []
