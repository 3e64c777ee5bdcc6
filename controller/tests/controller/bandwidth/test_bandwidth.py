"""``/bw``: measured and allowed rates from the report in Redis; IOStack's values."""

import time
from dataclasses import replace
from urllib.parse import quote

import pytest

from sluice_core.messages.bandwidth_report import BandwidthReport, IdleFlowReport
from sluice_core.store.operations import REPORT_FRESH, REPORT_RETENTION

MB = 1e6
OWNER = {"account": "AUTH_a", "container": "", "method": "GET", "policy": 0}
FLOW = {
    **OWNER,
    "floor": 30 * MB,
    "ceiling": 0.0,
    "share": 40 * MB,
    "measured": 39 * MB,
    "waiting": 1.5,
    "active": True,
    "met": 25 * MB,
    "short": 5 * MB,
    "policies": ["p1"],
}
NODE = {
    "node": "s1",
    "server": "10.0.0.1:6200",
    "side": "storage_node",
    "method": "GET",
    "capacity": 90 * MB,
    "source": "configured",
    "assigned": 60 * MB,
    "measured": 55 * MB,
    "at": 1.0,
}
PART = {**OWNER, "node": "s1", "side": "storage_node", "device": "sdb1", "share": 20 * MB, "measured": 19 * MB}
OBJECT = {
    **{name: OWNER[name] for name in ("account", "method", "policy")},
    "node": "s1",
    "server": "10.0.0.1:6200",
    "device": "sdb1",
    "oid": "c/o",
    "range": "0-end",
    "rate": 19 * MB,
}
PICTURE = BandwidthReport(
    at=0.0,
    host="h1",
    term=1,
    number=7,
    flows=(
        FLOW,
        {**FLOW, "account": "AUTH_b", "share": -1.0, "short": 0.0},
        {**FLOW, "account": "AUTH_b", "container": "c", "policy": 1, "short": 0.0},
        {**FLOW, "account": "", "method": "REPLICATION", "short": 0.0, "active": False},
    ),
    nodes=(
        NODE,
        {**NODE, "node": "p1", "server": "", "side": "proxy", "capacity": 0.0, "source": "unknown", "assigned": -1.0},
    ),
    parts=(
        PART,
        {**PART, "account": "AUTH_b", "share": 10 * MB},
        {**PART, "policy": 1, "share": -1.0},
        {**PART, "method": "PUT", "share": 5 * MB},
        {**PART, "side": "proxy", "device": "", "node": "p1"},
    ),
    objects=(OBJECT, {**OBJECT, "method": "PUT"}),
    infeasible={"p1": 5 * MB},
    policies={"0": "gold", "1": "ec42"},
)


@pytest.fixture
def paint(backend):
    """A function that writes a report to Redis, as the allocating host does, ``age`` seconds ago."""

    def put(picture=PICTURE, age=0.0):
        at = time.time() - age
        kept = {"px": int((REPORT_RETENTION - age) * 1000)} if age < REPORT_RETENTION else {"px": 1}
        backend.store.client.set(backend.store.keys.bandwidth, replace(picture, at=at).encode(), **kept)

    return put


def policies(api):
    return api.get("/policies").json()["policies"]


def test_the_overview_and_the_table_are_two_documents_of_one_second(api, paint):
    paint()
    overview, table = api.get("/bw"), api.get("/bw/osinfo")
    assert overview.json() == {"10.0.0.1:6200": {"AUTH_a": {"ec42": 19.0, "gold": 38.0}, "AUTH_b": {"gold": 19.0}}}
    (lines,) = table.json()["10.0.0.1:6200"].values()
    assert [(one["account"], one["policy"], one["method"]) for one in lines.values()] == [
        ("AUTH_a", "ec42", "GET"),
        ("AUTH_a", "gold", "GET"),
        ("AUTH_a", "gold", "PUT"),
        ("AUTH_b", "gold", "GET"),
    ]
    assert overview.headers["X-Sluice-Measured-At"] == table.headers["X-Sluice-Measured-At"] != ""
    own = {"10.0.0.1:6200": {"sdb1": {"0": lines["3"]}}}
    assert api.get("/bw/AUTH_b").json() == api.get("/bw/accounts/AUTH_b").json() == own
    assert api.get("/bw/AUTH_nobody").json() == {}


LISTS = ("flows", "nodes", "parts", "devices")


@pytest.mark.parametrize("name", LISTS)
def test_while_nobody_measures_a_list_is_empty_and_says_so(api, paint, name):
    def shown():
        return api.get(f"/bw/{name}").json()

    nothing = {name: [], "next_marker": None, "at": None, "stale": True, "left_out": 0, "controllers": {}}
    assert shown() == nothing
    paint()
    assert (shown()["stale"], bool(shown()[name]), shown()["at"][:2]) == (False, True, "20")
    paint(age=REPORT_FRESH + 1)
    assert shown() == nothing
    assert (api.get("/bw").json(), api.get("/bw").headers["X-Sluice-Measured-At"]) == ({}, "")


def test_the_age_of_a_report_is_measured_by_redis_clock(api, backend):
    for at in (1.0, time.time() + 3600):
        backend.store.client.set(backend.store.keys.bandwidth, replace(PICTURE, at=at).encode(), ex=10)
        assert api.get("/bw/flows").json()["stale"] is False


def test_an_unreadable_report_is_ignored(api, backend):
    for raw in (b"nonsense", b'{"v": 99}', b"[]"):
        backend.store.client.set(backend.store.keys.bandwidth, raw, ex=10)
        assert api.get("/bw/flows").json()["stale"] is True
        assert api.get("/bw").json() == {}


def test_idle_flows_are_listed_beside_active_flows(api, paint, backend):
    rows = [{**FLOW, "account": f"AUTH_{name}", "policy": 7, "active": False} for name in "abcd"]
    promises = IdleFlowReport((*rows, {**rows[0], "container": "logs"}, {**rows[0], "method": "PUT"}))
    key = backend.store.keys.promises(promises.digest)
    picture = replace(PICTURE, promises=promises.digest, idle=3, left_out={"flows": 5})

    def shown():
        found = api.get("/bw/flows").json()
        flows = [tuple(one[name] for name in ("account", "container", "method", "policy")) for one in found["flows"]]
        return [one[:3] for one in flows if one[3] == 7], len(flows), found["left_out"]

    paint(picture)
    assert shown() == ([], 4, 8)
    backend.store.client.set(key, promises.encode())
    assert shown() == ([("AUTH_a", "logs", "GET"), ("AUTH_c", "", "GET"), ("AUTH_d", "", "GET")], 7, 5)
    backend.store.client.set(key, b"nonsense")
    assert shown() == ([], 4, 8)


class OneProject:
    """Keystone's projects, with one known project."""

    def name(self, account):
        return "acme" if account == "AUTH_a" else ""


def test_flows_and_parts_say_what_their_project_is_called(api, paint, backend):
    paint()
    object.__setattr__(backend, "projects", OneProject())
    for name in ("flows", "parts"):
        rows = api.get(f"/bw/{name}").json()[name]
        assert {one["label"] for one in rows if one["account"] == "AUTH_a"} == {"acme"}
        assert {one["label"] for one in rows if one["account"] != "AUTH_a"} == {""}


def test_flows_show_what_is_assigned_beside_what_is_measured(api, paint):
    paint()
    found = api.get("/bw/flows").json()["flows"]
    assert found[1] == {**FLOW, "storage_policy": "gold", "label": ""}
    assert [(one["account"], one["container"], one["method"], one["share"]) for one in found] == [
        ("", "", "REPLICATION", 40 * MB),
        ("AUTH_a", "", "GET", 40 * MB),
        ("AUTH_b", "", "GET", None),
        ("AUTH_b", "c", "GET", 40 * MB),
    ]


FILTERS = [
    ("flows?account=AUTH_b", 2),
    ("flows?account=AUTH_b&container=c", 1),
    ("flows?method=REPLICATION", 1),
    ("flows?storage_policy=EC42", 1),
    ("flows?storage_policy=1", 1),
    ("flows?short=true", 1),
    ("flows?prefix=AUTH_a", 1),
    ("nodes?side=proxy", 1),
    ("nodes?node=s1&method=GET", 1),
    ("nodes?method=PUT", 0),
    ("parts?device=sdb1", 4),
    ("parts?account=AUTH_a&method=GET&storage_policy=gold", 2),
    ("parts?node=p1", 1),
    ("devices?method=GET", 1),
    ("devices?node=s2", 0),
]


@pytest.mark.parametrize(("query", "count"), FILTERS)
def test_tables_are_filtered_by_column(api, paint, query, count):
    paint()
    page = api.get(f"/bw/{query}").json()
    assert len(page[query.partition("?")[0]]) == count


@pytest.mark.parametrize("query", ["flows?side=proxy", "flows?method=HEAD", "nodes?side=moon", "parts?limit=0"])
def test_an_unknown_filter_of_a_list_is_refused(api, query):
    assert api.get(f"/bw/{query}").status_code == 400


@pytest.mark.parametrize("name", LISTS)
def test_pages_of_a_list_are_complete(api, paint, name):
    paint(replace(PICTURE, flows=(*PICTURE.flows, FLOW)))  # two identical rows
    whole, found, marker = api.get(f"/bw/{name}").json()[name], [], ""
    while marker is not None:
        page = api.get(f"/bw/{name}", {"limit": 1, "marker": marker}).json()
        found += page[name]
        marker = page["next_marker"]
    assert found == whole


def test_lists_say_how_many_rows_are_left_out(api, paint):
    paint(replace(PICTURE, left_out={"flows": 7, "parts": 5, "objects": 1}))
    for name, count in (("flows", 7), ("flows?short=true", 7), ("nodes", 0), ("parts", 5), ("devices", 5)):
        assert api.get(f"/bw/{name}").json()["left_out"] == count
    for path, count in (("", "5"), ("/osinfo", "6"), ("/AUTH_b", "6"), ("/accounts/AUTH_b", "6")):
        assert api.get(f"/bw{path}").headers["X-Sluice-Left-Out"] == count
    paint()
    assert api.get("/bw").headers["X-Sluice-Left-Out"] == "0"


def test_nodes_say_how_their_capacity_is_known(api, paint):
    paint()
    proxy, server = api.get("/bw/nodes").json()["nodes"]
    assert (proxy["capacity"], proxy["source"], proxy["assigned"]) == (None, "unknown", None)
    assert server == {**NODE, "at": "1970-01-01T00:00:01.000Z"}


def test_devices_sum_up_their_flows(api, paint):
    paint()
    reads, writes = api.get("/bw/devices").json()["devices"]
    assert (reads["method"], reads["flows"], reads["share"], reads["measured"]) == ("GET", 3, 30 * MB, 57 * MB)
    assert (writes["method"], writes["flows"], writes["share"]) == ("PUT", 1, 5 * MB)


def test_a_value_becomes_a_policy_like_any_other(api, backend):
    made = api.put("/bw/AUTH_a/30")
    assert made.status_code == 200, made.content
    (policy,) = policies(api)
    assert policy["policy"] == "FOR TENANT AUTH_a DO SET bandwidth WITH node_get_bw=30MBps ON STORAGE_NODE"
    assert (policy["id"], policy["origin"], made.json()["changed"]) == (made.json()["id"], "bw/AUTH_a", True)
    (assignment,) = backend.store.assignments()
    assert (assignment.kind, assignment.params) == ("bandwidth", {"node_get_bw": 30 * MB})


@pytest.mark.parametrize("again", ["30", "30MBps", "30.0", "30000kBps", "30MB/s", "30 MBps"])
def test_the_same_again_changes_nothing_however_it_is_written(api, backend, again):
    first = api.put("/bw/AUTH_a/30").json()
    epoch = backend.store.head().epoch
    second = api.put(f"/bw/AUTH_a/{quote(again)}").json()
    assert (second["id"], second["changed"], backend.store.head().epoch) == (first["id"], False, epoch)


def test_another_value_takes_its_place_and_storage_policies_stand_beside(api, backend):
    for value in ("30", "20MBps"):
        assert api.put(f"/bw/AUTH_a/{value}").status_code == 200
    for policy in ("gold", "GOLD", "1"):
        assert api.put(f"/bw/AUTH_a/{policy}/5MB/s").status_code == 200
    found = {one["origin"]: one["actions"][0]["params"] for one in policies(api)}
    assert found == {
        "bw/AUTH_a": {"node_get_bw": 20 * MB},
        "bw/AUTH_a/GOLD": {"node_get_bw": 5 * MB, "storage_policy": "GOLD"},
        "bw/AUTH_a/1": {"node_get_bw": 5 * MB, "storage_policy": "1"},
    }
    assert len(backend.store.assignments()) == 3


CLEARED = [
    ("", []),
    ("/AUTH_a", ["bw/AUTH_b"]),
    ("/AUTH_a/gold", ["bw/AUTH_a", "bw/AUTH_b"]),
    ("/AUTH_a/silver", ["bw/AUTH_a", "bw/AUTH_a/Gold", "bw/AUTH_b"]),
    ("/AUTH_nobody", ["bw/AUTH_a", "bw/AUTH_a/Gold", "bw/AUTH_b"]),
]


@pytest.mark.parametrize(("path", "left"), CLEARED)
def test_values_are_taken_back_and_nothing_else(api, create, path, left):
    for value in ("AUTH_a/30", "AUTH_a/Gold/10", "AUTH_b/20"):
        assert api.put(f"/bw/{value}").status_code == 200
    written = create("FOR TENANT AUTH_c DO SET bandwidth WITH node_get_bw=30MBps")
    done = api.put(f"/bw/clear{path}")
    assert (done.status_code, len(done.json()["policies"])) == (200, 3 - len(left))
    assert sorted(one["origin"] for one in policies(api)) == sorted(["", *left])
    assert written["id"] in {one["id"] for one in policies(api)}
    assert api.put(f"/bw/clear{path}").json() == {"policies": []}


TENANTS = ["AUTH_ü 漢", 'AUTH_"q\'uo\\te"', "AUTH_FOR;#"]


@pytest.mark.parametrize("tenant", TENANTS)
def test_any_tenant_can_have_a_value(api, tenant):
    here = f"/bw/{quote(tenant)}"
    assert api.put(f"{here}/30").status_code == 200
    (policy,) = policies(api)
    assert (policy["target"]["name"], policy["origin"]) == (tenant, f"bw/{tenant}")
    assert api.put(f"{here}/30").json()["changed"] is False
    assert api.get(here).status_code == 200
    assert api.put(f"/bw/clear/{quote(tenant)}").json() == {"policies": [policy["id"]]}


def test_projects_go_by_name_or_account(api, backend, paint):
    object.__setattr__(backend, "native", replace(backend.native, tenants={"acme": "AUTH_b"}))
    first = api.put("/bw/acme/30").json()
    assert api.put("/bw/AUTH_b/30").json()["id"] == first["id"]
    paint()
    assert api.get("/bw/acme").json() == api.get("/bw/AUTH_b").json() != {}
    assert api.put("/bw/clear/acme").json() == {"policies": [first["id"]]}


WRONG = ["0", "-5", "NaN", "inf", "1e18", "10E", "30Mbps", "", " ", "fast", "30MBps, SET noop", "1e999", "9" * 500]


@pytest.mark.parametrize("value", WRONG)
def test_an_invalid_value_is_refused_with_the_reason(api, backend, value):
    for path in ("AUTH_a", "AUTH_a/gold"):
        refused = api.put(f"/bw/{path}/{quote(value)}")
        assert refused.status_code == (400 if value else 404), refused.content
        message = refused.json()["error"]["message"]
        assert "node_get_bw" in message or not value
    assert (policies(api), backend.store.assignments()) == ([], [])


def test_a_near_miss_of_a_unit_is_named(api):
    (problem,) = api.put("/bw/AUTH_a/30mbps").json()["error"]["problems"]
    assert problem["near_miss"]


def test_a_body_is_refused_and_so_is_what_another_policy_promises(api, create):
    assert api.put("/bw/AUTH_a/30", {"a": 1}, format="json").status_code == 400
    assert api.put("/bw/clear", {"a": 1}, format="json").status_code == 400
    written = create("FOR TENANT AUTH_a DO SET bandwidth WITH node_get_bw=10MBps")
    refused = api.put("/bw/AUTH_a/30")
    assert (refused.status_code, written["id"] in refused.json()["error"]["message"]) == (409, True)


def test_a_policy_says_what_is_missing_to_keep_its_promise(api, create, paint):
    made = create("FOR TENANT AUTH_a DO SET bandwidth WITH get_bw=30MBps")
    filtered = create("FOR TENANT AUTH_a DO SET noop")

    def shown(policy):
        return api.get(f"/policies/{policy['id']}").json()["infeasible"]

    assert shown(made) is None
    paint(replace(PICTURE, infeasible={made["id"]: 5 * MB, filtered["id"]: 1.0}))
    assert (shown(made), shown(filtered)) == ({"shortfall": 5 * MB}, None)
    paint(replace(PICTURE, infeasible={}))
    assert shown(made) is None


def test_prometheus_reads_it_by_node_and_never_by_tenant(api, paint):
    assert "sluice_bandwidth_bytes_per_second{" not in api.get("/metrics").content.decode()
    paint()
    text = api.get("/metrics").content.decode()
    for what, value in (("measured", "5.5e+07"), ("assigned", "6e+07"), ("capacity", "9e+07")):
        labels = f'{{method="GET",node="s1",side="storage_node",what="{what}"}}'
        assert f"sluice_bandwidth_bytes_per_second{labels} {value}" in text
    assert 'node="p1",side="proxy",what="measured"' in text
    assert 'node="p1",side="proxy",what="capacity"' not in text
    assert "AUTH_" not in text


def test_a_reader_sees_the_flows_of_its_own_project_alone(api, paint, monkeypatch):
    from sluice_controller.identity.caller import Identity

    paint()
    reader = Identity.from_user("u", "rita", "b", "acme", ["reader"])
    monkeypatch.setattr(
        "sluice_controller.api.authentication.TokenAuthentication.authenticate", lambda self, request: (reader, None)
    )
    found = api.get("/bw/flows").json()["flows"]
    assert [one["account"] for one in found] == ["AUTH_b", "AUTH_b"]
    for path in ("", "/osinfo", "/AUTH_b", "/nodes", "/parts", "/devices"):
        assert api.get(f"/bw{path}").status_code == 403
    for path in ("AUTH_b/30", "AUTH_b/gold/30", "clear", "clear/AUTH_b"):
        assert api.put(f"/bw/{path}").status_code == 403
