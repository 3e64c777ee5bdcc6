"""``bw`` and ``slo`` against a real API: traffic and objectives."""

import json
import time

import pytest

from sluice_core.messages.bandwidth_report import BandwidthReport

MB = 1e6
FLOW = {"account": "AUTH_a", "container": "", "method": "GET", "policy": 0}
ON_NODE = {**FLOW, "node": "s1", "side": "storage_node", "device": "sdb1", "share": 20 * MB, "measured": 19.5 * MB}
RATES = {"floor": 30 * MB, "ceiling": 0.0, "share": -1.0, "measured": 19.5 * MB, "met": 25 * MB, "short": 5 * MB}
NODE = {
    **{"node": "s1", "server": "10.0.0.1:6200", "side": "storage_node", "method": "GET", "source": "configured"},
    **{"capacity": 90 * MB, "assigned": 20 * MB, "measured": 19.5 * MB, "at": 1.0},
}
MOVED = {"oid": "c/o", "range": "0-end", "rate": 19.5 * MB, "server": "10.0.0.1:6200"}


def as_json(said):
    return json.loads(said.out)


@pytest.fixture
def unset(sluice):
    """Deletes floors of `bw set`; returns the number of policies."""
    return lambda *words: len(as_json(sluice("bw", "unset", *words, "-f", "json")))


@pytest.fixture
def paint(store):
    """A function that writes a measurement."""

    def put(**more):
        known = {
            "flows": ({**FLOW, **RATES, "waiting": 1.0, "active": True, "policies": ["p"]},),
            "nodes": (NODE,),
            "parts": (ON_NODE,),
            "objects": ({**ON_NODE, **MOVED},),
            "policies": {"0": "gold"},
        }
        picture = BandwidthReport(at=time.time(), host="h", term=1, number=1, **known | more)
        store.client.set(store.keys.bandwidth, picture.encode(), ex=600)

    return put


def test_the_table_is_listed_line_by_line_and_object_by_object(sluice, client, paint):
    paint()
    place = {"Server": "10.0.0.1:6200", "Device": "sdb1"}
    (line,) = as_json(sluice("bw", "list", "-f", "json"))
    assert line == {
        **{**place, "Account": "AUTH_a", "Method": "GET", "Storage Policy": "gold"},
        **{"Needed MB/s": 30.0, "Measured MB/s": 19.5, "Objects": 1},
    }
    (moved,) = as_json(sluice("bw", "object", "list", "AUTH_a", "-f", "json"))
    assert moved == {
        **{**place, "Method": "GET", "Storage Policy": "gold", "Object": "/AUTH_a/c/o"},
        **{"Range": "0-end", "Measured MB/s": 19.5},
    }
    assert client.bandwidth_overview() == {"10.0.0.1:6200": {"AUTH_a": {"gold": 19.5}}}
    assert as_json(sluice("bw", "list", "--account", "AUTH_b", "-f", "json")) == []
    assert as_json(sluice("bw", "object", "list", "AUTH_b", "-f", "json")) == []


def test_rates_are_shown_in_megabytes_and_the_titles_say_so(sluice, paint):
    paint()
    (flow,) = as_json(sluice("bw", "flow", "list", "--short", "-f", "json"))
    assert (flow["Floor MB/s"], flow["Assigned MB/s"], flow["Measured MB/s"], flow["Short MB/s"]) == (30, None, 19.5, 5)
    (node,) = as_json(sluice("bw", "node", "list", "--side", "storage_node", "-f", "json"))
    assert (node["Capacity MB/s"], node["Known"], node["Assigned MB/s"]) == (90.0, "configured", 20.0)
    (part,) = as_json(sluice("bw", "part", "list", "--account", "AUTH_a", "--device", "sdb1", "-f", "json"))
    assert (part["Storage Policy"], part["Node"], part["Assigned MB/s"]) == ("gold", "s1", 20.0)
    (device,) = as_json(sluice("bw", "device", "list", "--node", "s1", "-f", "json"))
    assert (device["Flows"], device["Measured MB/s"]) == (1, 19.5)
    (raw,) = json.loads(sluice("--json", "bw", "flow", "list").out)
    assert raw["measured"] == 19.5 * MB


@pytest.mark.parametrize("what", ["flow", "node", "part", "device"])
def test_a_list_without_measurements_is_empty_with_a_notice(sluice, paint, what):
    said = sluice("bw", what, "list", "-f", "json")
    assert as_json(said) == []
    assert "no host measures" in said.err
    paint(flows=(), nodes=(), parts=())
    assert sluice("bw", what, "list", "-f", "json").err == ""


def test_left_out_rows_are_announced(sluice, paint):
    paint(left_out={"flows": 12})
    said = sluice("bw", "flow", "list", "-f", "json")
    assert len(as_json(said)) == 1
    assert "12 rows are left out" in said.err
    assert sluice("bw", "node", "list", "-f", "json").err == ""


def test_an_account_that_is_called_like_a_word_of_the_api_has_values_like_others(sluice, store, paint, unset):
    paint(parts=({**ON_NODE, "account": "flows"},), objects=())
    sluice("bw", "set", "slo", "30")
    sluice("bw", "set", "clear", "30", "--storage-policy", "gold")
    assert sorted(one.target.name for one in store.assignments()) == ["clear", "slo"]
    assert [one["Account"] for one in as_json(sluice("bw", "list", "--account", "flows", "-f", "json"))] == ["flows"]
    assert unset("clear") == 1


def test_a_value_is_set_and_taken_back(sluice, store, unset):
    made = as_json(sluice("bw", "set", "AUTH_ü", "30MB/s", "-f", "json"))
    assert made["policy"] == "FOR TENANT AUTH_ü DO SET bandwidth WITH node_get_bw=30MBps ON STORAGE_NODE"
    under = as_json(sluice("bw", "set", "AUTH_ü", "30", "--storage-policy", "gold", "--wait", "0.1", "-f", "json"))
    assert "storage_policy=gold" in under["policy"]
    assert unset("AUTH_ü", "--storage-policy", "gold") == 1
    assert [one.params for one in store.assignments()] == [{"node_get_bw": 30 * MB}]
    sluice("bw", "set", "AUTH_b", "30")
    assert unset("--all") == 2
    assert store.assignments() == []


WRONG = [
    ("expected an account or `--all`", ["unset"]),
    ("expected an account or `--all`", ["unset", "AUTH_a", "--all"]),
    ("without an account", ["unset", "--all", "--storage-policy", "gold"]),
    ("(HTTP 400)", ["set", "AUTH_a", "0"]),
    ("(HTTP 400)", ["set", "AUTH_a", "NaN"]),
    ("did you mean", ["set", "AUTH_a", "30mbps"]),
]


@pytest.mark.parametrize(("reason", "words"), WRONG)
def test_what_makes_no_sense_is_refused_with_the_reason(sluice, store, reason, words):
    assert reason in sluice("bw", *words, status=1).err
    assert store.assignments() == []


def test_objectives_are_set_listed_and_deleted(sluice, store, paint):
    made = as_json(sluice("slo", "set", "AUTH_a", "get_bw", "30", "-f", "json"))
    assert (made["text"], made["value"], made["changed"]) == ("30 MB/s", 30 * MB, True)
    sluice("slo", "set", "AUTH_a", "put_bw", "20MBps", "--wait", "0.1")
    sluice("slo", "set", "AUTH_a", "max_get_bw", "40", "--storage-policy", "gold")
    sluice("slo", "set", "AUTH_b", "get_bw", "1")
    (policy,) = {one["Policy"] for one in as_json(sluice("slo", "list", "--name", "put_bw", "-f", "json"))}
    paint(infeasible={policy: 5 * MB}, lacking={policy: {"get_bw": 5 * MB}})
    found = as_json(sluice("slo", "list", "--account", "AUTH_a", "-f", "json"))
    assert [(one["Name"], one["Value MB/s"], one["Storage Policy"], one["Missing MB/s"]) for one in found] == [
        ("get_bw", 30.0, "", 5.0),
        ("max_get_bw", 40.0, "gold", None),
        ("put_bw", 20.0, "", None),
    ]
    shown = sluice("policy", "show", policy).out
    assert "5 MB/s are missing" in shown
    assert "set bandwidth get_bw=30 MB/s, put_bw=20 MB/s on proxy" in " ".join(shown.replace("|", " ").split())
    done = sluice("slo", "unset", "AUTH_a", "get_bw", "put_bw").out
    assert done == "objective get_bw of AUTH_a is unset\nobjective put_bw of AUTH_a is unset\n"
    assert "(HTTP 404)" in sluice("slo", "unset", "AUTH_a", "max_get_bw", status=1).err
    sluice("slo", "unset", "AUTH_a", "max_get_bw", "--storage-policy", "gold")
    assert [one.params for one in store.assignments()] == [{"get_bw": MB}]


def test_an_objective_that_cannot_be_is_refused(sluice, store):
    assert "(HTTP 400)" in sluice("slo", "set", "AUTH_a", "get_bw", "1e18", status=1).err
    assert "invalid choice" in sluice("slo", "set", "AUTH_a", "fast", "30", status=2).err
    assert store.assignments() == []


def test_bw_and_slo_are_commands_of_openstack(openstack, api, paint):
    paint()
    known = {"OS_AUTH_TYPE": "none", "OS_ENDPOINT": api.url, "SLUICE_TOKEN_FILE": str(api.token)}
    made = openstack("sluice", "slo", "set", "AUTH_a", "get_bw", "30", "-f", "value", "-c", "text", env=known)
    assert made.stdout == "30 MB/s\n"
    shown = openstack("sluice", "bw", "flow", "list", "-f", "value", "-c", "Measured MB/s", env=known)
    assert shown.stdout == "19.5\n"
