"""``/filters/{target}/deploy``: static assignments by policies that the API writes itself."""

from dataclasses import replace
from urllib.parse import quote

import pytest

from sluice_core.describe import Parameter


def policies(api):
    return api.get("/policies").json()["policies"]


def test_a_deployment_is_a_policy_among_the_policies(api, backend):
    done = api.put("/filters/AUTH_a/deploy/compression", {"params": {"engine": "gzip", "level": 3}}, format="json")
    assert done.status_code == 200, done.content
    body = done.json()
    assert (body["keyword"], body["params"], body["changed"]) == ("compression", {"engine": "gzip", "level": 3}, True)
    assert body["params_text"] == "engine=gzip, level=3"
    (policy,) = policies(api)
    assert (policy["id"], policy["origin"]) == (body["policy"], "deploy/compression")
    assert policy["policy"] == "FOR TENANT AUTH_a DO SET compression WITH engine=gzip level=3"
    assert [one.params for one in backend.store.assignments()] == [{"engine": "gzip", "level": 3}]
    listed = api.get("/filters/AUTH_a/deploy").json()
    assert (listed["target"], listed["level"], listed["next_marker"]) == ("AUTH_a", "tenant", None)
    assert [one["policy"] for one in listed["filters"]] == [policy["id"]]


def test_the_same_again_changes_nothing_and_other_parameters_replace_it(api, backend):
    first = api.put("/filters/AUTH_a/deploy/compression", {"params": {"level": 3}}, format="json").json()
    epoch = backend.store.head().epoch
    again = api.put("/filters/AUTH_a/deploy/compression", {"params": {"level": 3}}, format="json").json()
    assert (again["policy"], again["changed"], backend.store.head().epoch) == (first["policy"], False, epoch)
    other = api.put("/filters/AUTH_a/deploy/compression", {"params": {"level": 1}}, format="json").json()
    assert other["policy"] != first["policy"]
    assert [one["id"] for one in policies(api)] == [other["policy"]]
    assert [one.params for one in backend.store.assignments()] == [{"level": 1}]


@pytest.mark.parametrize(
    "body",
    [
        {"level": 3, "engine": "gzip"},
        {"Engine": "gzip", "params": {"level": 3}},
        {"engine": "gzip", "params": {"engine": "gzip", "level": "3"}, "level": 3},
    ],
)
def test_parameters_stand_in_params_or_beside_it(api, body):
    """The first body has the form that IOStack's deliverable 3.2 shows."""
    inside = {"params": {"engine": "gzip", "level": 3}}
    first = api.put("/filters/AUTH_a/deploy/compression", inside, format="json").json()
    again = api.put("/filters/AUTH_a/deploy/compression", body, format="json")
    assert again.status_code == 200, again.content
    assert {name: again.json()[name] for name in ("policy", "params", "changed")} == {
        "policy": first["policy"],
        "params": {"engine": "gzip", "level": 3},
        "changed": False,
    }


def test_a_parameter_that_is_called_like_a_field_stands_in_params(api, backend):
    noop = backend.native.actions["noop"]
    odd = replace(noop, parameters=tuple(Parameter(name, "str", "odd") for name in ("place", "params")))
    object.__setattr__(
        backend, "native", replace(backend.native, actions={**backend.native.actions, "noop": odd}, trials={})
    )
    body = {"place": "proxy", "params": {"place": "here", "params": "x"}}
    done = api.put("/filters/AUTH_a/deploy/noop", body, format="json")
    assert done.status_code == 200, done.content
    assert (done.json()["place"], done.json()["params"]) == ("proxy", {"place": "here", "params": "x"})


def test_deploying_a_disabled_filter_enables_it(api, backend):
    first = api.put("/filters/AUTH_a/deploy/noop").json()
    off = api.put(f"/policies/{first['policy']}", {"enabled": False}, format="json")
    assert off.status_code == 200, off.content
    assert backend.store.assignments() == []
    second = api.put("/filters/AUTH_a/deploy/noop").json()
    assert (second["changed"], second["enabled"]) == (True, True)
    assert [one["id"] for one in policies(api)] == [second["policy"]]
    assert [one.keyword for one in backend.store.assignments()] == ["noop"]


TARGETS = [
    ("AUTH_a", "tenant"),
    ("AUTH_a/my container", "container"),
    ("AUTH_a/c/dir/o b.txt", "object"),
    ('AUTH_ü/"q\'uo\\te"/new\nline', "object"),
    ("AUTH_a/FOR/DO;#", "object"),
    ("AUTH_a/c/x/deploy/noop/undeploy", "object"),
    ("AUTH_[*]?/{target}", "container"),
]


@pytest.mark.parametrize(("target", "level"), TARGETS)
def test_targets_with_any_characters_can_be_deployed_to(api, backend, target, level):
    here = f"/filters/{quote(target)}"
    done = api.put(f"{here}/deploy/noop")
    assert done.status_code == 200, done.content
    (policy,) = policies(api)
    assert (policy["target"]["name"], policy["target"]["level"]) == (target, level)
    checked = api.post("/policies/check", {"policy": policy["policy"]}, format="json")
    assert checked.status_code == 409, "the sentence reads back to what stands"
    assert [one["keyword"] for one in api.get(f"{here}/deploy").json()["filters"]] == ["noop"]
    left = api.put(f"{here}/undeploy/noop")
    assert (left.status_code, left.json()["filters"]) == (200, [])
    assert (policies(api), backend.store.assignments()) == ([], [])


def test_projects_go_by_name_or_account(api, backend):
    object.__setattr__(backend, "native", replace(backend.native, tenants={"acme": "AUTH_1"}))
    first = api.put("/filters/acme/deploy/noop").json()
    (policy,) = policies(api)
    assert (policy["target"]["name"], policy["target"]["label"]) == ("AUTH_1", "acme")
    assert api.put("/filters/AUTH_1/deploy/noop").json()["policy"] == first["policy"]
    assert api.get("/filters/acme/deploy").json()["filters"][0]["policy"] == first["policy"]
    assert api.put("/filters/AUTH_1/undeploy/noop").status_code == 200


def test_undeploy_takes_back_only_what_was_deployed(api, create):
    written = create("FOR TENANT AUTH_a DO SET compression")
    refused = api.put("/filters/AUTH_a/undeploy/compression")
    assert refused.status_code == 404
    assert written["id"] in refused.json()["error"]["message"]
    clash = api.put("/filters/AUTH_a/deploy/compression", {"params": {"level": 1}}, format="json")
    assert clash.status_code == 409
    assert written["id"] in clash.json()["error"]["message"]
    shown = api.get("/filters/AUTH_a/deploy").json()["filters"]
    assert [(one["policy"], one["origin"]) for one in shown] == [(written["id"], "")]
    assert api.get("/filters/AUTH_a/c/deploy").json()["filters"] == []


@pytest.mark.parametrize(
    ("path", "body", "status", "word"),
    [
        ("AUTH_a/deploy/nothing", {}, 404, "nothing"),
        ("AUTH_a/deploy/bandwidth", {}, 400, "filter"),
        ("AUTH_a/deploy/compression", {"params": {"engin": "gzip"}}, 400, "engine"),
        ("AUTH_a/deploy/compression", {"params": {"engine": "rar"}}, 400, "rar"),
        ("AUTH_a/deploy/compression", {"params": {"engine": None}}, 400, "engine"),
        ("AUTH_a/deploy/compression", {"params": {"level": [1]}}, 400, "level"),
        ("AUTH_a/deploy/compression", {"params": {"level": 1e300}}, 400, "level"),
        ("AUTH_a/deploy/compression", {"params": {"": 1}}, 400, "parameter"),
        ("AUTH_a/deploy/compression", {"params": {"engine": "x\n, SET noop"}}, 400, "engine"),
        ("AUTH_a/deploy/compression", {"params": []}, 400, "params"),
        ("AUTH_a/deploy/compression", {"place": "moon"}, 400, "place"),
        ("AUTH_a/deploy/compression", {"place": None}, 400, "place"),
        ("AUTH_a/deploy/compression", {"engin": "gzip"}, 400, "field or parameter `engin`, did you mean `engine`"),
        ("AUTH_a/deploy/compression", {"parms": {"engine": "gzip"}}, 400, "did you mean `params`"),
        ("AUTH_a/deploy/noop", {"engine": "gzip"}, 400, "expected `params` or `place`"),
        ("AUTH_a/deploy/compression", {"engine": "rar"}, 400, "rar"),
        ("AUTH_a/deploy/compression", {"engine": None}, 400, "`engine` is `None`"),
        ("AUTH_a/deploy/compression", {"level": {"level": 1}}, 400, "`level` is"),
        ("AUTH_a/deploy/compression", {"level": 1, "params": {"level": 2}}, 400, "`level` is `1`, but `2` in `params`"),
        ("AUTH_a/deploy/compression", {"LEVEL": 1, "params": {"level": 2}}, 400, "`LEVEL` is `1`, but `2` in `params`"),
        ("AUTH_a/deploy/compression", {"level": 1, "Level": 2}, 400, "level"),
        ("AUTH_a/deploy/compression", {"engine": "gzip", "place": "moon"}, 400, "place"),
        ("AUTH_a/deploy/compression", [], 400, "object"),
        ("AUTH_a//deploy/compression", {}, 400, "AUTH_a/"),
        ("AUTH_a/c/deploy/x%0Ay", {}, 404, "x"),
        ("AUTH_a/undeploy/compression", {"a": 1}, 400, "a"),
    ],
)
def test_an_invalid_deployment_is_refused_and_stores_nothing(api, backend, path, body, status, word):
    refused = api.put(f"/filters/{path}", body, format="json")
    assert refused.status_code == status, refused.content
    assert word in refused.json()["error"]["message"]
    assert (policies(api), backend.store.assignments()) == ([], [])


def test_a_member_deploys_self_service_filters_in_its_own_containers_only(api, backend):
    from sluice_controller.api.permissions import current_rules
    from sluice_controller.identity.caller import Identity

    rules, member = current_rules(), Identity.from_user("u", "m", "p1", "acme", ["member", "reader"])
    own = {"project_id": "p1", "level": "container", "self_service": "True"}
    for rule in ("sluice:deployments:deploy", "sluice:deployments:undeploy"):
        assert rules.allows(member, rule, own)
        for change in ({"project_id": "p2"}, {"level": "tenant"}, {"self_service": "False"}):
            assert not rules.allows(member, rule, {**own, **change})
    assert rules.allows(member, "sluice:deployments:list", {"project_id": "p1"})
    assert not rules.allows(member, "sluice:deployments:list", {"project_id": "p2"})


def test_the_loser_of_a_race_for_the_same_change_changes_nothing(api, backend, monkeypatch):
    from sluice_controller.policies import deployments
    from sluice_core.messages.policies import Target

    target, commit, raced = Target("tenant", "name", "AUTH_a"), backend.store.commit, []

    def outrun(draft):
        if not raced:
            raced.append(draft)
            deployments.deploy(backend, target, "noop", {}, "the other")
        return commit(draft)

    monkeypatch.setattr(backend.store, "commit", outrun)
    done = deployments.deploy(backend, target, "noop", {}, "me")
    assert (done.changed, len(policies(api))) == (False, 1)
    assert policies(api)[0]["created_by"] == "the other"
