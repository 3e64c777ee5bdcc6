"""``volume``: requests, output, and waiting for operations; the controller is a script."""

import json

import pytest

from sluice_client import Client, Retries
from sluice_client.command_base import watch

OPERATION = {
    "id": "o1", "what": "create", "state": "done", "reason": "", "volume": "v1", "project": "p1", "data": {"size": 1},
    "created_at": "2026-01-01T00:00:00Z", "ended_at": None, "created_by": "alice@acme",
}  # fmt: skip
UNDER_WAY = {**OPERATION, "state": "under_way"}
VOLUME = {
    "id": "v1", "name": "data1", "project": "p1", "status": "in-use", "size": 10, "cinder_size": 11, "tier": "gold",
    "type": "gold", "pool": None, "node": "n1", "attachments": [{"id": "a1", "host": ""}], "header": 0, "known": True,
    "filters": [{"keyword": "xor", "params": {"key": 7}}], "filters_fixed_at": None, "created_at": "", "rates": {},
}  # fmt: skip
POOL = {"name": "h@nbd#fast", "total": 2**31, "free": None, "capabilities": {"fabric": "nbd"}, "seen_at": ""}
TIER = {
    "name": "gold", "resiliency": "2", "bandwidth": 5e7, "iops": None, "fabric": "rbd", "cost": 5.0, "state": "drifted",
    "drift": ["pool_name: `x`, expected nothing"], "type": "t1", "pools": [POOL], "created_at": "", "created_by": "",
}  # fmt: skip


@pytest.fixture
def run(sluice, stub):
    """Runs ``sluice`` against the script."""
    return lambda *words, status=0: sluice(*words, status=status, start=["--url", stub.url])


@pytest.fixture
def sent(stub):
    """Method, path and body of the requests."""
    return lambda: [(one.method, one.path, one.body) for one in stub.requests]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (
            ("volume", "create", "10", "--name", "a b", "--resiliency", "2", "--bandwidth", "50MBps"),
            ("POST", "/volumes", {"size": 10, "name": "a b", "resiliency": "2", "bandwidth": "50MBps"}),
        ),
        (("volume", "create", "1", "--tier", "gold"), ("POST", "/volumes", {"size": 1, "tier": "gold"})),
        (("volume", "extend", "a b", "20"), ("PUT", "/volumes/a%20b/size", {"size": 20})),
        (("volume", "retype", "v1", "--tier", "gold"), ("PUT", "/volumes/v1/tier", {"tier": "gold"})),
        (("volume", "retype", "v1", "--iops", "5"), ("PUT", "/volumes/v1/tier", {"iops": 5.0})),
        (("volume", "attach", "v1", "n1"), ("POST", "/volumes/v1/attach", {"node": "n1"})),
        (
            ("volume", "attach", "v1", "n1", "--export", "nbd", "--adopt"),
            ("POST", "/volumes/v1/attach", {"node": "n1", "export": "nbd", "adopt": True}),
        ),
        (("volume", "detach", "v1"), ("POST", "/volumes/v1/detach", None)),
        (
            ("volume", "detach", "v1", "--force", "--machine-is-gone"),
            ("POST", "/volumes/v1/detach", {"force": True, "machine_is_gone": True}),
        ),
        (("volume", "delete", "v1"), ("DELETE", "/volumes/v1", None)),
        (("volume", "snapshot", "create", "v1", "--name", "s"), ("POST", "/volumes/v1/snapshots", {"name": "s"})),
        (("volume", "snapshot", "delete", "v1", "s"), ("DELETE", "/volumes/v1/snapshots/s", None)),
        (("volume", "operation", "show", "o1"), ("GET", "/volumes/operations/o1", None)),
    ],
    ids=lambda one: " ".join(one[:3]) if one[0] == "volume" else "",
)
def test_what_is_ordered_is_one_request(run, stub, sent, words, expected):
    stub.enqueue(202, OPERATION)
    assert "o1" in run(*words).out
    assert sent() == [expected]


def test_an_order_without_an_answer_is_sent_again_and_is_one_volume(stub):
    stub.enqueue(cut=True).enqueue(202, OPERATION)
    with Client(stub.url, retries=Retries(first=0.0)) as client:
        assert client.create_volume(1) == OPERATION
    assert len({one.headers["Idempotency-Key"] for one in stub.requests}) == 1


def test_an_operation_is_waited_for_while_something_is_away_for_a_moment(run, stub, monkeypatch):
    monkeypatch.setattr(watch, "PAUSE", 0.0)
    away = {"error": {"code": 503, "title": "", "message": "redis is away", "problems": []}}
    stub.enqueue(202, UNDER_WAY).enqueue(503, away).enqueue(200, UNDER_WAY).enqueue(200, OPERATION)
    assert "done" in run("volume", "create", "1", "--wait").out
    assert set(stub.paths[1:]) == {"/volumes/operations/o1?wait=5.0"}


def test_an_operation_that_fails_is_an_error_for_whoever_waits(run, stub):
    stub.enqueue(202, UNDER_WAY).enqueue(200, {**OPERATION, "state": "failed", "reason": "no pool has room"})
    assert "operation o1 has failed: no pool has room" in run("volume", "create", "1", "--wait", status=1).err


def test_of_several_volumes_each_is_deleted_and_the_failures_are_counted(run, stub):
    gone = {"error": {"code": 404, "title": "", "message": "there is no volume `x`", "problems": []}}
    stub.enqueue(404, gone).enqueue(202, {**UNDER_WAY, "what": "delete"})
    said = run("volume", "delete", "x", "v1", status=1)
    assert "there is no volume `x`" in said.err
    assert "delete of v1 is under_way, operation o1" in said.out


def test_a_volume_is_shown_for_people_and_for_programs(run, stub, sluice):
    stub.enqueue(200, VOLUME).enqueue(200, VOLUME)
    shown = run("volume", "show", "data1").out
    assert "10 GiB" in shown
    assert "xor key=7" in shown
    found = sluice("--json", "volume", "show", "data1", start=["--url", stub.url])
    assert json.loads(found.out) == VOLUME


def test_the_locality_of_a_volume_says_which_osd_has_how_many_of_its_objects(run, stub):
    osd = {"id": 3, "host": "left", "objects": 128, "primary": 64}
    consumer = {"node": "n1", "host": "h1", "device": "/dev/loop7"}
    where = {"volume": "v1", "name": "a b", "project": "p1", "pool": "h@rbd#p", "host": "h", "back_end": "rbd"}
    found = {**where, "fabric": "rbd", "consumer": consumer, "objects": 256, "sampled": 64, "osds": [osd]}
    stub.enqueue(200, {**found, "warnings": []})
    shown = run("volume", "locality", "show", "a b").out
    assert "osd.3 on left: 128 objects, 64 of them primary" in shown
    assert "n1 /dev/loop7" in shown
    assert stub.paths == ["/locality/volume/a%20b"]


def test_lists_send_their_filters(run, stub):
    stub.enqueue(200, {"volumes": [VOLUME], "next_marker": None})
    assert "data1" in run("volume", "list", "--tier", "gold", "--name", "data1").out
    stub.enqueue(200, {"operations": [OPERATION], "next_marker": None})
    assert "o1" in run("volume", "operation", "list", "--state", "done").out
    stub.enqueue(200, {"snapshots": [{"id": "s1", "name": "s", "status": "available", "size": 1, "created_at": ""}]})
    assert "s1" in run("volume", "snapshot", "list", "v1").out
    assert stub.paths == [
        "/volumes?name=data1&tier=gold",
        "/volumes/operations?state=done",
        "/volumes/v1/snapshots",
    ]


def test_tiers_are_made_shown_matched_mended_and_deleted(run, stub, sent):
    stub.enqueue(201, TIER)
    assert "50 MB/s" in run("volume", "tier", "create", "gold", "--bandwidth", "50MBps", "--cost", "5").out
    stub.enqueue(200, {"tiers": [TIER], "next_marker": None})
    assert "drifted" in run("volume", "tier", "list").out
    stub.enqueue(200, TIER)
    assert "pool_name: `x`, expected nothing" in run("volume", "tier", "show", "gold").out
    stub.enqueue(200, {"tier": "gold", "cost": 5.0, "pools": [POOL], "others": ["silver"]})
    assert "silver" in run("volume", "tier", "match", "--fabric", "rbd", "--size", "10").out
    stub.enqueue(200, {**TIER, "state": "ok"})
    assert run("volume", "tier", "repair", "gold").out == "tier gold is ok\n"
    stub.enqueue(204)
    assert run("volume", "tier", "delete", "gold").out == "tier gold is deleted\n"
    assert sent()[0] == ("POST", "/volumes/tiers", {"name": "gold", "bandwidth": "50MBps", "cost": 5.0})
    assert sent()[3] == ("GET", "/volumes/tiers/match?fabric=rbd&size=10", None)


def test_pools_are_listed_with_what_is_known_of_them(run, stub):
    measured = {"pool": POOL["name"], "read_bw": 9e7, "write_bw": 8e7, "read_iops": 9000.4, "write_iops": 7000.0}
    stub.enqueue(200, {"pools": [POOL, {**POOL, "name": "other"}], "measured": [measured]})
    shown = run("volume", "pool", "list").out
    assert "2.0 GiB" in shown
    assert "read 90 MB/s, 9000/s" in shown


def test_what_was_measured_of_a_pool_is_sent_and_shown_with_units(run, stub, sent):
    measured = {"read_bw": "90MBps", "write_bw": "80MBps", "read_iops": 9000.0, "write_iops": 7000.0}
    stub.enqueue(200, {"pool": "h@nbd#fast", **measured, "read_bw": 9e7, "write_bw": 8e7, "measured_at": ""})
    words = ("volume", "pool", "set", "h@nbd#fast")
    given = [word for name, value in measured.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    assert "90 MB/s" in run(*words, *given).out
    assert sent() == [("PUT", "/volumes/pools/h%40nbd%23fast/calibration", measured)]


def test_a_measurement_says_which_other_volumes_may_have_made_it_smaller(run, stub, sent):
    stub.enqueue(202, {**OPERATION, "what": "calibrate", "data": {"read_bw": 9e7, "attached_volumes": 2}})
    shown = run("volume", "pool", "measure", "h@nbd#fast", "--consumer", "n1", "--seconds", "2", "--size", "4")
    assert "90000000" in shown.out
    assert "attached: 2;" in shown.err
    assert sent() == [("POST", "/volumes/pools/h%40nbd%23fast/calibrate", {"node": "n1", "seconds": 2, "size": 4})]
