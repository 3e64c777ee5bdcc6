"""``/changes``: the log of changes, in pages, with filters, and with the fact that older ones were removed."""

import pytest

from sluice_core.messages.policies import Entry, PolicyState
from sluice_core.store.records import Draft
from sluice_core.testing import assignment

STATIC = "FOR TENANT AUTH_a DO SET compression"


def test_every_change_says_who_made_it_and_what_it_was_about(api, create, backend):
    made = create(STATIC)
    backend.store.commit(Draft("actors@h", puts=(assignment(f"{made['id']}.1"),), states=(PolicyState(made["id"]),)))
    backend.store.commit(Draft("bob", entries=(Entry("term", "T", {"values": ["pdf"]}),)))
    api.delete(f"/policies/{made['id']}")
    found = api.get("/changes").json()
    assert found["head"]["epoch"] == 4
    assert (found["trimmed"], found["oldest"]["epoch"], found["next_marker"]) == (False, 1, None)
    told = [(one["epoch"], one["by"], one["policies"], one["set"], one["taken_back"]) for one in found["changes"]]
    assert told == [
        (4, "admin", [made["id"]], 0, 2),
        (3, "bob", [], 0, 0),
        (2, "actors@h", [made["id"]], 1, 0),
        (1, "admin", [made["id"]], 1, 0),
    ]
    assert found["changes"][1]["entries"] == ["term/T"]


def test_without_changes_the_list_is_empty(api):
    found = api.get("/changes").json()
    assert found == {
        "changes": [],
        "next_marker": None,
        "head": {"history": "", "epoch": 0},
        "trimmed": False,
        "oldest": None,
    }


def test_pages_follow_each_other_while_changes_go_on(api, create):
    for number in range(5):
        create(f"FOR TENANT AUTH_{number} DO SET noop")
    found, marker = [], ""
    while marker is not None:
        page = api.get(f"/changes?limit=2&marker={marker}").json()
        found.append([one["epoch"] for one in page["changes"]])
        marker = page["next_marker"]
        create(f"FOR TENANT AUTH_x{len(found)} DO SET noop")
    assert found == [[5, 4], [3, 2], [1]]


def test_filters_narrow_the_list(api, create, backend):
    first, second = create(STATIC), create("FOR TENANT AUTH_b DO SET noop")
    backend.store.commit(Draft("actors@h", drops=(f"{first['id']}.0",)))
    at = {one["epoch"]: one["at"] for one in api.get("/changes").json()["changes"]}

    def epochs(query):
        return [one["epoch"] for one in api.get(f"/changes?{query}").json()["changes"]]

    assert epochs(f"policy={first['id']}") == [3, 1]
    assert epochs(f"policy={second['id']}") == [2]
    assert epochs("by=admin") == [2, 1]
    assert epochs(f"since={at[3]}") in ([3], []), "milliseconds are cut off"
    assert epochs("since=2999-01-01") == []
    assert epochs("since=0&by=actors@h") == [3]


def test_the_oldest_known_change_is_named(api, create, backend):
    for number in range(4):
        create(f"FOR TENANT AUTH_{number} DO SET noop")
    backend.store.client.xtrim(backend.store.keys.changes, maxlen=2, approximate=False)
    found = api.get("/changes").json()
    assert (found["trimmed"], found["oldest"]["epoch"]) == (True, 3)
    assert "the oldest that is kept is 3" in api.get("/changes/2").json()["error"]["message"]


def test_a_change_shows_what_it_replaced_and_by_what(api, create):
    made = create(STATIC)
    path = f"/policies/{made['id']}"
    api.put(path, {"enabled": False}, format="json")
    api.put(path, {"policy": "FOR TENANT AUTH_a DO SET noop", "enabled": True}, format="json")
    api.delete(path)
    one, two, three, four = (api.get(f"/changes/{epoch}").json() for epoch in (1, 2, 3, 4))
    on = {"policy": STATIC, "enabled": True, "created_by": "admin"}
    noop = {**on, "policy": "FOR TENANT AUTH_a DO SET noop"}
    said = [[(each["how"], each["before"], each["after"]) for each in change["differences"]] for change in (one, two)]
    assert said == [[("create", None, on)], [("replace", on, {**on, "enabled": False})]]
    assert three["differences"][0]["after"] == noop
    assert [step["keyword"] for step in three["assignments"]] == ["noop"]
    assert four["differences"] == [
        {"what": "policy", "name": made["id"], "how": "delete", "before": noop, "after": None}
    ]
    assert four["dropped"] == [f"{made['id']}.0"]


def test_a_change_after_a_trimmed_past_has_no_differences(api, create, backend):
    create(STATIC)
    backend.store.client.delete(backend.store.keys.past)
    assert api.get("/changes/1").json()["differences"] is None


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/changes?limit=0", 400),
        ("/changes?marker=x", 400),
        ("/changes?since=yesterday", 400),
        ("/changes?since=9999-99-99", 400),
        ("/changes?frm=1", 400),
        ("/changes/7", 404),
        ("/changes/x", 404),
        ("/changes/99999999999999999999", 404),
        ("/changes/-1", 404),
        ("/changes/%C2%B2", 404),
    ],
)
def test_unknown_and_invalid_epochs_are_refused(api, create, path, status):
    create(STATIC)
    assert api.get(path).status_code == status
