"""``POST /policies/{id}/undo``: the state of one policy before its last change."""

import pytest

from sluice_core.messages.policies import PolicyState
from sluice_core.store.records import Draft
from sluice_dsl.plan import assignment_for

STATIC = "FOR CONTAINER AUTH_a/logs DO SET compression WITH engine=zstd"
DYNAMIC = "FOR TENANT AUTH_a WHEN PUTS_SEC > 3 DO SET noop"


@pytest.fixture
def undo(api):
    def post(policy, query="", status=200, **headers):
        answer = api.post(f"/policies/{policy}/undo?{query}", headers=headers)
        assert answer.status_code == status, answer.content
        return answer.json()

    return post


@pytest.fixture
def shown(api):
    def get(policy):
        answer = api.get(f"/policies/{policy}")
        return answer.json() if answer.status_code == 200 else None

    return get


def test_another_text_is_undone_and_what_others_changed_since_stays(api, create, undo, shown):
    made = create(STATIC)
    api.put(f"/policies/{made['id']}", {"policy": STATIC.replace("zstd", "lz4")}, format="json")
    other = create("FOR TENANT AUTH_b DO SET noop")
    done = undo(made["id"])
    assert [(one["how"], one["name"]) for one in done["changes"]] == [("replace", made["id"])]
    assert "zstd" in shown(made["id"])["policy"]
    assert shown(other["id"])


def test_switching_off_is_undone(api, create, undo, shown, backend):
    made = create(STATIC)
    in_force = backend.store.assignments()
    api.put(f"/policies/{made['id']}", {"enabled": False}, format="json")
    undo(made["id"])
    assert shown(made["id"])["enabled"]
    assert backend.store.assignments() == in_force


def test_a_deleted_policy_comes_back_as_old_as_it_was(api, create, undo, shown):
    made = create(STATIC)
    api.delete(f"/policies/{made['id']}")
    assert undo(made["id"])["create"] == 1
    assert shown(made["id"])["created_at"] == made["created_at"]


def test_a_creation_is_undone_and_doing_it_twice_brings_it_back(create, undo, shown):
    made = create(STATIC)
    assert undo(made["id"])["delete"] == 1
    assert shown(made["id"]) is None
    undo(made["id"])
    assert shown(made["id"])["source"] == STATIC


def test_what_an_actor_did_is_no_change_to_undo(api, create, undo, shown, backend):
    made = create(DYNAMIC)
    api.put(f"/policies/{made['id']}", {"policy": DYNAMIC.replace("3", "4")}, format="json")
    cached = backend.policy_cache.contents().policies[made["id"]]
    put = assignment_for(made["id"], cached.plan, 0, 1, True)
    backend.store.commit(Draft("host", puts=(put,), states=(PolicyState(made["id"], "active"),)))
    undo(made["id"])
    assert shown(made["id"])["condition"] == "PUTS_SEC > 3"
    assert backend.store.assignments() == []


def test_a_plan_changes_nothing_and_its_version_guards_what_follows(create, undo, shown):
    made = create(STATIC)
    planned = undo(made["id"], "plan=true")
    assert (planned["plan"], planned["delete"]) == (True, 1)
    assert shown(made["id"])
    create("FOR TENANT AUTH_b DO SET noop")
    undo(made["id"], "", 412, **{"If-Match": f'"{planned["version"]}"'})


def test_a_sentence_that_another_policy_contradicts_by_now_is_refused(api, create, undo):
    made = create(STATIC)
    api.delete(f"/policies/{made['id']}")
    create(STATIC)
    refused = undo(made["id"], "", 409)["error"]
    assert refused["problems"][0]["severity"] == "error"


def test_a_sentence_whose_words_are_gone_is_refused(api, create, undo):
    group = {"name": "gold", "tenants": ["AUTH_a"]}
    assert api.post("/registry/gtenants", group, format="json").status_code == 201
    made = create("FOR GROUP gold DO SET noop")
    api.delete(f"/policies/{made['id']}")
    api.delete("/registry/gtenants/gold")
    assert "gold" in undo(made["id"], "", 400)["error"]["message"]


def test_a_policy_without_a_known_change_is_404(undo):
    assert "`none`" in undo("none", "", 404)["error"]["message"]
