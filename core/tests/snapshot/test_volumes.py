"""Assignments for volumes in a snapshot, which do not apply to objects."""

import pytest

from sluice_core.describe import OBJECTS, VOLUMES
from sluice_core.messages.policies import Change, Target
from sluice_core.messages.predicate import Facts
from sluice_core.messages.registry import Group
from sluice_core.snapshot.reader import SnapshotReader, SnapshotWriter
from sluice_core.store.records import FullState
from sluice_core.testing import assignment

DATA1 = Target("volume", "name", "AUTH_a/id-1")
EACH = Target("volume", "all")
DISKS = Target("volume", "group", "disks")
BOTH = (OBJECTS, VOLUMES)


@pytest.fixture
def writer(tmp_path):
    made = SnapshotWriter(tmp_path)
    made.open()
    made.reload(FullState("h", 0, ()))
    yield made
    made.close()


@pytest.fixture
def reader(writer, tmp_path):
    made = SnapshotReader(tmp_path)
    made.refresh()
    yield made
    assert made.problem == ""
    made.close()


def apply(writer, *puts, **more):
    writer.apply([Change(writer.position.epoch + 1, "h", 0.0, puts=puts, **more)])


def throttle(name, target=DATA1, **more):
    return assignment(f"{name}.0", target=target, keyword="throttling", kind="throttle", about=(VOLUMES,), **more)


def held(candidates):
    """Kind → ids of the assignments in force."""
    return {kind: [one.id for one in pipeline] for kind, pipeline in candidates.resolve(Facts("GET")).items()}


def test_the_narrowest_of_volume_group_all_and_tenant_limits_a_volume(writer, reader):
    group = Group("disks", "volume", ("AUTH_a/id-1", "AUTH_a/id-2")).entries()
    tenant = throttle("tenant", Target("tenant", "name", "AUTH_a"))
    puts = (throttle("own"), throttle("group", DISKS), throttle("all", EACH), tenant)
    for number, expected in enumerate(("own.0", "group.0", "all.0", "tenant.0")):
        apply(writer, *puts[number:], entries=group)
        assert held(reader.find_volume("AUTH_a", "id-1")) == {"throttle": [expected]}
        apply(writer, drops=(expected,))
    assert held(reader.find_volume("AUTH_a", "id-1")) == {}


def test_objects_do_not_meet_what_is_about_volumes_nor_volumes_what_is_about_objects(writer, reader):
    tenant = Target("tenant", "name", "AUTH_a")
    apply(
        writer,
        throttle("each", EACH),
        assignment("nop.0", target=tenant, keyword="nop", about=(VOLUMES,), stage=1),
        assignment("zip.0", target=tenant, keyword="compression", stage=2),
        assignment("key.0", target=tenant, keyword="encryption", about=BOTH, stage=3),
        assignment("odd.0", target=Target("container", "all"), keyword="noop"),
    )
    assert held(reader.find("AUTH_a")) == {"filter": ["odd.0"]}
    apply(writer, drops=("odd.0",))
    assert held(reader.find("AUTH_a", "c", "o")) == {"filter": ["zip.0", "key.0"]}
    assert held(reader.find_volume("AUTH_a", "id-1")) == {"throttle": ["each.0"], "filter": ["nop.0", "key.0"]}
    assert held(reader.find_volume("AUTH_b", "id-1")) == {"throttle": ["each.0"]}


def test_an_answer_is_the_same_object_until_something_of_it_changes(writer, reader):
    apply(writer, throttle("own"))
    first = reader.find_volume("AUTH_a", "id-1")
    apply(writer, throttle("other", Target("volume", "name", "AUTH_a/id-2")), assignment("c.0", "AUTH_a/c"))
    assert reader.find_volume("AUTH_a", "id-1") is first
    apply(writer, throttle("own", params={"max_bw": 1.0}))
    assert reader.find_volume("AUTH_a", "id-1") is not first


def test_an_account_of_which_volumes_alone_are_named_is_still_unnamed_for_objects(writer, reader):
    apply(writer, throttle("own"))
    reader.find("AUTH_a", "c", "o")
    assert set(reader._quiet) == {"AUTH_a"}


def test_what_an_actor_set_for_one_member_is_found_by_that_member_alone(writer, reader):
    apply(writer, throttle("p", EACH, member="AUTH_a/id-1"))
    assert held(reader.find_volume("AUTH_a", "id-1")) == {"throttle": ["p.0"]}
    assert held(reader.find_volume("AUTH_a", "id-2")) == {}


def test_a_group_that_a_volume_joins_later_holds_for_it_from_then_on(writer, reader):
    apply(writer, throttle("group", DISKS))
    assert held(reader.find_volume("AUTH_a", "id-1")) == {}
    apply(writer, entries=Group("disks", "volume", ("AUTH_a/id-1",)).entries())
    assert held(reader.find_volume("AUTH_a", "id-1")) == {"throttle": ["group.0"]}


def test_without_a_snapshot_nothing_holds(tmp_path):
    assert held(SnapshotReader(tmp_path / "absent").find_volume("AUTH_a", "id-1")) == {}
