"""Clients' bytes count once and are throttled once, however Swift moves them: several workers, large objects, copies,
fragments, and clients that read little of their responses."""

import contextlib
import hashlib
import json
import os
import random
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import pytest
from tests.support.cluster.bandwidth_cluster import Capacity, Stage, Terms
from tests.support.cluster.bandwidth_observer import CLOSE, Heard, means, settled
from tests.support.cluster.load import ENDLESS

from sluice_aio.base.layout import OBJECT_DEVICES
from sluice_aio.base.ports import HOST
from sluice_aio.base.setup import EC21, GOLD, POLICIES
from sluice_core.messages.bandwidth import SIDES
from sluice_middleware.swift.green import IO_THREAD

pytestmark = pytest.mark.alone

MB = 1_000_000
#: Low enough for a busy machine.
GET, PUT = 6 * MB, 3 * MB
SIZE, LARGE = 250_000, 8 * MB
#: Rate of objects in fragments, each of which costs more than a plain one.
CODED = MB
TENANT, OTHER = "AUTH_t1", "AUTH_t2"
WORKERS = 2
PROXIES = ("proxy", "proxy2")
#: Bytes moved in one request, in parts, and their rate limit.
PARTS, PART = 3, MB
WHOLE = PARTS * PART
CEILING = 1_250_000
#: Seconds in which unused threads end.
GONE = 30.0
#: On a shared machine, one request may last longer than it should.
ATTEMPTS = 3


@pytest.fixture(scope="module")
def stage(tmp_path_factory):
    several = {"proxy_workers": WORKERS, "storage_workers": WORKERS}
    terms = Terms(capacity=Capacity(get=GET, put=PUT), sizes=(SIZE,), fallocate=False, **several)
    with Stage(tmp_path_factory.mktemp("s"), terms) as found:
        for name in (TENANT, OTHER):
            found.fill(name)
        found.fill(TENANT, "coded", sizes=(CODED,), storage_policy=EC21)
        found.fill(TENANT, "large", sizes=(LARGE,))
        yield found


def workers_of(stage, names):
    return [worker for name in names for worker in stage.cluster.workers(name)]


@pytest.fixture(scope="module")
def heard(stage):
    with Heard(stage.cluster.amqp_url) as found:
        yield found


@pytest.fixture
def promised(stage):
    """Creates policies, and deletes them afterwards."""
    made = []

    def say(sentence):
        made.append(stage.say(sentence))
        return made[-1]

    yield say
    for policy in made:
        stage.client.delete_policy(policy)


@pytest.fixture
def loads(stage):
    """Starts clients, which stop with the test."""
    with contextlib.ExitStack() as stack:
        yield lambda account, count=16, **more: stack.enter_context(stage.load(account, count, **more))


def close(expected):
    return pytest.approx(expected, rel=CLOSE)


def ask(stage, method, path, body=b"", **headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    target, _, query = path.partition("?")
    target = quote(f"/v1/{target}") + (f"?{query}" if query else "")
    answer = stage.swift.raw(method, target, {"X-Auth-Token": stage.swift.token, **named}, body)
    assert answer.status < 300, (method, path, answer.status, answer.body)
    return answer


# -- workers


def seconds_of(process):
    """Seconds of a processor that it used."""
    with open(f"/proc/{process.pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_all_workers_of_a_node_share_one_budget(stage, promised, loads):
    promised(f"FOR TENANT {TENANT} DO SET bandwidth WITH get_bw=3MBps")
    workers = workers_of(stage, PROXIES)
    assert len(workers) == WORKERS * len(PROXIES)
    for _ in range(ATTEMPTS):
        before = [seconds_of(worker) for worker in workers]
        found = [loads(TENANT), loads(OTHER)]
        assert settled(found, [4.5 * MB, 1.5 * MB]) == close([4.5 * MB, 1.5 * MB])
        used = [seconds_of(worker) - last for worker, last in zip(workers, before, strict=True)]
        if min(used) > 0.1 * sum(used) / len(used):
            break
        # on a busy machine one of two listening workers may accept all connections, which last
        for load in found:
            load.stop()
    else:
        raise AssertionError(f"somebody served nobody: {used}")


def test_one_transfer_may_move_all_that_its_tenant_may(stage, promised, loads):
    promised(f"FOR TENANT {TENANT} DO SET bandwidth WITH max_get_bw=2MBps")
    load = loads(TENANT, 1, container="large", sizes=(LARGE,), proxies=PROXIES[:1])
    assert settled([load], [2 * MB]) == [close(2 * MB)]


# -- requests that Swift derives from others


@pytest.fixture(scope="module")
def manifests(stage):
    """One object in parts, and the same whole, as clients see it; returns its bytes."""
    parts = [random.Random(number).randbytes(PART) for number in range(PARTS)]
    for container in ("parts", "whole"):
        ask(stage, "PUT", f"{TENANT}/{container}")
    rows = []
    for number, part in enumerate(parts):
        ask(stage, "PUT", f"{TENANT}/parts/p/{number}", part)
        rows.append({"path": f"/parts/p/{number}", "etag": hashlib.md5(part).hexdigest(), "size_bytes": PART})
    ask(stage, "PUT", f"{TENANT}/whole/slo?multipart-manifest=put", json.dumps(rows).encode())
    ask(stage, "PUT", f"{TENANT}/whole/dlo", X_Object_Manifest="parts/p/")
    ask(stage, "PUT", f"{TENANT}/whole/plain", b"".join(parts))
    return b"".join(parts)


@pytest.fixture
def held(stage, promised, loads):
    """The tenant is limited to its ceilings, which its next proxies know."""
    promised(f"FOR TENANT {TENANT} DO SET bandwidth WITH max_get_bw={CEILING}Bps max_put_bw={CEILING}Bps")
    known = [loads(TENANT, 4, method=method, proxies=PROXIES[:1]) for method in ("GET", "PUT")]
    for load in known:
        stage.await_share(TENANT, load.spec.method, CEILING)
    for load in known:
        load.stop()


@dataclass
class Request:
    """A client's request, and its share of GET and PUT; ``body`` is the response's body, in pieces."""

    method: str
    path: str
    gets: int
    puts: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    body: tuple[slice, ...] = ()


ALL = slice(WHOLE)
RANGES = (slice(PART // 2), slice(2 * PART, WHOLE - 1))
REQUESTS = (
    Request("GET", "whole/slo", WHOLE, body=(ALL,)),
    Request("GET", "whole/dlo", WHOLE, body=(ALL,)),
    Request(
        "GET",
        "whole/plain",
        PART // 2 + PART - 1,
        headers={"Range": "bytes=" + ",".join(f"{one.start or 0}-{one.stop - 1}" for one in RANGES)},
        body=RANGES,
    ),
    Request("PUT", "whole/copy", WHOLE, WHOLE, {"X-Copy-From": "whole/plain"}),
    Request("PUT", "whole/joined", WHOLE, WHOLE, {"X-Copy-From": "whole/slo"}),
)


def once(size):
    """The count for a body of that size: manifests and the text between ranges are bodies too."""
    return pytest.approx(size, rel=0, abs=0.01 * size + 2000)


def test_what_swift_makes_of_one_request_counts_once_and_is_held_back_once(stage, heard, manifests, held):
    heard.await_all()
    before = [heard.moved(TENANT, method) for method in ("GET", "PUT")]
    for request in REQUESTS:
        for _ in range(ATTEMPTS):
            begin = time.monotonic()
            answer = ask(stage, request.method, f"{TENANT}/{request.path}", **request.headers)
            seconds = time.monotonic() - begin
            assert all(manifests[piece] in answer.body for piece in request.body), request
            heard.await_all()
            sums = [heard.moved(TENANT, method) for method in ("GET", "PUT")]
            gets, puts = (new - old for new, old in zip(sums, before, strict=True))
            before = sums
            print(f"{request.method} {request.path}: {seconds:.2f} s, {gets:.0f} bytes of GET, {puts:.0f} of PUT")
            assert (gets, puts) == (once(request.gets), once(request.puts)), request
            # the buckets hold some tenths of a second
            assert seconds > 0.65 * request.gets / CEILING, request
            if seconds < 1.7 * request.gets / CEILING:
                break
        else:
            raise AssertionError(f"held back twice: {request}")
    for name in ("copy", "joined"):
        assert ask(stage, "HEAD", f"{TENANT}/whole/{name}").headers["etag"] == hashlib.md5(manifests).hexdigest()


# -- fragments


class Threads:
    """The threads of streams, in all workers of the object servers."""

    def __init__(self, stage):
        self._workers = workers_of(stage, OBJECT_DEVICES)
        assert len(self._workers) == WORKERS * len(OBJECT_DEVICES)

    def count(self):
        return sum(self._of(worker) for worker in self._workers)

    def gone(self):
        return not self.count()

    def __repr__(self):
        return f"threads of streams: { {worker.pid: self._of(worker) for worker in self._workers} }"

    @staticmethod
    def _of(worker):
        found = 0
        for name in Path(f"/proc/{worker.pid}/task").glob("*/comm"):
            with contextlib.suppress(OSError):  # it ended meanwhile
                found += name.read_text(encoding="ascii").strip() == IO_THREAD
        return found


def test_fragments_are_held_back_as_the_objects_that_clients_move(stage, promised, loads):
    promised(f"FOR TENANT {TENANT} DO SET bandwidth WITH get_bw=2500kBps")
    found = [loads(TENANT, container="coded", sizes=(CODED,)), loads(OTHER)]
    assert settled(found, [4.25 * MB, 1.75 * MB]) == close([4.25 * MB, 1.75 * MB])
    assert [load.errors() for load in found] == [(0, "")] * 2


def test_uploads_under_a_storage_policy_count_once_and_are_stored_in_fragments(stage, heard, promised, loads):
    promised(f"FOR TENANT {TENANT} DO SET bandwidth WITH put_bw=1MBps storage_policy={EC21}")
    before = {side: heard.moved(TENANT, "PUT", side) for side in SIDES}
    found = [loads(TENANT, 8, method="PUT", container="coded"), loads(OTHER, 8, method="PUT")]
    assert heard.settled((TENANT, OTHER), "PUT", [2 * MB, MB]) == close([2 * MB, MB])
    counted, stored = (heard.moved(TENANT, "PUT", side) - before[side] for side in SIDES)
    assert stored / counted == pytest.approx(1.5, rel=0.1)  # each of three fragments is half of it
    flows = {(row["account"], row["policy"]): row for row in stage.flows() if row["method"] == "PUT" and row["active"]}
    assert flows[TENANT, POLICIES.index(EC21)]["floor"] == close(MB)
    assert flows[OTHER, POLICIES.index(GOLD)]["floor"] == 0
    for load in found:
        load.stop()
        assert load.errors() == (0, "")
    found = [
        loads(name, 8, method="PUT", container=of, sizes=(ENDLESS,)) for name, of in ((TENANT, "coded"), (OTHER, "c"))
    ]
    assert settled(found, [2 * MB, MB]) == close([2 * MB, MB])


def test_fragments_have_threads_of_their_own_come_back_whole_and_leave_none(stage, promised, loads, eventually):
    body = random.Random(0).randbytes(4 * MB)
    threads = Threads(stage)
    eventually(threads.gone, GONE)
    promised(f"FOR TENANT {TENANT} DO SET bandwidth WITH get_bw=5MBps put_bw=2MBps")
    load = loads(TENANT, 2, container="coded", sizes=(CODED,))
    stage.await_share(TENANT)
    ask(stage, "PUT", f"{TENANT}/coded/random", body)
    written = threads.count()
    stage.forget()
    assert ask(stage, "GET", f"{TENANT}/coded/random").body == body
    read = threads.count()
    ranges = ask(stage, "GET", f"{TENANT}/coded/random", Range="bytes=1000000-1999999,3000000-").body
    assert body[MB : 2 * MB] in ranges
    assert body[3 * MB :] in ranges
    print(f"threads of streams: {written} after an upload, {read} after a download")
    assert min(written, read) > 0
    load.stop()
    assert load.errors() == (0, "")
    eventually(threads.gone, GONE)


# -- clients that read little of their responses


@contextlib.contextmanager
def asleep(stage, count):
    """Clients that request a large object and read almost nothing of it."""
    head = f"GET /v1/{TENANT}/large/{LARGE}-0 HTTP/1.1\r\nHost: x\r\nX-Auth-Token: {stage.swift.token}\r\n\r\n"
    with contextlib.ExitStack() as stack:
        for number in range(count):
            line = stack.enter_context(socket.socket())
            line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            line.settimeout(60)
            line.connect((HOST, stage.cluster.layout.ports[PROXIES[number % len(PROXIES)]]))
            line.sendall(head.encode())
            assert line.recv(64).startswith(b"HTTP/1.1 200 ")
        yield


def test_clients_that_read_nothing_keep_nothing_from_others_of_their_tenant(stage, promised, loads):
    promised(f"FOR TENANT {TENANT} DO SET bandwidth WITH max_get_bw=2MBps")
    load = loads(TENANT, 4)
    assert settled([load], [2 * MB]) == [close(2 * MB)]
    with asleep(stage, 4):
        assert settled([load], [2 * MB]) == [close(2 * MB)]
        (flow,) = [row for row in stage.flows() if row["account"] == TENANT and row["active"]]
        assert flow["waiting"] <= 4.5
    assert load.errors() == (0, "")


@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_who_hangs_up_leaves_all_to_others_of_his_tenant(stage, promised, loads, method):
    promised(f"FOR TENANT {TENANT} DO SET bandwidth WITH max_get_bw=2MBps max_put_bw=2MBps")
    stays = loads(TENANT, 4, method=method, sizes=(ENDLESS,) if method == "PUT" else ())
    leaves = loads(TENANT, 12, method=method, container="large", sizes=(LARGE,))
    assert means([stays, leaves], seconds=2)[0] < 1.5 * MB
    leaves.stop()  # in the middle of all of them
    assert settled([stays], [2 * MB]) == [close(2 * MB)]
    assert stays.errors() == (0, "")
