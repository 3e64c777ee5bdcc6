"""Global controllers by the API: uploaded as stopped, started, stopped with their assignments, shown with hosts."""

from __future__ import annotations

import hashlib
import threading
import time

import pytest

from sluice_core.store.records import Draft
from sluice_core.testing import assignment

BUSY = """
from sluice_core.control import Assign, Controller, ControllerInfo


class Busy(Controller):
    info = ControllerInfo("busy", metrics=("PUTS_SEC",), period=2.0, help="compresses what the busiest uploads")

    def compute_assignments(self, observation):
        values = observation.values("PUTS_SEC")
        if values:
            yield Assign(max(values, key=values.__getitem__), "compression")
"""
PATH = "/controllers/busy"


@pytest.fixture
def uploaded(send_code):
    return send_code(f"{PATH}/data", BUSY, 201)


@pytest.fixture
def post(api):
    def send(call, status=200, body=None, **headers):
        answer = api.post(f"{PATH}/{call}", body or {}, format="json", headers=headers)
        assert answer.status_code == status, answer.content
        return answer.json()

    return send


def told(**more):
    now = time.time()
    said = {"state": "running", "reason": "", "revision": 1, "since": now, "last_run": now}
    return {"at": now, "bus": True, "controllers": {"busy": {**said, "seconds": 0.01, "assignments": 1, **more}}}


def set_by_the_controller(backend):
    put = assignment("controller:busy.0123456789ab", "AUTH_a", "compression", created=5)
    backend.store.commit(Draft("actors@h", puts=(put,)))


def test_a_controller_comes_stopped_and_says_of_itself_what_it_is(api, uploaded):
    assert uploaded.headers["Location"] == PATH
    made = uploaded.json()
    assert (made["name"], made["main"], made["metrics"], made["period"]) == ("busy", "Busy", ["PUTS_SEC"], 2.0)
    assert (made["running"], made["state"], made["hosts"]) == (False, "stopped", [])
    assert made["created_by"] == "admin"
    shown = api.get(PATH)
    assert (shown.json(), shown.headers["ETag"]) == (made, uploaded.headers["ETag"])
    assert api.get("/controllers").json() == {"controllers": [made], "next_marker": None}
    assert b"".join(api.get(f"{PATH}/data").streaming_content) == BUSY.encode()
    assert api.get(f"{PATH}/instances").json() == {"instances": [], "next_marker": None}


def test_controllers_are_shown_on_live_actor_hosts(api, backend, uploaded, post):
    started = post("start")
    assert (started["state"], started["reason"]) == ("starting", "no actor host has started it yet")
    backend.store.host_report("h1", told())
    backend.store.host_report("h2", {**told(), "at": time.time() - 100})
    shown = api.get(PATH).json()
    assert (shown["state"], shown["hosts"]) == ("running", ["h1"])
    (one,) = api.get(f"{PATH}/instances").json()["instances"]
    assert (one["host"], one["state"], one["revision"], one["assignments"]) == ("h1", "running", 1, 1)
    assert one["last_run"].endswith("Z")
    backend.store.host_report("h1", told(state="failed", reason="ZeroDivisionError", last_run=0))
    assert api.get(PATH).json()["reason"] == "ZeroDivisionError"
    assert api.get(f"{PATH}/instances").json()["instances"][0]["last_run"] is None
    assert [one["name"] for one in api.get("/controllers?state=failed").json()["controllers"]] == ["busy"]
    assert api.get("/controllers?state=running").json()["controllers"] == []
    assert api.get("/controllers?state=idle").status_code == 400


@pytest.mark.parametrize("nonsense", [[], {"busy": 7}, {"busy": {"state": "x", "revision": "y"}}])
def test_reports_that_make_no_sense_are_no_error(api, backend, uploaded, nonsense):
    backend.store.host_report("h1", {"at": time.time(), "controllers": nonsense})
    assert api.get(f"{PATH}/instances").status_code == 200


def test_stopping_takes_back_what_it_set_in_the_same_change(api, backend, uploaded, post):
    post("start")
    set_by_the_controller(backend)
    epoch = backend.store.head().epoch
    assert post("stop")["running"] is False
    assert backend.store.assignments() == []
    assert backend.store.head().epoch == epoch + 1
    change = api.get(f"/changes/{epoch + 1}").json()
    assert (change["controllers"], change["policies"]) == (["busy"], ["controller:busy"])
    assert change["taken_back"] == 1
    assert [(one["what"], one["name"], one["how"]) for one in change["differences"]] == [
        ("controller", "busy", "replace")
    ]


def test_an_actor_host_that_knew_it_running_cannot_set_anything_after_a_stop(backend, uploaded, post):
    from sluice_core.errors import Conflict

    post("start")
    known = backend.store.version("upload/controller/busy")
    post("stop")
    with pytest.raises(Conflict):
        backend.store.commit(Draft("actors@h", puts=(assignment("controller:busy.0"),), expect={
            "upload/controller/busy": known
        }))  # fmt: skip


def test_forgetting_takes_back_what_it_set_as_well(api, backend, uploaded, post):
    post("start")
    set_by_the_controller(backend)
    assert api.delete(PATH, headers={"If-Match": '"1"'}).status_code == 412
    assert api.delete(f"{PATH}").status_code == 204
    assert backend.store.assignments() == []
    for answer in (api.get(PATH), api.delete(PATH), api.get(f"{PATH}/data"), api.get(f"{PATH}/instances")):
        assert answer.status_code == 404
    post("start", 404)


def test_effective_explains_what_a_controller_set(api, backend, create, uploaded, post):
    post("start")
    set_by_the_controller(backend)
    mine = create("FOR CONTAINER AUTH_a/c DO SET noop")
    (whole,) = [one for one in api.get("/effective?target=AUTH_a").json()["kinds"] if one["kind"] == "filter"]
    assert whole["decided_by"] == ["controller:busy"]
    assert [(one["controller"], one["keyword"]) for one in whole["pipeline"]] == [("busy", "compression")]
    (inside,) = [one for one in api.get("/effective?target=AUTH_a/c").json()["kinds"] if one["kind"] == "filter"]
    assert inside["pipeline"][0]["controller"] == ""
    (over,) = inside["overridden"]
    assert (over["policy"], over["controller"], over["reason"]) == ("controller:busy", "busy", "narrower")
    assert over["by"] == [mine["id"]]


def test_another_revision_and_back_again(api, uploaded, send_code, post):
    second = send_code(f"{PATH}/data", BUSY.replace("2.0", "5")).json()
    assert (second["revision"], second["period"], second["running"]) == (2, 5.0, False)
    back = post("rollback", body={"revision": 1})
    assert (back["revision"], back["period"]) == (3, 2.0)
    assert back["sha256"] == hashlib.sha256(BUSY.encode()).hexdigest()
    assert [one["revision"] for one in back["revisions"]] == [2, 1]


def test_a_controller_with_an_unmeasured_metric_is_not_started(api, send_code, post):
    blind = BUSY.replace("PUTS_SEC", "MOON_PHASE")
    send_code(f"{PATH}/data", blind, 201)
    assert "`MOON_PHASE`" in post("start", 409)["error"]["message"]
    send_code(f"{PATH}/data", BUSY.replace("PUTS_SEC", "puts_sec"))
    assert "did you mean `PUTS_SEC`" in post("start", 409)["error"]["message"]
    send_code(f"{PATH}/data", BUSY)
    assert post("start")["running"] is True
    send_code(f"{PATH}/data", blind, 409)


@pytest.mark.parametrize(
    ("name", "code", "word"),
    [
        ("Busy", BUSY, "lower case"),
        ("a.b", BUSY, "lower case"),
        ("other", BUSY, "`busy`, expected `other`"),
        ("busy", "class Busy(:", "line 1"),
        ("busy", BUSY.replace("period=2.0", "period=0.1"), "at least 1 second"),
        ("busy", BUSY.replace("if values:", "if values['x']:"), "KeyError"),
        ("busy", "from sluice_filters.api import Filter", "imports `sluice_filters.api`"),
    ],
)
def test_invalid_controller_code_is_refused(api, send_code, code_swift, name, code, word):
    assert word in send_code(f"/controllers/{name}/data", code, 400).json()["error"]["message"]
    assert code_swift.objects == {}
    assert api.get("/controllers").json()["controllers"] == []


def test_a_stale_version_is_refused_everywhere(uploaded, send_code, post):
    stale = {"If-Match": '"999"'}
    for call in ("start", "stop", "rollback"):
        post(call, 412, **stale)
    send_code(f"{PATH}/data", BUSY + "#", 412, **stale)
    send_code("/controllers/newer/data", BUSY, 404, **stale)


def test_a_stop_waits_for_the_host_that_still_runs_it(api, backend, uploaded, post):
    post("start")
    backend.store.host_report("h1", told())
    assert api.get(PATH).json()["hosts"] == ["h1"]

    def answer():
        while backend.store.upload("controller/busy").running:
            time.sleep(0.01)
        backend.store.host_report("h1", {"at": time.time(), "bus": True, "controllers": {}})

    host = threading.Thread(target=answer)
    host.start()
    stopped = post("stop?wait=30")
    host.join()
    assert (stopped["state"], stopped["hosts"]) == ("stopped", [])


def test_a_start_waits_until_a_host_says_how_it_fares(backend, uploaded, post):
    def answer():
        while not backend.store.upload("controller/busy").running:
            time.sleep(0.01)
        backend.store.host_report("h1", told(state="failed", reason="it cannot be loaded here"))

    host = threading.Thread(target=answer)
    host.start()
    started = post("start?wait=30")
    host.join()
    assert (started["state"], started["reason"]) == ("failed", "it cannot be loaded here")


ALLOCATOR = BUSY.replace("period=2.0", 'allocates=("GET",)')


def test_two_controllers_do_not_allocate_the_same_method(api, send_code, post):
    made = send_code(f"{PATH}/data", ALLOCATOR, 201).json()
    send_code("/controllers/other/data", ALLOCATOR.replace('"busy"', '"other"'), 201)
    post("start")
    refused = api.post("/controllers/other/start", {}, format="json")
    assert refused.status_code == 409
    assert "`busy` runs and allocates the bandwidth of GET" in refused.json()["error"]["message"]
    post("stop")
    assert api.post("/controllers/other/start", {}, format="json").status_code == 200
    assert made["metrics"] == ["PUTS_SEC"]


def test_a_method_that_nobody_can_allocate_is_refused(send_code):
    said = send_code(f"{PATH}/data", BUSY.replace("period=2.0", 'allocates=("REPLICATION",)'), 400).json()
    assert "it allocates `REPLICATION`, expected GET or PUT" in said["error"]["message"]
