"""``rewrite``: jobs are submitted, watched to their end, and cancelled."""

import json
import sys
import threading

import pytest

from sluice_client import Client, Retries
from sluice_client.commands import rewrites
from sluice_client.commands.rewrites import progress_line, share_done
from sluice_rewrites import operations
from sluice_rewrites.accounts import AccountReport, open_requests, write_report
from sluice_rewrites.messages import RewriteCounts


@pytest.fixture
def run(store):
    return lambda operation, *given, **named: store.run(operation(store.keys, *given, **named))


@pytest.fixture
def rewriter(run):
    """Processes the first unit of each job, in a thread, until the test ends."""
    ended = threading.Event()

    def work(counts):
        def loop():
            while not ended.wait(0.05):
                for job in run(operations.JOBS.read_all):
                    unit = run(operations.claim_unit, job)
                    if unit is not None:
                        found = {"listings": -1, "objects": counts.seen}
                        run(operations.report_unit, unit, "", counts, more=found, lease=0)

        thread = threading.Thread(target=loop)
        thread.start()
        threads.append(thread)

    threads = []
    yield work
    ended.set()
    for thread in threads:
        thread.join()


def created(sluice, *words):
    return json.loads(sluice("rewrite", "create", *words, "-f", "json").out)


def test_a_rewrite_is_ordered_listed_and_ended_early(sluice):
    made = created(sluice, "AUTH_a/logs/2026/", "policies", "--max-bw", "20MBps", "--max-objects-sec", "5")
    assert (made["target"], made["to"], made["state"], made["max_bw"]) == (
        "AUTH_a/logs/2026/",
        "policies",
        "running",
        2e7,
    )
    assert "20 MB/s" in sluice("rewrite", "show", made["id"]).out
    assert [one["ID"] for one in json.loads(sluice("rewrite", "list", "-f", "json").out)] == [made["id"]]
    for verb, state in (("pause", "paused"), ("resume", "running"), ("cancel", "cancelled")):
        assert sluice("rewrite", verb, made["id"]).out == f"rewrite {made['id']} is {state}\n"
    assert "has ended" in sluice("rewrite", "pause", made["id"], status=1).err
    assert json.loads(sluice("rewrite", "list", "--state", "running", "-f", "json").out) == []
    assert sluice("rewrite", "delete", made["id"]).out == f"rewrite {made['id']} is deleted\n"


def test_a_rewrite_is_waited_for(sluice, rewriter):
    rewriter(RewriteCounts(3, 2, 10, 30, 1))
    found = sluice("rewrite", "create", "AUTH_a", "plain", "--wait", "-f", "json")
    done = json.loads(found.out)
    assert (done["state"], done["rewritten"], done["unchanged"]) == ("done", 2, 1)
    assert "objects" in found.err


def test_objects_that_failed_are_an_error(sluice, rewriter):
    rewriter(RewriteCounts(3, 2, 10, 30, 0, {}, {"PUT: 503": 1}))
    found = sluice("rewrite", "create", "AUTH_a", "plain", "--wait", status=1)
    assert "1 objects could not be rewritten, order the job again: 1 × PUT: 503" in found.err


def test_a_cancelled_rewrite_is_an_error_for_whoever_waits(sluice):
    made = created(sluice, "AUTH_a", "plain")
    sluice("rewrite", "cancel", made["id"])
    assert "was cancelled" in sluice("rewrite", "show", made["id"], "--wait", status=1).err


def test_a_rewrite_that_fails_is_an_error_that_says_why(sluice, run):
    made = created(sluice, "CLUSTER", "key")
    assert (made["state"], made["accounts"]) == ("collecting", 0)
    run(operations.fail_collecting, run(operations.JOBS.read_all)[made["id"]], "no agent has read the accounts on sdb")
    found = sluice("rewrite", "show", made["id"], "--wait", status=1).err
    assert f"rewrite {made['id']} has failed: no agent has read the accounts on sdb" in found


def test_who_waits_sees_what_a_rewrite_waits_for(sluice, run, rewriter, monkeypatch):
    made = created(sluice, "CLUSTER", "key")
    job, shown = run(operations.JOBS.read_all)[made["id"]], []
    ring = ("10.0.0.1:6202/sdb", "10.0.0.2:6202/sdb")
    run(write_report, AccountReport("n1", tuple(run(open_requests)), ring, ring[:1]))

    def pause(seconds):
        if not shown:
            rewriter(RewriteCounts(1, 1, 10, 10))
            shown.append(run(operations.begin_collected, job, 2))

    monkeypatch.setattr(rewrites.time, "sleep", pause)
    found = sluice("rewrite", "show", made["id"], "--wait", "-f", "json")
    assert "collecting accounts (1 of 2 nodes)" in found.err
    assert (json.loads(found.out)["state"], json.loads(found.out)["accounts"]) == ("done", 2)


JOB = {
    "id": "r1", "target": "AUTH_a", "to": "plain", "state": "running", "objects": 4, "objects_done": 1, "rewritten": 1,
    "bytes_done": 10, "bytes_rewritten": 10, "failed": {}, "estimated_end": None, "listed": True, "warning": "",
}  # fmt: skip
AWAY = {"error": {"code": 503, "title": "", "message": "redis is away", "problems": []}}


def test_an_order_without_an_answer_is_sent_again_and_is_one_job(stub):
    stub.enqueue(cut=True).enqueue(201, JOB)
    with Client(stub.url, retries=Retries(first=0.0)) as client:
        assert client.create_rewrite("AUTH_a", "plain") == JOB
    keys = [one.headers["Idempotency-Key"] for one in stub.requests]
    assert len(keys) == 2
    assert len(set(keys)) == 1


def test_waiting_goes_on_while_redis_is_away(sluice, stub, monkeypatch):
    monkeypatch.setattr(rewrites, "_POLL", 0.0)
    stub.enqueue(200, JOB).enqueue(503, AWAY).enqueue(200, {**JOB, "state": "done"})
    found = sluice("--json", "rewrite", "show", "r1", "--wait", start=["--url", stub.url])
    assert json.loads(found.out)["state"] == "done"
    assert stub.paths == ["/rewrites/r1"] * 3


def test_waiting_ends_with_another_refusal(sluice, stub, monkeypatch):
    monkeypatch.setattr(rewrites, "_POLL", 0.0)
    gone = {"error": {**AWAY["error"], "code": 404, "message": "there is no rewrite `r1`"}}
    stub.enqueue(200, JOB).enqueue(404, gone)
    said = sluice("rewrite", "show", "r1", "--wait", status=1, start=["--url", stub.url])
    assert "there is no rewrite `r1` (HTTP 404)" in said.err


def test_a_terminal_has_one_line_that_moves(sluice, stub, monkeypatch):
    monkeypatch.setattr(rewrites, "_POLL", 0.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    stub.enqueue(200, JOB).enqueue(200, {**JOB, "objects_done": 2}).enqueue(200, {**JOB, "state": "done"})
    lines = sluice("rewrite", "show", "r1", "--wait", start=["--url", stub.url]).err.split("\r\x1b[K")
    assert [one.partition("]")[2][:5] for one in lines[1:]] == ["  25%", "  50%", " 100%"]
    assert [one.count("\n") for one in lines] == [0, 0, 0, 1]


def test_a_goal_that_is_none_is_named(sluice):
    assert "invalid choice: 'zip'" in sluice("rewrite", "create", "AUTH_a", "zip", status=2).err


SHOWN = {
    "state": "running", "objects": 200, "objects_done": 50, "rewritten": 40, "bytes_rewritten": 12_345_678,
    "failed": {}, "estimated_end": None, "listed": True,
}  # fmt: skip


QUARTER = f"[{'#' * 7:30}]  25%, 50 of 200 objects, 40 rewritten, 12.3 MB"
NOTHING = f"[{'':30}]   0%, 0 of 0 objects, 40 rewritten, 12.3 MB"


@pytest.mark.parametrize(
    ("more", "rate", "line"),
    [
        ({}, None, QUARTER),
        ({"failed": {"503": 2}}, 5e6, f"{QUARTER}, 2 failed, 5 MB/s"),
        ({"objects": 0, "objects_done": 0}, None, NOTHING),
    ],
)
def test_progress_is_one_line(more, rate, line):
    assert progress_line({**SHOWN, **more}, rate) == line


def test_more_objects_than_were_counted_are_no_more_than_all():
    assert share_done({**SHOWN, "objects_done": 300}) == 1.0
    assert share_done({**SHOWN, "state": "done", "objects": 0, "objects_done": 0}) == 1.0
