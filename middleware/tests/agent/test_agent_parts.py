"""The agent's parts, and the process as an operator starts it."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from dataclasses import replace

import pytest

from sluice_agent.cli import main
from sluice_agent.metrics.publisher import MetricPublisher
from sluice_agent.settings import OPTIONS, Settings
from sluice_agent.snapshot.capabilities import Capabilities
from sluice_agent.snapshot.storage_daemons import StorageDaemons
from sluice_aio.base.backing_servers import RabbitServer, RedisServer
from sluice_aio.base.ports import free_port
from sluice_core.connections.consumer import Consumer
from sluice_core.messages.nodes import Counters, Hello, MetricBatch
from sluice_core.messages.policies import Target
from sluice_core.messages.uploads import Upload
from sluice_core.metrics.totals import Totals
from sluice_core.options import OptionError, read_options
from sluice_core.store.records import Draft
from sluice_core.store.store import Store
from sluice_core.testing import FakeBus, assignment

pytestmark = pytest.mark.service

LIMIT = 60


def hello(worker="w", role="proxy", actions=("noop",), pid=1):
    return Hello(worker, role, pid, dict.fromkeys(actions, 1), ("PUTS_SEC", "ACTIVE_REQUESTS"), ("ACTIVE_REQUESTS",))


def of_volume(keyword, **more):
    return assignment(keyword=keyword, target=Target("volume", "name", "AUTH_a/id-1"), about=("volumes",), **more)


KONNECTOR = Hello("k", "konnector", 7, {"nop": 1, "luks": 1})

# -- refusals --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("workers", "one", "reason"),
    [
        ([], assignment(keyword="unheard"), ""),
        ([], assignment(kind="namespace"), "`namespace` is not available on this node"),
        ([], assignment(kind="motif", keyword="elasticity"), ""),
        ([replace(hello(), motifs=1)], assignment(kind="motif", keyword="elasticity"), ""),
        (
            [hello()],
            assignment(kind="motif", keyword="elasticity"),
            "the node is waiting for motifs in proxy workers 1",
        ),
        ([], assignment(target=Target("tenant", "group", "gold")), ""),
        ([], assignment(target=Target("container", "group", "logs")), ""),
        ([], assignment(target=Target("object", "group", "odd")), "groups of objects are not available on this node"),
        ([], assignment(target=Target("disk", "name", "d1")), "targets of level `disk` are not available"),
        ([], assignment(when=["size", "<"]), "not a request predicate"),
        ([hello()], assignment(), ""),
        ([hello()], assignment(keyword="encryption"), "filter `encryption` is not installed in proxy worker 1"),
        ([hello()], assignment(keyword="encryption", verb="delete"), ""),
        ([hello()], assignment(place="storage_node"), ""),
        ([hello()], assignment(place="storage_node", keyword="unheard"), "filter `unheard` is not installed in proxy"),
        ([hello(role="object")], assignment(keyword="encryption"), ""),
        ([hello()], assignment(kind="bandwidth", keyword="bandwidth"), ""),
        ([hello()], assignment(kind="replication", keyword="replication", target=Target("cluster", "all")), ""),
        ([hello(), hello("v", actions=(), pid=2)], assignment(), "filter `noop` is not installed in proxy worker 2"),
        ([hello()], of_volume("nop"), ""),
        ([hello(), KONNECTOR], of_volume("nop"), ""),
        ([KONNECTOR], of_volume("xor"), "`xor` is not available for volumes in konnector 7"),
        ([KONNECTOR], of_volume("throttling", kind="throttle"), "`throttling` is not available for volumes"),
        ([KONNECTOR], of_volume("encryption"), ""),
        ([KONNECTOR], of_volume("tier", kind="tier"), ""),
        ([KONNECTOR], of_volume("xor", verb="delete"), ""),
        ([KONNECTOR], assignment(keyword="xor", about=("objects", "volumes")), ""),
        ([hello(), KONNECTOR], assignment(keyword="xor"), "filter `xor` is not installed in proxy worker 1"),
    ],
)
def test_a_node_says_why_it_refuses(workers, one, reason):
    capabilities = Capabilities(StorageDaemons())
    for worker in workers:
        capabilities.add(worker)
    answer = capabilities.refuse(one)
    assert answer.startswith(reason)
    assert bool(answer) == bool(reason)


def test_only_a_worker_with_other_filters_causes_a_recheck():
    capabilities = Capabilities(StorageDaemons())
    assert capabilities.add(hello("a", actions=("x", "y"))) is True
    assert capabilities.add(hello("b", actions=("x", "y"))) is False
    assert capabilities.add(hello("c", actions=("x",))) is True
    assert capabilities.remove("b") is False
    assert capabilities.remove("c") is True
    assert capabilities.remove("never there") is False


def test_a_node_knows_motifs_when_all_its_proxy_workers_do():
    capabilities = Capabilities(StorageDaemons())
    assert capabilities.motifs() == "ready"
    assert capabilities.add(replace(hello("a", pid=1), motifs=1))
    assert capabilities.motifs() == "ready"
    assert capabilities.add(hello("b", pid=2))
    assert capabilities.motifs() == "waiting for motifs in proxy workers 2"
    assert capabilities.remove("b")
    assert capabilities.motifs() == "ready"


def test_plugins_that_processes_run_without_are_reported_with_the_role():
    capabilities = Capabilities(StorageDaemons())
    assert capabilities.missing_plugins() == {}
    capabilities.add(replace(hello("a"), plugins={"stranger": "no module"}))
    capabilities.add(replace(hello("b", role="object-auditor"), disk_file=1, plugins={"other": "no class"}))
    assert capabilities.missing_plugins() == {"stranger": "proxy: no module", "other": "object-auditor: no class"}
    capabilities.remove("a")
    assert list(capabilities.missing_plugins()) == ["other"]


def test_volumes_that_are_broken_at_the_konnector_are_reported_until_it_says_otherwise():
    capabilities = Capabilities(StorageDaemons())
    konnector = hello("k", role="konnector")
    assert not capabilities.has_konnector()
    capabilities.add(replace(konnector, volume_faults={"v1": "its filter failed"}))
    assert capabilities.has_konnector()
    assert capabilities.volume_faults() == {"v1": "its filter failed"}
    capabilities.add(konnector)
    assert capabilities.volume_faults() == {}


def test_volumes_that_a_konnector_took_over_are_asked_about_until_it_says_otherwise():
    capabilities = Capabilities(StorageDaemons())
    konnector = hello("k", role="konnector")
    capabilities.add(replace(konnector, unconfirmed_volumes={"v1": "a1"}))
    assert capabilities.unconfirmed_volumes() == {"v1": "a1"}
    capabilities.add(konnector)
    assert capabilities.unconfirmed_volumes() == {}


def test_code_that_failed_at_the_konnector_is_refused_as_long_as_it_is_the_newest():
    capabilities = Capabilities(StorageDaemons())
    rot = Upload("rot", "nbdkit", "", "", "a" * 64, 5)
    other = Upload("other", "nbdkit", "", "", "b" * 64, 5)
    capabilities.add(hello())
    assert capabilities.refused_code([rot, other]) == {}
    capabilities.add(replace(hello("k", role="konnector"), refused_code={"a" * 64: "it was ended by SIGSEGV"}))
    assert capabilities.refused_code([rot, other]) == {"upload/rot": "it was ended by SIGSEGV"}
    assert capabilities.refused_code([replace(rot, sha256="c" * 64, revision=2), other]) == {}


def test_the_url_of_the_konnector_is_reported_while_it_is_there():
    capabilities = Capabilities(StorageDaemons())
    capabilities.add(hello())
    assert capabilities.konnector_url() == ""
    capabilities.add(replace(hello("k", role="konnector"), url="https://192.0.2.7:8790"))
    assert capabilities.konnector_url() == "https://192.0.2.7:8790"
    capabilities.remove("k")
    assert capabilities.konnector_url() == ""


# -- metrics ---------------------------------------------------------------------------------


class Clock:
    def __init__(self, now):
        self.now = now

    def __call__(self):
        return self.now


@pytest.fixture
def counted():
    """A publisher at 1000.06 s whose one worker has said hello."""
    clock, bus = Clock(1000.06), FakeBus()
    totals = Totals(lambda: 0.0)
    totals.add_worker(hello())
    return clock, bus, totals, MetricPublisher("n.1", totals, bus, 0.06, clock)


def batches(bus, metric):
    found = [MetricBatch.decode(body) for key, body in bus.sent if key == f"metric.{metric}.n_1"]
    return [(one.window, one.seq, dict(one.values.get("tenant", {}))) for one in found]


def test_each_second_has_one_batch_per_metric_also_when_nothing_happened(counted):
    clock, bus, totals, publisher = counted
    publisher.tick()
    totals.update(Counters("w", 1000.5, (("AUTH_a", 5, (3.0, 2.0)), ("AUTH_a/c", 5, (3.0, 2.0)))))
    clock.now = 1001.07
    publisher.tick()
    clock.now = 1002.06
    publisher.tick()
    assert batches(bus, "PUTS_SEC") == [(999, 1, {}), (1000, 2, {"AUTH_a": 3.0}), (1001, 3, {})]
    assert batches(bus, "ACTIVE_REQUESTS")[1:] == [(1000, 2, {"AUTH_a": 2.0}), (1001, 3, {"AUTH_a": 2.0})]


def test_a_window_is_closed_once(counted):
    clock, bus, _, publisher = counted
    publisher.tick()
    clock.now = 1000.9
    publisher.tick()
    clock.now = 1001.05  # before the delay is over
    publisher.tick()
    assert [window for window, *_ in batches(bus, "PUTS_SEC")] == [999]


def test_what_grew_during_missed_seconds_is_spread_over_them(counted):
    clock, bus, totals, publisher = counted
    publisher.tick()
    totals.update(Counters("w", 1000.5, (("AUTH_a", 5, (9.0, 0.0)),)))
    clock.now = 1003.06
    publisher.tick()
    assert batches(bus, "PUTS_SEC")[1:] == [
        (window, seq, {"AUTH_a": 3.0}) for window, seq in ((1000, 2), (1001, 3), (1002, 4))
    ]


def test_a_clock_set_back_does_not_silence_the_node(counted):
    clock, bus, _, publisher = counted
    publisher.tick()
    clock.now = 500.06
    publisher.tick()
    assert [window for window, *_ in batches(bus, "PUTS_SEC")] == [999, 499]


# -- the process -----------------------------------------------------------------------------


def options(**given):
    return read_options(OPTIONS, given, "test")


def test_options_become_settings():
    settings = Settings.from_options(options(node="n7", worker_mode="0600"))
    assert (settings.node, settings.worker_mode) == ("n7", 0o600)
    assert Settings.from_options(options()).node == socket.gethostname()


@pytest.mark.parametrize("given", [{"worker_mode": "rw"}, {"batch": "0"}], ids=str)
def test_a_value_that_cannot_be_used_is_named(given):
    with pytest.raises(OptionError, match=next(iter(given))):
        Settings.from_options(options(**given))


def test_the_sample_configuration_can_be_read_back(capsys, tmp_path):
    assert main(["--sample-config"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("[agent]\n")
    given = dict(line[1:].split(" =", 1) for line in text.splitlines() if line.startswith("#") and line[1] != " ")
    assert options(**given) == options()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[agent]\nsnapshot_dri = /x\n", "did you mean `snapshot_dir`"),
        ("[agent]\nlog_level = loud\n", "`loud`"),
        ("[agent]\nsocket = /proc/nowhere/s\nsnapshot_dir = {folder}/s\namqp_url =\n", "cannot listen at"),
        ("[agent]\nsocket =\nsnapshot_dir = /proc/nowhere\namqp_url =\n", "/proc/nowhere"),
        ("[agent]\nsocket =\nsnapshot_dir = {folder}/s\namqp_url = http://u:secret@h/\n", "scheme `http` is not known"),
    ],
)
def test_a_configuration_that_cannot_work_ends_with_a_sentence(text, complaint, tmp_path, capsys, caplog):
    path = tmp_path / "agent.conf"
    path.write_text(text.format(folder=tmp_path))
    assert main(["--config", str(path)]) == 1
    said = capsys.readouterr().err
    assert complaint in said
    assert said.startswith("sluice-agent: ")
    assert "secret" not in said


@pytest.fixture(scope="module")
def services(tmp_path_factory):
    folder = tmp_path_factory.mktemp("services")
    with (
        RedisServer(free_port(), folder / "redis", tied=True) as redis,
        RabbitServer(free_port(), free_port(), free_port(), folder / "rabbit", tied=True) as rabbit,
    ):
        yield redis, rabbit


@pytest.mark.functional
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_process_works_and_leaves_in_order(number, services, tmp_path):
    redis, rabbit = services
    config, path = tmp_path / "agent.conf", tmp_path / "agent.sock"
    config.write_text(
        f"[agent]\nnode = n1\nredis_url = {redis.url}\namqp_url = {rabbit.url}\nsocket = {path}\n"
        f"snapshot_dir = {tmp_path / 'snapshot'}\n"
    )
    store = Store(redis.url)
    store.client.flushall()
    store.commit(Draft("test", puts=(assignment(),)))
    with store.client.pubsub(ignore_subscribe_messages=True) as acks:
        acks.subscribe(store.keys.acks)
        acks.get_message(timeout=5)
        process = _agent(config)
        try:
            assert acks.get_message(timeout=LIMIT) is not None
            assert _first_batch(rabbit.url, path).node == "n1"
        finally:
            process.send_signal(number)
            _, said = process.communicate(timeout=LIMIT)
    report = store.nodes()[0]
    store.close()
    assert (report.epoch, report.assignments) == (1, 1)
    assert process.returncode == 0, said
    assert "Traceback" not in said
    assert not path.exists()


def _agent(config):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(one for one in sys.path if one)}
    argv = [sys.executable, "-m", "sluice_agent", "--config", str(config)]
    return subprocess.Popen(argv, env=env, stderr=subprocess.PIPE, text=True)


def _first_batch(url, path):
    """The batch that a consumer gets from a worker that said hello."""

    async def story():
        got = asyncio.get_running_loop().create_future()
        consumer = Consumer(url, lambda key, body: got.done() or got.set_result(body), ("metric.PUTS_SEC.*",))
        consumer.start()
        await consumer.settled()
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as worker:
            worker.connect(str(path))
            worker.send(hello().encode())
            async with asyncio.timeout(LIMIT):
                body = await got
        await consumer.close()
        return MetricBatch.decode(body)

    return asyncio.run(story())
