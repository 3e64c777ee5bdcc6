import asyncio
import contextlib
import json
import re
import threading

import pytest
from benchmarks import run
from benchmarks.control_plane import api, failover, two_hosts
from benchmarks.control_plane.added import A_RELOAD, Added, Reads
from benchmarks.control_plane.api_load import Ask, Clients, Taken
from benchmarks.control_plane.api_population import OF_EACH_TENANT, populate, sentence, tenant

from sluice_actors.policies.actor_factory import read_names
from sluice_aio.base.backing_servers import RedisServer
from sluice_aio.base.ports import free_port
from sluice_core.errors import PeerError
from sluice_core.store.records import Draft
from sluice_core.store.store import AsyncStore, Store


@pytest.fixture(scope="module")
def redis_url(tmp_path_factory):
    with RedisServer(free_port(), tmp_path_factory.mktemp("redis"), tied=True) as server:
        yield server.url


class Answering:
    """Answers as the path says: ``/<status>/<marks>``; records requests by connection."""

    def __init__(self, hangs_up):
        self.seen = []
        self.port = 0
        self._end = b"Connection: close\r\n" if hangs_up else b""

    async def listen(self, ready, over):
        async with await asyncio.start_server(self._serve, "127.0.0.1", 0) as server:
            self.port = server.sockets[0].getsockname()[1]
            ready.set()
            await over.wait()

    async def _serve(self, reader, writer):
        with contextlib.suppress(asyncio.IncompleteReadError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                length = re.search(r"(?i)content-length: (\d+)", head)
                await reader.readexactly(int(length[1]) if length else 0)
                method, path, _ = head.split(" ", 2)
                token = re.search(r"X-Auth-Token: (\w+)", head)[1]
                self.seen.append((writer.get_extra_info("peername"), method, path, token))
                _, status, marks, *_ = path.replace("/health", "/200/1").split("/")
                body = b'"enforced":' * int(marks)
                writer.write(b"HTTP/1.1 %b X\r\n%bContent-Length: %d\r\n\r\n" % (status.encode(), self._end, len(body)))
                writer.write(body)
                if self._end:
                    break
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


@contextlib.contextmanager
def serving(hangs_up=False):
    answering, ready, loop = Answering(hangs_up), threading.Event(), asyncio.new_event_loop()
    over = asyncio.Event()
    thread = threading.Thread(target=loop.run_until_complete, args=(answering.listen(ready, over),))
    thread.start()
    ready.wait()
    try:
        yield answering
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join()
        loop.run_until_complete(_all_said(loop))
        loop.close()


async def _all_said(loop):
    """Read until every connection is closed."""
    others = asyncio.all_tasks(loop) - {asyncio.current_task()}
    for one in others:
        one.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await asyncio.sleep(0)


@pytest.mark.parametrize("clients", [1, 4])
def test_clients_keep_their_connections_and_ask_every_number_once(clients):
    with serving() as server:
        load = Clients(server.port, "secret", {})
        taken = load.run(lambda number: Ask(f"/200/2/{number}", marks=2), 10, clients)
        load.run(lambda number: Ask(f"/201/1/{number}", b"{}", 201), 5, 1)
    asked = [(method, path) for _, method, path, _ in server.seen if path != "/health"]
    assert sorted(asked[:10]) == [("GET", f"/200/2/{number}") for number in range(10)]
    assert sorted(asked[10:]) == sorted(("POST", f"/201/1/{number}") for number in range(10, 15))
    assert len({address for address, *_ in server.seen}) == clients + 1
    assert {token for *_, token in server.seen} == {"secret"}
    assert len(taken.latencies) == 10
    assert taken.rate > 0


@pytest.mark.parametrize(
    ("ask", "reason"),
    [
        (Ask("/503/1"), '`/503/1` answered 503 with 1 of `"enforced":`, expected 200 with 1'),
        (Ask("/200/7", marks=8), 'answered 200 with 7 of `"enforced":`, expected 200 with 8'),
    ],
)
def test_a_wrong_answer_ends_the_measurement_with_its_reason(ask, reason):
    with serving() as server, pytest.raises(PeerError, match=reason):
        Clients(server.port, "secret", {}).run(lambda number: ask, 8, 4)


def test_a_server_that_hangs_up_is_not_measured():
    with serving(hangs_up=True) as server, pytest.raises(PeerError, match="does not keep connections"):
        Clients(server.port, "secret", {}).run(lambda number: Ask("/200/1"), 4, 1)


def test_what_requests_took_is_said_by_rate_cpu_and_latency():
    taken = Taken([0.001, 0.002, 0.003, 0.010], 0.5, {"api": 0.008, "redis": 0.0004})
    found = api.figure("show", "show one policy", 4, taken)
    assert (found.name, found.measured, found.reached) == ("api show c4", "8 /s", None)
    assert "CPU 2.00 ms of the API, 0.10 ms of Redis" in found.beside
    assert "p50 2.0, p95 10.0, p99 10.0 ms" in found.beside


def test_the_population_is_of_both_sorts_and_is_what_the_questions_expect(redis_url):
    store = Store(redis_url, "population")
    try:
        policies = populate(store, 210)
        found = [policy for policy, _ in store.policies()]
        states, assignments = store.states(), store.assignments()
        nodes = store.nodes()
    finally:
        store.close()
    assert [policy.id for policy in found] == [policy.id for policy in policies]
    assert sum(policy.dynamic for policy in policies) == 105
    assert len({policy.text for policy in policies}) == 210
    active = [policy for policy in policies if policy.id in states or not policy.dynamic]
    assert {one.policy for one in assignments} == {policy.id for policy in active}
    assert {one.epoch for one in nodes} == {1}
    questions = {name: asks for name, (_, asks) in api.questions(policies).items()}
    assert questions["state"](0).marks == min(api.PAGE, len(active))
    account = questions["tenant"](3).path.rpartition("=")[2]
    assert sum(f" {account}" in policy.text for policy in policies) == questions["tenant"](3).marks == OF_EACH_TENANT
    for number in range(300):
        marker = questions["page"](number).path.rpartition("-")[2]
        behind = [policy.id for policy in policies].index(marker)
        assert behind + 1 + api.PAGE <= len(policies)


def test_policies_that_are_created_differ_from_each_other_and_from_those_present():
    (_, create) = api.questions(())["create"]
    new = {json.loads(create(number).body)["policy"] for number in range(100)}
    assert len(new) == 100
    assert not new & {sentence(number, tenant(number)) for number in range(1000)}


@pytest.mark.parametrize(
    ("command", "kind", "documents"),
    [
        ("HGET s:policies p1", "tcp", 1),
        ("hget s:policies p1", "tcp", 1),
        ("HMGET s:policies p1 p2 p3", "tcp", 3),
        ("HKEYS s:policies", "tcp", A_RELOAD),
        ("HGETALL s:policies", "tcp", A_RELOAD),
        ("HGETALL s:policies", "lua", 0),
        ("HGET s:versions policy/p1", "tcp", 0),
        ("EVALSHA abc 2 s:history s:policies p1", "tcp", 0),
        ("PING", "tcp", 0),
    ],
)
def test_documents_that_were_asked_for_are_counted(command, kind, documents):
    reads = Reads("redis://127.0.0.1:1/0", "s:policies")
    reads.take({"time": 1.0, "client_type": kind, "command": command})
    assert reads.documents == documents


async def added_and_read(redis_url):
    store = AsyncStore(redis_url, "added")
    try:
        async with Reads(redis_url, store.keys.policies) as reads:
            await store.commit(Draft("test", policies=(two_hosts.policy(1), two_hosts.policy(2))))
            await store.policy("policy-00000001")
            assert 0 <= await reads.delay("policy-00000001", 20) < 20
            assert reads.documents == 1
            with pytest.raises(PeerError, match="nobody read policy `policy-00000002`"):
                await reads.delay("policy-00000002", 0.01)
            await read_names(store, lambda slot: True)
            await store.policy("policy-00000002")
            await reads.delay("policy-00000002", 20)
            assert reads.documents == A_RELOAD + 2
    finally:
        await store.close()


def test_the_time_from_commit_to_reading_is_taken_from_redis(redis_url):
    asyncio.run(added_and_read(redis_url))


@pytest.mark.parametrize(
    ("few", "many", "documents", "reached"),
    [
        (Added([0.002, 0.003, 0.004], 0.003), Added([0.003, 0.004, 0.004], 0.004), 3, [True, True, True]),
        (Added([0.002, 0.003, 0.004], 0.003), Added([0.030, 0.040, 0.040], 0.004), 3, [False, True, True]),
        (Added([0.002, 0.003, 0.004], 0.003), Added([0.003, 0.004, 0.004], 0.300), 300_000, [True, False, False]),
    ],
)
def test_adding_must_not_take_longer_where_there_are_many(few, many, documents, reached):
    many.documents = documents
    shares = {"h1": [40.0, 50.0, 90.0], "h2": [30.0, 61.0, 61.0]}
    large = two_hosts.Phase(100_000, 29.0, {"h1": 6.0}, {"h1": 40_000, "h2": 60_000}, many, shares)
    found = {one.name: one for one in two_hosts.figures(two_hosts.Phase(1000, 4.0, added=few), large)}
    assert found["two hosts start"].reached is True
    assert found["two hosts CPU"].value == 61.0
    assert found["two hosts CPU"].reached is False
    assert [found[f"two hosts add{name}"].reached for name in ("", " CPU", " reads")] == reached


def test_each_orphan_of_each_kill_counts():
    kills = [failover.Kill([2.0, 3.0], 0, 0), failover.Kill([4.0, 5.5], 1, 0)]
    found = {one.name: one for one in failover.figures(kills)}
    assert found["failover p50"].value == 3.5
    assert (found["failover worst"].value, found["failover worst"].reached) == (5.5, False)
    assert (found["failover exactly once"].value, found["failover exactly once"].reached) == (1, False)


def test_what_takes_long_is_measured_only_when_it_is_named():
    assert set(run.LONG) == {
        "failover",
        "two_hosts",
        "soak",
        "division",
        "bandwidth",
        "io_streams",
        "whole_nodes",
        "motif_costs",
    }
    assert not set(run.LONG) & set(run.PARTS)
    assert "api" in run.PARTS
    assert run.arguments(["--only", "failover", "--only", "two_hosts"]).only == ["failover", "two_hosts"]
