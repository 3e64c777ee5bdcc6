"""``POST /changes/{epoch}/rollback``: an earlier configuration, as a new change."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sluice_controller.configuration.configuration import Configuration, configuration_at, replace_configuration
from sluice_core.errors import Conflict
from sluice_core.messages.policies import Entry, PolicyState
from sluice_core.messages.uploads import Upload
from sluice_core.store.records import Draft
from sluice_dsl.plan import assignment_for

STATIC = "FOR TENANT AUTH_a DO SET compression"
OTHER = "FOR TENANT AUTH_b DO SET noop"
SCRAMBLE = Upload("scramble", "wasm", "wasm", "", "a" * 64, 3, reverse=True, info={"stage": 450})


@pytest.fixture
def back(api):
    def post(epoch, query="", status=200, **headers):
        answer = api.post(f"/changes/{epoch}/rollback?{query}", headers=headers)
        assert answer.status_code == status, answer.content
        return answer.json()

    return post


def test_a_rollback_is_a_new_change_with_the_old_configuration(api, create, backend, back):
    kept, gone = create(STATIC), create(OTHER)
    before, config = backend.store.assignments(), Configuration.now(backend)
    api.delete(f"/policies/{gone['id']}")
    api.put(f"/policies/{kept['id']}", {"enabled": False}, format="json")
    new = create("FOR TENANT AUTH_c DO SET noop")
    done = back(2)
    assert (done["create"], done["replace"], done["delete"], done["epoch"]) == (1, 1, 1, 6)
    assert {(one["how"], one["name"]) for one in done["changes"]} == {
        ("create", gone["id"]),
        ("replace", kept["id"]),
        ("delete", new["id"]),
    }
    assert Configuration.now(backend) == config
    assert backend.store.assignments() == before
    assert api.get("/changes/6").json()["by"] == "admin"
    back(5)
    assert [one["id"] for one in api.get("/policies").json()["policies"]] == [kept["id"], new["id"]]


def test_a_plan_changes_nothing_and_says_the_same(api, create, backend, back):
    create(STATIC)
    create(OTHER)
    planned = back(1, "plan=true")
    assert (planned["plan"], planned["epoch"], planned["delete"]) == (True, 2, 1)
    assert backend.store.head().epoch == 2
    assert back(1)["changes"] == planned["changes"]


def test_rolling_back_to_the_empty_configuration(api, create, backend, back):
    create(STATIC)
    backend.store.commit(Draft("me", entries=(Entry("term", "T", {"values": ["x"]}),)))
    back(0)
    assert Configuration.now(backend) == Configuration()
    assert backend.store.assignments() == []


def test_a_rollback_without_a_difference_changes_nothing(create, back, backend):
    create(STATIC)
    assert back(1)["changes"] == []
    assert backend.store.head().epoch == 1


def test_an_actor_whose_policy_comes_back_begins_anew(api, create, backend, back):
    made = create("FOR TENANT AUTH_a WHEN PUTS_SEC > 3 DO SET noop")
    api.put(f"/policies/{made['id']}", {"policy": "FOR TENANT AUTH_a WHEN GETS_SEC > 3 DO SET noop"}, format="json")
    cached = backend.policy_cache.contents().policies[made["id"]]
    put = assignment_for(made["id"], cached.plan, 0, 1, True)
    backend.store.commit(Draft("host", puts=(put,), states=(PolicyState(made["id"], "active"),)))
    back(1)
    assert backend.store.assignments() == []
    assert backend.store.state(made["id"]) is None
    assert api.get(f"/policies/{made['id']}").json()["condition"] == "PUTS_SEC > 3"


def test_a_rollback_keeps_assignments_of_other_policies(api, create, backend, back):
    made = create("FOR TENANT AUTH_a WHEN PUTS_SEC > 3 DO SET noop")
    cached = backend.policy_cache.contents().policies[made["id"]]
    put = assignment_for(made["id"], cached.plan, 0, 1, True)
    backend.store.commit(Draft("host", puts=(put,), states=(PolicyState(made["id"], "active"),)))
    create(STATIC)
    back(2)
    assert backend.store.assignments() == [put]


def test_a_rollback_behind_the_known_past_is_409(create, back, backend):
    for number in range(4):
        create(f"FOR TENANT AUTH_{number} DO SET noop")
    backend.store.client.xtrim(backend.store.keys.past, maxlen=2, approximate=False)
    assert "the earliest is 2" in back(1, "", 409)["error"]["message"]
    assert back(2)["delete"] == 2


def test_an_unknown_epoch_is_404(create, back):
    create(STATIC)
    back(2, "", 404)
    back("x", "", 404)


def test_if_match_guards_it(create, back, backend):
    create(STATIC)
    create(OTHER)
    version = back(1, "plan=true")["version"]
    back(1, "", 412, **{"If-Match": f'"{version + 1}"'})
    back(1, "", 200, **{"If-Match": f'"{version}"'})


def test_a_filter_that_objects_need_is_not_forgotten_unless_it_is_insisted_on(create, back, backend):
    create(STATIC)
    backend.store.commit(Draft("me", uploads=(SCRAMBLE,)))
    assert "scramble" in back(1, "", 409)["error"]["message"]
    assert back(1, "force=true")["changes"][0]["how"] == "delete"


def test_a_filter_that_goes_back_still_knows_the_code_that_wrote_objects_since(create, back, backend):
    from dataclasses import replace

    backend.store.commit(Draft("me", uploads=(SCRAMBLE,)))
    backend.store.commit(Draft("me", uploads=(replace(SCRAMBLE, sha256="b" * 64, revision=2),)))
    back(1)
    found = backend.store.upload("scramble")
    assert (found.sha256, found.earlier) == ("a" * 64, ("b" * 64,))


@pytest.mark.parametrize("times", [1, 99])
def test_a_rollback_keeps_concurrent_changes(create, backend, monkeypatch, times):
    create(STATIC)
    create(OTHER)
    done = []
    now = Configuration.now

    def racing(backend):
        found = now(backend)
        if len(done) < times:
            done.append(backend.store.commit(Draft("bob", entries=(Entry("term", f"T{len(done)}", {"values": []}),))))
        return found

    monkeypatch.setattr(Configuration, "now", racing)
    if times == 99:
        with pytest.raises(Conflict, match="changes faster"):
            replace_configuration(backend, configuration_at(backend, 1), "me")
        assert len(backend.store.policies()) == 2
    else:
        replace_configuration(backend, configuration_at(backend, 1), "me")
        assert len(backend.store.policies()) == 1


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("create"), st.integers(0, 3)),
        st.tuples(st.just("switch"), st.integers(0, 3)),
        st.tuples(st.just("delete"), st.integers(0, 3)),
        st.tuples(st.just("entry"), st.integers(0, 1)),
        st.tuples(st.just("forget"), st.integers(0, 1)),
        st.tuples(st.just("back"), st.integers(0, 9)),
    ),
    min_size=1,
    max_size=10,
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(STEPS)
def test_every_epoch_of_a_random_history_can_be_gone_back_to(backend, steps):
    from sluice_controller.policies.policy_update import PolicyUpdate, update_policy
    from sluice_controller.policies.services import create_policies, delete_policy

    backend.store.client.flushdb()
    backend.policy_cache.contents()
    stood = {0: (Configuration(), [])}
    ids = {}
    for what, number in steps:
        alive = backend.policy_cache.contents().policies
        present = ids.get(number) in alive
        if what == "create" and not present:
            try:
                (one,) = create_policies(backend, f"FOR TENANT AUTH_{number} DO SET noop", "me").policies
            except Conflict:
                continue
            ids[number] = one.policy.id
        elif what == "switch" and present:
            update_policy(backend, ids[number], "me", PolicyUpdate(enabled=not alive[ids[number]].policy.enabled))
        elif what == "delete" and present:
            delete_policy(backend, ids[number], "me")
        elif what == "entry":
            backend.store.commit(Draft("me", entries=(Entry("term", f"T{number}", {"n": len(stood)}),)))
        elif what == "forget":
            backend.store.commit(Draft("me", entry_drops=(f"term/T{number}",)))
        elif what == "back":
            replace_configuration(backend, configuration_at(backend, min(number, max(stood))), "me")
        stood[backend.store.head().epoch] = (Configuration.now(backend), backend.store.assignments())
    for epoch, (config, assignments) in stood.items():
        replace_configuration(backend, configuration_at(backend, epoch), "me")
        assert Configuration.now(backend) == config
        assert backend.store.assignments() == assignments
