"""Volumes attached and detached by REST: Cinder, the konnector and the volume's record agree after any failure."""

import dataclasses
import re

import pytest
from tests.support.shared_objects import shared_object

from sluice_core.errors import CallerError, Conflict, PeerError
from sluice_filters.encryption.keys.key_file import SECRET_SIZE, render_ring
from sluice_filters.encryption.keys.ring import Ring
from sluice_volumes.cinder.records import GIB
from sluice_volumes.messages import StackStep
from sluice_volumes.operations import RECORDS
from sluice_volumes.testing.fake_cinder import FakeCinder


@pytest.fixture
def refused(message, konnector, volume):
    return lambda status=409, **body: message("post", f"/volumes/{volume}/attach", {"node": "n1", **body}, status)


@pytest.fixture
def keys(backend, tmp_path):
    """A key file for volumes."""
    path = tmp_path / "volume-keys"
    path.touch(mode=0o600)
    path.write_bytes(render_ring(Ring("k1", {"k1": b"s" * SECRET_SIZE})))
    object.__setattr__(backend, "config", dataclasses.replace(backend.config, volume_key_file=str(path)))


def test_an_attached_volume_is_in_use_and_says_where(attach, send, cinder, konnector, volume, record):
    operation = attach(export="nbd")
    assert operation["data"]["device"] == "/dev/loop7"
    assert konnector.connectors == [("nbd",)]
    wanted = konnector.volumes[volume]
    attachment = record().attachment
    assert wanted == {
        "account": "AUTH_service",
        "project": "service",
        "name": "data1",
        "attachment": attachment,
        "connection": {"driver_volume_type": "local", "device_path": f"/srv/{volume}"},
        "export": "nbd",
        "stack": [],
        "fresh": True,
    }
    found = send("get", f"/volumes/{volume}")
    assert found["rates_in_force"] == {"max_bw": 3e6}
    konnector.faults["volume"] = PeerError("away")
    assert send("get", f"/volumes/{volume}")["rates_in_force"] is None
    assert (found["status"], found["node"]) == ("in-use", "n1")
    assert found["attachments"] == [{"id": attachment, "host": "consumer"}]
    assert found["filters_fixed_at"]


def test_no_answer_has_the_connection(attach, send, volume):
    operation = attach()
    shown = [send("get", path) for path in (f"/volumes/{volume}", "/volumes", "/volumes/operations")]
    assert not re.search("device_path|/srv/", str([operation, *shown]))


def test_a_detached_volume_is_available_and_keeps_its_filters(attach, order, send, cinder, konnector, volume):
    attach()
    order("post", f"/volumes/{volume}/detach")
    found = send("get", f"/volumes/{volume}")
    assert (found["status"], found["node"], found["attachments"]) == ("available", None, [])
    assert konnector.volumes == {}
    attach()
    assert konnector.volumes[volume]["fresh"] is False


def test_the_first_attach_fixes_the_filters_that_policies_say_then(
    attach, order, send, create, konnector, volume, record, keys
):
    create("FOR TENANT AUTH_service DO SET encryption")
    create("FOR TENANT AUTH_other DO SET compression")
    attach()
    wanted = konnector.volumes[volume]
    assert wanted["stack"] == [{"keyword": "luks", "params": {}}]
    assert (len(wanted["secret"]), wanted["fresh"]) == (64, True)
    found = record()
    assert (found.stack, found.secret, found.header) == ((StackStep("luks"),), "k1", GIB)
    assert wanted["secret"] not in str([send("get", f"/volumes/{volume}"), send("get", "/volumes/operations")])
    order("post", f"/volumes/{volume}/detach")
    send("delete", f"/policies/{send('get', '/policies')['policies'][0]['id']}", status=204)
    attach()
    assert konnector.volumes[volume]["stack"] == wanted["stack"]
    assert (konnector.volumes[volume]["secret"], konnector.volumes[volume]["fresh"]) == (wanted["secret"], False)


@pytest.fixture
def encrypted(create, keys, konnector, volume):
    """A policy that encrypts the project's volumes."""
    create("FOR TENANT AUTH_service DO SET encryption")


@pytest.fixture
def sizes(send, cinder, konnector, volume):
    """The sizes of the volume in GiB: for its consumer, in Cinder, and in the request to the konnector."""

    def found():
        shown = send("get", f"/volumes/{volume}")
        assert shown["cinder_size"] == cinder.state.volumes[volume].size
        return shown["size"], shown["cinder_size"], konnector.volumes[volume].get("size", 0) / GIB

    return found


def test_the_header_of_an_encrypted_volume_is_added_to_its_size_in_cinder(encrypted, attach, order, volume, sizes):
    attach(export="nbd")
    assert sizes() == (1, 2, 1)
    assert order("put", f"/volumes/{volume}/size", {"size": 3})["data"] == {"size": 3, "size_seen": "now"}
    assert sizes() == (3, 4, 3)
    order("post", f"/volumes/{volume}/detach")
    attach()
    assert sizes() == (3, 4, 3)


def test_a_volume_that_is_not_encrypted_has_in_cinder_what_was_asked_for(attach, sizes):
    attach()
    assert sizes() == (1, 1, 0)


def test_a_quota_that_has_no_room_for_the_header_refuses_the_attach_and_changes_nothing(
    encrypted, refused, attach, cinder, record, sizes
):
    before = record()
    cinder.state.faults["extend"] = Conflict("extending volume: quota of gigabytes exceeded")
    assert refused() == (
        "the volume is to be encrypted, which takes 1 GiB more in cinder: extending volume: quota of gigabytes exceeded"
    )
    assert (record(), cinder.state.attachments) == (before, {})
    attach()
    assert sizes() == (1, 2, 1)


def test_a_pool_that_has_no_room_for_the_header_refuses_the_attach_and_changes_nothing(
    encrypted, refused, cinder, record, monkeypatch
):
    before = record()
    monkeypatch.setattr(cinder, "extend", lambda volume_id, size: None)
    assert "cinder did not extend it to 2 GiB, its status is `available`; most likely its pool is full" in refused()
    assert (record(), cinder.state.attachments) == (before, {})


def test_an_extension_for_the_header_whose_answer_was_lost_is_not_repeated(
    encrypted, refused, send, attach, cinder, sizes, monkeypatch
):
    def extend(volume_id, size):
        FakeCinder.extend(cinder, volume_id, size)
        raise PeerError("no answer")

    monkeypatch.setattr(cinder, "extend", extend)
    assert refused(503) == "no answer"
    assert send("get", "/volumes/operations?state=failed")["operations"][0]["reason"] == "no answer"
    attach()
    assert sizes() == (1, 2, 1)


def test_a_header_that_was_added_for_an_attach_that_failed_is_not_added_again(
    encrypted, refused, attach, cinder, konnector, record, sizes
):
    konnector.faults["attach"] = CallerError("no filter `luks` here")
    refused()
    cinder.state.faults["attach"] = Conflict("it is reserved")
    refused()
    assert (record().size, record().fixed) == (1, 0.0)
    attach()
    assert sizes() == (1, 2, 1)


def test_a_volume_that_was_encrypted_before_headers_were_added_stays_as_it_is(
    encrypted, attach, order, backend, konnector, record, sizes
):
    attach()
    order("post", f"/volumes/{record().id}/detach")
    old = dataclasses.replace(record(), size=0, header=konnector.header)
    assert backend.store.run(RECORDS.replace(backend.store.keys, record(), old))
    konnector.size = 2 * GIB
    attach()
    assert (sizes(), record()) == ((2, 2, 0), dataclasses.replace(old, node="n1", attachment=record().attachment))


@pytest.fixture
def uploaded(api, send_code):
    """Registers filters of volumes, with code."""
    by = {"name": "rot-by", "type": "int", "default": 13, "minimum": 1, "maximum": 255}
    skip = {"name": "rot-skip", "type": "bool", "default": False}
    for number, keyword in enumerate(("rot", "other")):
        body = {"keyword": keyword, "environment": "nbdkit", "reverse": True, "parameters": [by, skip]}
        assert api.post("/filters", body, format="json").status_code == 201
        send_code(f"/filters/{keyword}/data", shared_object() + bytes(number))


def test_an_uploaded_filter_stands_last_with_all_its_parameters(uploaded, attach, create, konnector, volume, keys):
    create("FOR TENANT AUTH_service DO SET xor, SET rot WITH rot-by=7")
    create("FOR TENANT AUTH_service DO SET encryption")
    attach()
    assert konnector.volumes[volume]["stack"] == [
        {"keyword": "luks", "params": {}},
        {"keyword": "xor", "params": {}},
        {"keyword": "rot", "params": {"rot-by": 7, "rot-skip": False}},
    ]


def test_of_two_uploaded_filters_none_is_chosen_and_the_policies_are_named(uploaded, refused, create, record):
    first = create("FOR TENANT AUTH_service DO SET rot")["id"]
    second = create("FOR TENANT AUTH_service DO SET other")["id"]
    said = f"`rot` of policy `{first}` and `other` of policy `{second}` are uploaded filters"
    assert said in refused()
    assert not record().fixed


def test_a_filter_that_a_volume_is_stored_through_is_not_unregistered(
    uploaded, attach, create, send, order, message, volume
):
    policy = create("FOR TENANT AUTH_service DO SET rot")["id"]
    attach()
    send("delete", f"/policies/{policy}", status=204)
    for path in ("/filters/rot", "/filters/rot?force=true"):
        assert f"volumes `{volume}` are stored through filter `rot`" in message("delete", path)
    send("delete", "/filters/other", status=204)
    order("post", f"/volumes/{volume}/detach")
    order("delete", f"/volumes/{volume}")
    send("delete", "/filters/rot", status=204)


def test_a_policy_with_a_condition_decides_nothing_that_is_stored(attach, create, konnector, volume):
    create("FOR TENANT AUTH_service WHEN PUTS_SEC > 0 DO SET encryption")
    create("FOR TENANT AUTH_service WHEN OBJECT_TYPE = DOCS DO SET encryption")
    attach()
    assert konnector.volumes[volume]["stack"] == []


def test_a_tenants_delete_keeps_a_filter_of_all_away(attach, create, konnector, volume):
    create("FOR ALL TENANTS DO SET encryption")
    create("FOR TENANT AUTH_service DO DELETE encryption")
    attach()
    assert konnector.volumes[volume]["stack"] == []


def test_a_member_of_a_group_has_the_filters_of_the_group(attach, create, send, konnector, volume, keys):
    send("post", "/registry/gtenants", {"name": "safe", "tenants": ["AUTH_service"]}, 201)
    create("FOR safe DO SET encryption")
    attach()
    assert [one["keyword"] for one in konnector.volumes[volume]["stack"]] == ["luks"]


def test_without_a_key_file_nothing_is_encrypted_and_nothing_attached(refused, create, cinder, volume, record):
    create("FOR TENANT AUTH_service DO SET encryption")
    assert "`volume_key_file`" in refused()
    assert cinder.volume(volume).status == "available"
    assert not record().fixed


def test_a_volume_whose_key_is_gone_is_attached_when_it_is_back(
    attach, order, refused, create, send, backend, cinder, volume, keys
):
    create("FOR TENANT AUTH_service DO SET encryption")
    attach()
    order("post", f"/volumes/{volume}/detach")
    there = backend.config.volume_key_file
    object.__setattr__(backend, "config", dataclasses.replace(backend.config, volume_key_file=f"{there}.gone"))
    reason = refused(503)
    assert f"the passphrase of volume `{volume}` cannot be made now" in reason
    assert send("get", "/volumes/operations?state=failed")["operations"][0]["reason"] == reason
    assert cinder.volume(volume).status == "available"
    object.__setattr__(backend, "config", dataclasses.replace(backend.config, volume_key_file=there))
    attach()


def test_a_volume_that_sluice_did_not_make_is_attached_by_who_adopts_it(order, message, cinder, konnector, send):
    theirs = cinder.create_volume(1, "old", "", {}).id
    assert "an administrator attaches it with `adopt`" in message("post", f"/volumes/{theirs}/attach", {"node": "n1"})
    assert theirs not in konnector.volumes
    order("post", f"/volumes/{theirs}/attach", {"node": "n1", "adopt": True})
    assert (konnector.volumes[theirs]["stack"], konnector.volumes[theirs]["fresh"]) == ([], False)


def test_nodes_without_a_konnector_are_refused_with_those_that_have_one(refused, konnector):
    assert refused(node="n2") == "node `n2` has no konnector, expected `n1`"
    assert "there is no node `x`, expected `n1`" in refused(404, node="x")


def test_an_attached_volume_is_not_attached_again(attach, refused):
    attach()
    assert "attached to node `n1` already" in refused()


@pytest.mark.parametrize(
    ("export", "fault", "seen"),
    [
        ("nbd", None, "now"),
        ("block", None, "after the next attach"),
        ("nbd", PeerError("away"), "after the next attach"),
    ],
)
def test_a_volume_that_grows_while_attached_shows_its_size_where_the_konnector_can(
    attach, order, konnector, volume, export, fault, seen
):
    attach(export=export)
    konnector.faults |= {"resize": fault} if fault else {}
    assert order("put", f"/volumes/{volume}/size", {"size": 2})["data"] == {"size": 2, "size_seen": seen}


def test_a_volume_that_is_busy_in_cinder_is_not_attached(refused, cinder, volume):
    cinder._change(volume, status="error")
    assert "is `error` in cinder" in refused()


def test_an_attached_volume_is_not_deleted(attach, message, volume):
    attach()
    assert "detach it first" in message("delete", f"/volumes/{volume}")


def test_what_the_konnector_refuses_is_undone_and_the_filters_are_chosen_anew(
    attach, refused, create, cinder, konnector, volume, record, keys
):
    create("FOR TENANT AUTH_service DO SET encryption")
    konnector.faults["attach"] = CallerError("no filter `luks` here")
    assert refused() == "no filter `luks` here"
    assert (cinder.volume(volume).status, cinder.state.attachments, konnector.volumes) == ("available", {}, {})
    assert (record().fixed, record().stack, record().node) == (0.0, (), "")
    attach()


def test_an_attachment_that_cannot_be_undone_stays_in_cinder_and_says_who_holds_the_volume(
    send, cinder, konnector, volume, record
):
    konnector.late, konnector.faults["attach"] = True, CallerError("the device has no size")
    konnector.held.add(volume)
    konnector.shown[volume] = {"state": "detaching"}
    operation = send("post", f"/volumes/{volume}/attach", {"node": "n1"}, 202)
    for _ in range(2):  # each request for the operation tries again
        assert operation["state"] == "under_way"
        assert operation["reason"].startswith("the device has no size; it is not undone yet: ")
        assert operation["reason"].endswith("is held by process 4711 (fio)")
        operation = send("get", f"/volumes/operations/{operation['id']}")
    assert send("get", f"/volumes/{volume}")["fault"] == operation["reason"]
    assert len(cinder.state.attachments) == 1
    assert cinder.volume(volume).status != "available"
    konnector.held.clear()
    del konnector.volumes[volume]  # it has undone the attachment by itself
    ended = send("get", f"/volumes/operations/{operation['id']}")
    assert (ended["state"], ended["reason"]) == ("failed", "the device has no size")
    assert (cinder.volume(volume).status, cinder.state.attachments) == ("available", {})
    assert record().fixed  # it was attached for a while, and may contain written data
    assert send("get", f"/volumes/{volume}")["fault"] is None


def test_what_is_wrong_with_an_attached_volume_is_shown_with_it(attach, konnector, send, volume):
    attach()
    assert send("get", f"/volumes/{volume}")["fault"] is None
    konnector.shown[volume] = {"state": "broken", "fault": "its front has ended", "data_path": "fuse"}
    shown = send("get", f"/volumes/{volume}")
    assert (shown["fault"], shown["data_path"]) == ("its front has ended", "fuse")


def test_what_cinder_refuses_leaves_the_filters_open(refused, cinder, konnector, volume, record):
    cinder.state.faults["attach"] = Conflict("it is reserved")
    assert refused() == "it is reserved"
    assert (record().fixed, konnector.volumes) == (0.0, {})


def test_an_attachment_whose_answer_was_lost_is_finished(attach, konnector, send, volume):
    konnector.late, konnector.faults["attach"] = True, PeerError("no answer")
    assert attach()["data"]["device"] == "/dev/loop7"
    assert send("get", f"/volumes/{volume}")["node"] == "n1"


def test_an_attachment_that_the_konnector_never_saw_is_undone(attach, konnector, cinder, volume):
    konnector.faults["attach"] = PeerError("cannot be asked")
    assert attach("failed")["reason"].endswith("before the konnector had the volume: cannot be asked")
    assert (cinder.volume(volume).status, cinder.state.attachments) == ("available", {})


def test_an_attachment_that_a_konnector_took_over_and_asks_about_is_left_to_it(send, konnector, volume, cinder):
    konnector.late, konnector.faults["attach"] = True, PeerError("its machine was switched off")
    konnector.shown[volume] = {"state": "waiting"}
    operation = send("post", f"/volumes/{volume}/attach", {"node": "n1"}, 202)
    assert operation["state"] == "under_way"
    del konnector.shown[volume]
    assert send("get", f"/volumes/operations/{operation['id']}")["state"] == "done"
    assert cinder.volume(volume).status == "in-use"


def test_while_the_konnector_is_away_an_attachment_waits_for_it(send, konnector, volume):
    konnector.faults |= {"attach": PeerError("away"), "volume": PeerError("away")}
    operation = send("post", f"/volumes/{volume}/attach", {"node": "n1"}, 202)
    assert (operation["state"], operation["step"]) == ("under_way", "exported")
    assert send("get", f"/volumes/operations/{operation['id']}")["state"] == "failed"


def test_a_konnector_that_is_away_from_the_start_fails_the_attachment(refused, send, konnector, attach, record):
    konnector.faults["connector"] = PeerError("konnector cannot be asked")
    assert refused(503) == "konnector cannot be asked"
    assert send("get", "/volumes/operations?state=failed")["operations"][0]["reason"] == "konnector cannot be asked"
    assert not record().fixed  # the next attachment chooses the stack
    attach()


def test_a_volume_whose_device_is_held_is_not_detached_and_the_holder_is_named(
    attach, message, konnector, volume, send
):
    attach()
    konnector.held.add(volume)
    assert "process 4711 (fio)" in message("post", f"/volumes/{volume}/detach")
    assert send("get", f"/volumes/{volume}")["status"] == "in-use"


def test_a_detachment_whose_answer_was_lost_is_finished(attach, order, konnector, cinder, volume, record):
    attach()
    konnector.faults["detach"] = PeerError("no answer")
    order("post", f"/volumes/{volume}/detach")
    assert (cinder.volume(volume).status, konnector.volumes, record().node) == ("available", {}, "")


def test_a_volume_attached_by_others_is_not_detached(message, cinder, konnector, volume):
    cinder.attach(volume, {"host": "nova"})
    assert "not attached through Sluice" in message("post", f"/volumes/{volume}/detach")
