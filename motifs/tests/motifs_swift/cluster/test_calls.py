"""Calls of the API to daemons, through a real Redis."""

import logging
import re
import threading
import time

import pytest

from sluice_core.errors import CallerError, Conflict, NotFound, PeerError
from sluice_core.process.logs import TextFormatter, log_fields
from sluice_core.store.store import Store
from sluice_motif_control import calls as wire
from sluice_motif_control.calls import MotifClient, announce, live_daemons
from sluice_motif_control.messages import CANCELLED, DONE, MotifAnswer, MotifCall, MotifDaemon, MotifOperation
from sluice_motif_control.operations import JOBS, cancel_operation, claim_operation, create_operation
from sluice_motifs_swift.cluster import call_server, operation_worker
from sluice_motifs_swift.cluster.call_server import CallServer

pytestmark = pytest.mark.service


class FakeCalls:
    """Returns the results that a test sets; ``gate`` holds expansions back."""

    def __init__(self):
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Semaphore(0)
        self.expanded = []
        self.failing = {}

    def show(self, item):
        if item in self.failing:
            raise self.failing[item]
        return {"item": item}

    def expand(self, item):
        self.entered.release()
        assert self.gate.wait(10)
        if item in self.failing:
            raise self.failing[item]
        self.expanded.append(item)
        logging.getLogger("sluice_motifs").info("`%s` is expanded", item)
        return {"item": item}

    def contracted(self, under):
        return iter([(f"{under}{number}", 10) for number in range(6)])


@pytest.fixture
def calls():
    return FakeCalls()


@pytest.fixture
def logged(caplog):
    """What is logged, with its fields."""
    caplog.set_level(logging.INFO)
    caplog.handler.setFormatter(TextFormatter("%(name)s:%(context)s %(message)s"))
    return caplog


@pytest.fixture(autouse=True)
def short_waits(monkeypatch):
    monkeypatch.setattr(call_server, "_WAIT", 0.1)  # a stop may take this long
    monkeypatch.setattr(operation_worker, "_POLL", 0.1)


@pytest.fixture
def server(store, calls):
    server = CallServer(store, calls, "n1", (), time.time, workers=2)
    server.start()
    yield server
    calls.gate.set()
    server.stop()


def test_a_call_is_answered(store, server):
    assert MotifClient(store).call("show", item="a/c/ö\udc80") == {"item": "a/c/ö\udc80"}
    assert [one.node for one in store.run(live_daemons(store.keys))] == ["n1"]


@pytest.mark.parametrize(
    ("raised", "caught", "reason"),
    [
        (NotFound("there is no `x`"), NotFound, "there is no `x`"),
        (Conflict("somebody works at `x`"), Conflict, "works at"),
        (CallerError("nonsense"), CallerError, "nonsense"),
        (PeerError("Swift is away"), PeerError, "Swift is away"),
        (ZeroDivisionError("secret"), PeerError, "call `show` failed in daemon `n1/.*`, see its log"),
    ],
)
def test_what_a_daemon_raises_is_raised_at_the_caller(store, server, calls, raised, caught, reason):
    calls.failing["x"] = raised
    with pytest.raises(caught, match=reason):
        MotifClient(store).call("show", item="x")


def test_what_no_daemon_offers_is_refused(store, server):
    with pytest.raises(CallerError, match="knows no call `erase`"):
        MotifClient(store).call("erase")


def test_without_a_daemon_a_call_fails_at_once(store):
    with pytest.raises(PeerError, match="no daemon `sluice-motifs` runs"):
        MotifClient(store).call("show", item="x")


def test_a_caller_that_gives_up_says_that_it_may_have_happened(store, server, calls):
    calls.gate.clear()
    with pytest.raises(PeerError, match=r"answered within 0.2 s; the call may have had its effect"):
        MotifClient(store).call("expand", 0.2, item="x")


def test_calls_beyond_the_bound_are_refused_and_late_ones_dropped(store, calls, monkeypatch):
    monkeypatch.setattr(wire, "MOST_WAITING", 1)
    store.run(announce(store.keys, MotifDaemon("other/1", "other")))  # announces itself, and claims no call
    client = MotifClient(store)
    with pytest.raises(PeerError, match="answered within"):
        client.call("expand", 0.1, item="late")
    with pytest.raises(PeerError, match="too many calls"):
        client.call("show", item="x")
    server = CallServer(store, calls, "n1", (), time.time, workers=1)
    server.start()
    try:
        monkeypatch.setattr(wire, "MOST_WAITING", 10)
        assert client.call("show", item="x") == {"item": "x"}
        assert calls.expanded == []
    finally:
        server.stop()


def test_what_a_daemon_had_in_hand_when_it_died_is_answered_by_another(store, server, monkeypatch):
    keys = store.keys
    store.run(announce(keys, MotifDaemon("dead/1", "dead")))
    call = MotifCall("c1", "expand", {"item": "x"})
    taken = b"99999999999.000 " + call.encode()
    store.client.lpush(keys.motif_calls_taken("dead/1"), taken)
    store.client.zadd(keys.motif_daemons_seen, {"dead/1": 1})
    _, raw = store.client.blpop(keys.motif_answer("c1"), 4)
    answer = MotifAnswer.decode(raw)
    assert answer.status == 503
    assert answer.reason == "daemon `dead/1` ended while it worked at this, which may have happened; ask again"
    assert not store.run(wire.answer_call(keys, "dead/1", taken, "c1", MotifAnswer()))  # it was only suspended


def test_a_server_that_stops_finishes_what_it_has_in_hand(redis_server, store, calls):
    server = CallServer(store, calls, "n1", (), time.time)
    server.start()
    calls.gate.clear()
    answers = []
    other = Store(redis_server.url)
    caller = threading.Thread(target=lambda: answers.append(MotifClient(other).call("expand", item="x")))
    caller.start()
    assert calls.entered.acquire(timeout=5)
    stopper = threading.Thread(target=server.stop)
    stopper.start()
    calls.gate.set()
    stopper.join(10)
    caller.join(10)
    other.close()
    assert answers == [{"item": "x"}]
    assert store.run(live_daemons(store.keys)) == []


def wait_for(store, operation_id, state):
    deadline = time.monotonic() + 15
    while (found := store.run(JOBS.read(store.keys, operation_id))).state != state:
        assert time.monotonic() < deadline, found
        time.sleep(0.05)
    return found


def test_an_expansion_of_everything_goes_on_by_itself_and_says_how_far_it_is(store, server, calls):
    calls.failing["a/c/3"] = PeerError("its source is away")
    calls.failing["a/c/4"] = NotFound("deleted meanwhile")
    store.run(create_operation(store.keys, MotifOperation("o1", "a", "c")))
    found = wait_for(store, "o1", DONE)
    assert (found.expanded, found.failed, found.bytes, found.remaining) == (4, 1, 40, 0)
    assert [tuple(one) for one in found.examples] == [("a/c/3", "its source is away")]
    assert sorted(calls.expanded) == ["a/c/0", "a/c/1", "a/c/2", "a/c/5"]


def test_an_operation_that_is_cancelled_ends(store, server, calls):
    calls.gate.clear()
    store.run(create_operation(store.keys, MotifOperation("o1", "a")))
    assert calls.entered.acquire(timeout=10)
    cancelled = MotifOperation("o1", "a", state=CANCELLED, ended=1.0)
    assert store.run(cancel_operation(store.keys, cancelled))
    assert not store.run(cancel_operation(store.keys, cancelled))
    calls.gate.set()
    assert wait_for(store, "o1", CANCELLED).ended == 1.0


def test_an_operation_whose_daemon_died_is_begun_anew(store, calls):
    store.run(create_operation(store.keys, MotifOperation("o1", "a", "c")))
    claimed = store.run(claim_operation(store.keys, "dead/1", 0.01))
    assert claimed.id == "o1"
    server = CallServer(store, calls, "n1", (), time.time)
    server.start()
    try:
        assert wait_for(store, "o1", DONE).expanded == 6
    finally:
        server.stop()


def test_a_call_logs_with_the_id_of_the_request_that_it_is_for(store, server, calls, logged):
    calls.failing["x"] = ZeroDivisionError("a bug")
    with log_fields(request="req-1"), pytest.raises(PeerError, match="see its log"):
        MotifClient(store).call("show", item="x")
    assert f"{call_server.__name__}: [req-1] call `show` failed" in logged.text


def test_a_call_of_an_older_api_logs_with_its_own_id(store, server, calls, logged):
    calls.failing["x"] = ZeroDivisionError("a bug")
    with pytest.raises(PeerError, match="see its log"):
        MotifClient(store).call("show", item="x")
    assert re.search(r": \[[0-9a-f]{32}\] call `show` failed", logged.text)


def test_an_operation_logs_with_its_id_in_all_its_threads(store, server, logged):
    store.run(create_operation(store.keys, MotifOperation("o1", "a", "c")))
    wait_for(store, "o1", DONE)
    lines = [line for line in logged.text.splitlines() if "is expanded" in line]
    assert len(lines) == 6
    assert all(line.startswith("sluice_motifs: [o1] `a/c/") for line in lines)


def test_what_an_operation_fails_by_is_logged_with_its_id(store, server, calls, monkeypatch, logged):
    monkeypatch.setattr(calls, "contracted", lambda under: 1 / 0)
    store.run(create_operation(store.keys, MotifOperation("o1", "a", "c")))
    deadline = time.monotonic() + 10
    while "[o1] an operation failed" not in logged.text:
        assert time.monotonic() < deadline, logged.text
        time.sleep(0.05)
