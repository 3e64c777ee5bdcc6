"""Rewrites by the API: created, shown with their progress, paused, ended, deleted."""

import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

from sluice_controller.api.serializers.rewrites import REWRITES
from sluice_controller.policies import rewrites
from sluice_core.store.operation import Operation
from sluice_rewrites import accounts, operations
from sluice_rewrites.accounts import (
    AccountReport,
    open_request,
    open_requests,
    read_collection,
    write_report,
)
from sluice_rewrites.messages import (
    CANCELLED,
    PLAIN,
    POLICIES,
    RUNNING,
    RewriteCounts,
    RewriteJob,
    RewriteProgress,
)


@pytest.fixture
def post(api):
    def send(path="/rewrites", body=None, status=201):
        answer = api.post(path, {} if body is None else body, format="json")
        assert answer.status_code == status, answer.content
        return answer.json()

    return send


@pytest.fixture
def run(backend):
    return lambda operation, *given, **named: backend.store.run(operation(backend.store.keys, *given, **named))


def order(target="AUTH_a", to="plain", **more):
    return {"target": target, "to": to, **more}


def finish(run, job, **counts):
    """The writes of a rewriter for a job without containers."""
    unit = run(operations.claim_unit, job)
    run(operations.report_unit, unit, "", RewriteCounts(**counts), more={"listings": -1}, lease=0)


def test_a_rewrite_is_ordered_and_shown(api, post, backend):
    answer = api.post(
        "/rewrites", order("AUTH_a/logs/2026/", "policies", max_bw="20MBps", max_objects_sec=5), format="json"
    )
    assert answer.status_code == 201
    made = answer.json()
    assert answer.headers["Location"] == f"/rewrites/{made['id']}"
    assert (made["target"], made["to"], made["state"]) == ("AUTH_a/logs/2026/", "policies", "running")
    assert (made["max_bw"], made["max_objects_sec"], made["created_by"]) == (20e6, 5.0, "admin")
    assert (made["listed"], made["objects"], made["ended_at"], made["warning"]) == (False, 0, None, "")
    assert api.get(f"/rewrites/{made['id']}").json() == made
    assert api.get("/rewrites").json()["rewrites"] == [made]
    job = backend.store.run(operations.JOBS.read_all(backend.store.keys))[made["id"]]
    assert (job.account, job.container, job.prefix) == ("AUTH_a", "logs", "2026/")
    assert (job.history, job.epoch) == (backend.store.head().history, backend.store.head().epoch)


def test_a_rewriter_waits_for_the_policies_of_the_order(post, create, run, backend):
    create("FOR TENANT AUTH_a DO SET compression")
    made = post(body=order())
    assert run(operations.JOBS.read_all)[made["id"]].epoch == backend.store.head().epoch == 1


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"to": "plain"}, "`target` is missing"),
        (order("AUTH_a//x"), "expected tenant[/container[/prefix]] or CLUSTER"),
        (order("/c"), "expected tenant[/container[/prefix]] or CLUSTER"),
        (order(".expiring_objects"), "`.expiring_objects` is Swift's own"),
        (order(to="zip"), "`to` is `zip`, expected policies, plain, key"),
        (order(max_bw="20 apples"), "`max_bw`: expected a rate"),
        (order(max_bw="20Mbps"), "did you mean `20MBps`"),
        (order(max_bw=0), "expected at least 1 B/s"),
        (order(max_objects_sec=-1), "`max_objects_sec` is `-1`"),
        (order(max_objects_sec=0), "`max_objects_sec` is `0`, expected a number from 0.001"),
        (order(speed=1), "`speed`"),
    ],
)
def test_an_order_that_makes_no_sense_is_refused(post, body, words):
    assert words in post(body=body, status=400)["error"]["message"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("AUTH_a", "AUTH_a/c"), ("AUTH_a/c", "AUTH_a"), ("AUTH_a/c", "AUTH_a/c/x"), ("AUTH_a/c/x", "AUTH_a/c/xy"),
        ("CLUSTER", "AUTH_a/c"), ("AUTH_a", "CLUSTER"),
    ],
)  # fmt: skip
def test_jobs_do_not_overlap(post, first, second):
    made = post(body=order(first))
    refused = post(body=order(second), status=409)["error"]["message"]
    assert made["id"] in refused
    assert f"`{first}`" in refused
    post(f"/rewrites/{made['id']}/cancel", status=200)
    post(body=order(second))


def test_jobs_beside_each_other_are_several(api, post):
    for target in ("AUTH_a/c/x", "AUTH_a/c/y", "AUTH_a/d", "AUTH_b"):
        post(body=order(target))
    shown = api.get("/rewrites?limit=3").json()
    assert [one["target"] for one in shown["rewrites"]] == ["AUTH_a/c/x", "AUTH_a/c/y", "AUTH_a/d"]
    rest = api.get(f"/rewrites?limit=3&marker={shown['next_marker']}").json()
    assert ([one["target"] for one in rest["rewrites"]], rest["next_marker"]) == (["AUTH_b"], None)
    assert [one["target"] for one in api.get("/rewrites?target=AUTH_b").json()["rewrites"]] == ["AUTH_b"]


RING = ("10.0.0.1:6202/sdb", "10.0.0.2:6202/sdb")


def report(run, node, *read):
    requests = tuple(run(open_requests))
    run(write_report, AccountReport(node, requests, RING, read))


def test_a_job_for_the_cluster_says_what_it_waits_for_and_how_many_accounts_it_covers(api, post, run):
    made = post(body=order("cluster"))
    assert (made["target"], made["state"], made["accounts"]) == ("CLUSTER", "collecting", 0)
    assert made["warning"] == "collecting accounts: no storage node has reported yet"
    report(run, "n1", RING[0])
    assert api.get(f"/rewrites/{made['id']}").json()["warning"] == "collecting accounts (1 of 2 nodes)"
    report(run, "n2", RING[1])
    run(accounts.add_accounts, ["AUTH_a", "AUTH_b"])
    job = run(operations.JOBS.read_all)[made["id"]]
    assert run(read_collection, job.request).is_complete
    assert run(operations.begin_collected, job, 2)
    shown = api.get(f"/rewrites/{made['id']}").json()
    assert (shown["state"], shown["accounts"], shown["warning"]) == ("running", 2, "")
    assert post(body=order("AUTH_a"), status=409)


def test_a_job_for_one_account_covers_one(post):
    assert post(body=order())["accounts"] == 1


def test_accounts_that_were_reported_before_are_reported_again(post, run, api):
    run(open_request, "earlier")
    for node, device in zip(("n1", "n2"), RING, strict=True):
        report(run, node, device)
    made = post(body=order("cluster"))
    assert made["state"] == "collecting"
    assert made["warning"] == "collecting accounts: no storage node has reported yet"


def test_a_job_that_failed_has_ended_and_says_why(api, post, run):
    made = post(body=order("cluster"))
    run(
        operations.fail_collecting,
        run(operations.JOBS.read_all)[made["id"]],
        "no agent has read the accounts on sdb of x",
    )
    shown = api.get(f"/rewrites/{made['id']}").json()
    assert (shown["state"], shown["warning"]) == ("failed", "no agent has read the accounts on sdb of x")
    assert shown["ended_at"]
    assert [one["id"] for one in api.get("/rewrites?state=failed").json()["rewrites"]] == [made["id"]]
    assert "has ended" in post(f"/rewrites/{made['id']}/resume", status=409)["error"]["message"]
    assert post(body=order("cluster"))["state"] == "collecting"
    assert api.delete(f"/rewrites/{made['id']}").status_code == 204


def test_a_job_that_collects_can_be_paused_and_goes_on_collecting(post):
    made = post(body=order("cluster"))
    assert post(f"/rewrites/{made['id']}/pause", status=200)["state"] == "paused"
    assert post(f"/rewrites/{made['id']}/resume", status=200)["state"] == "collecting"


def test_when_all_is_known_and_the_job_still_collects_no_rewriter_runs(backend, post, run):
    made = post(body=order("cluster"))
    report(run, "n1", *RING)
    found = rewrites.find(backend, made["id"])
    assert found.warning == ""
    assert "no rewriter works at it" in replace(found, now=found.now + 60).warning


def test_what_is_withdrawn_or_ordered_twice_leaves_no_request_open(post, run):
    made = post(body=order("AUTH_a"))
    post(body=order("cluster"), status=409)
    assert run(open_requests) == frozenset()
    post(f"/rewrites/{made['id']}/cancel", status=200)
    again = post(body=order("cluster"))
    assert len(run(open_requests)) == 1
    post(f"/rewrites/{again['id']}/cancel", status=200)
    assert run(open_requests) == frozenset()


def test_progress_is_shown_with_an_estimate_and_examples(api, post, run, monkeypatch, backend):
    made = post(body=order())
    unit = run(operations.claim_unit, made["id"])
    found = {"containers": 1, "objects": 100, "bytes": 5000, "listings": -1}
    run(operations.report_unit, unit, "c", units={"AUTH_a/c": None}, more=found, lease=0)
    unit = run(operations.claim_unit, made["id"])
    counts = RewriteCounts(25, 20, 1000, 1250, 3, {"encrypted by Swift": 1}, {"PUT: 503": 1})
    run(operations.report_unit, unit, "o", counts, failures=[("AUTH_a/c/o", "PUT: 503")])
    started = run(operations.read_progress, made["id"]).started
    object.__setattr__(backend, "now", lambda: started + 10)
    shown = api.get(f"/rewrites/{made['id']}").json()
    assert (shown["listed"], shown["containers"], shown["containers_done"], shown["working"]) == (True, 1, 0, 1)
    assert (shown["objects"], shown["objects_done"], shown["rewritten"], shown["unchanged"]) == (100, 25, 20, 3)
    assert (shown["bytes"], shown["bytes_done"], shown["bytes_rewritten"]) == (5000, 1250, 1000)
    assert (shown["skipped"], shown["failed"]) == ({"encrypted by Swift": 1}, {"PUT: 503": 1})
    assert shown["examples"] == [{"object": "AUTH_a/c/o", "reason": "PUT: 503"}]
    view = rewrites.find(backend, made["id"])
    assert view.estimated_end == pytest.approx(started + 40)


@pytest.mark.parametrize("paused", [0.0, 60.0])
def test_the_estimate_leaves_out_the_time_in_pause(paused):
    """A quarter of the objects took ten seconds of work."""
    job = RewriteJob("j", "AUTH_a", "", "", PLAIN, RUNNING, 0, "me")
    progress = RewriteProgress(RewriteCounts(seen=25), objects=100, listings=0, started=20.0, paused=paused)
    now = 20.0 + paused + 10.0
    assert rewrites.RewriteView(job, progress, now).estimated_end == pytest.approx(now + 30.0)


def test_a_job_at_which_nobody_works_says_so_after_a_while(api, post, backend, run):
    made = post(body=order())
    now = backend.now()
    object.__setattr__(backend, "now", lambda: now + 11)
    assert "sluice-rewriter" in api.get(f"/rewrites/{made['id']}").json()["warning"]
    run(operations.claim_unit, made["id"])
    assert api.get(f"/rewrites/{made['id']}").json()["warning"] == ""


def test_a_job_is_paused_goes_on_and_is_done(api, post, run):
    made = post(body=order())
    path = f"/rewrites/{made['id']}"
    assert post(f"{path}/pause", status=200)["state"] == "paused"
    assert post(f"{path}/pause", status=200)["state"] == "paused"
    assert api.get("/rewrites?state=paused").json()["rewrites"][0]["id"] == made["id"]
    assert "is paused, cancel it first" in api.delete(path).json()["error"]["message"]
    assert post(f"{path}/resume", status=200)["state"] == "running"
    finish(run, made["id"])
    done = api.get(path).json()
    assert done["state"] == "done"
    assert done["ended_at"]
    assert "has ended, it is done" in post(f"{path}/pause", status=409)["error"]["message"]
    assert api.delete(path).status_code == 204
    assert api.get(path).status_code == 404


def test_a_cancelled_rewrite_has_ended(api, post):
    path = f"/rewrites/{post(body=order())['id']}"
    assert post(f"{path}/cancel", status=200)["ended_at"]
    for verb in ("pause", "resume", "cancel"):
        assert "has ended, it is cancelled" in post(f"{path}/{verb}", status=409)["error"]["message"]
        assert "there is no rewrite `nope`" in post(f"/rewrites/nope/{verb}", status=404)["error"]["message"]
    assert api.delete("/rewrites/nope").status_code == 404


@pytest.mark.parametrize("example", REWRITES, ids=lambda one: one.name)
def test_the_examples_of_the_schema_are_accepted(post, example):
    assert post(body=example.value)["max_bw"] == 20e6


def test_a_project_is_called_by_its_name(post, backend):
    native = replace(backend.native, tenants={"acme": "AUTH_1"}, account_prefix="AUTH_")
    object.__setattr__(backend, "native", native)
    assert post(body=order("acme/logs"))["target"] == "AUTH_1/logs"
    assert "`acne`, did you mean `acme`" in post(body=order("acne/logs"), status=400)["error"]["message"]
    assert "an account `AUTH_…`" in post(body=order("umbrella"), status=400)["error"]["message"]


def keyed(api, key, **more):
    return api.post("/rewrites", order(**more), format="json", headers={"Idempotency-Key": key})


def test_an_order_that_is_sent_again_is_the_same_job(api, post, run):
    first = keyed(api, "k1").json()
    again = keyed(api, "k1")
    assert (again.status_code, again.json(), again.headers["Location"]) == (201, first, f"/rewrites/{first['id']}")
    assert keyed(api, "k2").status_code == keyed(api, "k1", target="AUTH_a/c").status_code == 409
    finish(run, first["id"])
    assert keyed(api, "k1").json()["state"] == "done"
    assert keyed(api, "k2").json()["id"] != first["id"]
    assert keyed(api, "with blank").status_code == 400


def test_an_order_that_is_sent_again_starts_what_was_written_and_not_started(api, run):
    made = keyed(api, "k1").json()
    run(operations.change_state, made["id"], "paused")
    again = keyed(api, "k1").json()
    assert (again["id"], again["state"]) == (made["id"], "running")


def rival(name="rival", account="AUTH_a", created=1):
    return RewriteJob(name, account, "", "", POLICIES, RUNNING, created, "policy p1")


def test_of_two_jobs_that_are_ordered_at_once_the_later_one_is_withdrawn(api, post, run, monkeypatch):
    create = operations.create_job

    def second(keys, job):
        run(create, rival())
        return create(keys, job)

    monkeypatch.setattr(rewrites.operations, "create_job", second)
    assert "rewrite `rival` of `AUTH_a` has not ended" in post(body=order(), status=409)["error"]["message"]
    assert [one["id"] for one in api.get("/rewrites").json()["rewrites"]] == ["rival"]


def test_of_two_jobs_that_are_ordered_at_once_the_earlier_one_stays(post, run, monkeypatch):
    create = operations.create_job

    def first(keys, job):
        def parse(replies):
            time.sleep(0.005)
            return run(create, rival())

        made = create(keys, job)
        return Operation(made.commands, parse, script=made.script)

    monkeypatch.setattr(rewrites.operations, "create_job", first)
    assert post(body=order())["state"] == "running"


def test_no_rewriter_has_a_job_before_it_is_certain(post, run, monkeypatch):
    change, claimed = rewrites.change, []

    def try_first(backend, job, state):
        claimed.append(run(operations.claim_unit, job))
        return change(backend, job, state)

    monkeypatch.setattr(rewrites, "change", try_first)
    made = post(body=order())
    assert (claimed, made["state"]) == ([None], "running")
    assert run(operations.claim_unit, made["id"]) is not None


def test_jobs_of_sentences_stand_where_they_were_ordered(api, post, run):
    """Their ids are digests, which are not in the order of time."""
    ids = [post(body=order("AUTH_a/c/x"))["id"]]
    run(operations.create_job, rival("ffff-0", "AUTH_z", created=5))
    run(operations.create_job, rival("0000-0", "AUTH_y", created=int(time.time() * 1000) + 60_000))
    found, marker = [], ""
    while marker is not None:
        page = api.get(f"/rewrites?limit=1&marker={marker}").json()
        found += [one["id"] for one in page["rewrites"]]
        marker = page["next_marker"]
    assert found == ["ffff-0", *ids, "0000-0"]


def test_what_ended_longest_ago_is_forgotten_first_whatever_its_id_is(api, post, run, monkeypatch):
    monkeypatch.setattr(rewrites, "KEPT", 2)
    for number, name in enumerate(("ffff-0", "0000-0")):
        run(operations.create_job, rival(name, f"AUTH_{number}"))
        run(operations.change_state, name, CANCELLED)
        time.sleep(0.005)
    made = post(body=order())
    assert {one["id"] for one in api.get("/rewrites").json()["rewrites"]} == {"0000-0", made["id"]}


def test_a_job_that_is_deleted_while_it_is_read_is_not_shown(api, run, monkeypatch):
    run(operations.create_job, rival())
    read = operations.JOBS.read_all

    def then_deleted(keys):
        found = read(keys)

        def parse(replies):
            run(operations.delete_job, "rival")
            return found.parse(replies)

        return Operation(found.commands, parse)

    monkeypatch.setattr(rewrites.operations, "JOBS", SimpleNamespace(read_all=then_deleted))
    assert api.get("/rewrites").json()["rewrites"] == []


def test_the_oldest_of_those_that_have_ended_are_forgotten(api, post, run, monkeypatch):
    monkeypatch.setattr(rewrites, "KEPT", 2)
    ids = []
    for _ in range(4):
        ids.append(post(body=order())["id"])
        finish(run, ids[-1])
    assert [one["id"] for one in api.get("/rewrites").json()["rewrites"]] == ids[-2:]
