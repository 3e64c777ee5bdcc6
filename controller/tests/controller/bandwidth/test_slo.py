"""``/bw/slo``: objectives over the whole cluster, which are policies."""

from dataclasses import replace
from urllib.parse import quote

import pytest

from sluice_controller.api.serializers.bandwidth import VALUES
from sluice_core.messages.bandwidth_report import BandwidthReport

MB = 1e6


@pytest.fixture
def put(api):
    def send(path, value, status=200):
        answer = api.put(f"/bw/slo/{path}", {"value": value}, format="json")
        assert answer.status_code == status, answer.content
        return answer.json()

    return send


def policies(api):
    return {one["origin"]: one for one in api.get("/policies").json()["policies"]}


def listed(api, query=""):
    found = api.get(f"/bw/slo{query}").json()["slos"]
    return [(one["account"], one["name"], one["value"], one["storage_policy"]) for one in found]


def test_the_objectives_of_a_tenant_stand_in_one_policy(api, put, backend):
    first = put("AUTH_a/get_bw", 30)
    assert (first["value"], first["text"], first["changed"], first["infeasible"]) == (30 * MB, "30 MB/s", True, None)
    second = put("AUTH_a/put_bw", "20MBps")
    (policy,) = policies(api).values()
    assert policy["policy"] == "FOR TENANT AUTH_a DO SET bandwidth WITH get_bw=30MBps put_bw=20MBps"
    assert (policy["origin"], policy["id"]) == ("slo/AUTH_a", second["policy"])
    assert listed(api) == [("AUTH_a", "get_bw", 30 * MB, ""), ("AUTH_a", "put_bw", 20 * MB, "")]
    (assignment,) = backend.store.assignments()
    assert assignment.params == {"get_bw": 30 * MB, "put_bw": 20 * MB}


@pytest.mark.parametrize("again", [30, 30.0, "30", "30MBps", "30MB/s", "30000 kBps"])
def test_the_same_again_changes_nothing_however_it_is_written(put, backend, again):
    first = put("AUTH_a/get_bw", 30)
    epoch = backend.store.head().epoch
    second = put("AUTH_a/get_bw", again)
    assert (second["policy"], second["changed"], backend.store.head().epoch) == (first["policy"], False, epoch)


def test_storage_policies_have_objectives_of_their_own(api, put):
    put("AUTH_a/get_bw", 30)
    put("AUTH_a/get_bw/gold", 20)
    put("AUTH_a/max_get_bw/Gold", 40)
    assert {origin: one["actions"][0]["params"] for origin, one in policies(api).items()} == {
        "slo/AUTH_a": {"get_bw": 30 * MB},
        "slo/AUTH_a/Gold": {"get_bw": 20 * MB, "max_get_bw": 40 * MB, "storage_policy": "Gold"},
    }
    assert api.get("/bw/slo/AUTH_a/get_bw").json()["value"] == 30 * MB
    assert api.get("/bw/slo/AUTH_a/get_bw/GOLD").json()["value"] == 20 * MB
    assert api.get("/bw/slo/AUTH_a/put_bw/gold").status_code == 404


def test_an_objective_is_taken_back_and_the_others_stay(api, put, backend):
    for name in ("get_bw", "put_bw"):
        put(f"AUTH_a/{name}", 30)
    put("AUTH_a/get_bw/gold", 10)
    assert api.delete("/bw/slo/AUTH_a/get_bw").status_code == 204
    assert listed(api) == [("AUTH_a", "get_bw", 10 * MB, "gold"), ("AUTH_a", "put_bw", 30 * MB, "")]
    assert api.delete("/bw/slo/AUTH_a/get_bw").status_code == 404
    assert api.delete("/bw/slo/AUTH_a/put_bw").status_code == 204
    assert api.delete("/bw/slo/AUTH_a/get_bw/gold").status_code == 204
    assert (listed(api), policies(api), backend.store.assignments()) == ([], {}, [])


def test_what_an_administrator_added_to_its_policy_stays(api, put):
    made = put("AUTH_a/get_bw", 30)
    text = "FOR TENANT AUTH_a DO SET bandwidth WITH get_bw=30MBps class=gold ON STORAGE_NODE"
    assert api.put(f"/policies/{made['policy']}", {"policy": text}, format="json").status_code == 200
    put("AUTH_a/max_get_bw", 60)
    (policy,) = policies(api).values()
    assert policy["actions"][0]["params"] == {"get_bw": 30 * MB, "max_get_bw": 60 * MB, "class": "gold"}
    assert policy["actions"][0]["place"] == "storage_node"
    assert api.delete("/bw/slo/AUTH_a/get_bw").status_code == 204
    assert api.delete("/bw/slo/AUTH_a/max_get_bw").status_code == 204
    assert policies(api) == {}, "a class promises nothing by itself"


def test_setting_a_disabled_objective_enables_it(api, put, backend):
    made = put("AUTH_a/get_bw", 30)
    api.put(f"/policies/{made['policy']}", {"enabled": False}, format="json")
    assert api.get("/bw/slo/AUTH_a/get_bw").json()["enabled"] is False
    assert put("AUTH_a/get_bw", 30)["enabled"] is True
    assert len(backend.store.assignments()) == 1


def test_they_are_listed_in_pages_and_by_tenant_and_name(api, put):
    for account in ("AUTH_b", "AUTH_a"):
        for name in ("put_bw", "get_bw"):
            put(f"{account}/{name}", 1)
    page = api.get("/bw/slo?limit=3").json()
    assert [(one["account"], one["name"]) for one in page["slos"]] == [
        ("AUTH_a", "get_bw"), ("AUTH_a", "put_bw"), ("AUTH_b", "get_bw"),
    ]  # fmt: skip
    rest = api.get("/bw/slo", {"limit": 3, "marker": page["next_marker"]}).json()
    assert ([one["name"] for one in rest["slos"]], rest["next_marker"]) == (["put_bw"], None)
    assert len(listed(api, "?account=AUTH_a")) == 2
    assert len(listed(api, "?name=put_bw")) == 2
    assert api.get("/bw/slo?name=fast").status_code == 400


WRONG = [0, -1, 1e18, 10**400, True, None, [], {}, "NaN", "-5MBps", "10^18", "30Mbps", "fast", "", "30MBps, SET noop"]


@pytest.mark.parametrize("value", WRONG, ids=lambda one: str(one)[:20])
def test_an_invalid_value_is_refused_with_the_reason(api, put, backend, value):
    error = put("AUTH_a/get_bw", value, 400)["error"]
    assert "get_bw" in error["message"] or "value" in error["message"]
    assert (policies(api), backend.store.assignments()) == ({}, [])


@pytest.mark.parametrize("body", [{}, [], {"valu": 30}, {"value": 30, "more": 1}])
def test_a_body_must_be_a_value(api, body):
    assert api.put("/bw/slo/AUTH_a/get_bw", body, format="json").status_code == 400


def test_nan_and_infinity_are_refused(api):
    refused = api.put("/bw/slo/AUTH_a/get_bw", '{"value": NaN}', content_type="application/json")
    assert refused.status_code == 400


@pytest.mark.parametrize("name", ["get_bandwidth", "node_get_bw", "class", "storage_policy", "GET_BW"])
def test_an_unknown_objective_is_refused_with_the_near_miss(api, put, name):
    assert f"unknown objective `{name}`" in put(f"AUTH_a/{name}", 30, 400)["error"]["message"]
    assert api.get(f"/bw/slo/AUTH_a/{name}").status_code == 400
    assert api.delete(f"/bw/slo/AUTH_a/{name}").status_code == 400


def test_a_ceiling_below_the_floor_is_refused(put):
    put("AUTH_a/get_bw", 30)
    assert "below the floor" in put("AUTH_a/max_get_bw", 20, 400)["error"]["message"]


def test_what_another_policy_promises_is_a_conflict(put, create, api):
    written = create("FOR TENANT AUTH_a DO SET bandwidth WITH get_bw=10MBps")
    assert written["id"] in put("AUTH_a/get_bw", 30, 409)["error"]["message"]
    assert listed(api) == []


@pytest.mark.parametrize("tenant", ["AUTH_ü 漢", "AUTH_FOR;#", "osinfo", "clear", "slo"])
def test_any_tenant_can_have_objectives(api, put, tenant):
    here = f"{quote(tenant)}/get_bw"
    put(here, 30)
    assert listed(api) == [(tenant, "get_bw", 30 * MB, "")]
    assert api.delete(f"/bw/slo/{here}").status_code == 204


def test_projects_go_by_name_or_account(api, put, backend):
    object.__setattr__(backend, "native", replace(backend.native, tenants={"acme": "AUTH_1"}))
    made = put("acme/get_bw", 30)
    assert (made["account"], made["label"]) == ("AUTH_1", "acme")
    assert put("AUTH_1/get_bw", 30)["policy"] == made["policy"]
    assert api.delete("/bw/slo/AUTH_1/get_bw").status_code == 204


def test_an_objective_says_what_is_missing(api, put, backend):
    put("AUTH_a/get_bw", 30)
    made = put("AUTH_a/put_bw", 30)  # in the same policy
    missing = {"get_bw": 2 * MB, "node_get_bw": 7 * MB}
    picture = BandwidthReport(0.0, "h", 1, 1, infeasible={made["policy"]: 9 * MB}, lacking={made["policy"]: missing})
    backend.store.client.set(backend.store.keys.bandwidth, picture.encode(), ex=10)
    for one in (api.get("/bw/slo/AUTH_a/get_bw").json(), api.get("/bw/slo").json()["slos"][0]):
        assert one["infeasible"] == {"shortfall": 2 * MB}
    other = api.get("/bw/slo/AUTH_a/put_bw").json()
    assert (other["policy"], other["infeasible"]) == (made["policy"], None)


def test_a_reader_sees_those_of_its_own_project_and_changes_none(api, put, monkeypatch):
    from sluice_controller.identity.caller import Identity

    for account in ("AUTH_a", "AUTH_b"):
        put(f"{account}/get_bw", 30)
    reader = Identity.from_user("u", "rita", "b", "acme", ["reader", "member"])
    monkeypatch.setattr(
        "sluice_controller.api.authentication.TokenAuthentication.authenticate", lambda self, request: (reader, None)
    )
    assert [one[0] for one in listed(api)] == ["AUTH_b"]
    assert api.get("/bw/slo/AUTH_b/get_bw").status_code == 200
    assert api.get("/bw/slo/AUTH_a/get_bw").status_code == 403
    put("AUTH_b/get_bw", 40, 403)
    assert api.delete("/bw/slo/AUTH_b/get_bw").status_code == 403


def test_the_loser_of_a_race_for_the_same_change_changes_nothing(put, backend, monkeypatch):
    from sluice_controller.bandwidth import services

    commit, raced = backend.store.commit, []

    def outrun(draft):
        if not raced:
            raced.append(draft)
            where = services.read_scope(backend, "AUTH_a")
            services.set_objective(backend, where, "put_bw", "20", "the other")
        return commit(draft)

    monkeypatch.setattr(backend.store, "commit", outrun)
    put("AUTH_a/get_bw", 30)
    assert [one.params for one in backend.store.assignments()] == [{"get_bw": 30 * MB, "put_bw": 20 * MB}]


@pytest.mark.parametrize("example", VALUES, ids=lambda one: one.name)
def test_the_examples_of_the_description_work(put, example):
    assert put("AUTH_a/get_bw", example.value["value"])["value"] == 30 * MB
