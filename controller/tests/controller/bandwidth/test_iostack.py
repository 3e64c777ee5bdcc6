"""IOStack's documents: the table of streams, the overview, and paths that reach accounts of any name."""

import re

import pytest

from sluice_controller.api.serializers.bandwidth import NODE_FLOORS
from sluice_controller.bandwidth.iostack import osinfo_table, overview
from sluice_core.messages.bandwidth_report import BandwidthReport

MB = 1e6
OWNER = {"account": "AUTH_a", "container": "", "method": "GET", "policy": 0}
FLOW = {**OWNER, "floor": 17 * MB, "share": 40 * MB}
NODE = {"node": "s1", "server": "10.0.0.1:6200"}
PART = {**OWNER, "node": "s1", "side": "storage_node", "device": "sdb1", "share": 20 * MB, "measured": 19 * MB}
OBJECT = {
    **{name: OWNER[name] for name in ("account", "method", "policy")},
    **{"node": "s1", "server": "10.0.0.1:6200", "device": "sdb1"},
    **{"oid": "c/a/b", "range": "0-end", "rate": 19 * MB},
}


def report(**lists):
    known = {"flows": (), "nodes": (NODE,), "parts": (), "objects": (), "policies": {"0": "gold", "1": "ec42"}}
    return BandwidthReport(0.0, "h", 1, 1, **{**known, **lists})


def lines(made):
    """All lines with their keys."""
    return [
        (server, device, line)
        for server, devices in osinfo_table(made).items()
        for device, numbered in devices.items()
        for line in numbered.values()
    ]


def needed(*flows, parts=(PART,), objects=()):
    return [line["needed_BW"] for _, _, line in lines(report(flows=flows, parts=parts, objects=objects))]


def test_a_line_has_the_fields_of_iostack_and_the_method():
    upload = {**OBJECT, "method": "PUT", "oid": "c/new", "rate": 5 * MB}
    made = report(flows=({**FLOW, "asked": 30 * MB, "node_asked": 0.0},), parts=(PART,), objects=(OBJECT, upload))
    line = {
        "account": "AUTH_a",
        "identifier": "object",
        "method": "GET",
        "needed_BW": 30.0,
        "policy": "gold",
        "objects": [{"oid": "/AUTH_a/c/a/b", "oid_calculated_BW": 19.0, "range": "0-end"}],
    }
    written = [{"oid": "/AUTH_a/c/new", "oid_calculated_BW": 5.0, "range": "0-end"}]
    put = {**line, "method": "PUT", "needed_BW": 0.0, "objects": written}
    assert osinfo_table(made) == {"10.0.0.1:6200": {"sdb1": {"0": line, "1": put}}}
    assert osinfo_table(made, "AUTH_b") == {}
    assert (osinfo_table(None), overview(None)) == ({}, {})


def test_what_is_needed_is_what_was_asked_for_and_not_the_share_of_the_moment():
    assert needed() == [0.0]
    assert needed({**FLOW, "floor": 0.0}) == [0.0]
    assert needed({**FLOW, "asked": 30 * MB, "node_asked": 0.0}) == [30.0]
    assert needed({**FLOW, "asked": 0.0, "node_asked": 0.0}) == [0.0], "a ceiling asks for nothing"


def test_a_value_for_each_object_server_is_needed_on_each():
    other = {**PART, "node": "s2"}
    assert needed({**FLOW, "asked": 90 * MB, "node_asked": 20 * MB}, parts=(PART, other)) == [20.0, 20.0]


def test_each_method_and_storage_policy_needs_what_was_asked_for_it():
    flows = [
        {**FLOW, "method": method, "policy": policy, "asked": rate * MB, "node_asked": 0.0}
        for method, policy, rate in (("GET", 0, 30), ("GET", 1, 5), ("PUT", 0, 7))
    ]
    parts = [{**PART, "method": flow["method"], "policy": flow["policy"]} for flow in flows]
    parts.append({**PART, "method": "REPLICATION", "account": ""})
    found = {
        (line["policy"], line["method"]): line["needed_BW"] for *_, line in lines(report(flows=flows, parts=parts))
    }
    assert found == {("gold", "GET"): 30.0, ("ec42", "GET"): 5.0, ("gold", "PUT"): 7.0}


def test_containers_with_objectives_of_their_own_need_theirs_beside_the_tenants():
    container = {**FLOW, "container": "c", "asked": 10 * MB, "node_asked": 0.0}
    tenant = {**FLOW, "asked": 30 * MB, "node_asked": 0.0}
    both = (PART, {**PART, "container": "c"})
    assert needed(tenant, container, parts=both) == [40.0]
    assert needed(tenant, container, parts=both[1:]) == [10.0]
    assert needed(tenant, container, parts=(), objects=(OBJECT,)) == [30.0]


def test_an_idle_objective_for_all_storage_policies_is_needed_under_each():
    idle = {**FLOW, "policy": -1, "asked": 30 * MB, "node_asked": 0.0}
    assert needed(idle) == [30.0]
    assert needed(idle, {**FLOW, "asked": 5 * MB, "node_asked": 0.0}) == [5.0]


def test_a_report_of_an_older_actor_host_is_read():
    assert needed(FLOW) == [17.0]


def test_a_device_belongs_to_the_object_server_that_moves_its_objects():
    second = {**OBJECT, "device": "sdc1", "server": "10.0.0.1:6201"}
    parts = (PART, {**PART, "device": "sdc1"}, {**PART, "node": "unknown", "device": "sdd1"})
    made = report(parts=parts, objects=(OBJECT, second))
    assert [place[:2] for place in lines(made)] == [
        ("10.0.0.1:6200", "sdb1"),
        ("10.0.0.1:6201", "sdc1"),
        ("unknown", "sdd1"),
    ]
    assert overview(made) == {
        "10.0.0.1:6200": {"AUTH_a": {"gold": 19.0}},
        "10.0.0.1:6201": {"AUTH_a": {"gold": 19.0}},
        "unknown": {"AUTH_a": {"gold": 19.0}},
    }


def test_the_overview_sums_up_devices_containers_and_methods():
    parts = (
        PART,
        {**PART, "device": "sdc1"},
        {**PART, "container": "c", "measured": 1 * MB},
        {**PART, "method": "PUT", "measured": 2 * MB},
        {**PART, "policy": 1, "measured": 3 * MB},
        {**PART, "account": "AUTH_b", "measured": 0.5 * MB},
        {**PART, "side": "proxy", "device": ""},
        {**PART, "method": "REPLICATION", "account": ""},
    )
    assert overview(report(parts=parts)) == {
        "10.0.0.1:6200": {"AUTH_a": {"ec42": 3.0, "gold": 41.0}, "AUTH_b": {"gold": 0.5}}
    }


@pytest.fixture(scope="module")
def words(django_ready):
    """The words after ``/bw/`` in the table of URLs."""
    from sluice_controller.app.urls import urlpatterns

    found = (re.match(r"bw/([^<>/]+)", str(one.pattern)) for one in urlpatterns)
    return sorted({match[1] for match in found if match})


def test_an_account_that_is_called_like_a_word_of_a_path_is_reachable(api, backend, words):
    assert len(words) > 5
    for word in words:
        here = f"/bw/accounts/{word}"
        for body in ({"value": 30}, {"value": "20MB/s", "storage_policy": "gold"}):
            made = api.put(here, body, format="json")
            assert made.status_code == 200, made.content
            assert made.json()["target"]["name"] == word
            assert made.json()["actions"][0]["params"].get("storage_policy", "") == body.get("storage_policy", "")
        shown = api.get(here)
        assert (shown.status_code, shown.json()) == (200, {})
        assert len(api.put(f"/bw/clear/{word}/gold").json()["policies"]) == 1
        assert len(api.put(f"/bw/clear/{word}").json()["policies"]) == 1
        slo = f"/bw/slo/{word}/get_bw"
        assert api.put(slo, {"value": 1}, format="json").json()["account"] == word
        assert api.get(slo).status_code == 200
        assert api.delete(slo).status_code == 204
        assert api.get("/policies").json()["policies"] == []


@pytest.mark.parametrize("example", NODE_FLOORS, ids=lambda one: one.name)
def test_the_examples_of_the_schema_are_accepted(api, example):
    assert api.put("/bw/accounts/AUTH_a", example.value, format="json").status_code == 200


WRONG = [
    ({}, "`value` is missing"),
    ({"value": None}, "`value`"),
    ({"value": "fast"}, "node_get_bw"),
    ({"value": 30, "policy": "gold"}, "unknown field `policy`"),
    ({"value": 30, "storage_policy": 1}, "`storage_policy`"),
]


@pytest.mark.parametrize(("body", "reason"), WRONG)
def test_a_value_of_an_account_is_refused_with_the_reason(api, backend, body, reason):
    refused = api.put("/bw/accounts/AUTH_a", body, format="json")
    assert refused.status_code == 400, refused.content
    assert reason in refused.json()["error"]["message"]
    assert backend.store.assignments() == []


def test_both_paths_of_an_account_set_the_same_value(api):
    first = api.put("/bw/AUTH_a/gold/30").json()
    again = api.put("/bw/accounts/AUTH_a", {"value": "30MBps", "storage_policy": "gold"}, format="json").json()
    assert (again["id"], again["changed"]) == (first["id"], False)


def test_the_streams_of_such_an_account_are_shown(api, backend, words):
    parts = tuple({**PART, "account": word} for word in (*words, "AUTH_a"))
    backend.store.client.set(backend.store.keys.bandwidth, report(parts=parts).encode(), ex=10)
    for word in words:
        assert [
            line["account"] for line in api.get(f"/bw/accounts/{word}").json()["10.0.0.1:6200"]["sdb1"].values()
        ] == [word]
