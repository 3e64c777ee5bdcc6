"""Volumes by REST: created by size and tier, shown, extended, retyped, deleted; each as an operation."""

import pytest

from sluice_controller.api.serializers.volumes import VOLUMES
from sluice_core.errors import Conflict, PeerError
from sluice_volumes.cinder.records import OPERATION
from sluice_volumes.operations import JOBS, RECORDS


@pytest.fixture
def run(backend):
    return lambda operation, *given: backend.store.run(operation(backend.store.keys, *given))


@pytest.fixture
def create(order):
    return lambda **body: order("post", "/volumes", {"size": 1, **body})["volume"]


def test_a_volume_is_made_and_shown(send, api, cinder, run):
    answer = api.post("/volumes", {"size": 3, "name": "my data"}, format="json")
    operation = answer.json()
    assert (answer.status_code, answer.headers["Location"]) == (202, f"/volumes/operations/{operation['id']}")
    assert (operation["what"], operation["state"], operation["created_by"]) == ("create", "done", "admin")
    found = send("get", f"/volumes/{operation['volume']}")
    assert (found["name"], found["size"], found["status"], found["pool"]) == ("my data", 3, "available", "h@nbd#fast")
    assert (found["filters"], found["filters_fixed_at"], found["known"], found["rates"]) == ([], None, True, {})
    record = run(RECORDS.read, operation["volume"])
    assert (record.account, record.path, record.fixed) == ("AUTH_service", found["path"], 0.0)
    assert found["path"] == f"AUTH_service/{record.id}"
    assert cinder.state.volumes[record.id].metadata == {OPERATION: operation["id"]}
    assert send("get", f"/volumes/operations/{operation['id']}") == operation


def test_demands_choose_the_tier_of_a_volume(send, create, message, cinder):
    send("post", "/volumes/tiers", {"name": "gold", "resiliency": 3}, 201)
    volume = create(resiliency=2)
    assert send("get", f"/volumes/{volume}")["tier"] == "gold"
    assert [one["id"] for one in send("get", "/volumes?tier=gold")["volumes"]] == [volume]
    assert send("get", "/volumes?tier=silver")["volumes"] == []
    assert "no pool meets `size`" in message("post", "/volumes", {"size": 501, "resiliency": 2})


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({}, "`size` is `None`, expected a whole number of GiB from 1"),
        ({"size": 0}, "`size` is `0`"),
        ({"size": -1}, "`size` is `-1`"),
        ({"size": 10**18}, "expected a whole number of GiB"),
        ({"size": 1.5}, "`size` is `1.5`"),
        ({"size": "1"}, "expected a whole number of GiB"),
        ({"size": 1, "name": "x" * 256}, "`name` has 256 characters"),
        ({"size": 1, "name": " data"}, "`name` is ` data`, expected no blanks around it"),
        ({"size": 1, "tier": "gold", "iops": 5}, "both `tier` and `iops` are given"),
        ({"size": 1, "tier": " "}, "`tier` is empty"),
    ],
)
def test_a_volume_that_makes_no_sense_is_refused_and_cinder_is_not_asked(message, cinder, body, words):
    assert words in message("post", "/volumes", body, status=400)
    assert cinder.state.asked == []


@pytest.mark.parametrize(
    ("method", "path", "body", "words"),
    [
        ("put", "size", {"size": 10**18}, "`size` is `1000000000000000000`, expected a whole number of GiB from 1"),
        ("put", "tier", {}, "`tier` is missing, expected a tier or some of"),
        ("put", "tier", {"bandwidth": "fast"}, "`bandwidth`"),
        ("put", "tier", {"tier": "gold", "iops": 5}, "both `tier` and `iops` are given"),
        ("post", "attach", {"node": "n1", "export": "iscsi"}, "`export` is `iscsi`, expected block, nbd"),
        ("post", "snapshots", {"name": "x" * 256}, "`name` has 256 characters"),
    ],
)
def test_a_change_that_makes_no_sense_is_refused_before_cinder_is_asked(message, cinder, method, path, body, words):
    assert words in message(method, f"/volumes/nobody/{path}", body, status=400)
    assert cinder.state.asked == []


def test_a_tier_that_there_is_not_is_named(message, cinder):
    assert "no tier `gold`" in message("post", "/volumes", {"size": 1, "tier": "gold"}, status=404)


def test_the_same_request_with_the_same_key_makes_one_volume(order, cinder):
    body = {"size": 1, "name": "a"}
    first, second = (order("post", "/volumes", body, **{"Idempotency-Key": "k"}) for _ in range(2))
    assert first == second
    assert order("post", "/volumes", body, **{"Idempotency-Key": "other"})["volume"] != first["volume"]
    assert len(cinder.state.volumes) == 2


def test_a_quota_is_the_callers_and_the_operation_says_so(send, message, cinder, run):
    cinder.state.quota = 0
    assert "Maximum number of volumes" in message("post", "/volumes", {"size": 1})
    (operation,) = run(JOBS.read_all).values()
    assert (operation.state, "Maximum" in operation.reason) == ("failed", True)
    assert send("get", "/volumes/operations?state=failed")["operations"][0]["id"] == operation.id


def test_a_volume_whose_request_got_no_answer_from_cinder_is_found_by_its_operation(send, message, cinder, run):
    made = cinder.create_volume

    def lost(*given):
        made(*given)
        raise PeerError("no answer")

    cinder.create_volume = lost
    message("post", "/volumes", {"size": 1, "name": "a"}, status=503)
    (operation,) = run(JOBS.read_all)
    found = send("get", f"/volumes/operations/{operation}?wait=1")
    assert (found["state"], [found["volume"]]) == ("done", list(cinder.state.volumes))


def test_a_request_that_was_never_sent_to_cinder_may_be_repeated(order, send, cinder):
    body, key = {"size": 1}, {"Idempotency-Key": "k"}
    cinder.state.faults["create_volume"] = PeerError("cannot be asked")
    assert send("post", "/volumes", body, 503, **key)
    assert order("post", "/volumes", body, **key)["volume"] in cinder.state.volumes


def test_a_volume_that_cinder_cannot_make_is_taken_away_and_has_failed(send, order, cinder, run):
    cinder.state.held = True
    operation = send("post", "/volumes", {"size": 1}, 202)
    assert operation["state"] == "under_way"
    cinder._change(operation["volume"], status="error")
    cinder.state.unfinished.clear()
    cinder.state.held = False
    found = send("get", f"/volumes/operations/{operation['id']}")
    assert (found["state"], "could not make the volume" in found["reason"]) == ("failed", True)
    assert cinder.state.volumes == {}
    assert run(RECORDS.read, operation["volume"]) is None


def test_who_waits_gets_the_operation_when_it_has_ended(send, cinder, backend):
    cinder.state.held = True
    asked = cinder.volume

    def later(volume_id):
        cinder.settle()
        return asked(volume_id)

    operation = send("post", "/volumes", {"size": 1}, 202)
    cinder.volume = later
    assert send("get", f"/volumes/operations/{operation['id']}?wait=5")["state"] == "done"


def test_a_name_of_two_volumes_is_refused_with_both_ids(create, message, send, cinder):
    ids = {create(name="twin"), create(name="twin")}
    said = message("get", "/volumes/twin")
    assert all(one in said for one in ids)
    alone = create(name="a b")
    assert send("get", "/volumes/a%20b")["id"] == alone
    assert "no volume `nobody`" in message("get", "/volumes/nobody", status=404)


def test_volumes_are_listed_in_pages(create, send, cinder):
    ids = sorted(create(name="a") for _ in range(3))
    first = send("get", "/volumes?limit=2")
    assert [one["id"] for one in first["volumes"]] == ids[:2]
    rest = send("get", f"/volumes?limit=2&marker={first['next_marker']}")
    assert ([one["id"] for one in rest["volumes"]], rest["next_marker"]) == (ids[2:], None)
    assert send("get", "/volumes?name=b")["volumes"] == []
    assert send("get", "/volumes?project=other")["volumes"] == []


def test_a_volume_grows_and_the_answer_says_when_that_is_seen(create, order, message, cinder):
    volume = create()
    assert order("put", f"/volumes/{volume}/size", {"size": 2})["data"] == {"size": 2, "size_seen": "now"}
    cinder._change(volume, status="in-use")
    assert order("put", f"/volumes/{volume}/size", {"size": 3})["data"]["size_seen"] == "after the next attach"
    assert "expected more than the 3 GiB" in message("put", f"/volumes/{volume}/size", {"size": 3}, status=400)


def test_while_an_operation_is_under_way_another_one_on_the_volume_is_refused(create, send, message, cinder):
    volume = create()
    cinder.state.held = True
    operation = send("put", f"/volumes/{volume}/size", {"size": 2}, 202)
    assert message("delete", f"/volumes/{volume}") == f"operation `{operation['id']}` on the volume has not ended"


def test_an_extension_that_cinder_gives_up_has_failed(create, send, cinder):
    volume = create()
    cinder.state.held = True
    operation = send("put", f"/volumes/{volume}/size", {"size": 2}, 202)
    cinder.state.unfinished.clear()
    cinder._change(volume, status="available")
    found = send("get", f"/volumes/operations/{operation['id']}")
    assert (found["state"], "did not extend" in found["reason"]) == ("failed", True)


def test_a_volume_gets_a_tier_that_its_pool_meets_and_no_other(create, order, send, message, cinder):
    send("post", "/volumes/tiers", {"name": "gold", "resiliency": 3}, 201)
    send("post", "/volumes/tiers", {"name": "quick", "bandwidth": "300MBps"}, 201)
    volume = create()
    cinder._change(volume, status="in-use")
    order("put", f"/volumes/{volume}/tier", {"bandwidth": "300MBps"})
    assert send("get", f"/volumes/{volume}")["tier"] == "quick"
    said = message("put", f"/volumes/{volume}/tier", {"tier": "gold"})
    assert "does not meet tier `gold`, which `h@rbd#safe` does" in said
    assert "`tier` is missing" in message("put", f"/volumes/{volume}/tier", {}, status=400)


def test_snapshots_are_made_listed_and_deleted(create, order, send, message, cinder):
    volume = create()
    snapshot = order("post", f"/volumes/{volume}/snapshots", {"name": "before"})["data"]["snapshot"]
    assert [one["id"] for one in send("get", f"/volumes/{volume}/snapshots")["snapshots"]] == [snapshot]
    assert "snapshots" in message("delete", f"/volumes/{volume}", status=400)
    assert "has no snapshot `after`" in message("delete", f"/volumes/{volume}/snapshots/after", status=404)
    order("delete", f"/volumes/{volume}/snapshots/before")
    assert send("get", f"/volumes/{volume}/snapshots")["snapshots"] == []


def test_a_deleted_volume_is_forgotten(create, order, message, cinder, run):
    volume = create()
    order("delete", f"/volumes/{volume}")
    assert run(RECORDS.read, volume) is None
    message("get", f"/volumes/{volume}", status=404)


def test_what_cinder_refuses_is_refused_with_its_reason(create, message, cinder):
    volume = create()
    cinder.state.faults["delete_volume"] = Conflict("it is being migrated")
    assert message("delete", f"/volumes/{volume}") == "it is being migrated"


@pytest.mark.parametrize("example", VOLUMES, ids=lambda one: one.name)
def test_examples_are_accepted_as_they_stand(order, cinder, example):
    order("post", "/volumes", example.value)
