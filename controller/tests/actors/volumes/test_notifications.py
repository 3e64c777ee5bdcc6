"""Cinder's notifications that become events."""

import json

import pytest

from sluice_actors.volumes.notifications import NAME, CinderNotifications, read_notification
from sluice_core.errors import DecodeError
from sluice_core.messages.events import VOLUME_CREATED, VOLUME_EXTENDED, VOLUME_FAILED

VOLUME = {"volume_id": "v1", "display_name": "data 1", "tenant_id": "p1", "size": 3, "host": "n@nbd#fast"}


def message(kind, payload, **more):
    inner = {"event_type": kind, "payload": payload, "priority": "INFO", **more}
    return json.dumps({"oslo.version": "2.0", "oslo.message": json.dumps(inner)}).encode()


class Ownership:
    def __init__(self, names):
        self.owns = names.__contains__


def test_a_created_volume_is_called_by_id_and_name():
    kind, text, more = read_notification(message("volume.create.end", VOLUME))
    assert kind == VOLUME_CREATED
    assert text == "volume `v1` (`data 1`) was created, 3 GiB"
    assert more == {"subject": "v1", "fields": {"project": "p1", "host": "n@nbd#fast", "size": 3}}


def test_an_extended_volume_has_its_new_size():
    assert read_notification(message("volume.resize.end", {**VOLUME, "size": 7}))[:2] == (
        VOLUME_EXTENDED,
        "volume `v1` (`data 1`) was extended, 7 GiB",
    )


def test_a_scheduler_that_finds_no_pool_says_why():
    properties = {"display_name": "big", "project_id": "p2", "size": 9}
    payload = {"volume_id": "v2", "volume_properties": properties, "reason": "No valid backend was found"}
    kind, text, more = read_notification(message("scheduler.create_volume", payload))
    assert (kind, text) == (VOLUME_FAILED, "volume `v2` (`big`) was not created: No valid backend was found")
    assert more["fields"]["project"] == "p2"


def test_notifications_without_an_envelope_are_read_too():
    body = json.dumps({"event_type": "volume.create.end", "payload": VOLUME}).encode()
    assert read_notification(body)[0] == VOLUME_CREATED


@pytest.mark.parametrize("kind", ["volume.create.start", "snapshot.create.end", "compute.instance.create.end"])
def test_what_is_no_event_is_passed_over(kind):
    assert read_notification(message(kind, {})) is None


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"oslo.message": 3}', message("volume.create.end", {})])
def test_nonsense_is_refused(body):
    with pytest.raises(DecodeError):
        read_notification(body)


@pytest.mark.parametrize(("owned", "logged"), [({NAME}, 1), (set(), 0)])
def test_one_host_logs_and_nonsense_does_not_end_it(owned, logged):
    events = []
    reader = CinderNotifications(
        "amqp://127.0.0.1", "openstack", False, Ownership(owned), lambda *given, **more: events.append((given, more))
    )
    reader.consumer._received("notifications.info", b"nonsense")
    reader.consumer._received("notifications.info", message("volume.create.end", VOLUME))
    assert [given[2] for given, _ in events] == ["cinder/p1"] * logged
