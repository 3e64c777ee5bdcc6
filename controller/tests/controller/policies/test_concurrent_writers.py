"""Static policies that two requests write at once never contradict each other: the second is checked against the first.

The other request comes when the first has been checked and not been committed yet.
"""

import pytest

from sluice_controller.catalog import reference_guards
from sluice_core.errors import Conflict
from sluice_core.messages.policies import Target
from sluice_core.store.commit import scope_version
from sluice_core.store.records import Draft

WANTED = "FOR TENANT AUTH_a DO SET compression WITH engine="


@pytest.fixture
def put(api):
    def change(policy, text):
        return api.put(f"/policies/{policy['id']}", {"policy": text}, format="json")

    return change


def post(api, text):
    return api.post("/policies", {"policy": text}, format="json")


def engines(backend):
    return [one.params["engine"] for one in backend.store.assignments() if one.keyword == "compression"]


def assert_contradiction(refused, first):
    assert refused.status_code == 409, refused.content
    (problem,) = refused.json()["error"]["problems"]
    assert (problem["code"], f"policy `{first['id']}`" in problem["message"]) == ("conflict", True)


def test_of_two_updates_that_contradict_each_other_one_is_made(backend, create, put, in_between):
    first, second = create("FOR TENANT AUTH_b DO SET noop"), create("FOR TENANT AUTH_c DO SET noop")
    won = []
    in_between(lambda: won.append(put(first, f"{WANTED}zstd")))
    assert_contradiction(put(second, f"{WANTED}lz4"), first)
    assert won[0].status_code == 200, won[0].content
    assert engines(backend) == ["zstd"]
    assert [one.keyword for one in backend.store.assignments() if one.policy == second["id"]] == ["noop"]


def test_an_update_sees_what_was_created_meanwhile(api, backend, create, put, in_between):
    policy, made = create("FOR TENANT AUTH_b DO SET noop"), []
    in_between(lambda: made.append(post(api, f"{WANTED}zstd").json()))
    assert_contradiction(put(policy, f"{WANTED}lz4"), made[0])
    assert engines(backend) == ["zstd"]


def test_a_creation_sees_what_was_updated_meanwhile(api, backend, create, put, in_between):
    policy = create("FOR TENANT AUTH_b DO SET noop")
    in_between(lambda: put(policy, f"{WANTED}zstd"))
    assert_contradiction(post(api, f"{WANTED}lz4"), policy)
    assert engines(backend) == ["zstd"]


def test_an_update_sees_what_a_roll_back_brought_back_meanwhile(api, backend, create, put, in_between):
    policy, gone = create("FOR TENANT AUTH_b DO SET noop"), create(f"{WANTED}zstd")
    epoch = backend.store.head().epoch
    assert api.delete(f"/policies/{gone['id']}").status_code == 204
    in_between(lambda: api.post(f"/changes/{epoch}/rollback"))
    assert_contradiction(put(policy, f"{WANTED}lz4"), gone)
    assert engines(backend) == ["zstd"]


def test_a_roll_back_takes_back_what_was_updated_meanwhile(api, backend, create, put, in_between):
    policy, gone = create("FOR TENANT AUTH_b DO SET noop"), create(f"{WANTED}zstd")
    epoch = backend.store.head().epoch
    assert api.delete(f"/policies/{gone['id']}").status_code == 204
    in_between(lambda: put(policy, f"{WANTED}lz4"))
    assert api.post(f"/changes/{epoch}/rollback").status_code == 200
    assert engines(backend) == ["zstd"]


def test_of_two_deployments_of_a_filter_one_stands(api, backend, in_between):
    def deploy(engine):
        return api.put("/filters/AUTH_a/deploy/compression", {"params": {"engine": engine}}, format="json")

    in_between(lambda: deploy("zstd"))
    assert deploy("lz4").status_code == 200
    assert engines(backend) == ["lz4"]


def test_two_objectives_of_a_tenant_stand_in_one_policy(api, backend, in_between):
    in_between(lambda: api.put("/bw/slo/AUTH_a/get_bw", {"value": "30MBps"}, format="json"))
    assert api.put("/bw/slo/AUTH_a/put_bw", {"value": "10MBps"}, format="json").status_code == 200
    assert [one.params for one in backend.store.assignments()] == [{"get_bw": 30e6, "put_bw": 10e6}]


def test_policies_that_cannot_contradict_do_not_wait_for_each_other(api, create, put, in_between, monkeypatch):
    policy, dynamic = create("FOR TENANT AUTH_b DO SET noop"), "FOR TENANT AUTH_a WHEN PUTS_SEC > 3 DO SET compression"
    monkeypatch.setattr(reference_guards, "ATTEMPTS", 1)
    in_between(lambda: (post(api, dynamic), post(api, "FOR CONTAINER AUTH_a/c DO SET compression")))
    changed = put(policy, f"{WANTED}zstd")
    assert changed.status_code == 200, changed.content


def test_the_store_refuses_a_draft_that_expects_an_older_scope(backend, create):
    create("FOR TENANT AUTH_b DO SET noop")
    scope = scope_version(Target("tenant", "name", "AUTH_b"))
    draft = Draft("late", expect={scope: backend.store.version(scope)})
    backend.store.commit(draft)
    create("FOR TENANT AUTH_b DO SET compression")
    with pytest.raises(Conflict, match=scope):
        backend.store.commit(draft)
