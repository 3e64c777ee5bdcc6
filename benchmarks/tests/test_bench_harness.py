import json
import os
import subprocess
import sys
import threading
import time

import pytest
from benchmarks import run
from benchmarks.control_plane.rollout import Acknowledgements
from benchmarks.harness.blocks import Bench, Block
from benchmarks.harness.cpu import cpu_seconds
from benchmarks.harness.figures import Figure
from benchmarks.harness.machine import machine_facts
from benchmarks.harness.pairs import INSTANCES
from benchmarks.harness.population import strangers
from benchmarks.requests import lookup, overhead

from sluice_core.errors import PeerError
from sluice_core.messages.predicate import compile_predicate


class FakeClient:
    def __init__(self):
        self.closed = 0

    def request(self, method, path="", body=b"", **headers):
        return None

    def close(self):
        self.closed += 1


class FakeTrio:
    """Counts one CPU second with each call."""

    def __init__(self):
        self.clock = 0
        self.clients = []

    def client(self, name):
        self.clients.append(FakeClient())
        return self.clients[-1]

    def cpu(self, name):
        self.clock += 1
        return {"proxy": float(self.clock), "objects": 2.0 * self.clock}


def test_the_cpu_clock_of_another_process_advances_only_while_it_works():
    program = "import sys, time\nfor line in sys.stdin:\n while time.process_time() < 0.3: pass\n print(flush=True)"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        child.stdin.write("go\n")
        child.stdin.flush()
        child.stdout.readline()
        used = cpu_seconds([child.pid])
        assert 0.3 <= used < 1.0
        assert cpu_seconds([child.pid]) == pytest.approx(used, abs=0.01)
        assert cpu_seconds([child.pid, os.getpid()]) > used
        child.stdin.close()


def test_a_process_that_is_gone_has_no_cpu_clock():
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        child.wait()
    with pytest.raises(OSError):
        cpu_seconds([child.pid])


@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_block_asks_every_number_once_and_divides_the_cpu(concurrency):
    bench, asked, lock = Bench(FakeTrio()), [], threading.Lock()

    def work(client, number):
        with lock:
            asked.append(number)

    block = bench.block("plain", work, 10, concurrency)
    assert sorted(asked) == list(range(10))
    assert len(block.latencies) == 10
    assert block.cpu_per_request("proxy", "objects") == pytest.approx(0.3)
    assert block.rate > 0
    bench.block("plain", work, 5, concurrency)
    assert sorted(asked) == list(range(15))


def test_a_wrong_answer_ends_a_block_with_its_reason():
    def work(client, number):
        if number == 3:
            raise PeerError("status 503")

    trio = FakeTrio()
    with pytest.raises(PeerError, match="status 503"):
        Bench(trio).block("plain", work, 10, 4)
    assert trio.clients[0].closed == 4


def test_a_series_goes_on_with_its_orders_in_the_next_call():
    bench, order = Bench(FakeTrio()), []
    works = {name: lambda client, number, name=name: order.append(name) for name in INSTANCES}
    bench.cycles(works, 2, 1)
    bench.cycles(works, 1, 1, first=2)
    assert [order[first : first + 3] for first in (0, 3, 6)] == [
        ["sluice", "plain", "twin"],
        ["plain", "twin", "sluice"],
        ["twin", "sluice", "plain"],
    ]


def test_overhead_compares_cpu_of_proxy_and_object_servers_and_the_rest_with_the_band():
    def block(factor):
        cpu = {"proxy": 0.3 * factor, "objects": 0.2, "container": 0.1}
        return Block([0.01 * factor] * 100, 1.0 * factor, cpu)

    cycles = [{"sluice": block(1.05), "plain": block(1.0), "twin": block(1.0)}] * 3
    found = {one.name: one for one in overhead.figures({("GET", 1): cycles, ("GET", 4): cycles})}
    assert found["overhead GET"].value == pytest.approx(0.515 / 0.5)
    assert found["overhead GET"].reached is True
    assert found["latency GET c1"].value == pytest.approx(1.05)
    assert found["latency GET c1"].reached is False
    assert found["rate GET c4"].value == pytest.approx(1 / 1.05)


def test_strangers_are_of_all_levels_and_never_the_same():
    found = list(strangers(1000))
    assert len({one.id for one in found}) == len({one.path() for one in found}) == 1000
    assert {one.target.level for one in found} == {"tenant", "container", "object"}
    assert {one.when is True for one in found} == {True, False}
    for one in found:
        compile_predicate(one.when)


LOOKUP = """
import sys
from pathlib import Path
from benchmarks.requests import lookup
from benchmarks.harness.scale import Scale
(figure,) = lookup.measure(Scale(Path(sys.argv[1]), quick=True), keys=500)
print(figure.value, figure.what)
"""


def test_the_lookup_hits_and_is_measured(tmp_path):
    # in a process of its own: a thread of another test would make it wait for the interpreter
    run = [sys.executable, "-c", LOOKUP, str(tmp_path)]
    said = subprocess.run(run, stdout=subprocess.PIPE, text=True, check=True, timeout=60).stdout
    assert 0 < float(said.split()[0]) < 1000
    assert "500 keys" in said


def test_the_watch_hears_a_socket_and_a_file_of_this_thread_only(tmp_path):
    import socket

    other = threading.Thread(target=lambda: socket.socket().close())
    with lookup.Watch() as watch:
        other.start()
        other.join()
        assert watch.events == []
        socket.socket().close()
        (tmp_path / "file").write_text("x")
    assert watch.events == ["socket.__new__", "open"]
    socket.socket().close()
    assert len(watch.events) == 2


def test_an_epoch_is_complete_with_the_last_agents_acknowledgement():
    acks = Acknowledgements("redis://127.0.0.1:1/0", 2)
    acks._take(b"node1 1", 10.0)
    acks._take(b"node2 0", 11.0)
    with pytest.raises(PeerError, match="epoch 1 acknowledged by 1 of 2 agents"):
        acks.wait(1, 0.01)
    acks._take(b"node2 3", 12.0)
    assert acks.wait(1, 0.01) == 12.0
    acks._take(b"node1 2", 13.0)
    acks._take(b"node1 2", 14.0)
    assert acks.wait(2, 0.01) == 13.0
    acks._take(b"node1 3", 15.0)
    assert acks.wait(3, 0.01) == 15.0


def test_a_part_that_fails_is_reported_and_the_others_run(tmp_path, monkeypatch, capsys):
    def broken(scale):
        raise PeerError("redis is away")

    monkeypatch.setattr(run, "ALONE", {"bad": broken, "good": lambda scale: [Figure("row", "what", 1.0, "1 ms")]})
    monkeypatch.setattr(run, "FIRST", {})
    monkeypatch.setattr(run.signal, "signal", lambda number, handler: None)
    monkeypatch.setattr(run, "PARTS", ("bad", "good"))
    file = tmp_path / "results.json"
    assert run.main(["--json", str(file), "--folder", str(tmp_path)]) == 1
    assert "FAILED bad: redis is away" in capsys.readouterr().out
    found = json.loads(file.read_text())
    assert found["failed"] == {"bad": "redis is away"}
    assert [one["name"] for one in found["figures"]] == ["row"]
    assert all(one["cores"] >= 1 for one in found["runs"].values())
    assert [one["run"] for one in found["figures"]] == list(found["runs"])
    assert os.listdir(tmp_path) == ["results.json"]


def test_the_machine_is_described(tmp_path):
    begin = time.strftime("%Y-%m-%d")
    facts = machine_facts(tmp_path)
    assert facts["at"] >= begin
    assert facts["file_system"] != "unknown"
    assert facts["redis"] != "missing"
