"""Forced detachments of volumes: from lost machines, and only if no machine can continue to write."""

import dataclasses

import pytest

from sluice_controller.volumes import ordering
from sluice_controller.volumes.attachments import DetachRequest
from sluice_controller.volumes.attachments import detach as detach_volume
from sluice_core.errors import Forbidden, PeerError
from sluice_volumes import operations
from sluice_volumes.konnector_client import KonnectorAway
from sluice_volumes.testing.fake_cinder import FakeCinder


def away(node):
    """No konnector answers."""
    raise KonnectorAway(f"node `{node}` has no konnector now")


@pytest.fixture
def lost(attach, cinder, backend):
    """A volume of a back end that can end exports is attached, and its konnector no longer answers."""
    cinder.state.connection_type = "nbd"
    attach()
    object.__setattr__(backend, "konnectors", away)


@pytest.fixture
def detach(order, volume):
    return lambda state="done", **body: order("post", f"/volumes/{volume}/detach", body, state)


def test_a_volume_is_detached_by_force_where_the_back_end_keeps_its_machine_out(lost, detach, cinder, volume, record):
    operation = detach(force=True)
    assert (operation["data"]["fenced"], operation["data"]["konnector_told"]) == (True, False)
    assert (cinder.volume(volume).status, cinder.state.attachments) == ("available", {})
    assert (record().node, record().attachment) == ("", "")


def test_force_is_not_for_everybody():
    with pytest.raises(Forbidden, match="`force` is for administrators only"):
        detach_volume(None, None, None, DetachRequest(force=True, machine_is_gone=False), may_force=False)


def test_a_machine_that_could_still_write_keeps_its_volume_until_it_is_said_to_be_gone(
    lost, message, detach, cinder, volume, record
):
    (name, found), *_ = cinder.state.attachments.items()
    cinder.state.attachments[name] = dataclasses.replace(found, connection={"driver_volume_type": "rbd"})
    said = message("post", f"/volumes/{volume}/detach", {"force": True})
    assert "type `rbd`" in said
    assert "say `machine_is_gone`" in said
    assert (cinder.volume(volume).status, record().node) == ("in-use", "n1")
    assert detach(force=True, machine_is_gone=True)["data"]["fenced"] is False
    assert cinder.volume(volume).status == "available"


def test_a_konnector_that_answers_is_not_overruled(attach, message, detach, konnector, cinder, volume):
    attach()
    konnector.held.add(volume)
    body = {"force": True, "machine_is_gone": True}
    assert "process 4711 (fio)" in message("post", f"/volumes/{volume}/detach", body)
    assert cinder.volume(volume).status == "in-use"
    konnector.held.clear()
    assert "konnector_told" not in detach(**body)["data"]
    assert konnector.volumes == {}


def test_a_konnector_that_answers_with_a_fault_is_asked_again(attach, detach, konnector):
    attach()
    konnector.faults["detach"] = PeerError("konnector of node `n1` answers 500")
    assert "konnector_told" not in detach(force=True)["data"]
    assert konnector.volumes == {}


def test_a_detachment_that_waits_for_its_konnector_is_forced_on(lost, send, detach, cinder, volume):
    waiting = send("post", f"/volumes/{volume}/detach", None, 202)
    assert waiting["state"] == "under_way"
    assert detach(force=True)["id"] == waiting["id"]
    assert cinder.volume(volume).status == "available"


def test_that_a_machine_is_gone_is_said_with_force_only(attach, message, volume):
    attach()
    assert "`machine_is_gone` without `force`" in message(
        "post", f"/volumes/{volume}/detach", {"machine_is_gone": True}, 400
    )


@pytest.fixture
def waiting(send, cinder, konnector, backend, volume):
    """The attachment of a volume waits: its konnector no longer answers once Cinder has made an export."""
    cinder.state.connection_type = "nbd"

    def attach(*_):
        object.__setattr__(backend, "konnectors", away)
        raise PeerError("the connection was cut")

    konnector.attach = attach
    operation = send("post", f"/volumes/{volume}/attach", {"node": "n1"}, 202)
    assert operation["state"] == "under_way"
    return operation


def test_an_attachment_that_waits_for_a_lost_machine_is_given_up_by_force(
    waiting, message, send, detach, cinder, volume, record
):
    assert f"operation `{waiting['id']}` attaches it to node `n1`" in message("post", f"/volumes/{volume}/detach", {})
    operation = detach(force=True)
    assert (operation["data"]["fenced"], operation["data"]["konnector_told"]) == (True, False)
    assert operation["data"]["attachment"] == waiting["data"]["attachment"]
    assert send("get", f"/volumes/operations/{waiting['id']}")["reason"] == "it was ended by `force`"
    assert (cinder.volume(volume).status, cinder.state.attachments) == ("available", {})
    assert (record().node, record().attachment) == ("", "")


def test_an_attachment_that_waits_is_not_given_up_while_the_machine_could_write(
    waiting, message, detach, cinder, volume
):
    (name, found), *_ = cinder.state.attachments.items()
    cinder.state.attachments[name] = dataclasses.replace(found, connection={"driver_volume_type": "rbd"})
    assert "say `machine_is_gone`" in message("post", f"/volumes/{volume}/detach", {"force": True})
    assert detach(force=True, machine_is_gone=True)["data"]["fenced"] is False
    assert cinder.volume(volume).status == "available"


def test_an_attachment_that_is_given_up_is_undone_by_a_konnector_that_is_back(
    waiting, detach, cinder, konnector, backend, volume
):
    konnector.volumes[volume] = {"attachment": waiting["data"]["attachment"], "stack": []}
    object.__setattr__(backend, "konnectors", {"n1": konnector}.__getitem__)
    assert "konnector_told" not in detach(force=True)["data"]
    assert (konnector.volumes, cinder.volume(volume).status) == ({}, "available")


@pytest.mark.parametrize("made", [True, False])
def test_an_attachment_is_given_up_whether_or_not_cinder_has_made_one(made, waiting, detach, cinder, backend, volume):
    operation = ordering.find(backend, waiting["id"])
    before = dataclasses.replace(operation, data={"node": "n1", "export": "block"})
    assert backend.store.run(operations.JOBS.replace(backend.store.keys, operation, before))
    if not made:
        FakeCinder.delete_attachment(cinder, waiting["data"]["attachment"])
    found = detach(force=True)["data"]
    assert found["fenced"] is True
    assert (found["attachment"] != "", found["konnector_told"]) == (made, not made)
    assert (cinder.volume(volume).status, cinder.state.attachments) == ("available", {})
