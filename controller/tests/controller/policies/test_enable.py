"""``PUT /policies/{id}``, switching off and on, and the history of firings."""

import pytest

from sluice_controller.api.serializers.policies import REVISIONS
from sluice_controller.policies.policy_update import PolicyUpdate, update_policy
from sluice_core.errors import Conflict, NotFound
from sluice_core.messages.policies import Firing, PolicyState
from sluice_core.store.records import Draft
from sluice_dsl.plan import assignment_for

STATIC = "FOR TENANT AUTH_test DO SET compression"
DYNAMIC = "FOR TENANT AUTH_test WHEN PUTS_SEC > 3 DO SET compression TRANSIENT"


@pytest.fixture
def put(api):
    def send(made, body, status=200, **headers):
        answer = api.put(f"/policies/{made['id']}", body, format="json", headers=headers)
        assert answer.status_code == status, answer.content
        return answer.json()

    return send


def fire(backend, policy_id, member="", at=1000.0):
    one = backend.policy_cache.contents().policies[policy_id]
    puts = (assignment_for(policy_id, one.plan, 0, one.policy.created, True, member),)
    state = PolicyState(policy_id, "active", {member: {}}, (Firing(at, "set", member, int(at)),))
    backend.store.commit(Draft("host", puts, states=(state,), expect={f"policy/{policy_id}": one.version}))


def test_a_static_policy_is_withdrawn_and_put_back_each_in_one_change(create, put, backend, api):
    made = create(STATIC)
    (before,) = backend.store.assignments()
    off = put(made, {"enabled": False})
    assert (off["state"], off["enabled"], off["policy"]) == ("disabled", False, made["policy"])
    assert backend.store.assignments() == []
    assert backend.store.head().epoch == off["epoch"] == 2
    assert api.get("/policies?state=disabled").json()["policies"][0]["id"] == made["id"]
    on = put(made, {"enabled": True})
    assert (on["state"], on["enabled"]) == ("active", True)
    assert backend.store.assignments() == [before]
    assert backend.store.head().epoch == 3


def test_an_update_without_a_difference_changes_nothing(create, put, backend):
    made = create(STATIC)
    assert put(made, {"enabled": True})["version"] == made["version"]
    assert put(made, {"policy": STATIC, "enabled": True})["epoch"] == made["epoch"]
    assert backend.store.head().epoch == 1


def test_a_dynamic_policy_that_is_disabled_gives_back_what_its_actor_set(create, put, backend):
    made = create(DYNAMIC)
    fire(backend, made["id"])
    off = put(made, {"enabled": False})
    assert backend.store.assignments() == []
    assert [one["what"] for one in off["firings"]] == ["set", "taken_back"]
    found, _ = backend.store.policy(made["id"])
    assert found.enabled is False
    assert backend.store.state(made["id"]).members == {}, "an actor that is enabled again begins anew"
    assert put(made, {"enabled": True})["state"] == "waiting"


def test_an_actor_of_a_disabled_policy_cannot_set_assignments(create, put, backend):
    made = create(DYNAMIC)
    fire(backend, made["id"])
    put(made, {"enabled": False})
    expect = {f"policy/{made['id']}": made["version"]}
    with pytest.raises(Conflict):
        backend.store.commit(Draft("host", states=(PolicyState(made["id"], "active"),), expect=expect))


@pytest.mark.parametrize("times", [1, 99])
def test_an_actor_that_fires_during_an_update_loses_nothing(backend, create, monkeypatch, times):
    made = create("FOR ALL TENANTS WHEN PUTS_SEC > 3 DO SET noop")
    read, fired = backend.store.state, []

    def racing(name):
        if len(fired) < times:
            fired.append(name)
            fire(backend, name, f"AUTH_{len(fired)}")
        return read(name)

    monkeypatch.setattr(backend.store, "state", racing)
    if times == 99:
        with pytest.raises(Conflict, match="changes faster"):
            update_policy(backend, made["id"], "admin", PolicyUpdate(enabled=False))
    else:
        update_policy(backend, made["id"], "admin", PolicyUpdate(enabled=False))
        assert backend.store.assignments() == []


def test_a_text_that_comes_during_an_update_is_not_lost(backend, create, in_between):
    made = create(STATIC)
    text = "FOR TENANT AUTH_test DO SET noop"
    in_between(lambda: update_policy(backend, made["id"], "other", PolicyUpdate(text=text)))
    update_policy(backend, made["id"], "admin", PolicyUpdate(enabled=False))
    found, _ = backend.store.policy(made["id"])
    assert (found.source, found.enabled) == (text, False)


def test_a_policy_that_is_deleted_during_an_update_stays_deleted(backend, create, in_between):
    made = create(STATIC)
    in_between(lambda: backend.store.commit(Draft("other", policy_drops=(made["id"],))))
    with pytest.raises(NotFound):
        update_policy(backend, made["id"], "admin", PolicyUpdate(text="FOR TENANT AUTH_test DO SET noop"))
    assert (backend.store.policies(), backend.store.assignments()) == ([], [])


def test_a_new_text_replaces_the_sentence_under_the_same_id(create, put, backend):
    made = create("FOR TENANT AUTH_test DO SET compression, SET encryption")
    new = put(made, {"policy": "FOR TENANT AUTH_test WHEN OBJECT_SIZE > 5 DO SET compression WITH engine=lz4"})
    assert (new["id"], new["created_at"], new["created_by"]) == (made["id"], made["created_at"], "admin")
    assert new["condition"] == "OBJECT_SIZE > 5"
    (only,) = backend.store.assignments()
    assert (only.id, only.params["engine"], only.when) == (f"{made['id']}.0", "lz4", ["size", ">", 5])


def test_a_static_policy_becomes_dynamic_and_back(create, put, backend):
    made = create(STATIC)
    new = put(made, {"policy": DYNAMIC})
    assert (new["dynamic"], new["state"]) == (True, "waiting")
    assert backend.store.assignments() == []
    fire(backend, made["id"])
    assert put(made, {"policy": STATIC})["dynamic"] is False
    assert [one.keyword for one in backend.store.assignments()] == ["compression"]


def test_a_text_may_come_for_a_policy_that_stays_disabled(create, put, backend):
    made = create(STATIC)
    put(made, {"enabled": False, "policy": "FOR TENANT AUTH_test DO SET noop"})
    assert backend.store.assignments() == []
    put(made, {"enabled": True})
    assert [one.keyword for one in backend.store.assignments()] == ["noop"]


BAD = {
    "nothing": ({}, 400, "expected `policy` or `enabled`"),
    "a list": ([], 400, "no object"),
    "a word": ({"enabled": "yes"}, 400, "no boolean"),
    "null": ({"enabled": None}, 400, "no boolean"),
    "something else": ({"enable": True}, 400, "did you mean `enabled`"),
    "no text": ({"policy": 3}, 400, "not a text"),
    "two sentences": ({"policy": f"{STATIC}; FOR TENANT AUTH_b DO SET noop"}, 400, "2 sentences"),
    "a bad sentence": ({"policy": "FOR TENANT a DO SET compresion"}, 400, "compresion"),
    "what another policy says": ({"policy": "FOR TENANT AUTH_other DO SET compression"}, 409, "already"),
}


@pytest.mark.parametrize("name", BAD)
def test_an_invalid_update_is_refused_and_changes_nothing(create, put, backend, name):
    body, status, words = BAD[name]
    made = create(STATIC)
    create("FOR TENANT AUTH_other DO SET compression")
    epoch = backend.store.head().epoch
    assert words in put(made, body, status)["error"]["message"]
    assert backend.store.head().epoch == epoch


def test_if_match_guards_it(create, put):
    made = create(STATIC)
    put(made, {"enabled": False}, 412, **{"If-Match": f'"{made["version"] + 1}"'})
    put(made, {"enabled": False}, 200, **{"If-Match": f'"{made["version"]}"'})
    put({"id": "none"}, {"enabled": False}, 404)


@pytest.mark.parametrize("example", REVISIONS, ids=lambda one: one.name)
def test_the_examples_of_the_description_work(create, put, example):
    put(create(STATIC), example.value)


def test_a_kept_policy_comes_back_with_the_members_that_it_was_kept_for(api, create, put, backend):
    made = create("FOR ALL TENANTS WHEN PUTS_SEC > 3 DO SET compression")
    fire(backend, made["id"], "AUTH_a")
    kept = api.delete(f"/policies/{made['id']}?keep=true").json()
    before = backend.store.assignments()
    put(kept, {"enabled": False})
    assert backend.store.assignments() == []
    put(kept, {"enabled": True})
    assert backend.store.assignments() == before


def test_firings_come_in_pages_newest_first(api, create, backend):
    made = create("FOR ALL TENANTS WHEN PUTS_SEC > 3 DO SET compression")
    firings = tuple(
        Firing(at, what, member, int(at))
        for at, what, member in [(1.0, "set", "a"), (2.0, "set", "b"), (2.0, "set", "c"), (3.5, "taken_back", "a")]
    )
    backend.store.commit(Draft("host", states=(PolicyState(made["id"], "active", firings=firings),)))
    path = f"/policies/{made['id']}/firings"
    found, marker = [], ""
    while marker is not None:
        page = api.get(f"{path}?limit=1&marker={marker}").json()
        found += [(one["window"], one["member"]) for one in page["firings"]]
        marker = page["next_marker"]
    assert found == [(3, "a"), (2, "c"), (2, "b"), (1, "a")]
    assert len(api.get(f"{path}?what=set").json()["firings"]) == 3
    assert len(api.get(f"{path}?member=a").json()["firings"]) == 2
    assert api.get(f"/policies/{create(STATIC)['id']}/firings").json() == {"firings": [], "next_marker": None}


@pytest.mark.parametrize(("query", "status"), [("marker=x", 400), ("what=fired", 400), ("limit=0", 400)])
def test_an_invalid_page_of_firings_is_refused(api, create, query, status):
    assert api.get(f"/policies/{create(DYNAMIC)['id']}/firings?{query}").status_code == status
    assert api.get("/policies/none/firings").status_code == 404
