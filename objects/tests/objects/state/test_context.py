import pytest

from sluice_objects.api import LARGEST_STATE, Refused, StateTooLarge
from sluice_objects.state.context import CallContext
from sluice_objects.state.items import SortedItems
from sluice_objects.state.records import TYPED, ContentState, ObjectState

BEFORE = ContentState(b"stream", SortedItems({b"b": b"2", b"a": b"1"}), {"n": "1"})


def context(content=BEFORE, writes=True, **parts):
    return CallContext(ObjectState(TYPED, content, version=4, **parts), writes, 100.0, 50.0, "alice", "r1")


def test_a_context_without_changes_shares_everything():
    call = context()
    assert (call.version, call.caller, call.request_id, call.time) == (4, "alice", "r1", 100.0)
    content, snapshots, changed = call.result()
    assert content is BEFORE
    assert not changed
    assert snapshots == {}


def test_changes_that_are_taken_back_are_none():
    call = context()
    call.stream.write(b"S", 0)
    call.stream.write(b"s", 0)
    call.items.set(b"c", b"3")
    call.items.remove(b"c")
    call.items.set(b"a", b"x")
    call.items.set(b"a", b"1")
    call.attributes["n"] = "2"
    call.attributes["n"] = "1"
    call.snapshots.create("s")
    call.snapshots.remove("s")
    assert not call.result().changed


def test_parts_that_did_not_change_are_shared():
    call = context()
    call.attributes["m"] = "1"
    content = call.result().content
    assert content.stream is BEFORE.stream
    assert content.items is BEFORE.items
    assert content.attributes == {"n": "1", "m": "1"}
    assert BEFORE.attributes == {"n": "1"}


def test_a_method_sees_its_own_changes():
    call = context()
    call.stream.write(b"!")
    call.stream.write(b"far", 9)
    assert call.stream.read() == b"stream!\0\0far"
    assert call.stream.read(7, 3) == b"\0\0f"
    call.stream.truncate(2)
    call.stream.truncate(4)
    assert (call.stream.read(), len(call.stream)) == (b"st\0\0", 4)
    call.items.set(b"aa", b"new")
    call.items.remove(b"b")
    assert list(call.items.range()) == [(b"a", b"1"), (b"aa", b"new")]
    assert (len(call.items), call.items.get(b"b")) == (2, None)
    assert call.result().content != BEFORE
    assert dict(BEFORE.items) == {b"a": b"1", b"b": b"2"}


CHANGES = {
    "write": lambda call: call.stream.write(b"x"),
    "truncate": lambda call: call.stream.truncate(0),
    "set": lambda call: call.items.set(b"a", b"1"),
    "remove": lambda call: call.items.remove(b"none"),
    "attribute": lambda call: call.attributes.update(n="1"),
    "delete": lambda call: call.attributes.pop("n"),
    "clear": lambda call: call.attributes.clear(),
}
SNAPSHOTS = {
    "create": lambda call: call.snapshots.create("t"),
    "roll back": lambda call: call.snapshots.roll_back("s"),
    "drop": lambda call: call.snapshots.remove("s"),
}


@pytest.mark.parametrize("change", [*CHANGES.values(), *SNAPSHOTS.values()], ids=[*CHANGES, *SNAPSHOTS])
def test_a_method_that_does_not_write_is_refused_each_change(change):
    call = context(writes=False, snapshots={"s": ContentState()})
    with pytest.raises(Refused, match="does not write") as refused:
        change(call)
    assert refused.value.status == 409
    assert not call.result().changed


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_snapshot_is_read_and_cannot_change(change):
    content = context(snapshots={"s": BEFORE}).snapshots.read("s")
    assert (content.stream.read(), content.items.get(b"a"), dict(content.attributes)) == (b"stream", b"1", {"n": "1"})
    with pytest.raises(TypeError):
        change(content)


def test_a_snapshot_keeps_the_content_of_its_time():
    call = context()
    stream, items = call.stream, call.items
    call.stream.write(b"2")
    call.snapshots.create("two")
    call.stream.truncate(0)
    call.items.set(b"z", b"z")
    call.attributes["n"] = "9"
    call.snapshots.create("one")
    assert call.snapshots.names() == ["one", "two"]
    call.snapshots.roll_back("two")
    assert (stream.read(), items.get(b"z"), call.attributes["n"]) == (b"stream2", None, "1")
    content, snapshots, changed = call.result()
    assert changed
    assert content == snapshots["two"] == ContentState(b"stream2", BEFORE.items, {"n": "1"})
    assert snapshots["one"].attributes == {"n": "9"}


def test_rolling_back_to_the_same_content_changes_nothing():
    equal = ContentState(b"stream", {b"a": b"1", b"b": b"2"}, {"n": "1"})
    call = context(snapshots={"s": equal})
    call.snapshots.roll_back("s")
    content, _, changed = call.result()
    assert content is BEFORE
    assert not changed


def test_unknown_and_repeated_snapshots_are_refused():
    snapshots = context(snapshots={"s": BEFORE}).snapshots
    for use in (snapshots.read, snapshots.roll_back):
        with pytest.raises(Refused, match="no snapshot `t`") as refused:
            use("t")
        assert refused.value.status == 404
    with pytest.raises(Refused, match="is a snapshot `s`"):
        snapshots.create("s")
    assert snapshots.remove("t") is False


def test_what_would_be_too_large_is_refused_before_it_is_allocated():
    call = context()
    for grow in (
        lambda: call.stream.write(b"x", 1 << 40),
        lambda: call.stream.truncate(1 << 40),
        lambda: call.items.set(b"k", bytes(LARGEST_STATE)),
        lambda: call.attributes.update(n="x" * LARGEST_STATE),
    ):
        with pytest.raises(StateTooLarge):
            grow()
    assert not call.result().changed


def test_one_item_written_often_counts_once():
    call = context()
    for number in range(20):
        call.items.set(b"k", bytes([number]) * (LARGEST_STATE // 4))
        call.items.set(b"a", b"1")
    call.items.set(b"l", bytes(LARGEST_STATE // 2))
    with pytest.raises(StateTooLarge):
        call.items.set(b"m", bytes(LARGEST_STATE // 2))


def test_snapshots_of_changes_do_not_take_more_than_a_state():
    call = context()
    call.items.set(b"a", b"2")
    for number in range(3):
        call.stream.write(bytes([number]) * (LARGEST_STATE // 4), 0)
        call.snapshots.create(str(number))
    call.stream.write(b"x")
    call.stream.write(bytes(8), 0)
    with pytest.raises(StateTooLarge):
        call.snapshots.create("4")
    assert call.snapshots.names() == ["0", "1", "2"]


@pytest.mark.parametrize("wrong", [
    lambda call: call.items.set("text", b""),
    lambda call: call.items.set(b"", "text"),
    lambda call: call.attributes.update(a=5),
    lambda call: call.attributes.update({b"a": "b"}),
    lambda call: call.snapshots.create(""),
    lambda call: call.snapshots.create("\ud800"),
    lambda call: call.attributes.update(a="\ud800"),
])  # fmt: skip
def test_other_types_are_refused(wrong):
    call = context()
    with pytest.raises((TypeError, ValueError)):
        wrong(call)
    assert not call.result().changed


def test_time_outs_begin_again_at_a_new_home():
    call = context()  # at home since 50, and it is 100 now
    assert call.remaining(90.0, 15.0) == 5.0
    assert call.remaining(10.0, 60.0) == 10.0
    assert call.remaining(10.0, 20.0) == 0.0
