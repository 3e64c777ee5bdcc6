"""Volumes by REST with a real Cinder: pools are found, tiers choose them, operations end.

The commands of docs/admin/volumes/operations.md and policies.md, as calls of the client.
"""

import pytest
from tests.support.block.cinder import LIMIT, login

from sluice_aio.keystone import seed
from sluice_client import ApiError, Client

FAST = {"bandwidth": "100MBps", "fabric": "nbd"}


@pytest.fixture(scope="module")
def api(volumes_cluster):
    """The API for a user."""
    known = {}

    def client(user):
        if user not in known:
            session = login(volumes_cluster.layout, user).client.session
            known[user] = Client.from_session(session, volumes_cluster.api_url, timeout=LIMIT)
        return known[user]

    yield client
    for one in known.values():
        one.close()


@pytest.fixture(scope="module")
def alice(api):
    return api("alice")


@pytest.fixture
def pools(api, eventually):
    """The pools by the name behind the back end's, once an actor host has read them."""

    def known():
        return {one["name"].partition("#")[2]: one for one in api(seed.ADMIN).pools()}

    return eventually(lambda: known() if {"fast", "slow"} <= known().keys() else None, limit=20)


@pytest.fixture
def gold(api, pools):
    """A tier that matches the fast pool."""
    made = api(seed.ADMIN).collection("/volumes/tiers").create({"name": "gold", "cost": 5, **FAST})
    yield made
    api(seed.ADMIN).collection("/volumes/tiers").delete("gold")


@pytest.fixture
def volumes(alice):
    """Creates volumes, and deletes them afterwards."""
    made = []

    def create(size=1, **wanted):
        made.append(ended(alice, alice.create_volume(size, **wanted))["volume"])
        return made[-1]

    yield create
    for one in made:
        for snapshot in alice.snapshots(one):
            ended(alice, alice.delete_snapshot(one, snapshot["id"]))
        ended(alice, alice.delete_volume(one))


def ended(client, operation):
    """The operation when it is done."""
    while operation["state"] == "under_way":
        operation = client.volume_operation(operation["id"], wait=10)
    assert operation["state"] == "done", operation
    return operation


def refusal(status, call, *given, **named):
    with pytest.raises(ApiError) as caught:
        call(*given, **named)
    assert caught.value.status == status, caught.value
    return str(caught.value)


def test_pools_are_found_with_what_they_can_do(pools):
    assert pools["fast"]["capabilities"]["bandwidth"] == "400"
    assert pools["slow"]["capabilities"]["fabric"] == "nbd"
    assert 0 < pools["slow"]["free"] <= pools["slow"]["total"] == 10 * 2**30


def test_the_tier_of_a_demand_puts_the_volume_into_a_pool_that_meets_it(api, alice, gold, volumes):
    assert gold["state"] == "ok"
    volume = volumes(name="my data", bandwidth="50MBps")
    found = alice.volume("my data")
    assert (found["id"], found["tier"], found["status"], found["pool"]) == (volume, "gold", "available", None)
    assert api(seed.ADMIN).volume(volume)["pool"].endswith("@nbd#fast")
    assert "no pool meets `resiliency`" in refusal(409, alice.create_volume, 1, resiliency=2)
    assert "no tier `nothing`" in refusal(404, alice.create_volume, 1, tier="nothing")


def test_a_volume_for_which_no_pool_has_room_has_failed_and_is_gone(alice, pools):
    operation = alice.create_volume(10**6, name="huge")
    while operation["state"] == "under_way":
        operation = alice.volume_operation(operation["id"], wait=10)
    assert (operation["state"], "no pool of its type has room" in operation["reason"]) == ("failed", True)
    refusal(404, alice.volume, "huge")


def test_a_volume_grows_and_has_snapshots(alice, volumes):
    volume = volumes()
    assert ended(alice, alice.extend_volume(volume, 2))["data"]["size_seen"] == "now"
    assert alice.volume(volume)["size"] == 2
    snapshot = ended(alice, alice.create_snapshot(volume, "monday"))["data"]["snapshot"]
    assert [(one["id"], one["size"]) for one in alice.snapshots(volume)] == [(snapshot, 2)]
    refusal(400, alice.delete_volume, volume)


def test_a_volume_is_retyped_where_it_lies_and_no_further(api, alice, gold, volumes):
    administrator = api(seed.ADMIN)
    administrator.collection("/volumes/tiers").create({"name": "small", "iops": 500, "cost": 1})
    try:
        volume = volumes(tier="gold")
        ended(alice, alice.retype_volume(volume, tier="small"))
        assert alice.volume(volume)["tier"] == "small"
        in_use = refusal(409, administrator.collection("/volumes/tiers").delete, "small")
        assert "tier `small` stays" in in_use
        ended(alice, alice.retype_volume(volume, tier="gold"))
    finally:
        administrator.collection("/volumes/tiers").delete("small")


def test_a_tier_that_was_changed_in_cinder_is_mended(api, volumes_cluster, gold):
    login(volumes_cluster.layout, seed.ADMIN).volume_types.get(gold["type"]).set_keys(
        {"capabilities:sluice:bandwidth": ">= 1"}
    )
    shown = api(seed.ADMIN).collection("/volumes/tiers").get("gold")
    assert (shown["state"], shown["drift"]) == ("drifted", ["capabilities:sluice:bandwidth: `>= 1`, expected `>= 100`"])
    assert api(seed.ADMIN).mend_tier("gold")["state"] == "ok"


def test_a_volume_is_its_projects_own(api, volumes):
    volume = volumes(name="acme's own")
    for call in (api("ulf").volume, api("ulf").delete_volume):
        refusal(404, call, volume)
    assert volume not in {one["id"] for one in api("ulf").volumes()}
    assert volume in {one["id"] for one in api(seed.ADMIN).volumes()}
    assert api("rita").volume(volume)["id"] == volume
    refusal(403, api("rita").delete_volume, volume)
    refusal(403, api("alice").collection("/volumes/tiers").create, {"name": "mine"})


def test_an_operation_whose_api_died_is_finished_by_an_actor_host(api, alice, volumes_cluster, eventually):
    operation = alice.create_volume(1, name="orphan")
    volumes_cluster.kill("api")
    volumes_cluster.restart("api")
    found = eventually(lambda: api("alice").volume_operation(operation["id"])["state"] == "done", limit=LIMIT)
    assert found
    ended(alice, alice.delete_volume("orphan"))
