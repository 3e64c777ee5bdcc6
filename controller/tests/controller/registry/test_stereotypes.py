"""``/stereotypes``: sets of sentences with a placeholder, applied to tenants and containers."""

import pytest

TEXT = "FOR {target} DO SET compression\nFOR {target} WHEN PUTS_SEC > 3 DO SET noop TRANSIENT"


def origins(api):
    return [(one["origin"], one["policy"]) for one in api.get("/policies").json()["policies"]]


@pytest.fixture
def gold(api):
    answer = api.post("/stereotypes", {"name": "gold", "text": TEXT}, format="json")
    assert answer.status_code == 201, answer.content
    return answer


def test_applying_makes_all_policies_in_one_change_and_remembers_where_they_come_from(api, gold, backend):
    before = backend.store.head().epoch
    applied = api.put("/stereotypes/gold/tenants/AUTH_a")
    assert applied.status_code == 200, applied.content
    assert backend.store.head().epoch == before + 1
    assert len(applied.json()["policies"]) == 2
    assert applied.json()["changed"]
    assert origins(api) == [
        ("stereotype/gold", "FOR TENANT AUTH_a DO SET compression"),
        ("stereotype/gold", "FOR TENANT AUTH_a WHEN PUTS_SEC > 3 DO SET noop TRANSIENT"),
    ]
    assert [one.keyword for one in backend.store.assignments()] == ["compression"]


def test_applying_again_changes_nothing_but_brings_back_what_is_missing(api, gold, backend):
    first = api.put("/stereotypes/gold/tenants/AUTH_a").json()
    epoch = backend.store.head().epoch
    again = api.put("/stereotypes/gold/tenants/AUTH_a").json()
    assert (again["policies"], again["changed"]) == (first["policies"], False)
    assert backend.store.head().epoch == epoch
    api.delete(f"/policies/{first['policies'][0]}")
    mended = api.put("/stereotypes/gold/tenants/AUTH_a").json()
    assert (sorted(mended["policies"]), mended["changed"]) == (sorted(first["policies"]), True)
    assert sorted(text for _, text in origins(api)) == sorted(
        ["FOR TENANT AUTH_a DO SET compression", "FOR TENANT AUTH_a WHEN PUTS_SEC > 3 DO SET noop TRANSIENT"]
    )


def test_a_container_can_be_its_target_and_taking_back_leaves_the_others(api, gold, backend):
    for target in ("AUTH_a", "AUTH_a/logs", "AUTH_b"):
        assert api.put(f"/stereotypes/gold/tenants/{target}").status_code == 200
    shown = api.get("/stereotypes/gold/tenants/AUTH_a/logs").json()
    assert (shown["level"], shown["target"], len(shown["policies"])) == ("container", "AUTH_a/logs", 2)
    listed = api.get("/stereotypes/gold/tenants?limit=2").json()
    assert ([one["target"] for one in listed["targets"]], listed["next_marker"]) == (
        ["AUTH_a", "AUTH_a/logs"],
        "AUTH_a/logs",
    )
    assert api.get("/stereotypes/gold").json()["applied"] == 3
    assert api.delete("/stereotypes/gold/tenants/AUTH_a").status_code == 204
    assert api.delete("/stereotypes/gold/tenants/AUTH_a").status_code == 404
    assert api.get("/stereotypes/gold/tenants/AUTH_a").status_code == 404
    assert api.get("/stereotypes/gold").json()["applied"] == 2
    assert {one.target.name for one in backend.store.assignments()} == {"AUTH_a/logs", "AUTH_b"}


def test_all_or_none_when_a_sentence_contradicts_another_policy(api, gold, create):
    other = create("FOR TENANT AUTH_a DO SET compression WITH engine=lz4")
    refused = api.put("/stereotypes/gold/tenants/AUTH_a")
    assert refused.status_code == 409
    assert other["id"] in refused.json()["error"]["message"]
    assert len(origins(api)) == 1


def test_changing_it_changes_all_targets_in_one_change(api, gold, backend):
    for target in ("AUTH_a", "AUTH_b"):
        api.put(f"/stereotypes/gold/tenants/{target}")
    kept = {one["id"] for one in api.get("/policies").json()["policies"] if one["dynamic"]}
    epoch = backend.store.head().epoch
    text = TEXT.replace("compression", "compression WITH engine=lz4")
    changed = api.put("/stereotypes/gold", {"text": text}, format="json")
    assert changed.status_code == 200, changed.content
    assert (changed.json()["text"], changed.json()["applied"]) == (text, 2)
    assert backend.store.head().epoch == epoch + 1
    policies = api.get("/policies").json()["policies"]
    assert {one["id"] for one in policies if one["dynamic"]} == kept, "what stays the same is left alone"
    assert {one.params["engine"] for one in backend.store.assignments()} == {"lz4"}
    assert len(policies) == 4
    stale = api.put("/stereotypes/gold", {"text": TEXT}, format="json", headers={"If-Match": gold.headers["ETag"]})
    assert stale.status_code == 412


def test_a_change_that_does_not_fit_one_target_is_refused_as_a_whole(api, gold, create):
    api.put("/stereotypes/gold/tenants/AUTH_a")
    api.put("/stereotypes/gold/tenants/AUTH_b")
    create("FOR TENANT AUTH_b DO SET caching")
    before = origins(api)
    refused = api.put("/stereotypes/gold", {"text": "FOR {target} DO SET caching"}, format="json")
    assert refused.status_code == 409, refused.content
    assert "caching" in refused.json()["error"]["message"]
    assert origins(api) == before
    assert api.get("/stereotypes/gold").json()["text"] == TEXT


def test_it_cannot_be_deleted_while_it_is_applied(api, gold):
    policies = api.put("/stereotypes/gold/tenants/AUTH_a").json()["policies"]
    refused = api.delete("/stereotypes/gold")
    assert refused.status_code == 409
    assert all(one in refused.json()["error"]["message"] for one in policies)
    assert api.delete("/stereotypes/gold?force=true").status_code == 204
    assert len(origins(api)) == 2, "what it has set stays"
    assert api.get("/stereotypes").json()["stereotypes"] == []
    assert api.put("/stereotypes/gold/tenants/AUTH_a").status_code == 404


def test_names_of_projects_are_kept_as_labels_and_mean_the_same_as_accounts(api, gold, backend):
    from dataclasses import replace

    object.__setattr__(backend, "native", replace(backend.native, tenants={"acme": "AUTH_1"}))
    first = api.put("/stereotypes/gold/tenants/acme").json()
    assert (first["target"], first["label"]) == ("AUTH_1", "acme")
    again = api.put("/stereotypes/gold/tenants/AUTH_1").json()
    assert (again["changed"], again["label"]) == (False, "acme")
    assert api.delete("/stereotypes/gold/tenants/AUTH_1").status_code == 204


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"text": "FOR {target} DO SET nonsense"}, "nonsense"),
        ({"text": "FOR AUTH_a DO SET compression"}, "{target}"),
        ({"text": "FOR {target} DO SET noop; FOR ALL TENANTS DO SET compression"}, "{target}"),
        ({"text": "FOR GROUP {target} DO SET noop"}, "{target}"),
        ({"text": "FOR {target}/logs DO SET noop"}, "{target}"),
        ({"text": "FOR {target} WHEN OBJECT_TAG = '{target}' DO SET noop"}, "elsewhere"),
        ({"text": "FOR OBJECT {target} DO SET noop"}, "object"),
        ({"text": "FOR TENANT {target} DO SET noop; FOR CONTAINER {target} DO SET noop"}, "container"),
        ({"text": "FOR {target} DO SET compression; FOR {target} DO SET compression"}, "compression"),
        ({"text": "FOR {target} DO"}, "expected"),
        ({"text": ""}, "text"),
        ({"text": 7}, "text"),
        ({"text": "x" * 20000}, "characters"),
        ({"name": "set"}, "language"),
        ({"help": []}, "help"),
        ({"colour": 1}, "colour"),
    ],
)
def test_stereotypes_that_cannot_be_ones_are_refused_with_the_reason(api, change, word):
    refused = api.post("/stereotypes", {"name": "s", "text": "FOR {target} DO SET noop", **change}, format="json")
    assert refused.status_code in (400, 409), refused.content
    assert word in refused.json()["error"]["message"]
    assert api.get("/stereotypes").json()["stereotypes"] == []


def test_one_for_containers_alone_refuses_a_tenant_and_objects_are_no_targets(api):
    api.post("/stereotypes", {"name": "c", "text": "FOR CONTAINER {target} DO SET noop"}, format="json")
    assert api.put("/stereotypes/c/tenants/AUTH_a").status_code == 400
    assert api.put("/stereotypes/c/tenants/AUTH_a/x").status_code == 200
    assert api.put("/stereotypes/c/tenants/AUTH_a/x/o").status_code == 400
    assert api.put("/stereotypes/c/tenants/AUTH_a//o").status_code == 400
    assert api.put("/stereotypes/c/tenants/AUTH_a/x", {"a": 1}, format="json").status_code == 400


def test_an_agent_with_a_role_for_one_stereotype_applies_just_that_to_just_its_tenants(api, gold):
    from sluice_controller.api.permissions import current_rules
    from sluice_controller.identity.caller import Identity

    rules, agent = current_rules(), Identity.from_user("u", "agent", "p1", "acme", ["stereotype-gold"])
    rule = "sluice:stereotypes:apply"
    assert rules.allows(agent, rule, {"project_id": "p1", "stereotype": "gold"})
    assert not rules.allows(agent, rule, {"project_id": "p2", "stereotype": "gold"})
    assert not rules.allows(agent, rule, {"project_id": "p1", "stereotype": "silver"})
    assert not rules.allows(agent, "sluice:stereotypes:update", {})
