"""A rewriter switches between jobs, so that none delays the others."""

import json
import logging
import time
from contextlib import ExitStack
from types import SimpleNamespace

import pytest
from tests.support.recordings.redis_answers import redis_away

from sluice_core.process.logs import TextFormatter
from sluice_core.resolve import Candidates
from sluice_core.store.records import Head
from sluice_middleware.swift.proxy_api import Request, Response
from sluice_middleware.wsgi import sysmeta
from sluice_rewriter import daemon
from sluice_rewriter.daemon import Rewriter, in_turn
from sluice_rewriter.object_rewriter import ObjectRewriter
from sluice_rewriter.unit_worker import UnitWorker
from sluice_rewrites import accounts, operations
from sluice_rewrites.accounts import AccountReport, add_accounts, open_request, write_report
from sluice_rewrites.messages import COLLECTING, DONE, FAILED, PAUSED, PLAIN, RUNNING, RewriteJob

NAMES = [f"o{number}" for number in range(5)]
#: The header of objects with filters that storage nodes have to decode.
NODE = {sysmeta.NODE: json.dumps([{"f": "noop", "v": 1}])}


def swift(env, start_response):
    """Containers of objects that are to be made plain."""
    request = Request(dict(env))
    parts = request.path_info.split("/", 4)[2:]
    names = [name for name in NAMES if name > request.params.get("marker", "")]
    if len(parts) == 3:
        status = {"HEAD": 200, "GET": 404}[request.method]  # all of them are deleted before they are read
        answer = Response(status=status, request=request, headers=NODE if status == 200 else {})
        return answer(env, start_response)
    if request.method == "HEAD":
        status = 204 if parts[1] == "c" else 404
        answer = Response(status=status, request=request, headers={"X-Container-Object-Count": len(NAMES)})
    else:
        answer = Response(request=request, body=json.dumps([{"name": name, "bytes": 1} for name in names]))
    return answer(env, start_response)


class Context:
    """A worker with the newest snapshot."""

    filters = {}
    lookup = SimpleNamespace(candidates=lambda target: Candidates(()))
    reader = SimpleNamespace(problem="", position=Head)

    def start(self):
        pass

    def refresh(self):
        pass


@pytest.fixture
def rewriter(store):
    return Rewriter(store, swift, Context(), 2)


def job(name, created=1, state=RUNNING, **more):
    return RewriteJob(name, f"AUTH_{name}", "c", "", PLAIN, state, created, "me", **more)


def order(store, *jobs):
    for one in jobs:
        store.run(operations.create_job(store.keys, one))


def work_once(rewriter):
    with ExitStack() as working:
        return rewriter._work_once(working)


def states(store):
    return {name: one.state for name, one in store.run(operations.JOBS.read_all(store.keys)).items()}


def test_jobs_have_their_turn_oldest_first():
    old, middle, young = job("z", 1), job("y", 2), job("a", 2)
    assert in_turn([middle, young, old], (0, "")) == [old, young, middle]
    assert in_turn([middle, young, old], (1, "z")) == [young, middle, old]
    assert in_turn([middle, young, old], (2, "y")) == [old, young, middle]


def test_a_job_of_a_low_rate_does_not_hold_back_a_later_one(rewriter, store, monkeypatch, caplog):
    monkeypatch.setattr(daemon, "TURN", 0.3)
    order(store, job("slow", 1, max_objects=0.01), job("quick", 2), job("paused", 3, PAUSED))
    with caplog.at_level(logging.ERROR):
        for _ in range(5):
            work_once(rewriter)
    assert states(store) == {"slow": RUNNING, "quick": DONE, "paused": PAUSED}
    progress = store.run(operations.read_progress(store.keys, "slow"))
    assert progress.counts.seen <= 1, "the first object needs no wait, the others are not begun"
    assert caplog.records == []


def test_a_job_whose_objects_wait_longer_than_a_turn_goes_on_all_the_same(rewriter, store, monkeypatch):
    monkeypatch.setattr(daemon, "TURN", 0.1)
    monkeypatch.setattr(daemon, "_SLICE", 0.05)
    order(store, job("slow", max_objects=2.5))
    end = time.monotonic() + 30
    while states(store) != {"slow": DONE}:
        assert time.monotonic() < end, "places were taken and not used"
        work_once(rewriter)
    progress = store.run(operations.read_progress(store.keys, "slow"))
    assert progress.counts.seen == len(NAMES)
    assert progress.ended - progress.started > 0.4 * (len(NAMES) - 1) - operations.BURST - 0.1


def test_without_redis_nothing_waits_for_the_rate_and_nothing_is_begun(rewriter, store, monkeypatch):
    claim = SimpleNamespace(is_active=True)
    wait = rewriter._pace(job("slow", max_objects=1), claim)
    monkeypatch.setattr(rewriter, "store", SimpleNamespace(keys=store.keys, run=_raise))
    assert not wait(1)


def test_what_a_rewrite_fails_by_is_logged_with_its_id(rewriter, store, monkeypatch, caplog):
    caplog.handler.setFormatter(TextFormatter("%(levelname)s%(context)s %(message)s"))
    monkeypatch.setattr(rewriter, "_sleep", rewriter.stop)
    monkeypatch.setattr(UnitWorker, "work", lambda worker, job, claim: _raise(job))
    order(store, job("j1"))
    rewriter.run()
    assert caplog.text.startswith("WARNING [j1] redis at `127.0.0.1:1`")


def test_what_a_green_thread_of_a_rewrite_says_has_its_id(rewriter, store, monkeypatch, caplog):
    caplog.handler.setFormatter(TextFormatter("%(levelname)s%(context)s %(message)s"))
    monkeypatch.setattr(ObjectRewriter, "_attempt", _fail)
    order(store, job("j1"))
    while states(store) != {"j1": DONE}:
        work_once(rewriter)
    assert "ERROR [j1] object `AUTH_j1/c/o0` is not rewritten" in caplog.text


def _fail(*_):
    raise ZeroDivisionError


def _raise(operation):
    raise redis_away()


RING = ("10.0.0.1:6202/sdb", "10.0.0.2:6202/sdb")


@pytest.fixture
def collecting(store, rewriter, monkeypatch):
    """A job for the cluster; one of two storage nodes has reported its only account."""
    monkeypatch.setattr(daemon, "_COLLECTING", 0.0)
    store.run(open_request(store.keys, "r"))
    store.run(add_accounts(store.keys, ["AUTH_a"]))
    store.run(write_report(store.keys, AccountReport("n1", ("r",), RING, RING[:1])))
    order(store, RewriteJob("j", "", "", "", PLAIN, COLLECTING, 1, "me", request="r"))
    return rewriter


def test_a_job_for_the_cluster_waits_for_the_accounts_of_all_storage_nodes(collecting, store):
    """Earlier it ended when all accounts that Redis happened to have were done."""
    for _ in range(3):
        assert not work_once(collecting)
    assert states(store) == {"j": COLLECTING}
    store.run(add_accounts(store.keys, ["AUTH_b"]))
    store.run(write_report(store.keys, AccountReport("n2", ("r",), RING, RING[1:])))
    while states(store) != {"j": DONE}:
        work_once(collecting)
    progress = store.run(operations.read_progress(store.keys, "j"))
    assert (progress.accounts, progress.listings) == (2, 0)


def test_a_job_for_the_cluster_fails_when_a_storage_node_stays_silent(collecting, store, monkeypatch, caplog):
    monkeypatch.setattr(accounts, "PATIENCE", 0.0)
    work_once(collecting)
    assert states(store) == {"j": FAILED}
    reason = store.run(operations.read_progress(store.keys, "j")).reason
    assert reason.startswith(
        "no agent has read the accounts on sdb of 10.0.0.2:6202: set `storage_confs` in the agent.conf"
    )
    assert reason in caplog.text
