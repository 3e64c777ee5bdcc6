"""``/bw/metrics``: shares and rates of tenants, for Prometheus."""

import math
import time
from dataclasses import replace

import pytest
from django.test import override_settings
from prometheus_client.parser import text_string_to_metric_families

from sluice_aio.base.backing_servers import RedisServer
from sluice_aio.base.ports import free_port
from sluice_controller.catalog.backend import open_backend
from sluice_controller.identity.caller import Identity
from sluice_core.messages.bandwidth_report import BandwidthReport, IdleFlowReport
from sluice_core.store.operations import REPORT_FRESH, REPORT_RETENTION

MB = 1e6
OWNER = {"account": "AUTH_a", "container": "", "method": "GET", "policy": 0}
MOVED = {"share": 40 * MB, "measured": 39 * MB}
FLOW = {**OWNER, **MOVED, "floor": 30 * MB, "ceiling": 50 * MB, "met": 25 * MB, "short": 5 * MB}
#: A flow without an objective.
FREE = {**FLOW, "share": -1.0, "floor": 0.0, "ceiling": 0.0, "met": 0.0, "short": 0.0}
NOBODYS = {"account": "", "method": "REPLICATION"}
PART = {**OWNER, "node": "s1", "side": "storage_node", "device": "sdb1", "share": 20 * MB, "measured": 19 * MB}
AT_PROXY = {"node": "p1", "side": "proxy", "device": ""}
PICTURE = BandwidthReport(
    at=0.0,
    host="h1",
    term=1,
    number=7,
    flows=(FLOW, {**FREE, "account": "AUTH_b", "container": "c", "policy": 1}, {**FREE, **NOBODYS}),
    parts=(
        PART,
        {**PART, **AT_PROXY, "method": "PUT", "share": -1.0},
        {**PART, "account": "AUTH_b", "container": "c", "policy": 1},
        {**PART, **NOBODYS},
    ),
    policies={"0": "gold"},
)
FLOWS, PARTS = "sluice_bandwidth_flow_bytes_per_second", "sluice_bandwidth_part_bytes_per_second"
LEFT_OUT, AGE = "sluice_bandwidth_rows_left_out", "sluice_bandwidth_picture_age_seconds"


@pytest.fixture
def paint(backend):
    """A function that writes a report to Redis, as the allocating host does, ``age`` seconds ago."""

    def put(picture=PICTURE, age=0.0, at=None):
        kept = {"px": int((REPORT_RETENTION - age) * 1000)}
        at = time.time() - age if at is None else at
        backend.store.client.set(backend.store.keys.bandwidth, replace(picture, at=at).encode(), **kept)

    return put


@pytest.fixture
def read(api):
    """A function that returns all series: name → labels, as a frozen set of pairs → value; all of them unique."""

    def get(query=""):
        answer = api.get(f"/bw/metrics{query}")
        assert answer.status_code == 200, answer.content
        assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        found = {}
        for family in text_string_to_metric_families(answer.content.decode()):
            assert (family.type, bool(family.documentation)) == ("gauge", True)
            series = found[family.name] = {}
            for one in family.samples:
                key = frozenset(one.labels.items())
                assert key not in series, "a series that stands there twice"
                series[key] = one.value
        return found

    return get


def of(series, **labels):
    """``what`` → value, of the series with exactly these labels."""
    wanted = frozenset(labels.items())
    found = {}
    for key, value in series.items():
        (what,) = [text for name, text in key if name == "what"]
        if key == wanted | {("what", what)}:
            found[what] = value
    return found


def accounts(series):
    return {dict(key)["account"] for key in series}


def test_flow_series_are_labelled_by_tenant_container_method_and_storage_policy(paint, read):
    paint()
    found = read()[FLOWS]
    promised = {name: FLOW[name] for name in ("measured", "share", "floor", "met", "short", "ceiling")}
    assert of(found, account="AUTH_a", container="", method="GET", storage_policy="gold") == promised
    free = {"measured": 39 * MB}
    assert of(found, account="AUTH_b", container="c", method="GET", storage_policy="1") == free
    assert of(found, account="", container="", method="REPLICATION", storage_policy="") == free
    assert len(found) == 8


def test_a_promise_that_cannot_be_met_at_all_is_exported_as_0(paint, read):
    paint(replace(PICTURE, flows=({**FLOW, "share": 0.0, "measured": 0.0, "ceiling": 0.0, "met": 0.0},)))
    (labels,) = {key - {pair for pair in key if pair[0] == "what"} for key in read()[FLOWS]}
    expected = {"measured": 0, "share": 0, "floor": 30 * MB, "met": 0, "short": 5 * MB}
    assert of(read()[FLOWS], **dict(labels)) == expected


def test_part_series_are_labelled_by_node_side_and_device(paint, read):
    paint()
    found = read()[PARTS]
    both, owner = {"measured": 19 * MB, "share": 20 * MB}, {"account": "AUTH_a", "container": ""}
    disk = {"node": "s1", "side": "storage_node", "device": "sdb1"}
    assert of(found, **disk, **owner, method="GET", storage_policy="gold") == both
    assert of(found, **AT_PROXY, **owner, method="PUT", storage_policy="gold") == {"measured": 19 * MB}
    assert of(found, **disk, account="AUTH_b", container="c", method="GET", storage_policy="1") == both
    assert of(found, **disk, account="", container="", method="REPLICATION", storage_policy="") == both
    assert len(found) == 7


NAMES = [
    'AUTH_"quoted"',
    "AUTH_back\\slash",
    "AUTH_ends in one\\",
    "AUTH_two\nlines\r\tand \\n no third",
    'AUTH_a",what="share"} 1',
    "# HELP AUTH_a",
    "AUTH_\N{LATIN SMALL LETTER U WITH DIAERESIS}\N{CJK UNIFIED IDEOGRAPH-6771}\N{GRINNING FACE}\N{LINE SEPARATOR}",
    "AUTH_{},= ",
]


def test_labels_keep_any_characters(paint, read):
    rows = [{**FREE, "account": name, "container": name[::-1], "measured": float(n)} for n, name in enumerate(NAMES)]
    parts = [{**PART, "account": name, "node": name, "device": name[::-1]} for name in NAMES]
    paint(replace(PICTURE, flows=tuple(rows), parts=tuple(parts)))
    found = read()
    assert len(found[FLOWS]) == len(NAMES)
    for number, name in enumerate(NAMES):
        labels = {"account": name, "container": name[::-1], "method": "GET", "storage_policy": "gold"}
        assert of(found[FLOWS], **labels) == {"measured": number}
    assert {(dict(key)["node"], dict(key)["device"]) for key in found[PARTS]} == {(one, one[::-1]) for one in NAMES}


def test_a_label_with_half_a_surrogate_pair_leaves_other_series_intact(paint, read):
    odd = [{**FREE, "account": f"AUTH_{letter}"} for letter in ("\ud800", "\udcff")]
    paint(replace(PICTURE, flows=(*odd, FLOW), parts=()))
    found = read()[FLOWS]
    assert accounts(found) == {"AUTH_?", "AUTH_a"}
    assert of(found, account="AUTH_?", container="", method="GET", storage_policy="gold") == {"measured": 78 * MB}


def test_rows_with_equal_labels_are_summed(paint, read):
    idle = {**FLOW, "policy": -1, "ceiling": 0.0, "share": 0.0}
    paint(replace(PICTURE, flows=(idle, {**idle, "floor": 0.0, "met": 0.0, "short": 0.0}), parts=(PART, PART)))
    labels = {"account": "AUTH_a", "container": "", "method": "GET", "storage_policy": ""}
    expected = {"measured": 78 * MB, "share": 0, "floor": 30 * MB, "met": 25 * MB, "short": 5 * MB}
    assert of(read()[FLOWS], **labels) == expected
    assert sorted(read()[PARTS].values()) == [38 * MB, 40 * MB]
    for rows in ((idle, {**idle, "share": -1.0}), ({**idle, "share": -1.0}, idle)):
        paint(replace(PICTURE, flows=rows))
        assert "share" not in of(read()[FLOWS], **labels)


CHOICES = [
    ("account=AUTH_b", 1, 2),
    ("account=AUTH_b&container=c", 1, 2),
    ("account=AUTH_b&method=PUT", 0, 0),
    ("method=GET", 7, 4),
    ("method=REPLICATION", 1, 2),
    ("storage_policy=1", 1, 2),
    ("node=p1", 0, 1),
    ("node=s1&account=AUTH_a", 0, 2),
    ("side=storage_node", 0, 6),
    ("device=sdb1&method=REPLICATION", 0, 2),
    ("account=", 8, 7),
]


@pytest.mark.parametrize(("query", "flows", "parts"), CHOICES)
def test_bandwidth_metrics_are_filtered_by_the_query(paint, read, query, flows, parts):
    paint()
    found = read(f"?{query}")
    assert (len(found[FLOWS]), len(found[PARTS])) == (flows, parts)


@pytest.mark.parametrize("query", ["limit=1", "format=json", "short=true", "method=HEAD", "side=moon"])
def test_an_unknown_filter_of_bandwidth_metrics_is_refused(api, query):
    answer = api.get(f"/bw/metrics?{query}")
    assert (answer.status_code, answer.headers["Content-Type"]) == (400, "application/json")


def test_rows_without_series_are_counted_by_list(paint, read):
    def shown():
        return {dict(key)["list"]: value for key, value in read()[LEFT_OUT].items()}

    paint(replace(PICTURE, left_out={"flows": 7, "parts": 5, "objects": 1}))
    assert shown() == {"flows": 7, "parts": 5}
    paint()
    assert shown() == {"flows": 0, "parts": 0}


def test_the_age_is_by_the_clock_of_redis_and_infinite_without_a_report(paint, read):
    (age,) = read()[AGE].values()
    assert age == math.inf
    paint(age=1.0, at=time.time() - 3600)
    (age,) = read()[AGE].values()
    assert 1.0 <= age <= REPORT_FRESH
    paint(age=REPORT_FRESH + 1)
    found = read()
    assert list(found[AGE].values()) == [math.inf]
    assert [found[name] for name in (FLOWS, PARTS, LEFT_OUT)] == [{}, {}, {}]


def test_without_redis_bandwidth_metrics_are_503(api, config, tmp_path):
    with RedisServer(free_port(), tmp_path, tied=True) as server:
        other = replace(config, redis_url=server.url)
        with override_settings(SLUICE=other):
            assert api.get("/bw/metrics").status_code == 200
            server.kill()
            answer = api.get("/bw/metrics")
            assert (answer.status_code, bool(answer.headers["Retry-After"])) == (503, True)
            assert answer.json()["error"]["message"]
            open_backend(other).store.close()


def test_bandwidth_metrics_need_a_token(api, paint, monkeypatch):
    paint()
    token = api.defaults.pop("HTTP_X_AUTH_TOKEN")
    assert api.get("/bw/metrics").status_code == 401
    assert api.get("/bw/metrics", headers={"X-Auth-Token": token}).status_code == 200
    reader = Identity.from_user("u", "rita", "a", "acme", ["reader"])
    monkeypatch.setattr(
        "sluice_controller.api.authentication.TokenAuthentication.authenticate", lambda self, request: (reader, None)
    )
    refused = api.get("/bw/metrics?account=AUTH_a")
    assert (refused.status_code, b"sluice:bandwidth:metrics" in refused.content) == (403, True)
    assert b"AUTH_b" not in refused.content


ACCEPTED = "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"


@pytest.mark.parametrize("accept", ["text/plain", ACCEPTED, "*/*"])
def test_what_prometheus_accepts_is_given(api, paint, accept):
    paint()
    answer = api.get("/bw/metrics", headers={"Accept": accept})
    assert (answer.status_code, b'account="AUTH_a"' in answer.content) == (200, True)
    assert api.head("/bw/metrics", headers={"Accept": accept}).status_code == 200


def test_idle_promises_have_series_and_other_lists_do_not_read_them(read, paint, backend, api, caplog):
    idle = {**PICTURE.flows[0], "account": "AUTH_idle", "active": False, "floor": 3.0}
    promises = IdleFlowReport((idle,))
    key = backend.store.keys.promises(promises.digest)
    paint(replace(PICTURE, promises=promises.digest, idle=1))
    backend.store.client.set(key, promises.encode())
    assert 3.0 in [value for labels, value in read()[FLOWS].items() if ("account", "AUTH_idle") in labels]
    backend.store.client.set(key, b"nonsense")
    for path in ("/bw", "/bw/nodes", "/bw/parts", "/bw/devices", "/bw/slo"):
        assert api.get(path).status_code == 200
    assert key not in caplog.text
    assert read()[LEFT_OUT][frozenset({("list", "flows")})] == 1.0
    assert key in caplog.text
