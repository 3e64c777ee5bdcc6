"""``GET /events``: the log in pages, after a position, filtered, with a wait, and as lines for collectors."""

import json
import threading
import time

import pytest
from tests.support.recordings.redis_answers import redis_away

from sluice_core.messages.events import ERROR, INFO, NODE_AWAY, NODE_WELL, REFUSED, TRIAL_FAILED, WARNING, Event

LINES = "application/x-ndjson"


@pytest.fixture
def log(backend):
    """A function that logs events."""

    def append(*events):
        backend.store.append_events(events)

    return append


@pytest.fixture
def three(log):
    log(
        Event(1.0, ERROR, NODE_AWAY, "away", "n1", node="n1"),
        Event(2.0, WARNING, REFUSED, "no", "n1", node="n1", policy="p1", fields={"assignment": "p1.0"}),
        Event(3.0, INFO, NODE_WELL, "well", "n2", node="n2"),
    )


def listed(api, query=""):
    answer = api.get(f"/events{query}")
    assert answer.status_code == 200, answer.content
    return [one["text"] for one in answer.json()["events"]]


def test_an_event_says_all_that_is_known_of_it(api, three):
    found = api.get("/events").json()
    identity = found["events"][1].pop("id")
    assert found["events"][1] == {
        "at": "1970-01-01T00:00:02.000Z",
        "severity": "warning",
        "kind": "refused",
        "node": "n1",
        "policy": "p1",
        "subject": "",
        "text": "no",
        "source": "n1",
        "fields": {"assignment": "p1.0"},
    }
    assert (found["next_marker"], found["last"]) == (None, found["events"][2]["id"])
    assert identity < found["last"]


@pytest.mark.parametrize(
    ("query", "texts"),
    [
        ("", ["away", "no", "well"]),
        ("?severity=warning", ["away", "no"]),
        ("?severity=error", ["away"]),
        ("?node=n1", ["away", "no"]),
        ("?node=n3", []),
        ("?policy=p1", ["no"]),
        ("?policy=p1&severity=error", []),
        ("?since=2001-01-01T00:00:00Z", ["away", "no", "well"]),
        ("?since=9999999999", []),
    ],
)
def test_filters_narrow_the_list(api, three, query, texts):
    assert listed(api, query) == texts


def test_pages_and_cursors_lead_through_all_events_once(api, log):
    log(
        *(
            Event(1.0, (WARNING, INFO)[number % 2], REFUSED, f"e{number}", "n", policy=f"p{number}")
            for number in range(9)
        )
    )
    found, marker, sizes = [], "", []
    while marker is not None:
        page = api.get(f"/events?limit=2&severity=warning&marker={marker}").json()
        sizes.append(len(page["events"]))
        found += page["events"]
        marker = page["next_marker"]
    assert [one["text"] for one in found] == ["e0", "e2", "e4", "e6", "e8"]
    assert sizes == [2, 2, 1]
    assert listed(api, f"?since={found[2]['id']}&severity=warning") == ["e6", "e8"]
    assert listed(api, f"?since={page['last']}") == []
    log(Event(1.0, INFO, NODE_WELL, "later", "n"))
    assert listed(api, f"?since={page['last']}") == ["later"]


def test_a_request_waits_for_an_event_that_fits(api, log, backend):
    answers = []
    waiting = threading.Thread(target=lambda: answers.append(listed(api, "?wait=20&severity=error")))
    waiting.start()
    while not backend.store.client.info("clients")["blocked_clients"]:
        time.sleep(0.001)
    log(Event(1.0, INFO, NODE_WELL, "not this", "n"))
    log(Event(1.0, ERROR, NODE_AWAY, "this", "n"))
    waiting.join()
    assert answers == [["this"]]
    assert backend.waiters.acquire(blocking=False), "its place is free again"
    backend.waiters.release()


def test_waiting_ends_with_nothing_and_without_a_place_at_once(api, backend):
    began = time.monotonic()
    assert listed(api, "?wait=0.2") == []
    assert time.monotonic() - began >= 0.2
    places = []
    while backend.waiters.acquire(blocking=False):
        places.append(1)
    began = time.monotonic()
    assert listed(api, "?wait=20") == []
    assert time.monotonic() - began < 10
    for _ in places:
        backend.waiters.release()


def test_collectors_get_a_line_for_each_event(api, three):
    answer = api.get("/events?severity=warning", headers={"Accept": LINES})
    assert answer.headers["Content-Type"] == LINES
    rows = [json.loads(line) for line in answer.content.decode().splitlines()]
    assert rows == api.get("/events?severity=warning").json()["events"]
    assert api.get(f"/events?since={rows[-1]['id']}&severity=error", headers={"Accept": LINES}).content == b""


@pytest.mark.parametrize(
    ("query", "complaint"),
    [
        ("severity=warn", "`severity` is `warn`, expected info, warning, error"),
        (
            "since=yesterday",
            "`since` is `yesterday`, expected a time such as 2026-01-31T12:00:00Z or the `id` of an event",
        ),
        ("marker=7", "`marker` is `7`, expected `next_marker` of the page before"),
        ("severty=info", "unknown parameter `severty`, did you mean `severity`"),
        ("wait=31", "`wait` is `31`, expected a number from 0 to 30"),
    ],
)
@pytest.mark.parametrize("accept", ["application/json", LINES])
def test_what_is_wrong_is_said_in_json(api, query, complaint, accept):
    answer = api.get(f"/events?{query}", headers={"Accept": accept})
    assert (answer.status_code, answer.json()["error"]["message"]) == (400, complaint)


def test_a_reader_sees_the_events_about_policies_of_its_own_project(api, create, log, monkeypatch):
    from sluice_controller.identity.caller import Identity

    own, other = create("FOR CONTAINER AUTH_b/c DO SET noop")["id"], create("FOR TENANT AUTH_a DO SET noop")["id"]
    for policy in (own, other, "p-gone", ""):
        log(Event(1.0, WARNING, REFUSED, policy or "of no policy", "n1", node="n1", policy=policy))
    assert len(listed(api)) == 4
    reader = Identity.from_user("u", "rita", "b", "acme", ["reader"])
    monkeypatch.setattr(
        "sluice_controller.api.authentication.TokenAuthentication.authenticate", lambda self, request: (reader, None)
    )
    assert listed(api) == [own]
    assert listed(api, f"?policy={other}") == []


def test_code_that_fails_its_trial_is_an_event(api, send_code):
    assert api.post("/filters", {"keyword": "broken", "environment": "native"}, format="json").status_code == 201
    refused = send_code("/filters/broken/data", "this is no python", 400).json()["error"]["message"]
    (event,) = api.get("/events").json()["events"]
    assert (event["kind"], event["severity"], event["source"], event["subject"]) == (
        TRIAL_FAILED,
        "warning",
        "api",
        "broken",
    )
    assert event["text"] == f"code of filter `broken` failed its trial: {refused}"
    assert len(event["fields"]["sha256"]) == 64


def test_a_refusal_of_code_does_not_need_the_log(api, send_code, backend, monkeypatch, caplog):
    def away(events):
        raise redis_away()

    assert api.post("/filters", {"keyword": "broken", "environment": "native"}, format="json").status_code == 201
    monkeypatch.setattr(backend.store, "append_events", away, raising=False)
    send_code("/filters/broken/data", "this is no python", 400)
    assert "is lost" in caplog.text
