"""What a written name of a volume may mean."""

import pytest

from sluice_controller.volumes.lookup import find_volumes, volume_targets
from sluice_core.messages.policies import Target
from sluice_core.volumes.messages import VolumeRecord
from sluice_core.volumes.operations import create_record


@pytest.fixture
def found(backend):
    """The ids that a name may mean."""
    return lambda *given: {one.id for one in find_volumes(backend, *given)}


def test_volumes_are_found_by_name_and_id_with_their_records_or_without(order, cinder, backend, found):
    ours = order("post", "/volumes", {"size": 1, "name": "data1"})["volume"]
    theirs = cinder.as_caller("t", "p2").create_volume(1, "data1", "", {}).id
    assert found("data1") == {ours, theirs}
    assert found("data1", "p2") == found(theirs) == {theirs}
    assert found("nothing") == found("00000000-0000-4000-8000-000000000000") == set()
    (record,) = find_volumes(backend, theirs)
    assert (record.path, record.stack, record.fixed) == (f"AUTH_p2/{theirs}", (), 0.0)


@pytest.mark.parametrize("name", ["data1", "AUTH_p2/data1", "ID"])
def test_a_sentence_names_a_volume_by_its_path(cinder, backend, name):
    volume = cinder.as_caller("t", "p2").create_volume(1, "data1", "", {}).id
    written = name.replace("ID", volume)
    assert volume_targets(backend, written) == [Target("volume", "name", f"AUTH_p2/{volume}", written)]
    assert volume_targets(backend, "AUTH_p1/data1") == []


def test_a_slash_may_be_of_the_volumes_name(cinder, backend):
    volume = cinder.as_caller("t", "p2").create_volume(1, "a/b", "", {}).id
    assert [one.name for one in volume_targets(backend, "a/b")] == [f"AUTH_p2/{volume}"]


def test_a_volume_renamed_in_cinder_has_its_new_name_alone(order, cinder, found):
    volume = order("post", "/volumes", {"size": 1, "name": "old"})["volume"]
    cinder._change(volume, name="new")
    assert (found("old"), found("new")) == (set(), {volume})


def test_without_a_cinder_records_are_what_is_known(backend, found):
    backend.store.run(create_record(backend.store.keys, VolumeRecord("v1", "p1", "AUTH_p1", "data1")))
    assert (found("data1"), found("v1"), found("data1", "p2")) == ({"v1"}, {"v1"}, set())
