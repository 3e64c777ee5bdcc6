"""Tiers by REST: volume types that Sluice maintains, and the cheapest one for demands."""

import pytest

from sluice_controller.api.serializers.volumes import TIERS
from sluice_core.errors import PeerError
from sluice_volumes import operations

GOLD = {"name": "gold", "resiliency": 2, "bandwidth": "50MBps", "fabric": "rbd", "cost": 5}
SPECS = {
    "sluice:tier": "gold",
    "storage_protocol": "ceph",
    "capabilities:sluice:resiliency": ">= 2",
    "capabilities:sluice:bandwidth": ">= 50",
}


def type_of(cinder, name):
    return next((one for one in cinder.state.types.values() if one.name == name), None)


def test_a_tier_is_a_volume_type_of_its_name(send, cinder, backend):
    made = send("post", "/volumes/tiers", GOLD, 201)
    assert (made["state"], made["drift"], [one["name"] for one in made["pools"]]) == ("ok", [], ["h@rbd#safe"])
    assert (made["resiliency"], made["bandwidth"], made["iops"], made["created_by"]) == ("2", 50e6, None, "admin")
    found = type_of(cinder, "gold")
    assert found.id == made["type"]
    assert found.specs == {**SPECS, "sluice:managed": backend.store.keys.prefix}
    assert send("get", "/volumes/tiers/gold") == made
    assert send("get", "/volumes/tiers")["tiers"] == [made]


def test_a_type_that_somebody_else_made_is_never_taken_over(message, cinder):
    cinder.create_type("gold", {"volume_backend_name": "nbd"})
    assert "`gold` that Sluice did not create" in message("post", "/volumes/tiers", GOLD)
    cinder.change_specs(type_of(cinder, "gold").id, {"sluice:managed": "another", "sluice:tier": "gold"})
    assert "`gold` that Sluice did not create" in message("post", "/volumes/tiers", GOLD)
    assert "storage_protocol" not in type_of(cinder, "gold").specs


def test_a_tier_whose_redis_was_lost_is_made_again_on_its_own_type(send, cinder, backend):
    made = send("post", "/volumes/tiers", GOLD, 201)
    backend.store.run(operations.TIERS.delete(backend.store.keys, "gold"))
    assert send("post", "/volumes/tiers", GOLD, 201)["type"] == made["type"]


def test_what_is_changed_in_cinder_is_shown_and_mended_when_asked(send, cinder):
    made = send("post", "/volumes/tiers", GOLD, 201)
    changed = {"storage_protocol": "nbd", "pool_name": "x", "description": "theirs"}
    cinder.change_specs(made["type"], changed, gone=("capabilities:sluice:bandwidth",))
    found = send("get", "/volumes/tiers/gold")
    assert (found["state"], found["drift"]) == (
        "drifted",
        [
            "capabilities:sluice:bandwidth: nothing, expected `>= 50`",
            "pool_name: `x`, expected nothing",
            "storage_protocol: `nbd`, expected `ceph`",
        ],
    )
    assert send("put", "/volumes/tiers/gold")["state"] == "ok"
    assert type_of(cinder, "gold").specs["description"] == "theirs"


def test_a_type_deleted_in_cinder_is_gone_until_it_is_mended(send, message, cinder):
    made = send("post", "/volumes/tiers", GOLD, 201)
    cinder.delete_type(made["type"])
    assert send("get", "/volumes/tiers/gold")["state"] == "gone"
    assert "PUT /volumes/tiers/gold" in message("post", "/volumes", {"size": 1, "tier": "gold"})
    mended = send("put", "/volumes/tiers/gold")
    assert (mended["state"], mended["type"]) == ("ok", type_of(cinder, "gold").id)


def test_a_tier_is_deleted_with_its_type_unless_volumes_are_of_it(send, order, message, cinder):
    send("post", "/volumes/tiers", GOLD, 201)
    volume = order("post", "/volumes", {"size": 1, "tier": "gold"})["volume"]
    assert "tier `gold` stays" in message("delete", "/volumes/tiers/gold")
    order("delete", f"/volumes/{volume}")
    send("delete", "/volumes/tiers/gold", status=204)
    assert type_of(cinder, "gold") is None
    assert "no tier `gold`" in message("get", "/volumes/tiers/gold", status=404)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": " gold"}, "without blanks around it"),
        ({"name": "match"}, "`match` cannot be the name"),
        ({"name": "a/b"}, "contains `/`"),
        ({"resiliency": "two"}, "expected none, raid or a number of replicas"),
        ({"resiliency": 0}, "expected none, raid or a number of replicas"),
        ({"bandwidth": "50Mbps"}, "did you mean `50MBps`"),
        ({"iops": -1}, "`iops` is `-1`"),
        ({"fabric": "floppy"}, "expected nbd, iscsi, rbd, nfs, fc"),
        ({"cost": -1}, "`cost` is `-1`"),
        ({"colour": "red"}, "unknown field `colour`"),
    ],
)
def test_a_tier_that_makes_no_sense_is_refused(message, cinder, change, words):
    assert words in message("post", "/volumes/tiers", GOLD | change, status=400)


def test_a_second_tier_of_a_name_is_refused(send, message, cinder):
    send("post", "/volumes/tiers", GOLD, 201)
    assert "there is a tier `gold` already" in message("post", "/volumes/tiers", GOLD)


def test_the_cheapest_tier_that_has_room_now_is_found(send, cinder):
    for body in (GOLD, {"name": "any", "cost": 1}, {"name": "quick", "bandwidth": "300MBps", "cost": 2}):
        send("post", "/volumes/tiers", body, 201)
    found = send("get", "/volumes/tiers/match?bandwidth=40MBps&size=10")
    assert (found["tier"], found["others"]) == ("quick", ["gold"])
    assert [one["name"] for one in found["pools"]] == ["h@nbd#fast"]
    assert send("get", "/volumes/tiers/match?bandwidth=40MBps&size=51")["tier"] == "gold"


def test_each_demand_that_no_pool_meets_is_named_with_what_comes_nearest(message, cinder):
    said = message("get", "/volumes/tiers/match?resiliency=4&bandwidth=1GBps&fabric=nbd")
    assert said == "no pool meets `resiliency` (nearest: 3), `bandwidth` (nearest: 400 MB/s)"


def test_demands_that_only_pools_meet_and_no_tier_say_so(message, cinder):
    assert "no tier has that, though pools would meet it: `h@rbd#safe`" in message(
        "get", "/volumes/tiers/match?resiliency=3"
    )
    assert "together" in message("get", "/volumes/tiers/match?resiliency=3&bandwidth=400MBps")


def test_pools_are_shown_as_they_were_seen(send, cinder):
    found = send("get", "/volumes/pools")["pools"]
    assert [(one["name"], one["free"]) for one in found] == [
        ("h@nbd#fast", 50 * 2.0**30),
        ("h@rbd#safe", 500 * 2.0**30),
    ]


def test_without_a_cinder_the_answer_says_which_option_names_one(message, backend):
    for path in ("/volumes", "/volumes/tiers"):
        assert "`cinder_auth_url`" in message("get", path, status=503)


def test_a_cinder_that_is_away_is_a_peer_that_is_away(message, cinder):
    cinder.state.faults["types"] = PeerError("cinder cannot be asked")
    assert "cannot be asked" in message("get", "/volumes/tiers", status=503)


@pytest.mark.parametrize("example", TIERS, ids=lambda one: one.name)
def test_examples_are_accepted_as_they_stand(send, cinder, example):
    send("post", "/volumes/tiers", example.value, 201)


MEASURED = {"read_bw": "90MBps", "write_bw": 60, "read_iops": 9000, "write_iops": 7000}


def test_what_was_measured_of_a_pool_counts_before_what_it_claims(send, message, cinder):
    found = send("put", "/volumes/pools/h@nbd%23fast/calibration", MEASURED)
    assert (found["read_bw"], found["write_bw"], found["write_iops"]) == (9e7, 6e7, 7000)
    assert [one["pool"] for one in send("get", "/volumes/pools")["measured"]] == ["h@nbd#fast"]
    said = message("get", "/volumes/tiers/match?bandwidth=100MBps")
    assert said == "no pool meets `bandwidth` (nearest: 80 MB/s)"


@pytest.mark.parametrize(
    ("pool", "change", "status", "reason"),
    [
        ("h@nbd%23fats", {}, 404, "cinder has no pool `h@nbd#fats`, did you mean `h@nbd#fast`"),
        ("h@nbd%23fast", {"read_bw": "fast"}, 400, "`read_bw`: "),
        ("h@nbd%23fast", {"read_iops": 0}, 400, "`read_iops` is `0`"),
        ("h@nbd%23fast", {"read_iops": None}, 400, "`read_iops`"),
    ],
)
def test_a_measurement_that_makes_no_sense_is_refused(message, cinder, pool, change, status, reason):
    said = message("put", f"/volumes/pools/{pool}/calibration", {**MEASURED, **change}, status=status)
    assert reason in said
