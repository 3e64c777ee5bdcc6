"""The contract of every Cinder: the fake one and a real one pass these tests.

A subclass has the fixtures ``service`` (an administrator's view), ``caller`` (a member's) and ``stranger`` (a member's
of another project).
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import pytest

from sluice_core.errors import CallerError, Conflict, Forbidden, NotFound
from sluice_volumes.cinder.records import AVAILABLE, IN_USE, OPERATION, CinderVolume

#: Seconds in which a Cinder completes any change.
LIMIT: Final = 60.0
CONNECTOR: Final = {"host": "consumer", "ip": "192.0.2.1"}


def wait_settled(read: Callable[[], Any]) -> Any:
    """Return the result of ``read`` when Cinder has completed its change."""
    deadline = time.monotonic() + LIMIT
    while not (seen := read()).is_settled:
        assert time.monotonic() < deadline, seen
        time.sleep(0.05)
    return seen


def wait_gone(read: Callable[[], Any]) -> None:
    """Return when ``read`` raises NotFound."""
    deadline = time.monotonic() + LIMIT
    while True:
        try:
            seen = read()
        except NotFound:
            return
        assert time.monotonic() < deadline, seen
        time.sleep(0.05)


class CinderContract:
    """The suite."""

    @pytest.fixture
    def volume(self, caller: Any) -> Any:
        """A volume of the caller, which is deleted afterwards."""
        made = caller.create_volume(1, "data 1", "", {OPERATION: uuid.uuid4().hex})
        yield wait_settled(lambda: caller.volume(made.id))
        for attachment in caller.attachments(made.id):
            caller.delete_attachment(attachment.id)
        for snapshot in caller.snapshots(made.id):
            caller.delete_snapshot(snapshot.id)
            wait_gone(partial(caller.snapshot, snapshot.id))
        caller.delete_volume(made.id)
        wait_gone(lambda: caller.volume(made.id))

    def test_pools_are_the_administrators_alone(self, service: Any, caller: Any) -> None:
        pool = service.pools()[0]
        assert "#" in pool.name
        assert pool.capabilities["fabric"]
        with pytest.raises(Forbidden):
            caller.pools()

    def test_a_new_volume_is_found_by_its_operation_and_its_name(
        self, service: Any, caller: Any, volume: CinderVolume
    ) -> None:
        assert (volume.name, volume.size, volume.status) == ("data 1", 1, AVAILABLE)
        mark = {OPERATION: volume.metadata[OPERATION]}
        assert [one.id for one in service.volumes(everybody=True, metadata=mark)] == [volume.id]
        assert volume.id in {one.id for one in caller.volumes(name="data 1")}
        assert service.volume(volume.id).pool
        assert not volume.pool

    def test_strangers_find_nothing(self, stranger: Any, volume: CinderVolume) -> None:
        with pytest.raises(NotFound):
            stranger.volume(volume.id)
        assert volume.id not in {one.id for one in stranger.volumes(everybody=True)}

    def test_a_volume_of_a_type_that_does_not_exist_is_refused(self, caller: Any) -> None:
        with pytest.raises(NotFound, match="nonsense"):
            caller.create_volume(1, "", "nonsense", {})

    def test_a_volume_grows_and_does_not_shrink(self, caller: Any, volume: CinderVolume) -> None:
        caller.extend(volume.id, 2)
        assert wait_settled(lambda: caller.volume(volume.id)).size == 2
        with pytest.raises(CallerError):
            caller.extend(volume.id, 1)

    def test_types_have_one_name_and_are_kept_while_used(self, service: Any, caller: Any) -> None:
        name = f"tier {uuid.uuid4()}"
        made = service.create_type(name, {"sluice:tier": name, "other": "1"})
        service.change_specs(made.id, {"sluice:tier": "x"}, gone=("other",))
        assert next(one for one in service.types() if one.id == made.id).specs == {"sluice:tier": "x"}
        with pytest.raises(Conflict):
            service.create_type(name, {})
        with pytest.raises(Forbidden):
            caller.create_type("mine", {})
        service.delete_type(made.id)
        with pytest.raises(NotFound):
            service.delete_type(made.id)

    def test_a_private_type_is_used_and_seen_by_administrators_alone(self, service: Any, caller: Any) -> None:
        name = f"private {uuid.uuid4()}"
        kind = service.create_type(name, {}, public=False)
        made = service.create_volume(1, "", name, {})
        assert wait_settled(lambda: service.volume(made.id)).type == name
        assert name not in {one.name for one in caller.types()}
        with pytest.raises(CallerError):
            caller.create_volume(1, "", name, {})
        service.delete_volume(made.id)
        wait_gone(lambda: service.volume(made.id))
        assert name in {one.name for one in service.types()}
        service.delete_type(kind.id)

    def test_a_retyped_volume_has_the_other_type(self, service: Any, caller: Any, volume: CinderVolume) -> None:
        kind = service.create_type(f"tier {uuid.uuid4()}", {})
        caller.retype(volume.id, kind.name)
        assert wait_settled(lambda: caller.volume(volume.id)).type == kind.name
        with pytest.raises(CallerError):
            service.delete_type(kind.id)
        caller.retype(volume.id, volume.type)
        wait_settled(lambda: caller.volume(volume.id))
        service.delete_type(kind.id)

    def test_snapshots_are_listed_until_they_are_deleted(self, caller: Any, volume: CinderVolume) -> None:
        made = caller.create_snapshot(volume.id, "before", {OPERATION: "x"})
        found = wait_settled(lambda: caller.snapshot(made.id))
        assert (found.name, found.volume, found.metadata) == ("before", volume.id, {OPERATION: "x"})
        assert [one.id for one in caller.snapshots(volume.id)] == [made.id]
        with pytest.raises(CallerError):
            caller.delete_volume(volume.id)

    def test_an_attachment_tells_how_to_connect_until_it_is_deleted(
        self, service: Any, caller: Any, volume: CinderVolume
    ) -> None:
        made = caller.attach(volume.id, CONNECTOR)
        assert made.connection["driver_volume_type"]
        assert str(made.connection) not in repr(made)
        assert service.attachment(made.id).connection["driver_volume_type"] == made.connection["driver_volume_type"]
        caller.complete_attachment(made.id)
        found = wait_settled(lambda: service.volume(volume.id))
        assert found.status == IN_USE
        assert [(one.id, one.host) for one in found.attachments] == [(made.id, CONNECTOR["host"])]
        assert [one.id for one in caller.attachments(volume.id)] == [made.id]
        with pytest.raises(CallerError):
            caller.attach(volume.id, CONNECTOR)
        caller.delete_attachment(made.id)
        with pytest.raises(NotFound):
            service.attachment(made.id)
        assert wait_settled(lambda: caller.volume(volume.id)).status == AVAILABLE
